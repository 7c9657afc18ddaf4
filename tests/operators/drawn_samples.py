"""Samples with several changes at once, drawn at random: attributes, extents, types, constants, what is left
out, the numbers, the version of the standard. Refused, or what ONNX Runtime or the evaluator computes.

    PYTHONPATH=tests python tests/operators/drawn_samples.py SEED COUNT [PATTERN [TARGET]]

Of forms that nobody else computes it is seen that the program runs under sanitizers. On a Cortex-M only those
run whose C is not that for c.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import onnx
import onnx.defs
import onnx.shape_inference
from near_samples import ELEMENTS, OPEN_FORMS_IN_TYPES, OPEN_IN_TYPES, OTHER_NUMBERS, TYPES, converted, near
from oracles import ONNX_RUNTIME, OWN, Expected, expected
from rows import OPSET, RUNTIME, Row, label_of, onnx_model, rows_of
from variants import others
from verdict import verdict

from aot_model.ir.operator import Operator
from aot_model.ops.registry import OPERATORS
from apart import Apart
from batch import Outcome, run_cases

Draw = np.random.Generator
CHANGES = 4
FILE = Path(__file__).with_name("drawn.json")
OPEN = {*OPEN_IN_TYPES, "Bernoulli", "MaxUnpool", "Multinomial", "RandomNormal", "RandomNormalLike",
        "RandomUniform", "RandomUniformLike", "ai.onnx.ml.TreeEnsemble"}  # fmt: skip
"""What is compared for samples alone: random numbers, what becomes of numbers beyond a type, transforms of
scores that ONNX Runtime counts otherwise than the standard."""


def _is_shorter_than_its_cache(row: Row) -> bool:
    """What lies behind a sequence: of ONNX Runtime zeros, or what was there, as memory is shared or not."""
    past, last = row.sample.inputs[3], row.sample.inputs[5]
    return past is not None and last is not None and int(np.min(last, initial=0)) + 1 < np.shape(past)[2]


def _votes_twice(row: Row) -> bool:
    """Of a leaf's votes for the only target ONNX Runtime takes the first; of several it adds them."""
    given = row.sample.attributes
    votes = list(zip(given.get("target_treeids", ()), given.get("target_nodeids", ()), strict=False))
    return given.get("n_targets", 1) == 1 and len(set(votes)) < len(votes)


def _leaves_its_rows(row: Row) -> bool:
    """Indices that no row has: errors for Gather, zeros of ONNX Runtime for its own."""
    data, indices = (np.asarray(x) for x in row.sample.inputs[:2])
    extent = data.shape[row.sample.attributes.get("gather_axis", 0)] if data.ndim else 0
    return bool(((indices < -extent) | (indices >= extent)).any())


NO_ORACLE: dict[str, Callable[[Row], bool]] = {
    "com.microsoft.GatherBlockQuantized": _leaves_its_rows,
    **OPEN_FORMS_IN_TYPES,
    "com.microsoft.GroupQueryAttention": _is_shorter_than_its_cache,
    # ONNX Runtime packs weights with their scales, and gives zeros where only the weights are constants.
    "com.microsoft.MatMulNBits": lambda row: (
        row.sample.attributes.get("accuracy_level") == 4 and 2 not in row.sample.constants
    ),
    "ai.onnx.ml.TreeEnsembleRegressor": _votes_twice,
}
"""Forms for which what others give does not count."""


@cache
def _kinds(pattern: str) -> tuple[type[Operator], ...]:
    found = []
    for _, kind in sorted(OPERATORS.items()):
        rows = rows_of(kind)
        bodies = any(row.has_bodies for row in rows)
        if rows and rows[0].in_onnx and not bodies and fnmatch.fnmatch(label_of(kind), pattern):
            found.append(kind)
    return tuple(found)


@cache
def _attributes(kind: type[Operator]) -> dict[str, list[Any]]:
    return others(kind, rows_of(kind))


