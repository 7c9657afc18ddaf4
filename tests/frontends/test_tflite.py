"""The TFLite frontend: what it refuses and how it says so, and what it takes as it is meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from small_tflite import BIAS, CONV, CONVOLUTION, RNG, WEIGHTS, conv, errors_of, save

from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings
from aot_model.frontends.tflite import read_tflite
from aot_model.host.program import build as build_program
from aot_model.pipeline import Request, compile_model
from tflite_models import FLOAT32, INT32, Op, Sparsity, T, build, floats
from tflite_reference import litert

HALF_EMPTY = np.asarray(WEIGHTS * (np.arange(WEIGHTS.size).reshape(WEIGHTS.shape) % 2), WEIGHTS.dtype)


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"x": {"scale": ()}}, "E302", "no quantisation"),
        ({"y": {"scale": ()}}, "E302", "no quantisation"),
        ({"x": {"scale": (0.0,)}}, "E302", "scale 0.0"),
        ({"w": {"scale": (0.1, 0.0, 0.1, 0.1)}}, "E302", "scale 0.0"),
        ({"w": {"scale": (0.1, 0.0, 0.1, 0.1), "data": HALF_EMPTY}}, "E302", "scale 0.0"),
        ({"w": {"scale": (0.1, -0.1, 0.1, 0.1)}}, "E302", "scale -0.1"),
        ({"x": {"scale": (float("nan"),)}}, "E302", "scale nan"),
        ({"x": {"zero": (128,)}}, "E302", "zero point"),
        ({"w": {"scale": (0.1, 0.2, 0.3), "zero": (0, 0, 0)}}, "E302", "3 scales"),
        ({"w": {"zero": (0, 0)}}, "E302", "2 zero points"),
        ({"w": {"axis": 3}}, "E302", "along axis 3"),
        ({"w": {"axis": 7}}, "E302", "along axis 7"),
        ({"w": {"data": b"\0" * 10}}, "E102", "its buffer has 10"),
        ({"x": {"shape": (1, -5, 6, 2)}}, "E102", "shape"),
        ({"x": {"shape": (1, 2**30, 2**30, 2)}}, "E102", "larger than 2 GB"),
        ({"x": {"shape": (1, 5, 6, 3)}}, "E301", "do not fit"),
        ({"y": {"shape": (1, 9, 6, 4)}}, "E301", "declared with shape"),
        ({"y": {"type": FLOAT32}}, "E302", "no quantisation"),
        ({"b": {"data": BIAS[:1], "shape": (3,)}}, "E102", "needs 12 bytes"),
        ({"x": {"type": 5}}, "E202", "STRING"),
    ],
)
def test_contradictions_are_named(tmp_path: Path, changed: dict[str, Any], code: str, words: str) -> None:
    text = errors_of(tmp_path, conv(**changed))
    assert f"[{code}]" in text and words in text


def test_the_quantisation_of_a_bias_is_that_of_nobody(tmp_path: Path) -> None:
    """Older converters give it the axis of the weights, 3 for depthwise ones, or one scale too many; nothing
    reads it.
    """
    for bias in (
        {"axis": 3},
        {"scale": (0.1,) * 3},
        {"scale": (0.0,) * 4},
        {"scale": (0.1,) * 4, "zero": (0,) * 3},
    ):
        model = read_tflite(save(tmp_path, conv(b={"scale": (0.1,) * 4, "zero": (0,) * 4, **bias})))
        assert [n.kind for n in model.graph.nodes] == ["Convolution", "Add", "Requantise"]


@pytest.mark.parametrize("kind", ["ADD", "MUL", "SUB", "MAXIMUM", "SQUARED_DIFFERENCE"])
@pytest.mark.parametrize("field", ["new", "old", "both"])
def test_an_operator_is_the_larger_of_its_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, field: str
) -> None:
    """Quantisers write only the new field of operators that they add, old converters only the old one."""
    unwritten = {"new": "OperatorCodeAddDeprecatedBuiltinCode", "old": "OperatorCodeAddBuiltinCode"}
    if field in unwritten:
        monkeypatch.setattr(tflite, unwritten[field], lambda *_: None)
    tensors = [floats(name, 2, 3) for name in "aby"]
    data = build(tensors, [Op(kind, (0, 1), (2,))], [0, 1], [2])
    fed = [np.asarray(RNG.normal(size=(2, 3)), np.float32) for _ in range(2)]
    compiled = compile_model(Request(save(tmp_path, data), "m", "c"))
    program = build_program(compiled.view, compiled.texts, tmp_path / "c")
    np.testing.assert_allclose(program.run([fed])[0][0], litert(data, fed)[0], rtol=1e-6)


def test_what_a_shape_signature_leaves_open_is_bound(tmp_path: Path) -> None:
    """-1 in the signature: the file's extent, or that of --dim; the shapes of the operators follow."""
    two = [
        replace(CONVOLUTION[0], signature=(-1, 5, -1, 2)),
        *CONVOLUTION[1:3],
        replace(CONVOLUTION[3], signature=(-1, 5, -1, 4)),
    ]
    path = save(tmp_path, build(two, [CONV], [0], [3]))
    assert read_tflite(path).graph.outputs[0].shape == (1, 5, 6, 4)
    assert "--dim x:2=N" in " ".join(read_tflite(path).notes)
    model = read_tflite(path, Bindings({"x:0": 3, "x:2": 9}))
    assert (model.graph.inputs[0].shape, model.graph.outputs[0].shape) == ((3, 5, 9, 2), (3, 5, 9, 4))
    with pytest.raises(CompileError, match=r"--dim x:1.*leaves no such.*\[E203\]\n.*x:0, x:2"):
        read_tflite(path, Bindings({"x:1": 3}))


