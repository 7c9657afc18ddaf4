"""Big-endian machines: `c` is right there (tests/matrix.py runs it), what cannot be says so when it is
compiled.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from aot_model.cli import main
from aot_model.installation import include_dir, probe
from aot_model.targets.detect import resolve

BIG = {"s390x": "qemu-s390x", "powerpc": "qemu-ppc", "m68k": "qemu-m68k", "sparc64": "qemu-sparc64"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with constants of several widths, and its vectors."""
    path = tmp_path_factory.mktemp("order")
    rng = np.random.default_rng(1)
    w, bias, steps = (
        rng.standard_normal((8, 5)).astype(np.float32),
        rng.standard_normal(5).astype(np.float16),
        np.arange(5, dtype=np.int64) * 2**33,
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Cast", ["b"], ["bias"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["p", "bias"], ["y"]),
        helper.make_node("Cast", ["y"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Add", ["whole", "steps"], ["n"]),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 5]),
        helper.make_tensor_value_info("n", TensorProto.INT64, [3, 5]),
    ]
    constants = [numpy_helper.from_array(v, name) for v, name in ((w, "w"), (bias, "b"), (steps, "steps"))]
    graph = helper.make_graph(
        nodes, "order", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 8])], outputs, constants
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path / "m.onnx"
    )
    x = rng.standard_normal((2, 3, 8)).astype(np.float32)
    answers = [ReferenceEvaluator(str(path / "m.onnx")).run(None, {"x": v}) for v in x]
    np.savez(
        path / "v.npz",
        in_0=x,
        out_0=np.stack([a[0] for a in answers]),
        out_1=np.stack([a[1] for a in answers]),
    )
    return path


def _syntax(source: Path, *command: str) -> str:
    done = subprocess.run(
        [*command, "-fsyntax-only", f"-I{include_dir()}", str(source)], capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("machine", BIG)
def test_parameters_in_a_file_are_refused(machine: str, folder: Path, tmp_path: Path) -> None:
    if shutil.which(f"{machine}-linux-gnu-gcc") is None:
        pytest.skip(f"needs gcc for {machine}")
    for params in ("linked", "external"):
        assert (
            main(
                ["compile", str(folder / "m.onnx"), "-o", str(tmp_path), "--target", "c", "--params", params]
            )
            == 0
        )
        text = _syntax(tmp_path / "m.c", f"{machine}-linux-gnu-gcc")
        assert ("--params linked" in text) == (params == "external") == bool(text)


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs gcc for Arm")
def test_cortex_m_is_little_endian(folder: Path, tmp_path: Path) -> None:
    for target, more in (("cortex-m3", ()), ("cortex-m4", ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"))):
        assert main(["compile", str(folder / "m.onnx"), "-o", str(tmp_path), "--target", target]) == 0
        command = ("arm-none-eabi-gcc", f"-mcpu={target}", "-mthumb", *more)
        assert _syntax(tmp_path / "m.c", *command) == ""
        assert "compile for little-endian" in _syntax(tmp_path / "m.c", *command, "-mbig-endian")


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs gcc for Arm")
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
def test_auto_of_a_big_endian_core_is_plain_c(core: str, folder: Path, tmp_path: Path) -> None:
    """What the probe says is code that these flags compile, without advice to take what they cannot."""
    for order, target in (("-mlittle-endian", core), ("-mbig-endian", "c")):
        command = ("arm-none-eabi-gcc", f"-mcpu={core}", "-mthumb", order)
        subprocess.run([*command, "-c", str(probe()), "-o", str(tmp_path / "probe.o")], check=True)
        assert resolve("auto", tmp_path / "probe.o") == target
        assert main(["compile", str(folder / "m.onnx"), "-o", str(tmp_path), "--target", target]) == 0
        assert _syntax(tmp_path / "m.c", *command, "-Wall", "-Werror") == ""


@pytest.mark.parametrize("machine", BIG)
@pytest.mark.parametrize("target", ["c", "host"])
def test_verify(target: str, machine: str, folder: Path) -> None:
    """Constants and arithmetic of several widths; what travels to and from the program is in the order of its
    machine.
    """
    if shutil.which(f"{machine}-linux-gnu-gcc") is None or shutil.which(BIG[machine]) is None:
        pytest.skip(f"needs gcc and qemu-user for {machine}")
    cross = ["--cc", f"{machine}-linux-gnu-gcc", "--runner", f"{BIG[machine]} -L /usr/{machine}-linux-gnu"]
    assert (
        main(
            ["verify", str(folder / "m.onnx"), "--vectors", str(folder / "v.npz"), "--target", target, *cross]
        )
        == 0
    )