def _other_attribute(row: Row, rng: Draw) -> Row:
    known = {k: v for k, v in _attributes(row.kind).items() if not k.startswith("nodes_")}  # a tree is whole
    if not known:
        return row
    name = sorted(known)[rng.integers(len(known))]
    values = known[name]
    value = values[rng.integers(len(values))]
    if isinstance(value, tuple) and value and rng.random() < 0.5:
        value = _other_list(value, rng)
    elif isinstance(value, int) and set(values) - {0, 1} and rng.random() < 0.3:  # no flag
        value = int(value) + int(rng.integers(-2, 3))
    elif isinstance(value, float) and rng.random() < 0.3:
        value = float(np.float32(rng.choice([-value, value * 3, rng.normal(), 0.0])))
    if value is None or value == ():
        attributes = {k: v for k, v in row.sample.attributes.items() if k != name}
    else:
        attributes = {**row.sample.attributes, name: value}
    return replace(row, sample=replace(row.sample, attributes=attributes))


def _other_list(values: tuple[Any, ...], rng: Draw) -> tuple[Any, ...]:
    k = int(rng.integers(len(values)))
    if isinstance(values[k], int):
        return (*values[:k], int(values[k]) + int(rng.integers(-1, 2)), *values[k + 1 :])
    if isinstance(values[k], float):
        return (*values[:k], float(np.float32(values[k] * rng.choice([-1, 0.5, 0]))), *values[k + 1 :])
    return tuple(values[i] for i in rng.permutation(len(values)))


def _other_extent(row: Row, rng: Draw) -> Row:
    """One extent, wherever it is, is another one: as many channels in weights and biases as in the data."""
    arrays = [None if x is None else np.asarray(x) for x in row.sample.inputs]
    extents = sorted({d for a in arrays if a is not None for d in a.shape})
    if not extents:
        return row
    old = extents[rng.integers(len(extents))]
    new = int(rng.choice([1, 2, old + 1, max(old - 1, 1), 2 * old, old + 4]))
    inputs = tuple(
        x if a is None else np.resize(a, tuple(new if d == old else d for d in a.shape))
        for x, a in zip(row.sample.inputs, arrays, strict=True)
    )
    return replace(row, sample=replace(row.sample, inputs=inputs))


def _near_shape(row: Row, rng: Draw) -> Row:
    forms = list(near(row))
    return replace(row, sample=forms[rng.integers(len(forms))].sample) if forms else row


def _other_type(row: Row, rng: Draw) -> Row:
    arrays = [None if x is None else np.asarray(x) for x in row.sample.inputs]
    kinds = sorted({a.dtype.str for a in arrays if a is not None and a.dtype.kind in "iufb"})
    if not kinds:
        return row
    kind, to = kinds[rng.integers(len(kinds))], TYPES[rng.integers(len(TYPES))].numpy
    inputs = tuple(
        converted(a, to) if a is not None and a.dtype.str == kind else x
        for x, a in zip(row.sample.inputs, arrays, strict=True)
    )
    return replace(row, sample=replace(row.sample, inputs=inputs))


def _other_constants(row: Row, rng: Draw) -> Row:
    present = [k for k, x in enumerate(row.sample.inputs) if x is not None]
    if len(present) < 2:
        return row
    k = present[rng.integers(len(present))]
    return replace(row, sample=replace(row.sample, constants=row.sample.constants ^ {k}))


def _left_out(row: Row, rng: Draw) -> Row:
    inputs = list(row.sample.inputs)
    if len(inputs) < 2:
        return row
    k = int(rng.integers(1, len(inputs)))
    inputs[k] = None
    while inputs and inputs[-1] is None:
        inputs.pop()
    constants = frozenset(c for c in row.sample.constants if c < len(inputs) and inputs[c] is not None)
    return replace(row, sample=replace(row.sample, inputs=tuple(inputs), constants=constants))


