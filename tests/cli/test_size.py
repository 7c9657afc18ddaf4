"""`aot-model size`: code and constants by layer against what binutils say; budgets; other files."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.installation import include_dir

MODEL = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
Captured = pytest.CaptureFixture[str]
COMPILERS = {
    "m4": "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard",
    "host": "gcc",
    "ppc": "powerpc-linux-gnu-gcc",
}
PREFIX = {"m4": "arm-none-eabi-", "host": "", "ppc": "powerpc-linux-gnu-"}


def built(folder: Path, compiler: str, *flags: str) -> list[str]:
    """The words of the command for the model, compiled by hand."""
    words = shlex.split(COMPILERS[compiler])
    if not shutil.which(words[0]):
        pytest.skip(f"needs {words[0]}")
    assert main(["compile", str(MODEL), "-o", str(folder), "--name=m", "--target=c", "-q"]) == 0
    flags = ("-O2", *flags, "-DAOT_MODEL_NO_ADVICE", f"-I{include_dir()}")
    subprocess.run([*words, *flags, "-c", "m.c", "-o", "m.o"], cwd=folder, check=True)
    return ["size", str(folder / "m.json"), str(folder / "m.o"), f"--compiler={COMPILERS[compiler]}"]


def sections(folder: Path, compiler: str) -> tuple[int, int]:
    """Bytes of code, and of all else that is stored, as binutils say."""
    text = subprocess.run([f"{PREFIX[compiler]}objdump", "-h", folder / "m.o"], capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    found = [0, 0]
    for size, flags in re.findall(r"(?m)^ +\d+ \S+ +([0-9a-f]+) .*\n +(.*)$", text):
        if "ALLOC" in flags and "CONTENTS" in flags:
            found["CODE" not in flags] += int(size, 16)
    return found[0], found[1]


@pytest.mark.parametrize("flags", [(), ("-g",), ("-g", "-ffunction-sections", "-fdata-sections")],
                         ids=["plain", "debug", "sections"])  # fmt: skip
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_byte_is_somebodys(
    tmp_path: Path, capsys: Captured, compiler: str, flags: tuple[str, ...]
) -> None:
    """Sums are those of the sections; a layer's constants are those of the metadata, but for padding; with
    debug information little is left between the layers.
    """
    command = built(tmp_path, compiler, *flags)
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["code_bytes"], facts["constant_bytes"]) == sections(tmp_path, compiler)
    parts = [*facts["layers"], *facts["shared"], *facts["rest"]]
    for kind in ("code_bytes", "constant_bytes"):
        assert sum(part[kind] for part in parts) == facts[kind]
        assert all(part[kind] >= 0 for part in parts)
    metadata = json.loads((tmp_path / "m.json").read_text())
    assert [part["name"] for part in facts["layers"]] == [layer["name"] for layer in metadata["layers"]]
    for part, layer in zip(facts["layers"], metadata["layers"], strict=True):
        assert layer["constant_bytes"] <= part["constant_bytes"] <= layer["constant_bytes"] + 64
    between = facts["rest"][0]
    assert between["name"] == "m_run(), between the layers"
    if flags:
        assert 0 < between["code_bytes"] < 0.1 * facts["code_bytes"]
        assert all(part["code_bytes"] for part in facts["layers"] if part["op"] != "Reshape")


def test_budget(tmp_path: Path, capsys: Captured) -> None:
    command = built(tmp_path, "host")
    flash = sum(sections(tmp_path, "host"))
    assert main([*command, f"--max-flash={flash}", "-o", str(tmp_path / "said")]) == 0
    said = (tmp_path / "said").read_text()
    assert re.match(r"m: [\d,]+ bytes of code, [\d,]+ of constants\nlayer  ", said)
    assert main([*command, f"--max-flash={flash - 1}"]) == 1
    error = capsys.readouterr().err
    assert f"m.json: error: needs {flash:,} bytes of flash" in error and "[E402]" in error
    assert said.split("\n", 1)[1].splitlines()[2] in error, "with the table"


def test_functions_of_other_libraries_are_named(tmp_path: Path, capsys: Captured) -> None:
    # with -ffast-math exp() and its like are the C library's, elsewhere they are part of the code
    assert main(built(tmp_path, "host", "-ffast-math")) == 0
    assert "not counted, of other libraries: " in capsys.readouterr().out.splitlines()[-1]


def test_other_files(tmp_path: Path, capsys: Captured) -> None:
    command = built(tmp_path, "host", "-flto", "-fno-fat-lto-objects")
    assert main(command) == 1
    assert "m.o: error: has no code of m_run() [E102]" in capsys.readouterr().err
    whole = (tmp_path / "m.o").read_bytes()
    for content, said in ((b"BC\xc0\xde", "is no object file"), (whole[:200], "is damaged"), (b"", "is no")):
        (tmp_path / "m.o").write_bytes(content)
        assert main(command) == 1
        assert said in capsys.readouterr().err
    (tmp_path / "m.o").unlink()
    assert main(command) == 1
    assert "cannot be read" in capsys.readouterr().err