def test_an_input_can_be_a_constant(tmp_path: Path) -> None:
    model = read_tflite(save(tmp_path, conv()), Bindings(constants={"x": [3.0]}))
    assert not model.graph.inputs
    with pytest.raises(CompileError, match="no such input"):
        read_tflite(save(tmp_path, conv()), Bindings(constants={"z": [3.0]}))


SPARSE = {  # the same tensor, in several orders and with blocks
    "rows": Sparsity((0, 1), (4, ([0, 2, 2, 3, 5], [0, 3, 1, 0, 2]))),
    "columns": Sparsity((1, 0), (4, ([0, 2, 3, 4, 5], [0, 3, 2, 3, 0]))),
    "both": Sparsity((0, 1), (([0, 3], [0, 2, 3]), ([0, 2, 3, 5], [0, 3, 1, 0, 2]))),
    "blocks": Sparsity((0, 1, 2, 3), (2, ([0, 2, 4], [0, 1, 0, 1]), 2, 2), (0, 1)),
}


@pytest.mark.parametrize("width", ["int32", "uint16", "uint8"])
@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_constant_is_densified(tmp_path: Path, name: str, width: str) -> None:
    whole = np.asarray([[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0], [4, 0, 5, 0]], np.float32)
    stored = {"columns": whole.T[whole.T != 0], "blocks": whole.reshape(2, 2, 2, 2).swapaxes(1, 2)}.get(
        name, whole[whole != 0]
    )
    levels = replace(SPARSE[name], width=width)
    weights = T("w", (4, 4), FLOAT32, scale=(), data=np.ascontiguousarray(stored), sparsity=levels)
    tensors = [floats("x", 1, 4), weights, floats("d", 4, 4), floats("y", 1, 4)]
    operators = [
        Op("DENSIFY", (1,), (2,), "DensifyOptions"),
        Op("FULLY_CONNECTED", (0, 2), (3,), "FullyConnectedOptions"),
    ]
    graph = read_tflite(save(tmp_path, build(tensors, operators, [0], [3]))).graph
    assert np.array_equal(np.asarray(graph.nodes[0].inputs[1].data).T, whole)