def _other_numbers(row: Row, rng: Draw) -> Row:
    """Numbers of one input are mixed, of another sign, at the ends of their type, or all the same."""
    present = [
        k for k, x in enumerate(row.sample.inputs) if x is not None and np.asarray(x).dtype.kind in "iufb"
    ]
    present = [k for k in present if np.size(row.sample.inputs[k])]
    if not present:
        return row
    k = present[rng.integers(len(present))]
    array = np.array(row.sample.inputs[k])
    how = rng.integers(5)
    if how == 0:
        array = rng.permutation(array.reshape(-1)).reshape(array.shape)
    elif how == 1 and array.dtype.kind in "if":
        array = -array
    elif how == 2 and array.dtype.kind in "iu":
        array[...] = array.reshape(-1)[rng.integers(array.size)]
    elif how == 3 and array.dtype.kind in "iu" and array.dtype.itemsize <= 2:
        limits = np.iinfo(array.dtype)
        ends = rng.random(array.shape) < 0.5
        array[ends] = rng.choice([limits.min, limits.max], array.shape)[ends]
    else:
        low, high = array.min(), array.max()
        if array.dtype.kind == "f":
            array = rng.uniform(np.nan_to_num(low), np.nan_to_num(high) + 1e-3, array.shape).astype(
                array.dtype
            )
        elif array.dtype.kind in "iu":
            array = rng.integers(low, high, array.shape, endpoint=True, dtype=array.dtype)
    return replace(
        row, sample=replace(row.sample, inputs=(*row.sample.inputs[:k], array, *row.sample.inputs[k + 1 :]))
    )


def _other_version(row: Row, rng: Draw) -> Row:
    domain, name = row.kind.domain, row.kind.name
    if domain == RUNTIME or not onnx.defs.has(name, domain):
        return row
    newest = OPSET if not domain else 5 if domain == "ai.onnx.ml" else 1
    return replace(row, version=int(rng.integers(7 if not domain else 1, newest + 1)))


STEPS: tuple[Callable[[Row, Draw], Row], ...] = (
    _other_attribute, _other_attribute, _other_attribute, _other_extent, _other_extent, _near_shape,
    _other_type, _other_constants, _left_out, _other_numbers, _other_numbers, _other_version)  # fmt: skip


def _is_file(row: Row) -> bool:
    """Whether a node can hold the attributes, and strings are strings: what numpy adds to none is 0."""
    arrays = [np.asarray(x) for x in row.sample.inputs if x is not None]
    if not all(isinstance(v, (str, bytes)) for a in arrays if a.dtype.kind == "O" for v in a.reshape(-1)):
        return False
    try:
        onnx_model(row)
    except (TypeError, ValueError):
        return False
    return True


Form = tuple[str, int]
"""The operator and the number of a form: what is drawn depends on the operator's own samples alone."""


def form_of(seed: int, pattern: str = "*") -> Form:
    """The form of a seed; its operator is drawn, too."""
    kinds = _kinds(pattern)
    return label_of(kinds[np.random.default_rng(seed).integers(len(kinds))]), seed


def drawn(form: Form) -> Row:
    """A sample of the operator with a few changes."""
    label, number = form
    rng = np.random.default_rng([crc32(label.encode()), number])
    (kind,) = (k for k in _kinds("*") if label_of(k) == label)
    rows = rows_of(kind)
    row = rows[rng.integers(len(rows))]
    for _ in range(rng.integers(2, CHANGES + 1)):
        changed = STEPS[rng.integers(len(STEPS))](row, rng)
        if all(x is None or np.size(x) <= ELEMENTS for x in changed.sample.inputs) and _is_file(changed):
            row = changed
    return replace(row, label=f"{row.label} drawn {number}")


def at_edges() -> list[Form]:
    """Forms in which conditions and comparisons of the compiler come out as in no sample and no variant, with
    numbers that somebody else computes: drawn.json, as mutation/noted_edges.py found them.
    """
    return [(label, number) for label, numbers in json.loads(FILE.read_text()).items() for number in numbers]


def oracles_of(form: Form) -> Expected:
    try:
        with np.errstate(all="ignore"):
            return expected(drawn(form))
    except Exception:  # an operator's own reference raises whatever its numpy code raises
        return Expected({}, {})


def wrong(forms: Sequence[Form], target: str = "c") -> tuple[list[str], int]:
    """What is wrong with these forms, and how many were compared with an oracle."""
    said = judged(forms, target)
    return [text for text in said if text], sum(text is not None for text in said)


