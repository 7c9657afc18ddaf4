"""`verify`, `run` and `time` with --on: the model as firmware, in QEMU and by a command of the user."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from aot_model.installation import rules_dir
from onnx_models import save, small_cnn

Captured = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
VERIFY = ["verify", str(DIGITS / "digits.onnx"), "--vectors", str(DIGITS / "digits.npz")]
in_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
BOARD = (
    "qemu-system-arm -machine mps2-an386 -nographic -monitor none -serial none -semihosting-config "
    "enable=on,target=native -kernel"
)


@in_qemu
@pytest.mark.parametrize(
    "core", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"]
)
def test_verify_on_every_core(core: str, capsys: Captured) -> None:
    assert main([*VERIFY, "--target", core, "--on", "qemu"]) == 0
    assert "8 vectors" in capsys.readouterr().out


@in_qemu
def test_flags_that_name_no_core(capsys: Captured) -> None:
    """`--cflags -O3` changes the optimisation; without the core's own flags its code would not compile."""
    seen = []
    for flags in ("-O1", "-O3"):
        assert main(["time", VERIFY[1], "--target=cortex-m55", "--json", "--cflags", flags]) == 0
        seen.append(json.loads(capsys.readouterr().out)["instructions"])
    assert seen[0] > seen[1]
    assert main([*VERIFY, "--target=cortex-m55", "--on", "qemu", "--cflags", "-Os"]) == 0


@in_qemu
@pytest.mark.parametrize("flags", ["-mfloat-abi=soft", "-mfloat-abi=softfp -O1", "-Os -flto"])
def test_flags_that_change_what_is_linked(flags: str) -> None:
    """With two call standards GCC links a library for another instruction set, whose programs hang; link-time
    optimisation does not see what the C library calls.
    """
    assert main([*VERIFY, "--target=cortex-m4", "--on", "qemu", "--cflags", flags]) == 0


@in_qemu
def test_code_for_another_core_is_refused_in_one_line(capsys: Captured) -> None:
    """However much more the compiler says."""
    flags = "-mcpu=cortex-m55+nomve -mthumb -mfloat-abi=hard"
    assert main([*VERIFY, "--target=cortex-m55", "--on", "qemu", "--cflags", flags]) == 1
    error = capsys.readouterr().err
    assert "#error" in error.splitlines()[1] and len(error) < 6000 and "fewer vectors" not in error


@in_qemu
def test_wrong_vectors_are_noticed(tmp_path: Path, capsys: Captured) -> None:
    given = dict(np.load(DIGITS / "digits.npz"))
    given["out_0"] = given["out_0"].copy()
    given["out_0"][3, 0, 4] += 0.25
    np.savez(tmp_path / "v.npz", **given)
    assert (
        main([*VERIFY[:2], "--vectors", str(tmp_path / "v.npz"), "--target=cortex-m4", "--on", "qemu"]) == 1
    )
    output = capsys.readouterr()
    assert "[E602]" in output.err and "differs" in output.out


@in_qemu
def test_layers_and_outputs(tmp_path: Path, capsys: Captured) -> None:
    """Every tensor against the reference; `run` gives what the host gives."""
    model = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["verify", str(model), "--layers", "--target=cortex-m4", "--on", "qemu"]) == 0
    assert "right" in capsys.readouterr().out
    shape = [d.dim_value for d in onnx.load(model).graph.input[0].type.tensor_type.shape.dim]
    np.savez(
        tmp_path / "in.npz", in_0=np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    )
    for target, more in (("cortex-m55", ["--on", "qemu"]), ("c", [])):
        assert (
            main(
                [
                    "run",
                    str(model),
                    "--inputs",
                    str(tmp_path / "in.npz"),
                    "--outputs",
                    str(tmp_path / f"{target}.npz"),
                    "--target",
                    target,
                    *more,
                ]
            )
            == 0
        )
    got, want = (np.load(tmp_path / f"{target}.npz")["out_0"] for target in ("cortex-m55", "c"))
    assert got.shape == want.shape and np.allclose(got, want, atol=1e-5)


@in_qemu
def test_time(capsys: Captured) -> None:
    """The layers together are the run, twice as many runs have the same mean, and a Cortex-M55 needs fewer
    than a Cortex-M0.
    """
    needed = {}
    for core, runs in (("cortex-m0", 1), ("cortex-m4", 1), ("cortex-m4", 3), ("cortex-m55", 1)):
        assert (
            main(["time", str(DIGITS / "digits.onnx"), "--target", core, "--runs", str(runs), "--json"]) == 0
        )
        said = json.loads(capsys.readouterr().out)
        layers = [layer["instructions"] for layer in said["layers"]]
        assert (
            all(n > 0 for n in layers)
            and 0.9 * said["instructions"] < sum(layers) <= said["instructions"] * 1.01
        )
        needed[core, runs] = said["instructions"]
    assert needed["cortex-m55", 1] < needed["cortex-m4", 1] < needed["cortex-m0", 1]
    assert abs(needed["cortex-m4", 1] - needed["cortex-m4", 3]) < 0.02 * needed["cortex-m4", 1]
    assert main(["time", str(DIGITS / "digits.onnx")]) == 0
    output = capsys.readouterr().out
    assert "per MAC" in output and output.splitlines()[-1].startswith("together")


