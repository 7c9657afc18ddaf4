"""Attributes that no sample of an operator sets: flags and numbers get another value than the default, for a
sample that bears it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.defs
import pytest
from onnx import helper
from oracles import ONNX_RUNTIME, expected
from rows import Row, label_of, onnx_model, registry_rows, rows_of, rows_of_sequences, values_of
from verdict import ERRS, verdict

from aot_model.errors import CompileError
from aot_model.ir.graph import Node
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.layout import DepthToSpace
from aot_model.ops.registry import OPERATORS, Build
from aot_model.pipeline import Request, compile_model
from batch import run_cases
from onnx_models import model, save, tensor

NOT_COMPARED = {("TopK", "sorted"): "whatever order is right"}
FREE_TEXT = {"pattern", "locale", "delimiter", "default_string"}


def _left_alone(kind: type[Operator], rows: list[Row]) -> Iterator[tuple[str, Any]]:
    """(attribute, another value) of flags and numbers with a default that all samples have."""
    for f in fields(kind):  # type: ignore[arg-type]
        if f.default is MISSING or f.name.startswith("_") or not isinstance(f.default, (int, float)):
            continue
        if any(getattr(row.operator, f.name) != f.default for row in rows):
            continue
        if isinstance(f.default, float):
            yield f.name, f.default * 1.5 if f.default else 0.5
        elif f.default in (0, 1):
            yield f.name, 1 - int(f.default)


def _variants() -> Iterator[Row]:
    for _, kind in sorted(OPERATORS.items()):
        rows = rows_of(kind)
        if not rows or not rows[0].in_onnx:
            continue
        for name, value in _left_alone(kind, rows):
            if (label_of(kind), name) in NOT_COMPARED:
                continue
            for row in rows[:2]:
                sample = replace(row.sample, attributes={**row.sample.attributes, name: value})
                yield Row(f"{row.label}-{name}", kind, row.number, sample)


def _tensors() -> Iterator[Row]:
    """Lists of numbers as the tensors that an operator takes in their place."""
    for _, kind in sorted(OPERATORS.items()):
        names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        places = {
            n: tensor
            for n in names
            for tensor in (f"{n}_as_tensor", f"{n.split('_')[0]}_tensor")
            if tensor in names - {n}
        }
        for row in rows_of(kind) if places else ():
            given = {
                places.get(n, n): _array(v) if n in places else v for n, v in row.sample.attributes.items()
            }
            if given.keys() != row.sample.attributes.keys() and all(v is not None for v in given.values()):
                yield Row(f"{row.label}-tensors", kind, row.number, replace(row.sample, attributes=given))


def _array(value: Any) -> np.ndarray | None:
    array = np.atleast_1d(np.asarray(value))
    return array.astype(np.float32) if array.dtype.kind == "f" else array if array.dtype.kind == "i" else None


def test_attributes_that_no_sample_sets() -> None:
    """Refused by us, or computed by nobody else: nothing is said."""
    rows = [*_variants(), *rows_of_sequences()]
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",), sanitize=False)
    compared, wrong = 0, []
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.status == "refused":
            continue
        with np.errstate(all="ignore"):
            known = expected(row)
        if ONNX_RUNTIME in known.outputs:  # the evaluator leaves some attributes out of account
            known = replace(known, outputs={ONNX_RUNTIME: known.outputs[ONNX_RUNTIME]})
        if not any((oracle, label_of(row.kind)) not in ERRS for oracle in known.outputs):
            continue
        compared += 1
        problem = verdict(row, outcome, known)
        wrong += [f"{row.label}: {problem}"] if problem else []
    assert not wrong, "\n".join(wrong)
    assert compared > 40, compared


def test_words_that_mean_nothing_are_refused() -> None:
    """Another mode would be taken for one of those that there are."""
    asked = {
        (row.kind, f.name): replace(row.sample, attributes={**row.sample.attributes, f.name: "nonsense"})
        for row in registry_rows()
        for f in fields(row.kind)  # type: ignore[arg-type]
        if isinstance(getattr(row.operator, f.name, None), str) and f.name not in FREE_TEXT
    }
    rows = [Row(f"{kind.name} {name}", kind, 0, sample) for (kind, name), sample in asked.items()]
    rows = [row for row in rows if row.in_onnx]  # others are the compiler's own, or in test_qonnx.py
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",), sanitize=False)
    assert len(rows) > 40
    assert not [row.label for row, outcome in zip(rows, outcomes, strict=True) if outcome.status != "refused"]


@pytest.mark.parametrize(("channels", "taken"), [(9, True), (18, True), (6, False), (12, False), (17, False)])
def test_channels_of_a_block_of_three_by_three(channels: int, taken: bool) -> None:
    x = Value("x", TensorType(DType.FLOAT32, (1, channels, 2, 2)))
    with nullcontext() if taken else pytest.raises(OperatorError, match="blocks of 3 x 3 do not fit"):
        assert DepthToSpace(blocksize=3).infer([x])[0].shape == (1, channels // 9, 6, 6)


def test_lists_may_be_tensors() -> None:
    """Whatever ONNX Runtime computes of them."""
    rows = list(_tensors())
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",), sanitize=False)
    asked = [(row, outcome, expected(row)) for row, outcome in zip(rows, outcomes, strict=True)]
    found = {
        row.label: verdict(row, outcome, replace(known, outputs={ONNX_RUNTIME: known.outputs[ONNX_RUNTIME]}))
        for row, outcome, known in asked
        if ONNX_RUNTIME in known.outputs
    }
    assert len(found) > 8 and not any(found.values()), found


def test_what_makes_a_state_of_its_own_draws() -> None:
    """Else one of two would be taken for the other, which has the same attributes and inputs."""
    seen = set()
    for row in registry_rows():
        if row.kind.has("expand"):
            given, nodes = values_of(row), list[Node]()
            row.operator.expand(Build(nodes, "node"), given)
            if any(n.op.draws or any(v and v.state and v not in given for v in n.inputs) for n in nodes):
                seen.add(row.kind)
    assert len(seen) >= 5
    assert not [kind.name for kind in seen if not kind.draws]


def _required() -> Iterator[tuple[Row, str]]:
    """Attributes that the standard requires, with a default here, of samples of an operator."""
    for _, kind in sorted(OPERATORS.items()):
        for row in rows_of(kind)[:3]:
            if not row.in_onnx or not onnx.defs.has(kind.name, kind.domain):
                continue
            schema = onnx.defs.get_schema(kind.name, kind.domain)
            for name in row.sample.attributes:
                if name in schema.attributes and schema.attributes[name].required:
                    yield row, name


REQUIRED = {f"{row.label}-{name}": (row, name) for row, name in _required()}


def test_there_are_required_attributes() -> None:
    assert len(REQUIRED) > 40


@pytest.mark.parametrize("label", REQUIRED)
def test_attributes_that_the_standard_requires(label: str, tmp_path: Path) -> None:
    """A model without one is refused, as ONNX Runtime does: no default is the one that was meant."""
    row, name = REQUIRED[label]
    proto = onnx_model(row)
    node = next(n for n in proto.graph.node if n.op_type == row.kind.name)
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(CompileError) as caught:
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))
    assert any(name in problem.message for problem in caught.value.problems), caught.value


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [("ScaledTanh", {"alpha": 2.0}, "beta"), ("ParametricSoftplus", {"beta": 1.0}, "alpha")],
)
def test_experimental_operators_without_a_factor(
    kind: str, given: dict[str, float], name: str, tmp_path: Path
) -> None:
    """ONNX Runtime refuses them; a factor of 0 would give nothing but zeros."""
    path = save(
        model([helper.make_node(kind, ["x"], ["y"], **given)], [tensor("x", (3,))], [tensor("y", (3,))], {}),
        tmp_path / "m.onnx",
    )
    with pytest.raises(CompileError, match=f"'{name}' is missing"):
        compile_model(Request(path, "m", "c"))


@pytest.mark.parametrize("kernel", ["POLY", "RBF", "SIGMOID"])
def test_kernels_of_support_vectors_without_their_numbers(kernel: str) -> None:
    row = next(
        r
        for r in rows_of(OPERATORS["ai.onnx.ml", "SVMRegressor"])
        if r.sample.attributes.get("kernel_type") == kernel
    )
    attributes = {k: v for k, v in row.sample.attributes.items() if k != "kernel_params"}
    (outcome,) = run_cases(
        [replace(row, sample=replace(row.sample, attributes=attributes)).case], "c", jobs=1
    )
    assert outcome.status == "refused" and "without kernel_params" in outcome.message, outcome
