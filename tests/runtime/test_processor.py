"""What generated C takes for granted of a processor: where it is not so, the file does not compile, and says
why.

GCC's limits.h and float.h follow the macros that tell what the processor has; other values of these macros
stand for processors with an int of 16 bits (AVR, MSP430), a float of another format, doubles of 32 bits (RX,
AVR).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write

SMALL_INT = ("-U__INT_MAX__", "-D__INT_MAX__=32767")
SMALL_FLOAT = ("-U__FLT_MANT_DIG__", "-D__FLT_MANT_DIG__=16")
SMALL_DOUBLE = ("-U__DBL_MANT_DIG__", "-D__DBL_MANT_DIG__=24")


def _file(folder: Path, kind: int) -> Path:
    """A model that adds a constant to its input, in that type."""
    types = [helper.make_tensor_value_info(n, kind, [4]) for n in "xy"]
    one = onnx.numpy_helper.from_array(np.ones(4, helper.tensor_dtype_to_np_dtype(kind)), "one")
    node = helper.make_node("Add", ["x", "one"], ["y"])
    graph = helper.make_graph([node], "g", types[:1], types[1:], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    write(compile_model(Request(folder / "m.onnx", "m", "c")), folder)
    return folder / "m.c"


def _said(file: Path, *flags: str) -> str:
    """What gcc says of the file; nothing where it compiles."""
    command = ["gcc", *STRICT, *flags, f"-I{include_dir()}", "-c", file.name, "-o", "m.o"]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (SMALL_INT, "int of at least 32"),
        (SMALL_FLOAT, "float of 32 bits"),
        (SMALL_DOUBLE, "doubles of 64 bits"),
    ],
)
def test_processors_that_do_not_fit_are_refused(flags: tuple[str, ...], words: str, tmp_path: Path) -> None:
    file = _file(tmp_path, TensorProto.DOUBLE)
    assert _said(file) == ""
    said = _said(file, *flags)
    assert "#error" in said and words in said


def test_doubles_are_asked_for_where_they_are_used(tmp_path: Path) -> None:
    assert _said(_file(tmp_path, TensorProto.FLOAT), *SMALL_DOUBLE) == ""