@in_qemu
def test_cycles(capsys: Captured) -> None:
    """What cycles go to adds up, slow flash costs more, the clock says how long, the same each time."""
    command = ["time", str(DIGITS / "digits.onnx"), "--target=cortex-m4", "--json"]
    said = []
    for more in ([], ["--memory=l4-art"], ["--memory=l4-art"], ["--memory=l4-art", "--clock=60M"]):
        assert main([*command, *more]) == 0
        said.append(json.loads(capsys.readouterr().out))
    fast, slow, again, half = said
    assert slow == again and fast["instructions"] == slow["instructions"] < fast["cycles"] < slow["cycles"]
    assert "microseconds" not in fast and slow["clock"] == 120e6 and slow["error"] == "±10 %"
    assert slow["microseconds"] == pytest.approx(slow["cycles"] / 120, abs=0.01)
    assert half["microseconds"] == pytest.approx(2 * slow["microseconds"], abs=0.02)
    for found in (fast, slow):
        assert not found["not_modelled"]
        assert sum(layer["cycles"] for layer in found["layers"]) == pytest.approx(found["cycles"], rel=0.01)
        for layer in found["layers"]:
            assert sum(layer["by_reason"].values()) == pytest.approx(layer["cycles"], abs=len(layer))
    assert not any("flash code" in layer["by_reason"] for layer in fast["layers"])
    assert all("flash code" in layer["by_reason"] for layer in slow["layers"])


@in_qemu
def test_more_cycles_than_the_budget(capsys: Captured) -> None:
    command = ["time", str(DIGITS / "digits.onnx"), "--target=cortex-m4"]
    assert main([*command, "--max-cycles=1M"]) == 0
    assert main([*command, "--max-cycles=0.1M"]) == 1
    said = capsys.readouterr().err
    assert "the budget is 100,000" in said and "conv2" in said and "[E402]" in said


@in_qemu
def test_where_cycles_cannot_be_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Without a compiler for the plug-in: instructions, and why; what was asked of cycles is an error."""
    for program in ("arm-none-eabi-gcc", "qemu-system-arm"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", str(tmp_path))
    command = ["time", str(DIGITS / "digits.onnx"), "--target=cortex-m4"]
    assert main(command) == 0
    output = capsys.readouterr()
    assert "no C compiler of this machine" in output.err and "instructions" in output.out
    for more in ("--max-cycles=1M", "--memory=0ws", "--clock=1M"):
        assert main([*command, more]) == 1
        assert "[E604]" in capsys.readouterr().err
    for wrong, code in (
        (["--memory=fast"], "E501"),
        (["--on=board {elf}", "--clock=1M"], "E501"),
        (["--target=c"], "E501"),
    ):
        assert main([*command, *wrong]) == 1
        assert f"[{code}]" in capsys.readouterr().err


@in_qemu
def test_a_command_of_the_user(tmp_path: Path, capsys: Captured) -> None:
    """Start-up code and linker script of a board, and what runs programs on it, which waits for ever and says
    more than the program.
    """
    folder = rules_dir("toolchains") / "qemu"
    for name in ("startup.c", "mps2.ld", "sections.ld"):
        shutil.copy(folder / name, tmp_path)
    runner = tmp_path / "board"
    runner.write_text(f'#!/bin/sh\necho "flashing $1"\n{BOARD} "$1" | sed "s/^/00:01 /"\nexec sleep 100\n')
    runner.chmod(0o755)
    board = [
        "--with",
        str(tmp_path / "startup.c"),
        "--with",
        str(tmp_path / "mps2.ld"),
        "--on",
        f"{shlex.quote(str(runner))} {{elf}}",
    ]
    board += ["--cflags", "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -Os -nostartfiles"]
    assert main([*VERIFY, "--target=cortex-m4", *board]) == 0
    assert main(["time", VERIFY[1], "--target=cortex-m4", *board]) == 0
    assert "cycles" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--target=c", "--on", "qemu"], "target 'c' is none"),
        (["--target=cortex-m4", "--on", "pyocd-run"], "does not say where the program goes"),
        (["--target=cortex-m4", "--on", "qemu", "--runner", "env"], "--on says what runs it"),
        (["--target=cortex-m4"], "--on qemu"),
    ],
)
def test_mistakes(more: list[str], complaint: str, capsys: Captured) -> None:
    assert main([*VERIFY, *more]) == 1
    assert complaint in capsys.readouterr().err


@in_qemu
@pytest.mark.parametrize(
    ("command", "complaint"),
    [("true {elf}", "did not come to its end"), ("/nowhere/board {elf}", "cannot be executed")],
)
def test_a_runner_that_does_not_run(command: str, complaint: str, capsys: Captured) -> None:
    assert main([*VERIFY, "--target=cortex-m4", "--on", command]) == 1
    assert complaint in capsys.readouterr().err


@in_qemu
def test_integers_arrive_as_they_are(tmp_path: Path) -> None:
    """Every byte of inputs and outputs, negative numbers too."""
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph(
        [node],
        "same",
        [helper.make_tensor_value_info("x", TensorProto.INT16, [3])],
        [helper.make_tensor_value_info("y", TensorProto.INT16, [3])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "same.onnx",
    )
    x = np.arange(-6, 6, dtype=np.int16).reshape(4, 3)
    np.savez(tmp_path / "v.npz", in_0=x, out_0=x)
    assert (
        main(
            [
                "verify",
                str(tmp_path / "same.onnx"),
                "--vectors",
                str(tmp_path / "v.npz"),
                "--target=cortex-m0",
                "--on",
                "qemu",
            ]
        )
        == 0
    )
