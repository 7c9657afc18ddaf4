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
from changes import other_values, resized, variants
from rows import Row, graph, label_of, registry_rows, rows_of_sequences

from aot_model.errors import CompileError
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import constant
from aot_model.ops.registry import Build

FILE = Path(__file__).with_name("refusals.json")
QUANTISED = {"QLinearSoftmax", "QLinearSigmoid", "QLinearAdd", "QLinearGlobalAveragePool", "QLinearConcat"}
MOST_ELEMENTS = 1 << 16
"""Of an input that is made larger."""


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
                yield [
                    v and resized(v, shape or (), v.dtype) for v, shape in zip(inputs, shapes, strict=True)
                ]


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
        for variant in variants(value) if value is not None else ():
            letters += letter(lambda: row.operator, [*node.inputs[:k], variant, *node.inputs[k + 1 :]])
    letters += "|"
    for f in fields(row.kind):
        for other in other_values(getattr(row.operator, f.name), row.kind.domain != "aot"):
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
