"""What operators refuse: every sample with the shape, the type or the numbers of one input changed, the
numbers of an attribute, the number of inputs, or an extent wherever it is, against what is recorded.

Whatever is accepted has the types that are recorded. pytest tests/operators/test_refusals.py --update-golden
records new operators and samples, and what was changed on purpose: read the difference.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rows import Row, graph, label_of, registry_rows, rows_of_sequences

from aot_model.errors import CompileError
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build

FILE = Path(__file__).with_name("refusals.json")
QUANTISED = {"QLinearSoftmax", "QLinearSigmoid", "QLinearAdd", "QLinearGlobalAveragePool", "QLinearConcat"}
MOST_NUMBERS = 100
"""Of a constant that says something about lengths, axes or scales; more are weights."""
MOST_ELEMENTS = 1 << 16
"""Of an input that is made larger."""
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


def _other_numbers(value: Value) -> Iterator[Value]:
    """A constant whose numbers are all zero, of the other sign, or larger, as no length, axis, scale or
    table is.
    """
    data = value.data
    if data is None or data.dtype.kind not in "iuf" or data.size > MOST_NUMBERS:
        return
    with np.errstate(over="ignore"):
        for numbers in (np.zeros_like(data), -data, data + data.dtype.type(7)):
            yield constant(value.name, numbers)


def _variants(value: Value) -> Iterator[Value]:
    for shape in changed(value.shape):
        yield _value(value, shape, value.dtype)
    other = OTHER_TYPES.get(value.dtype.numpy.kind)
    if other is not None:
        yield _value(value, value.shape, DType.of(np.dtype(other)))
    yield from _other_numbers(value)


def _other_values(value: object, model: bool) -> Iterator[object]:
    """What an attribute may be instead. model: the number may come from a file as it is; those of our own
    operators are made by frontends and passes.
    """
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(v, (int, float)) for v in value):
            yield from ((), value[1:], (*value, value[-1]))
            yield from (tuple(factor * v + more for v in value) for factor, more in ((-1, 0), (0, 0), (1, 7)))
    elif isinstance(value, float):
        yield from (-value, value + 7, *((0.0, float("nan"), float("inf")) if model else ()))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (-1, value + 7, *((0,) if model else ()))


def _other_inputs(inputs: Inputs) -> Iterator[Inputs]:
    """One of them left out, the last ones not there, and one more."""
    for k, value in enumerate(inputs):
        if value is not None:
            yield [*inputs[:k], None, *inputs[k + 1 :]]
    yield from (inputs[:k] for k in range(1, len(inputs)))
    yield [*inputs, *inputs[-1:]]


def _together(inputs: Inputs) -> Iterator[Inputs]:
    """All axes of one extent, of every input, by one longer, or twice as long: what asks whether they fit is
    content, and limits come next.
    """
    values = [v for v in inputs if v is not None]
    for extent in sorted({e for v in values for e in v.shape}):
        for other in (extent + 1, 2 * extent + 2):
            shapes = [v and tuple(other if e == extent else e for e in v.shape) for v in inputs]
            if all(shape is None or np.prod(shape) <= MOST_ELEMENTS for shape in shapes):
                yield [v and _value(v, shape or (), v.dtype) for v, shape in zip(inputs, shapes, strict=True)]


def outcomes(row: Row) -> str:
    """A letter for each change of an input, of an attribute, of the number of inputs, of axes together, x
    refused or . accepted, and a number made of the types of what is accepted and of the words that refuse
    the rest.
    Anything else that is raised is an error of ours.
    """
    node = graph(row).nodes[-1]
    types = ""

    def letter(operator: Callable[[], Operator], inputs: Inputs) -> str:
        nonlocal types
        try:
            made = operator()
            found = made.infer(inputs)
            if type(made).expand is not Operator.expand:
                made.expand(Build([], "n"), inputs)
        except (OperatorError, CompileError) as error:
            types += str(error)
            return "x"
        types += str([str(t) for t in found])
        return "."

    letters = ""
    for k, value in enumerate(node.inputs):
        for variant in _variants(value) if value is not None else ():
            letters += letter(lambda: row.operator, [*node.inputs[:k], variant, *node.inputs[k + 1 :]])
    letters += "|"
    for f in fields(row.kind):
        for other in _other_values(getattr(row.operator, f.name), row.kind.domain != "aot"):
            changed = {**row.sample.attributes, f.name: other}
            letters += letter(partial(row.kind, **changed), node.inputs)
    letters += "|"
    bodies = row.has_bodies  # frontends count their inputs
    for inputs in _other_inputs(node.inputs) if not bodies else ():
        letters += letter(lambda: row.operator, inputs)
    letters += "|"
    for inputs in _together(node.inputs) if not bodies else ():
        letters += letter(lambda: row.operator, inputs)
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
    now = {key(row): outcomes(row) for row in (*registry_rows(), *rows_of_sequences())}
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