@pytest.mark.parametrize("broken", [
    Sparsity((0, 0), (4, 4)),
    Sparsity((0, 1), (4, ([0, 2, 1, 3, 5], [0, 3, 1, 0, 2]))),
    Sparsity((0, 1), (4, ([0, 2, 2, 3, 5], [0, 3, 1, 0, 4]))),
    Sparsity((0, 1, 2), (4, 4, 4)),
    Sparsity((0, 1, 2, 3), (2, 2, 3, 2), (0, 1)),
    Sparsity((0,), (4,)),
])  # fmt: skip
def test_a_broken_sparse_constant_is_refused(tmp_path: Path, broken: Sparsity) -> None:
    weights = T("w", (4, 4), FLOAT32, scale=(), data=np.zeros(16, np.float32), sparsity=broken)
    assert "[E102]" in errors_of(
        tmp_path,
        build(
            [floats("x", 1, 4), weights, floats("y", 1, 4)],
            [Op("FULLY_CONNECTED", (0, 1), (2,), "FullyConnectedOptions")],
            [0],
            [2],
        ),
    )


@pytest.mark.parametrize(
    "kind",
    [
        "EXP",
        "LOG",
        "TANH",
        "LOGISTIC",
        "SQRT",
        "RSQRT",
        "SIN",
        "FLOOR",
        "ELU",
        "GELU",
        "HARD_SWISH",
        "SOFTMAX",
        "LOGICAL_NOT",
        "LOGICAL_AND",
    ],
)
def test_functions_of_real_numbers_refuse_integers(tmp_path: Path, kind: str) -> None:
    x, y = T("x", (4,), INT32, scale=()), T("y", (4,), INT32, scale=())
    text = errors_of(
        tmp_path, build([x, y], [Op(kind, (0, 0) if kind == "LOGICAL_AND" else (0,), (1,))], [0], [1])
    )
    assert "[E202]" in text and "int32[4]" in text


@pytest.mark.parametrize("index", [99, -7])
def test_an_index_outside_the_table_is_refused(tmp_path: Path, index: int) -> None:
    text = errors_of(tmp_path, build(CONVOLUTION, [replace(CONV, inputs=(index, 1, 2))], [0], [3]))
    assert "[E102]" in text and f"names tensor {index} of 4" in text
    assert "[E102]" in errors_of(tmp_path, build(CONVOLUTION, [CONV], [index], [3]))


def test_a_tensor_that_nothing_computes_is_refused(tmp_path: Path) -> None:
    assert "which nothing computes" in errors_of(tmp_path, build(CONVOLUTION, [CONV], [], [3]))
    assert "not computed by any operator" in errors_of(tmp_path, build(CONVOLUTION, [], [0], [3]))
    assert "written already" in errors_of(tmp_path, build(CONVOLUTION, [CONV, CONV], [0], [3]))


def test_all_unsupported_operators_are_named_at_once(tmp_path: Path) -> None:
    operators = [
        Op("CUSTOM:Whisper", (0,), (3,)),
        Op("HASHTABLE", (0,), (3,)),
        CONV,
        Op("CUSTOM:Whisper", (0,), (3,)),
        Op("CUSTOM:FlexWhisper", (0,), (3,)),
    ]
    text = errors_of(tmp_path, build(CONVOLUTION, operators, [0], [3]))
    assert "custom operator 'Whisper' is not supported (operator 0, 3)" in text
    assert "operator HASHTABLE is not supported (operator 1)" in text
    assert "look up before the model" in text
    assert "converts without SELECT_TF_OPS" in text


@pytest.mark.parametrize(
    "data",
    [b"", b"TFL3", b"\x1c\0\0\0TFL3", b"\xff" * 4 + b"TFL3" + b"\xff" * 64, b"\x08\0\0\0TFL3" + b"\0" * 64],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    assert "[E102]" in errors_of(tmp_path, data)


def test_another_version_and_named_dimensions_are_refused(tmp_path: Path) -> None:
    assert "version 2" in errors_of(tmp_path, build(CONVOLUTION, [CONV], [0], [3], version=2))
    with pytest.raises(CompileError, match="E203"):
        read_tflite(save(tmp_path, conv()), Bindings({"batch": 2}))


def test_a_loop_of_options_is_refused(tmp_path: Path) -> None:
    """Strides of 0 and unknown paddings and activations."""
    for fields in ({"StrideH": 0}, {"Padding": 7}, {"FusedActivationFunction": 9}, {"DilationHFactor": -1}):
        errors_of(tmp_path, build(CONVOLUTION, [replace(CONV, fields={**CONV.fields, **fields})], [0], [3]))
