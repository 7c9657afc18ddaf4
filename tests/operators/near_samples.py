"""Samples whose inputs have other shapes or types: refused, or the numbers of an oracle, without a read
beyond memory.

    PYTHONPATH=tests python tests/operators/near_samples.py [PATTERN]       all, or of some operators; long

What only we accept is run under sanitizers and compared with nothing.
"""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import onnx
import onnx.shape_inference
from changes import changed
from oracles import EVALUATOR, ONNX_RUNTIME, Expected, expected
from rows import RUNTIME, Row, label_of, onnx_model, registry_rows
from verdict import ERRS, verdict

from aot_model.ir.types import DType
from apart import Apart
from batch import run_cases

ELEMENTS = 5_000
TYPE_PARTS = 30


def _one_number_beside_a_row(row: Row) -> bool:
    """Of the two tensors of QLinearAdd, along their last axis."""
    ends = [np.shape(row.sample.inputs[k])[-1:] or (1,) for k in (0, 3)]
    return ends[0] != ends[1]


ROUNDS_ELSEWHERE = {"com.microsoft.QLinearAdd": _one_number_beside_a_row}
"""Forms for which ONNX Runtime has a loop of its own that adds one factor times the number to each result's
zero point first: what is no tie in float32 then is one for everybody else, so results may be one step apart.
"""


OPEN = {"ReduceMean", "ReduceLogSumExp", "com.microsoft.QLinearReduceMean", "Squeeze", "Einsum"}
"""What they give of no elements, or for an empty list of axes, is open in the standard, or oracles differ."""


def _is_open(row: Row) -> bool:
    return label_of(row.kind) in OPEN and any(x is not None and not np.size(x) for x in row.sample.inputs)


def _of_one_number(row: Row) -> bool:
    shape, axes = np.shape(row.sample.inputs[0]), row.operator.axes  # type: ignore[attr-defined]
    return all(shape[a] == 1 for a in axes if -len(shape) <= a < len(shape))


RUNTIME_ERRS: dict[str, Callable[[Row], bool]] = {
    # A variance of 0, of which a rounding makes less where the processor has FMA: NaN.
    "MeanVarianceNormalization": _of_one_number,
    # The angles of lengths that are no power of two have the digits of a float.
    "DFT": lambda row: np.asarray(row.sample.inputs[0]).dtype == np.float64,
    # It reads beyond images without an element.
    "RoiAlign": lambda row: np.size(row.sample.inputs[0]) == 0,
    # Other random numbers, where it takes the input at all.
    "RandomNormalLike": lambda _: True,
    "RandomUniformLike": lambda _: True,
}
"""Forms where ONNX Runtime errs. The evaluator's count."""


def near(row: Row) -> Iterator[Row]:
    """The row with the shape of one input changed, its numbers repeated or cut."""
    arrays = [None if x is None else np.asarray(x) for x in row.sample.inputs]
    for k, array in enumerate(arrays):
        if array is None or not array.size:
            continue
        for n, shape in enumerate((*changed(array.shape), *_empty(array.shape))):
            if np.prod(shape) <= ELEMENTS:
                inputs = (*arrays[:k], np.resize(array, shape), *arrays[k + 1 :])
                yield Row(
                    f"{row.label} input {k} of {array.dtype}{list(array.shape)} as {list(shape)} ({n})",
                    row.kind,
                    row.number,
                    replace(row.sample, inputs=inputs),
                )


TYPES = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32, DType.INT64,
         DType.UINT64, DType.FLOAT32, DType.FLOAT64, DType.BOOL)  # fmt: skip


def retyped(row: Row) -> Iterator[Row]:
    """The row with all inputs of one type in another type."""
    arrays = [None if x is None else np.asarray(x) for x in row.sample.inputs]
    for kind in dict.fromkeys(a.dtype for a in arrays if a is not None and a.dtype.kind in "iufb"):
        for to in (t.numpy for t in TYPES if t.numpy != kind):
            inputs = tuple(
                converted(a, to) if a is not None and a.dtype == kind else x
                for a, x in zip(arrays, row.sample.inputs, strict=True)
            )
            yield Row(f"{row.label} {kind} as {to}", row.kind, row.number, replace(row.sample, inputs=inputs))


