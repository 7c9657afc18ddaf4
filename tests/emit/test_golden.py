"""What the compiler writes, to be read in review: pytest tests/emit/test_golden.py --update-golden writes it
anew.

All files of two small models for `c`; for each family of kernels and each kind of core the C of one model.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aot_model.emit.view import Options
from aot_model.pipeline import Compiled, Request, compile_model
from emit_models import FAMILIES, dense, movement
from onnx_models import save

GOLDEN = Path(__file__).parent / "golden"


CASES = {
    "dense": (dense, Options()),
    "movement": (movement, Options(workspace="caller", io="workspace", metadata="size")),
}
CORES = ("c", "host", "cortex-m0", "cortex-m4", "cortex-m55")


def compare(texts: dict[str, str], update: bool) -> None:
    if update:
        GOLDEN.mkdir(exist_ok=True)
        for file, text in texts.items():
            (GOLDEN / file).write_text(text)
        return
    for file, text in texts.items():
        assert text == (GOLDEN / file).read_text(), (
            f"{file} has changed: read it, then run with --update-golden"
        )


def masked(compiled: Compiled) -> dict[str, str]:
    """The texts without the digest of the model, since protobuf's bytes may change with its version, and the
    number that depends on it.
    """
    return {
        n: re.sub(
            r"(_BUILD (?:!= )?)0x[0-9a-f]{16}u",
            rf"\g<1>0x{'0' * 16}u",
            t.replace(compiled.view.sha256, "0" * 64),
        )
        for n, t in compiled.texts.items()
    }


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("family", FAMILIES)
def test_golden_kernels(family: str, core: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    compiled = compile_model(
        Request(
            save(FAMILIES[family](), tmp_path / f"{family}.onnx"),
            family,
            core,
            library=Options(metadata="none"),
        )
    )
    text = masked(compiled)[f"{family}.c"].split("\n/* ---- values of")[0]
    compare(
        {f"{family}_{core.replace('-', '_')}.c": text + "\n"}, request.config.getoption("--update-golden")
    )


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    make, options = CASES[name]
    compiled = compile_model(Request(save(make(), tmp_path / f"{name}.onnx"), name, "c", library=options))
    compare(masked(compiled), request.config.getoption("--update-golden"))
