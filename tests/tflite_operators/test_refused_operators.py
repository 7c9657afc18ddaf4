"""Files that LiteRT runs, but computes something else than they say: refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from tflite_models import INT4, Op, T, build, floats, ints

pytest.importorskip("ai_edge_litert.interpreter")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")


def _option(name: str, value: int) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        setattr(graph.operators[0].builtinOptions, name, value)

    return change


def _scale(tensor: str, factor: float) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        (found,) = (t for t in graph.tensors if t.name == tensor.encode())
        found.quantization.scale = np.asarray(found.quantization.scale, np.float32) * np.float32(factor)

    return change


def _zero(tensor: str, zero: int) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        (found,) = (t for t in graph.tensors if t.name == tensor.encode())
        found.quantization.zeroPoint = np.asarray([zero])

    return change


def _type(number: int, kind: int) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        graph.tensors[number].type = kind

    return change


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("ADD", _option("fusedActivationFunction", 4), "activation TANH is not supported"),
        ("STRIDED_SLICE", _option("shrinkAxisMask", 2), "a step of -1 along axis 1"),
        ("BIDIRECTIONAL_LSTM-True-True", _option("fusedActivationFunction", 0), "without an activation"),
        ("LSTM-int8-plain-litert", _scale("y", 1.25), "another scale than the state"),
        ("LSTM-int8-plain-litert", _scale("c", 0.9), "no power of two"),
        ("LSTM-int8-plain-litert", _zero("i4", 9), "the hidden state has zero point 9, the output 3"),
        ("CONV_2D-int16", _scale("y", 1e-9), r"the result's scale is too small.*2\^14"),
        ("CONV_2D-int8", _scale("y", 1e-20), r"the result's scale is too small.*2\^30"),
        ("PRELU-int8-values-litert", _scale("y", 1e-20), "the result's scale is too small"),
        ("L2_NORMALIZATION", _option("fusedActivationFunction", 1), "activation RELU is not supported"),
        ("DIV-int8-values0-litert", _type(1, schema.TensorType.INT16), "different types: int8.*int16"),
        ("SELECT_V2", _type(2, schema.TensorType.INT32), "inputs have different types: float32.*int32"),
        ("FLOOR_MOD", _type(1, schema.TensorType.FLOAT32), "inputs have different types: int32.*float32"),
        ("SOFTMAX-int8-values-litert", _scale("y", 2), "SOFTMAX has 0.00390625 and -128"),
        ("SOFTMAX-int16-values-litert", _scale("y", 2), "SOFTMAX has 3.05176e-05 and 0"),
        ("LOG_SOFTMAX-int8-values-litert", _scale("y", 2), "LOG_SOFTMAX has 0.0625 and 127"),
        ("TANH-int16-values-litert", _scale("y", 2), "TANH has 3.05176e-05 and 0"),
        ("LOGISTIC-int16-values-litert", _zero("y", 5), "zero point 5; LOGISTIC has 3.05176e-05 and 0"),
        ("LOGISTIC-int16-values-litert", _zero("x0", 5), "with zero point 5"),
        ("L2_NORMALIZATION-int8-values-litert", _zero("y", 5), "L2_NORMALIZATION has 0.0078125 and 0"),
    ],
)  # fmt: skip
def test_refused(name: str, change: Callable[[Any], None], said: str, tmp_path: Path) -> None:
    from all_cases import CASES
    from drawn_operators import form_of

    form = form_of(next(c for c in CASES if c.name == name))
    path = tmp_path / "m.tflite"
    path.write_bytes(form.packed())
    assert compile_model(Request(path, "m", "c", {"arithmetic": "litert-ref"}))
    change(form.graph)
    path.write_bytes(form.packed())
    with pytest.raises(CompileError, match=said):
        compile_model(Request(path, "m", "c", {"arithmetic": "litert-ref"}))


@pytest.mark.parametrize("kind", ["QUANTIZE", "CAST"])
def test_a_result_of_less_than_a_byte(kind: str, tmp_path: Path) -> None:
    """It would saturate at the limits of a byte."""
    tensors = [floats("x", 6), T("y", (6,), INT4, (0.5,))]
    path = tmp_path / "m.tflite"
    path.write_bytes(build(tensors, [Op(kind, (0,), (1,))], [0], [1]))
    with pytest.raises(CompileError, match=r"output of type INT4 is not supported \[E202\]"):
        compile_model(Request(path, "m", "c"))


@pytest.mark.parametrize("perm", [[0, 1, 5], [-4, 1, 2], [0, 1, 1]])
def test_no_permutation(perm: list[int], tmp_path: Path) -> None:
    tensors = [floats("x", 2, 3, 4), ints("p", perm), floats("y", 2, 3, 4)]
    path = tmp_path / "m.tflite"
    path.write_bytes(build(tensors, [Op("TRANSPOSE", (0, 1), (2,))], [0], [2]))
    with pytest.raises(CompileError, match=r"is out of range for rank 3|is not a permutation"):
        compile_model(Request(path, "m", "c"))


@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31), 2**31 - 2**14])
@pytest.mark.parametrize("target", ["c", "cortex-m4", "cortex-m55"])
def test_a_bias_that_leaves_sums_no_room(bias: int, target: str, tmp_path: Path) -> None:
    """LiteRT's accumulators of an LSTM overflow, as ours would, and C says nothing of what that is. The
    largest that no sum of its six or thirteen products takes beyond is taken.
    """
    from all_cases import CASES
    from drawn_operators import form_of

    path = tmp_path / "m.tflite"
    for number in (bias, 2**31 - 2**18):
        form = form_of(next(c for c in CASES if c.name == "LSTM-int8-beyond-litert"))
        biases = [t for t in form.graph.tensors if t.type == schema.TensorType.INT32 and t.buffer]
        buffer = form.model.buffers[biases[0].buffer]
        numbers = np.frombuffer(bytes(bytearray(buffer.data)), np.int32).copy()
        numbers[3] = number
        buffer.data = np.frombuffer(numbers.tobytes(), np.uint8)
        path.write_bytes(form.packed())
        if number == bias:
            with pytest.raises(CompileError, match=r"is not from -21473\d+ to 21473\d+, on which"):
                compile_model(Request(path, "m", target))
        else:
            assert compile_model(Request(path, "m", target))