def converted(array: np.ndarray, to: np.dtype) -> np.ndarray:
    """Numbers in another type: those of floats ten times as large in integers, so that they differ."""
    if to.kind == "b":
        return np.asarray(np.nan_to_num(array) % 2 >= 1)
    if to.kind == "f" or array.dtype.kind in "bui":
        return array.astype(to)
    limits = np.iinfo(to)
    whole = np.rint(np.clip(np.nan_to_num(array.astype(np.float64)), -(2**31), 2**31) * 10)
    return np.clip(whole, max(limits.min, -(2**31)), min(limits.max, 2**31 - 1)).astype(to)


OPEN_IN_TYPES = {
    "Cast": "what becomes of floats beyond the type of the result is open",
    "Pow": "what becomes of integers beyond the type is open",
    "ReduceProd": "what becomes of integers beyond the type is open",
    "Dropout": "its random numbers are those of ONNX Runtime in one type, of the evaluator in another",
}
OTHER_NUMBERS = {"GlobalMaxPool", "GroupNormalization", "LRN", "ReduceSumSquare", "Resize", "Unique",
                 "ai.onnx.ml.LinearRegressor", "ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor",
                 "ai.onnx.ml.TreeEnsembleRegressor"}  # fmt: skip
"""What the reference evaluator gives in another type or shape than the standard has, or rounds elsewhere."""


def _leaves_its_type(row: Row) -> bool:
    """Whether numbers of Shrink, which are floats for a while, come back as what the type does not have."""
    x, bias = np.asarray(row.sample.inputs[0]), abs(float(row.sample.attributes.get("bias", 0)))
    if x.dtype.kind not in "iu":
        return False
    limits, real = np.iinfo(x.dtype), x.astype(np.float32).astype(np.float64)
    return bool(np.any(real + bias >= limits.max + 1) or np.any(real - bias <= limits.min - 1))


OPEN_FORMS_IN_TYPES = {"Shrink": _leaves_its_type}
"""What becomes of floats beyond the type of the result is open here, too."""


@cache
def typed() -> tuple[Row, ...]:
    """One of each operator, its attributes and the types and ranks of its inputs."""
    found: dict[str, Row] = {}
    for row in registry_rows():
        if not row.in_onnx or row.has_bodies or label_of(row.kind) in OPEN_IN_TYPES:
            continue
        for form in retyped(row):
            if OPEN_FORMS_IN_TYPES.get(label_of(row.kind), lambda _: False)(form):
                continue
            sample = form.sample
            kinds = [None if x is None else (np.asarray(x).dtype.str, np.ndim(x)) for x in sample.inputs]
            text = repr((label_of(row.kind), sorted(map(repr, sample.attributes.items())), kinds,
                         sorted(sample.constants)))  # fmt: skip
            found.setdefault(text, form)
    return tuple(found.values())