def judged(forms: Sequence[Form], target: str = "c") -> list[str | None]:
    """What is wrong with each form; "" where nothing is, None where nobody can tell."""
    oracles, rows = Apart(oracles_of), [drawn(form) for form in forms]
    cases = [row.case for row in rows]
    if target.startswith("cortex-"):
        board = target.replace("cortex-", "")
        outcomes = run_cases(cases, target, sanitize=False, board=board, unlike="c")
    else:
        outcomes = run_cases(cases, target, flags=("-O0",) if target == "c" else ("-O2", "-march=native"))
    return [_judged(*one, oracles) for one in zip(forms, rows, outcomes, strict=True)]


def _judged(form: Form, row: Row, outcome: Outcome, oracles: Callable[[Form], Expected | None]) -> str | None:
    if outcome.status in ("refused", "same"):
        return None
    known = _trusted(row, oracles(form) or Expected({}, {}))
    if re.match(r"m\d+ failed", outcome.message) and not known:
        return None  # the program refuses its inputs, as others do
    if outcome.status != "ok":
        return f"{_described(row)}: {outcome.status}: {outcome.message}"
    if not known:
        return None
    problems = [verdict(row, outcome, Expected({o: y}, {}), _allowed(row, y)) for o, y in known.items()]
    return f"{_described(row)}: {problems[0]}" if all(problems) else ""


def problem(form: Form, outcome: Outcome) -> str:
    """What is wrong with an outcome of a form of at_edges()."""
    said = _judged(form, drawn(form), outcome, oracles_of)
    return f"{form}: nobody can tell: {outcome.message}" if said is None else said


def _allowed(row: Row, outputs: list[np.ndarray]) -> float:
    """Some compute float64 in float32; sums of ONNX Runtime's QLinear operators that are ties for us are none
    for a processor with FMA."""
    if row.kind.name.startswith("QLinear"):
        return 1
    return 1e-6 if any(y.dtype == np.float64 for y in outputs) else 0


def _trusted(row: Row, known: Expected) -> dict[str, list[np.ndarray]]:
    """Whoever computes a form of the standard in the standard's shape. Where both do, one must agree: the
    other errs, or it is open. The evaluator alone says nothing of what ONNX Runtime refuses for the numbers'
    sake.
    """
    name = label_of(row.kind)
    if NO_ORACLE.get(name, lambda _: False)(row):
        return {}
    if name in OPEN or (name in OTHER_NUMBERS and ONNX_RUNTIME not in known.outputs):
        return {}
    outputs = {o: y for o, y in known.outputs.items() if o != OWN}
    if row.kind.domain == RUNTIME:
        return outputs
    try:
        model = onnx.shape_inference.infer_shapes(onnx_model(row), check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return {}
    given = row.sample.attributes
    if str(given.get("auto_pad")).startswith("SAME") and "dilations" in given:
        return {}  # of pads: ONNX Runtime leaves dilations out, the evaluator has rules of its own
    if ONNX_RUNTIME not in known.outputs and "NOT_IMPLEMENTED" not in known.refusals.get(ONNX_RUNTIME, ""):
        return {}
    shapes = [_shape(y) for y in model.graph.output]
    return {
        oracle: arrays
        for oracle, arrays in outputs.items()
        if all(s is None or s == y.shape for s, y in zip(shapes, arrays, strict=True))
    }


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """None where it depends on the data."""
    kind = value.type.tensor_type
    if not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
        return None
    return tuple(d.dim_value for d in kind.shape.dim)


def _described(row: Row) -> str:
    inputs = [
        None
        if x is None
        else f"{np.asarray(x).dtype}{list(np.shape(x))}{'c' if k in row.sample.constants else ''}"
        for k, x in enumerate(row.sample.inputs)
    ]
    return f"{row.label} {row.sample.attributes} {inputs} version {row.version}"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("seed", type=int)
    options.add_argument("count", type=int)
    options.add_argument("pattern", nargs="?", default="*", help="of operators")
    options.add_argument("target", nargs="?", default="c")
    given, total = options.parse_args(), 0
    for start in range(given.seed, given.seed + given.count, 480):
        end = min(start + 480, given.seed + given.count)
        forms = [form_of(seed, given.pattern) for seed in range(start, end)]
        problems, compared = wrong(forms, given.target)
        total += compared
        print(f"{end - given.seed}: {total} compared", *problems, sep="\n", flush=True)


if __name__ == "__main__":
    main()
