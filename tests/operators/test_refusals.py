"""What operators refuse: every sample with the shape or the type of one input changed, against what is
recorded.

Whatever is accepted has the types that are recorded. pytest tests/operators/test_refusals.py --update-golden
records new operators and samples, and what was changed on purpose: read the difference.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rows import Row, graph, label_of, registry_rows

from aot_model.errors import CompileError
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build

FILE = Path(__file__).with_name("refusals.json")
QUANTISED = {"QLinearSoftmax", "QLinearSigmoid", "QLinearAdd", "QLinearGlobalAveragePool", "QLinearConcat"}
OTHER_TYPES = {"f": np.int8, "i": np.float32, "u": np.float32, "b": np.float32, "S": np.int64}


def changed(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes that are near: an axis more in front, one fewer in front, an extent more or fewer at the end,
    any other one more.
    """
    yield (1, *shape)
    if shape:
        yield shape[1:]
        yield (*shape[:-1], shape[-1] + 1)
        yield (*shape[:-1], max(shape[-1] - 1, 1))
        yield (shape[0] + 1, *shape[1:])
        yield (*shape, 1)
    for k in range(1, max(len(shape) - 1, min(len(shape), 2))):
        yield (*shape[:k], shape[k] + 1, *shape[k + 1 :])


def _value(value: Value, shape: tuple[int, ...], dtype: DType) -> Value:
    if value.data is not None:
        return constant(value.name, np.resize(value.data, shape).astype(dtype.numpy))
    return Value(
        value.name,
        TensorType(dtype, shape),
        state=value.state,
        initial=None if value.initial is None else np.resize(value.initial, shape).astype(dtype.numpy),
    )


def outcomes(row: Row) -> str:
    """A letter for each change, x refused or . accepted, and a number made of the types of what is accepted.
    Anything else that is raised is an error of ours.
    """
    node = graph(row).nodes[-1]
    letters, types = "", ""
    for k, value in enumerate(node.inputs):
        if value is None:
            continue
        variants = [(shape, value.dtype) for shape in changed(value.shape)]
        other = OTHER_TYPES.get(value.dtype.numpy.kind)
        variants += [(value.shape, DType.of(np.dtype(other)))] if other is not None else []
        for shape, dtype in variants:
            try:
                inputs = [*node.inputs[:k], _value(value, shape, dtype), *node.inputs[k + 1 :]]
                types += str([str(t) for t in row.operator.infer(inputs)])
                letters += "."
            except (OperatorError, CompileError):
                letters += "x"
    return f"{letters} {zlib.crc32(types.encode()):08x}"


def key(row: Row) -> str:
    """The operator and a number made of the sample, whatever its place among the others."""
    simple = {k: v for k, v in row.sample.attributes.items() if isinstance(v, (int, float, str, tuple, list))}
    text = repr((sorted(simple.items()), sorted(row.sample.constants)))
    for x in row.sample.inputs:
        array = None if x is None else np.asarray(x)
        text += "none" if array is None else f"{array.dtype} {array.shape} {array.tolist()}"
    return f"{label_of(row.kind)} {zlib.crc32(text.encode()):08x}"


@pytest.mark.filterwarnings("error")
def test_what_is_refused_and_what_is_accepted(request: pytest.FixtureRequest) -> None:
    now = {key(row): outcomes(row) for row in registry_rows()}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n")
        return
    before = json.loads(FILE.read_text())
    known = [label for label in now if label in before]
    assert len(known) > 0.9 * len(now), "a tenth of the samples is not recorded: run with --update-golden"
    different = {label: (now[label], before[label]) for label in known if now[label] != before[label]}
    assert not different, f"other refusals or types than recorded (now, before): {different}"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), 1e-45])
def test_a_scale_that_is_none_is_refused_without_warnings(scale: float) -> None:
    """Of every input that is a scale, of operators of quantised tensors; the smallest number is one."""
    for row in registry_rows():
        if row.kind.name not in QUANTISED:
            continue
        node = graph(row).nodes[-1]
        for k, value in enumerate(node.inputs):
            if value is None or value.data is None or value.dtype is not DType.FLOAT32:
                continue
            inputs = [*node.inputs[:k], constant("s", np.full_like(value.data, scale)), *node.inputs[k + 1 :]]
            try:
                row.operator.expand(Build([], "n"), inputs)
            except OperatorError as error:
                assert error.code == "E302"
            else:
                assert scale == 1e-45
