"""What is made of layers at the edges of what kernels take and choose between, against what was recorded:
RAM, constants, estimated cycles, a sum over the tokens of the C, and one over what kernels say besides it.

Whether their numbers are right is seen elsewhere; what is recorded here changes with any choice, limit or
estimate that one of them is near. The layers are the numbers of drawn_layers.py in drawn_layers.json: those
that meet most of what comparisons and conditions of kernels/ can (mutation/noted_edges.py chooses them).
After a change that is meant: python -m pytest tests/kernels/test_drawn_layers.py --update-golden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import astuple
from functools import wraps
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from counted_firmware import memory
from drawn_layers import PLACES, drawn

from aot_model.errors import CompileError
from aot_model.ir.program import Program
from aot_model.kernels.float32 import block, tiles
from aot_model.kernels.int8 import conv_mve, depthwise_mve, patch_mve, winograd
from aot_model.kernels.int16 import depthwise_lanes_mve
from batch import compiled_case

FILE = Path(__file__).with_name("drawn_layers.json")
TARGETS = sorted({target for target, _ in PLACES})
ESTIMATES: tuple[tuple[Any, str, Callable[[Any], list[float]]], ...] = (
    (block, "cost", lambda cycles: [cycles]),
    (tiles.TiledConvolution, "_of_rectangles", lambda cycles: [cycles]),
    (tiles.TiledConvolution, "_saving", lambda cycles: [cycles]),
    (winograd, "plain_cycles", lambda cycles: [cycles]),
    (winograd, "variants", lambda found: [v for f in found for v in (f.cycles, f.scratch)]),
    (conv_mve, "_cycles_of_one_channel", lambda cycles: [cycles]),
    (patch_mve, "groups_of", lambda groups: [*groups.cost(16), *groups.cost(8)]),
    (depthwise_mve, "fastest_first", lambda found: [cycles for cycles, _ in found]),
    (depthwise_lanes_mve, "fastest_first", lambda found: [cycles for cycles, _ in found]),
)
"""Functions that estimate, and the numbers in what they give."""


def layers(target: str) -> list[str]:
    """Their numbers, with what is changed."""
    return [name.split(":")[0] for name in _recorded()["targets"].get(target, {})]


def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def _noted(numbers: list[float], given: Any, what: Callable[[Any], list[float]]) -> Callable[..., Any]:
    @wraps(given)
    def noted(*arguments: Any, **named: Any) -> Any:
        result = given(*arguments, **named)
        result = list(result) if hasattr(result, "__next__") else result
        numbers.extend(float(v) for v in what(result))
        return result

    return noted


def made(number: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A layer, and what is made of it, in words."""
    found, numbers = drawn(number), list[float]()
    for owner, name, what in ESTIMATES:
        monkeypatch.setattr(owner, name, _noted(numbers, getattr(owner, name), what))
    said = " ".join(f"{k}={v}" for k, v in found.options.items())
    label = f"{number}: {said} {found.layer.name}".replace("  ", " ")
    try:
        compiled = compiled_case(found.case, folder / "m.onnx", "m", found.target)
    except CompileError as error:
        return label, f"refused: {error.problems[0].code}"
    finally:
        monkeypatch.undo()
    costs, text = memory(compiled), compiled.texts["m.c"]
    code = "".join(re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL).split())
    estimates = f", {len(numbers)} estimates {sum(numbers):.2f}" if numbers else ""
    sums = " ".join(f"{crc32(t.encode()):08x}" for t in (code, _facts(compiled.view.program)))
    return label, f"{costs.ram} RAM, {costs.constants} constants{estimates}, {sums}"


def _facts(program: Program) -> str:
    """What kernels say besides their C: where results may lie over inputs, what parameters may be, wishes."""
    words: list[Any] = []
    for call in program.calls():
        words += [
            call.macs,
            *(v for o in call.overlaps for v in astuple(o)),
            *(b.align for b in call.arguments),
        ]
    for b in program.constants():
        words += [b.name, *(v for r in b.admissible for v in astuple(r))]
    return " ".join(map(str, [*words, *(w.least for w in program.wishes.values())]))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_made_of_layers_at_edges(
    target: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = dict(made(number, tmp_path, monkeypatch) for number in layers(target))
    if request.config.getoption("--update-golden"):
        recorded = _recorded()
        recorded["targets"][target] = now
        FILE.write_text(json.dumps(recorded, indent=0) + "\n")
        return
    before = _recorded()["targets"][target]
    other = {k: (v, before.get(k)) for k, v in now.items() if v != before.get(k)}
    assert not other, f"made otherwise than recorded (now, before): {other}"
