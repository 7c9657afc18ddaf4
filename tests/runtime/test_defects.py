"""Defects of ahead-of-time executors that this one must not have, each shown by itself: see the end of
docs/parity.md.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot_model.emit.metadata import metadata_of
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, small_cnn, tensor
from qemu import COMPILER, available
from sanitizers import sanitized
from tflite_models import Op, T
from tflite_models import build as tflite

INTERFACES = [(), ("positional",), ("packed", "module"), ("module", "positional", "packed", "tvm-ffi")]
COMBINATIONS = list(
    itertools.product(
        ("static", "caller"),
        ("caller", "workspace"),
        ("none", "size", "full"),
        ("linked", "external"),
        INTERFACES,
        (False, True),
    )
)
SHARE = 5
"""Every fifth combination, which is all values of each option with all of every other."""


def test_every_combination_of_options_compiles_or_is_refused(tmp_path: Path) -> None:
    """No two options add up to C that does not compile: what fits compiles strictly, what contradicts is
    named.
    """
    path = save(small_cnn(), tmp_path / "m.onnx")
    refused = 0
    for k, (workspace, io, metadata, params, interfaces, profile) in enumerate(COMBINATIONS[::SHARE]):
        options = Options(workspace, io, metadata, params=params, interfaces=interfaces, profile=profile)
        wrong = bool(interfaces) and (
            io == "workspace"
            or (metadata != "full" and interfaces != ("positional",))
            or ("tvm-ffi" in interfaces and workspace == "caller")
        )
        folder = tmp_path / str(k)
        try:
            write(compile_model(Request(path, "m", "c", library=options)), folder)
        except CompileError as error:
            assert wrong and all(p.code == "E501" for p in error.problems), options
            refused += 1
            continue
        assert not wrong, options
        subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-fsyntax-only", "m.c"], cwd=folder, check=True)
    assert 0 < refused < len(COMBINATIONS[::SHARE])


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("section", [{}, {"flash": ".rodata.flash"}])
def test_no_constant_is_in_a_writable_section(tmp_path: Path, section: dict[str, str]) -> None:
    """Of the object for Cortex-M: sections that are written have no content; those of constants are
    read-only, also when they are named.
    """
    from aot_model.memory import Pool

    library = Options(constant_pools=(Pool("flash"),) if section else (), sections=section)
    write(
        compile_model(Request(save(small_cnn(), tmp_path / "m.onnx"), "m", "cortex-m4", library=library)),
        tmp_path,
    )
    subprocess.run(
        [
            COMPILER,
            "-mcpu=cortex-m4",
            "-mthumb",
            "-mfloat-abi=hard",
            "-mfpu=fpv4-sp-d16",
            f"-I{include_dir()}",
            "-c",
            "m.c",
        ],
        cwd=tmp_path,
        check=True,
    )
    lines = subprocess.run(
        [COMPILER.replace("gcc", "objdump"), "-h", "m.o"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    sections = {
        row.split()[1]: (int(row.split()[2], 16), flags)
        for row, flags in itertools.pairwise(lines)
        if row.strip()[:1].isdigit()
    }
    written = {
        name
        for name, (size, flags) in sections.items()
        if size and "ALLOC" in flags and "LOAD" in flags and "READONLY" not in flags
    }
    assert not written
    assert any(
        name.startswith((section.get("flash", ".rodata"),)) and "READONLY" in flags
        for name, (_, flags) in sections.items()
    )


def _dense(folder: Path) -> Path:
    """An int8 layer of 256 x 64 on ten rows, and one after it."""
    rng = np.random.default_rng(0)
    w = T("w", (64, 256), data=rng.integers(-127, 128, (64, 256)).astype(np.int8), scale=(0.01,), zero=(0,))
    v = T("v", (64, 64), data=rng.integers(-127, 128, (64, 64)).astype(np.int8), scale=(0.01,), zero=(0,))
    tensors = [
        T("x", (10, 256), scale=(0.5,), zero=(3,)),
        w,
        T("h", (10, 64), scale=(0.5,), zero=(0,)),
        v,
        T("y", (10, 64), scale=(0.5,), zero=(7,)),
    ]
    ops = [
        Op("FULLY_CONNECTED", (0, 1, -1), (2,), "FullyConnectedOptions"),
        Op("FULLY_CONNECTED", (2, 3, -1), (4,), "FullyConnectedOptions"),
    ]
    path = folder / "dense.tflite"
    path.write_bytes(tflite(tensors, ops, [0], [4]))
    return path


@pytest.mark.parametrize("target", ["c", "cortex-m4", "cortex-m55"])
def test_int8_takes_a_byte(tmp_path: Path, target: str) -> None:
    """Weights and activations of integer layers: a byte each, and a few words for each channel; no input is
    widened as a whole.
    """
    facts = metadata_of(compile_model(Request(_dense(tmp_path), "m", target)).view)
    weights, channels = 64 * 256 + 64 * 64, 128
    assert weights <= facts.constant_bytes <= 1.1 * weights + 16 * channels
    assert 10 * 64 <= facts.workspace_size < 2 * 10 * 256


def test_reported_input_and_output_bytes_are_those_of_the_tensors(tmp_path: Path) -> None:
    """Not a sum over all calls."""
    facts = metadata_of(compile_model(Request(_dense(tmp_path), "m", "c")).view)
    assert [t.type.nbytes for t in (*facts.inputs, *facts.outputs)] == [2560, 640]
    assert [t["bytes"] for t in (*facts.to_dict()["inputs"], *facts.to_dict()["outputs"])] == [2560, 640]


@pytest.mark.parametrize(
    "kind", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16]
)
def test_absolute_values_of_every_float_type(tmp_path: Path, kind: int) -> None:
    proto = model([helper.make_node("Abs", ["x"], ["y"])], [tensor("x", [5], kind)], [tensor("y", [5], kind)])
    compiled = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    dtype = compiled.view.inputs[0].buffer.type.dtype.numpy
    x = np.asarray([-1.5, 0.0, 2.25, -np.inf, 3.0], np.float32).astype(dtype)
    (got,) = sanitized(compiled.view, compiled.texts, tmp_path / "c").run([[x]])[0]
    np.testing.assert_array_equal(got.astype(np.float32), np.abs(x.astype(np.float32)))


def test_nothing_of_the_day_or_the_machine(tmp_path: Path) -> None:
    """The files of the same model from two folders; neither folder, nor a date, nor a user is in them."""
    texts = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        compiled = compile_model(
            Request(
                save(small_cnn(), tmp_path / name / "m.onnx"), "m", "c", library=Options(params="external")
            )
        )
        texts.append({**compiled.texts, **{k: v.hex() for k, v in compiled.binaries.items()}})
    assert texts[0] == texts[1]
    assert all(str(tmp_path) not in text for text in texts[0].values())
