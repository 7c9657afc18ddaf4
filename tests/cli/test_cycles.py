"""`aot-model cycles`: the object of a build, as `time` says it of the same code; and what cannot be said."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.host.firmware import QEMU, Board
from aot_model.installation import include_dir
from aot_model.targets.cores import CORES

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
Captured = pytest.CaptureFixture[str]
MODEL = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
GCC = "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"


def built(folder: Path, *flags: str, options: tuple[str, ...] = ()) -> list[str]:
    """The words of the command for the model, compiled by hand."""
    assert main(["compile", str(MODEL), "-o", str(folder), "--name=m", "--target=cortex-m4", *options]) == 0
    subprocess.run([*GCC.split(), "-O2", *flags, f"-I{include_dir()}", "-c", "m.c", "-o", "m.o"],
                   cwd=folder, check=True)  # fmt: skip
    return ["cycles", str(folder / "m.json"), str(folder / "m.o"), f"--compiler={GCC}"]


def together(text: str) -> int:
    """The cycles of the last line."""
    return int(re.split(r"\s{2,}", text.splitlines()[-1])[3].replace(",", ""))


@pytest.mark.parametrize(
    "options", [(), ("--io=workspace",), ("--workspace=caller",), ("--params=external",)],
    ids=["plain", "io", "caller", "params"])  # fmt: skip
def test_as_time_says(tmp_path: Path, capsys: Captured, options: tuple[str, ...]) -> None:
    """The same code on other inputs; a table by layer; a budget that it keeps, and one that it does not."""
    command = built(tmp_path, "-g", options=options)
    capsys.readouterr()
    assert main([*command, "--memory=l4-art", "-o", str(tmp_path / "said.txt")]) == 0
    said = (tmp_path / "said.txt").read_text()
    assert main(["time", str(MODEL), "--target=cortex-m4", "--memory=l4-art"]) == 0
    assert abs(together(said) / together(capsys.readouterr().out) - 1) < 0.1
    assert "conv2" in said and "120 MHz" in said
    limit = together(said)
    assert main([*command, "--memory=l4-art", f"--max-cycles={limit}"]) == 0
    assert main([*command, "--memory=l4-art", f"--max-cycles={limit - 1}"]) == 1
    assert "[E402]" in capsys.readouterr().err


def test_the_memory_that_a_library_was_compiled_for(tmp_path: Path, capsys: Captured) -> None:
    """Is that of its estimates, unless another is asked for."""
    command = built(tmp_path, "-g", options=("--memory=l4-art",))
    capsys.readouterr()
    said = []
    for more in ([], ["--memory=l4-art"], ["--memory=0ws"]):
        assert main([*command, *more]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and together(said[2]) < 0.95 * together(said[0])
    given = [*command[1:2], "-o", str(tmp_path / "main.c"), "--objects", command[2], command[3]]
    for more, memory in (([], "l4-art"), (["--memory=tcm"], "tcm")):
        assert main(["benchmark-main", *given, *more]) == 0
        assert f" cycles per inference, estimated (m4, {memory}; error " in (tmp_path / "main.c").read_text()


def test_what_cannot_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """Each is an error, never a budget that is kept."""
    command = built(tmp_path)
    assert main([*command, "--max-cycles=1G"]) == 1
    assert "no debug information of m_run()" in capsys.readouterr().err
    command = built(tmp_path, "-g")
    assert main([*command[:3], "--compiler=arm-none-eabi-gcc -mcpu=cortex-a9", "--max-cycles=1G"]) == 1
    assert "no rules for the cycles of 'cortex-a9'" in capsys.readouterr().err
    assert main([*command[:2], str(tmp_path / "gone.o"), command[3], "--max-cycles=1G"]) == 1
    assert "[E601]" in capsys.readouterr().err
    (tmp_path / "bin").mkdir()
    for program in ("arm-none-eabi-gcc", "cc"):
        (tmp_path / "bin" / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert main([*command, "--max-cycles=1G"]) == 1
    assert "'qemu-system-arm' is not installed [E604]" in capsys.readouterr().err


def test_benchmark_says_the_estimate(tmp_path: Path, capsys: Captured) -> None:
    """In QEMU, which counts no cycles, the program prints what was estimated of its library; or why not."""
    command = built(tmp_path)
    library, objects = command[1:3]
    said = []
    right = ["--objects", objects, command[3], "--memory=l4-art"]
    for more in ([], right, ["--objects", "gone.o", command[3]]):
        assert main(["benchmark-main", library, "-o", str(tmp_path / "main.c"), "--runs=2", *more]) == 0
        core = next(core for core in CORES if core.name == "cortex-m4")
        board = Board.for_core(core, QEMU)
        strict = ["-std=gnu99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
        files = ["main.c", "m.o", *board.sources, *board.link, "-lm", "-o", "bench.elf"]
        subprocess.run([*GCC.split(), *strict, f"-I{include_dir()}", *files], cwd=tmp_path, check=True)
        run = [word.replace("{elf}", "bench.elf") for word in board.runner]
        said.append(subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert "m: no cycles are counted here" in said[0]
    assert re.search(r"m: \d{3},\d{3} cycles per inference, estimated \(m4, l4-art; error ±10 %\)", said[1])
    assert "m: cycles are not estimated: a program for QEMU cannot be linked" in said[2]