def in_standard(row: Row) -> bool:
    try:
        onnx.shape_inference.infer_shapes(onnx_model(row), check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


def wrong_types(part: int, parts: int) -> tuple[list[str], int]:
    """What is wrong with every so many of the forms in other types, and how many were compared."""
    rows, found, compared = typed()[part::parts], [], 0
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",))
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.status == "refused":
            continue
        if outcome.status != "ok":
            found.append(f"{row.label} {row.sample.attributes}: {outcome.status}: {outcome.message}")
            continue
        if row.kind.domain != RUNTIME and not in_standard(row):
            continue
        with np.errstate(all="ignore"):
            outputs = expected(row).outputs
        first = next((o for o in (ONNX_RUNTIME, EVALUATOR) if o in outputs), None)
        if first is None or (first, label_of(row.kind)) in ERRS:
            continue
        if first == EVALUATOR and label_of(row.kind) in OTHER_NUMBERS:
            continue
        compared += 1
        double = any(y.dtype == np.float64 for y in outputs[first])  # some compute it in float32
        problem = verdict(row, outcome, Expected({first: outputs[first]}, {}), 1e-6 if double else 0)
        found += [f"{row.label} {row.sample.attributes}: {problem}"] if problem else []
    return found, compared


def _empty(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Without an element along one of the axes."""
    for k in range(len(shape)):
        yield (*shape[:k], 0, *shape[k + 1 :])


@cache
def forms(pattern: str = "*") -> tuple[Row, ...]:
    """One of each operator, its attributes and the types of its inputs."""
    found: dict[str, Row] = {}
    for row in registry_rows():
        # Bodies of control flow say their own shapes.
        if row.in_onnx and not row.has_bodies and fnmatch.fnmatch(label_of(row.kind), pattern):
            for form in near(row):
                shapes = [
                    None if x is None else (np.asarray(x).dtype.str, np.shape(x)) for x in form.sample.inputs
                ]
                text = repr(
                    (
                        label_of(row.kind),
                        sorted(map(repr, form.sample.attributes.items())),
                        shapes,
                        sorted(form.sample.constants),
                    )
                )
                found.setdefault(text, form)
    return tuple(found.values())


def oracles_of(pattern: str, number: int) -> Expected:
    """An operator's own reference need not refuse what does not fit."""
    try:
        with np.errstate(all="ignore"):
            return expected(forms(pattern)[number])
    except (ValueError, IndexError):
        return Expected({}, {})


def wrong(numbers: Sequence[int], pattern: str = "*") -> tuple[list[str], int]:
    """What is wrong with these of the forms, and how many were compared with an oracle."""
    oracles, rows = Apart(partial(oracles_of, pattern)), [forms(pattern)[k] for k in numbers]
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",))
    compared, found = 0, []
    for number, row, outcome in zip(numbers, rows, outcomes, strict=True):
        if outcome.status == "refused":
            continue
        if outcome.status != "ok":
            found.append(f"{row.label} {row.sample.attributes}: {outcome.status}: {outcome.message}")
            continue
        known = oracles(number) or Expected({}, {})
        if RUNTIME_ERRS.get(label_of(row.kind), lambda _: False)(row):
            known = replace(known, outputs={o: y for o, y in known.outputs.items() if o != ONNX_RUNTIME})
        if ONNX_RUNTIME in known.outputs:
            known = replace(known, outputs={ONNX_RUNTIME: known.outputs[ONNX_RUNTIME]})
        if not any((oracle, label_of(row.kind)) not in ERRS for oracle in known.outputs):
            continue
        if _is_open(row):
            continue
        compared += 1
        problem = verdict(row, outcome, known, 1 if _rounds_elsewhere(row) else 0)
        found += [f"{row.label} {row.sample.attributes}: {problem}"] if problem else []
    return found, compared


def _rounds_elsewhere(row: Row) -> bool:
    label = label_of(row.kind)
    return label in ROUNDS_ELSEWHERE and ROUNDS_ELSEWHERE[label](row)


def main() -> None:
    pattern = sys.argv[1] if sys.argv[1:] else "*"
    count, step, total = len(forms(pattern)), 480, 0
    for start in range(0, count, step):
        problems, compared = wrong(range(start, min(start + step, count)), pattern)
        total += compared
        print(f"{min(start + step, count)} of {count}, {total} compared", *problems, sep="\n", flush=True)
    if pattern == "*":
        for part in range(TYPE_PARTS):
            problems, compared = wrong_types(part, TYPE_PARTS)
            print(f"types {part + 1} of {TYPE_PARTS}, {compared} compared", *problems, sep="\n", flush=True)


if __name__ == "__main__":
    main()
