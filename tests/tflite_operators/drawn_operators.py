"""Cases of TFLite's operators with several changes at once, drawn at random: options, extents, quantisation,
types, what is constant, what is left out, the numbers. Refused, or what LiteRT's reference kernels compute.

    PYTHONPATH=tests python tests/tflite_operators/drawn_operators.py SEED COUNT [PATTERN] [-v]
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from all_cases import CASES
from case import OpCase

from apart import Apart
from batch import Case, Outcome, run_cases
from tflite_reference import litert

Draw = np.random.Generator
CHANGES, ELEMENTS = 4, 4000
FILE = Path(__file__).with_name("drawn.json")
TYPES = {
    schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32, schema.TensorType.INT8: np.int8,
    schema.TensorType.INT64: np.int64, schema.TensorType.BOOL: np.bool_, schema.TensorType.INT16: np.int16,
    schema.TensorType.UINT8: np.uint8,
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A model that can be changed, and what it is fed."""

    name: str
    model: Any
    fed: tuple[np.ndarray, ...]
    tolerance: float
    kernels: str

    @property
    def graph(self) -> Any:
        return self.model.subgraphs[0]

    def packed(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


@cache
def _cases(pattern: str) -> tuple[OpCase, ...]:
    """One of those that differ in their oracle alone."""
    kept = [c for c in CASES if fnmatch.fnmatch(c.name, pattern) and not c.dims]
    kept = [c for c in kept if c.oracle.startswith("litert") and not c.name.startswith(OPEN)]
    found = {c.model: c for c in sorted(kept, key=lambda c: c.oracle != "litert-all", reverse=True)}
    return tuple(found.values())


def form_of(case: OpCase) -> Form:
    return Form(
        case.name, schema.ModelT.InitFromPackedBuf(case.model, 0), case.inputs, case.tolerance, case.kernels
    )


def _array(form: Form, tensor: Any) -> np.ndarray | None:
    data = form.model.buffers[tensor.buffer].data
    if data is None or tensor.type not in TYPES:
        return None
    array = np.frombuffer(bytes(bytearray(data)), TYPES[tensor.type])
    shape = () if tensor.shape is None else tuple(int(d) for d in tensor.shape)
    return array.reshape(shape) if array.size == np.prod(shape) else None


def _store(form: Form, tensor: Any, array: np.ndarray) -> None:
    form.model.buffers[tensor.buffer].data = np.frombuffer(array.tobytes(), np.uint8)
    tensor.shape = np.asarray(array.shape, np.int32)


def _other_option(form: Form, rng: Draw) -> Form:
    operator = form.graph.operators[rng.integers(len(form.graph.operators))]
    table = operator.builtinOptions or operator.builtinOptions2
    names = sorted(k for k, v in vars(table).items() if isinstance(v, (bool, int, float))) if table else []
    if not names:
        return form
    name = names[rng.integers(len(names))]
    value = getattr(table, name)
    if isinstance(value, bool):
        value = not value
    elif isinstance(value, int):
        value = int(rng.choice([0, 1, 2, 3, value + 1, value - 1, -1]))
    else:
        value = float(np.float32(rng.choice([0.0, 1.0, value * 2, value * 0.7, -value])))
    setattr(table, name, value)
    return form


def _other_extent(form: Form, rng: Draw) -> Form:
    shapes = [tuple(int(d) for d in t.shape) for t in form.graph.tensors if t.shape is not None]
    extents = sorted({d for shape in shapes for d in shape})
    if not extents:
        return form
    old = extents[rng.integers(len(extents))]
    new = int(rng.choice([1, 2, old + 1, max(old - 1, 1), 2 * old, old + 4]))
    for tensor in form.graph.tensors:
        array = _array(form, tensor)
        if tensor.shape is None:
            continue
        shape = tuple(new if d == old else int(d) for d in tensor.shape)
        if array is not None and shape != array.shape and np.prod(shape) <= ELEMENTS:
            _store(form, tensor, np.resize(array, shape))
        elif array is None and form.model.buffers[tensor.buffer].data is None:
            tensor.shape = np.asarray(shape, np.int32)
        quantisation = tensor.quantization
        if quantisation is not None and quantisation.scale is not None and len(quantisation.scale) == old > 1:
            quantisation.scale = np.resize(quantisation.scale, new)
            quantisation.zeroPoint = np.resize(quantisation.zeroPoint, new)
    fed = tuple(np.resize(x, tuple(new if d == old else d for d in x.shape)) for x in form.fed)
    return replace(form, fed=fed)


def _other_scale(form: Form, rng: Draw) -> Form:
    tensors = [t for t in form.graph.tensors if t.quantization and t.quantization.scale is not None]
    seen = {int(k) for o in form.graph.operators for k in (*o.inputs, *o.outputs)}
    tensors = [t for k, t in enumerate(form.graph.tensors) if k in seen and t in tensors]
    tensors = [t for t in tensors if len(t.quantization.scale)]
    if not tensors:
        return form
    tensor = tensors[rng.integers(len(tensors))]
    given = tensor.quantization
    fixed = form.model.buffers[tensor.buffer].data is not None  # LiteRT leaves out zero points of weights
    if rng.random() < 0.6 or fixed or tensor.type not in (schema.TensorType.INT8, schema.TensorType.UINT8):
        given.scale = (np.asarray(given.scale) * rng.choice([0.25, 0.5, 0.9, 1.1, 3.0])).astype(np.float32)
    else:
        limits = np.iinfo(TYPES[tensor.type])
        zero = rng.choice([limits.min, limits.max, 0, int(rng.integers(limits.min, limits.max))])
        given.zeroPoint = np.full(len(given.scale), zero, np.int64)
    return form


def _other_type(form: Form, rng: Draw) -> Form:
    """Quantised tensors of 8 bits in another type."""
    kinds = {t.type for t in form.graph.tensors} & {schema.TensorType.INT8, schema.TensorType.UINT8}
    if kinds != {schema.TensorType.INT8} or any(
        t.type == schema.TensorType.INT16 for t in form.graph.tensors
    ):
        return form
    (old,) = kinds
    new = int(rng.choice([schema.TensorType.UINT8, schema.TensorType.INT16]))
    shift = {schema.TensorType.INT8: 0, schema.TensorType.UINT8: 128, schema.TensorType.INT16: 0}
    places = {int(k): n for n, k in enumerate(form.graph.inputs)}
    fed = list(form.fed)
    for k, tensor in enumerate(form.graph.tensors):
        bias = _array(form, tensor)
        scaled = tensor.quantization is not None and tensor.quantization.scale is not None
        if (
            new == schema.TensorType.INT16
            and tensor.type == schema.TensorType.INT32
            and scaled
            and bias is not None
        ):
            tensor.type = schema.TensorType.INT64  # as LiteRT reads it beside 16 bits
            _store(form, tensor, bias.astype(np.int64))
        if tensor.type != old:
            continue
        array, given = _array(form, tensor), tensor.quantization
        if array is not None and new == schema.TensorType.INT16:
            continue  # weights stay as they are
        tensor.type = new
        if given is not None and given.zeroPoint is not None:
            given.zeroPoint = np.asarray(given.zeroPoint) + shift[new] - shift[old]
            if new == schema.TensorType.INT16:
                given.zeroPoint = np.zeros(len(given.zeroPoint), np.int64)
        if array is not None:
            _store(form, tensor, (array.astype(np.int32) + shift[new] - shift[old]).astype(TYPES[new]))
        if k in places:
            x = fed[places[k]].astype(np.int32) + shift[new] - shift[old]
            fed[places[k]] = (x * (200 if new == schema.TensorType.INT16 else 1)).astype(TYPES[new])
    return replace(form, fed=tuple(fed))


def _other_constants(form: Form, rng: Draw) -> Form:
    """A constant is given at run time, or what is given is a constant."""
    graph = form.graph
    constants = [k for k, t in enumerate(graph.tensors) if _array(form, t) is not None]
    if rng.random() < 0.5 and constants:
        k = constants[rng.integers(len(constants))]
        array = _array(form, graph.tensors[k])
        assert array is not None
        graph.tensors[k].buffer = 0
        graph.inputs = np.asarray([*graph.inputs, k], np.int32)
        return replace(form, fed=(*form.fed, array))
    if len(graph.inputs) < 2:
        return form
    n = int(rng.integers(len(graph.inputs)))
    tensor = graph.tensors[graph.inputs[n]]
    form.model.buffers.append(schema.BufferT())
    tensor.buffer = len(form.model.buffers) - 1
    _store(form, tensor, form.fed[n])
    graph.inputs = np.delete(np.asarray(graph.inputs), n)
    return replace(form, fed=(*form.fed[:n], *form.fed[n + 1 :]))


def _left_out(form: Form, rng: Draw) -> Form:
    operator = form.graph.operators[rng.integers(len(form.graph.operators))]
    if len(operator.inputs) > 1:
        inputs = np.array(operator.inputs)
        inputs[rng.integers(1, len(inputs))] = -1
        operator.inputs = inputs
    return form


def _other_numbers(form: Form, rng: Draw) -> Form:
    if not form.fed:
        return form
    n = int(rng.integers(len(form.fed)))
    x = np.array(form.fed[n])
    how = rng.integers(4)
    if how == 0:
        x = rng.permutation(x.reshape(-1)).reshape(x.shape)
    elif how == 1 and x.dtype.kind in "if":
        x = -x
    elif x.dtype.kind in "iu" and x.dtype.itemsize <= 2:
        limits = np.iinfo(x.dtype)
        wild = rng.integers(limits.min, limits.max, x.shape, endpoint=True)
        x = (wild if how == 2 else rng.choice([limits.min, limits.max], x.shape)).astype(x.dtype)
    elif x.dtype == np.float32:
        x = (x * rng.choice([0.1, 3.0, 20.0])).astype(np.float32)
    return replace(form, fed=(*form.fed[:n], x, *form.fed[n + 1 :]))


OPEN = (
    "SUM-",
    "GREATER",
    "LESS",
    "BATCH_MATMUL-each",
    "DEPTHWISE-int8-int4",
    "NMS",
    "STABLEHLO_SHIFT",
    "DIV-int",
    "EXP-between-integers",
    "LOCAL_RESPONSE",
    "Mfcc",
    "REVERSE_SEQUENCE",
    "CONV_2D-int16-bias32",
    "FULLY_CONNECTED-int16-bias32",
    "UNIDIRECTIONAL_SEQUENCE_LSTM-hy",
)
"""Where LiteRT's numbers are no oracle: sums of integers, which its reference kernels compute wrongly; the
order of int16 with two scales, which they do not scale; products of 16 bits by channel, of which they give
zeros; weights of 4 bits beside 16, which they read as bytes, and biases of 32, as 64; the order of boxes with
one score, which is that of a heap; shifts by more bits than there are; quotients by zero; infinities as
integers; powers and logarithms of negative numbers; sequences longer than memory; hybrid LSTMs with other
activations, which we compute in floats.
"""


STEPS: tuple[Callable[[Form, Draw], Form], ...] = (
    _other_option, _other_option, _other_option, _other_extent, _other_extent, _other_scale, _other_scale,
    _other_type, _other_constants, _left_out, _other_numbers, _other_numbers)  # fmt: skip


Number = tuple[str, int]
"""The name of a case, and the number of a form of it."""


def number_of(seed: int, pattern: str = "*") -> Number:
    """The form of a seed; its case is drawn, too."""
    cases = _cases(pattern)
    return cases[np.random.default_rng(seed).integers(len(cases))].name, seed


def drawn(number: Number) -> Form:
    """A case with a few changes. Shapes of results are those that it had."""
    rng = np.random.default_rng([crc32(number[0].encode()), number[1]])
    form = form_of(next(c for c in _cases("*") if c.name == number[0]))
    for _ in range(rng.integers(1, CHANGES + 1)):
        changed = STEPS[rng.integers(len(STEPS))](copy.deepcopy(form), rng)
        if all(x.size <= ELEMENTS for x in changed.fed):
            form = changed
    return replace(form, name=f"{form.name} drawn {number[1]}")


def at_edges() -> list[Number]:
    """Forms in which conditions and comparisons of the compiler come out as in no case, in none of ONNX's
    samples and in none that was drawn from these: drawn.json, as mutation/noted_edges.py found them.
    """
    return [(name, number) for name, numbers in json.loads(FILE.read_text()).items() for number in numbers]


def results_of(form: Form) -> list[np.ndarray] | None:
    try:
        return litert(form.packed(), form.fed, form.kernels)
    except (RuntimeError, ValueError):  # it refuses the form
        return None


def computed(
    number: Number, oracle: Callable[[Form], list[np.ndarray] | None]
) -> tuple[Form, Case, list[np.ndarray]] | None:
    """A form with the shapes that LiteRT has, and what it gives; None where it gives nothing."""
    form = drawn(number)
    results = oracle(form)
    if results is None or len(form.graph.outputs) != len(results):
        return None  # an output that is there twice counts once
    for k, result in zip(form.graph.outputs, results, strict=True):
        form.graph.tensors[k].shape = np.asarray(result.shape, np.int32)
    return form, Case(form.name, form.packed(), form.fed, options={"arithmetic": "litert-ref"}), results


def wrong(numbers: Sequence[Number]) -> tuple[list[str], int, list[str]]:
    """What is wrong with these forms, how many were compared, what we refuse though LiteRT computes it."""
    oracle = Apart(results_of)
    forms = [one for number in numbers if (one := computed(number, oracle)) is not None]
    outcomes = run_cases([case for _, case, _ in forms], "c", flags=("-O0",))
    found, refused = [], []
    for (form, _, results), outcome in zip(forms, outcomes, strict=True):
        if outcome.status == "refused":
            refused.append(" ".join(outcome.message.split()))
            continue
        problem = _problem(form, results, outcome)
        if problem:
            found.append(f"{form.name}: {problem}")
    return found, len(forms) - len(refused), refused


def problem(number: Number, outcome: Outcome) -> str:
    """What is wrong with an outcome of a form of at_edges()."""
    one = computed(number, results_of)
    return "nobody can tell" if one is None else _problem(one[0], one[2], outcome)


def _problem(form: Form, results: list[np.ndarray], outcome: Outcome) -> str:
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.message}"
    if len(outcome.outputs) != len(results):
        return f"{len(outcome.outputs)} outputs, not {len(results)}"
    for k, (got, want) in enumerate(zip(outcome.outputs, results, strict=True)):
        if got.dtype != want.dtype or got.size != want.size:
            return f"output {k} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        got = got.reshape(want.shape)
        if want.dtype.kind == "f":
            top = float(np.max(np.abs(np.where(np.isfinite(want), want, 0)), initial=0))
            if not np.allclose(
                got, want, rtol=0, atol=max(form.tolerance, 2e-6) * max(top, 1e-30), equal_nan=True
            ):
                return f"output {k} differs by {np.nanmax(np.abs(got - want)):.3g} of {top:.3g}"
        elif not np.array_equal(got, want):
            apart = np.abs(got.astype(np.int64) - want.astype(np.int64))
            return f"output {k}: {np.count_nonzero(apart)} of {apart.size} differ, by {apart.max()} at most"
    return ""


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("seed", type=int)
    options.add_argument("count", type=int)
    options.add_argument("pattern", nargs="?", default="*", help="of the cases' names")
    options.add_argument("-v", "--verbose", action="store_true", help="what is refused, too")
    given = options.parse_args()
    total = refused = 0
    for start in range(given.seed, given.seed + given.count, 480):
        end = min(start + 480, given.seed + given.count)
        problems, compared, no = wrong([number_of(seed, given.pattern) for seed in range(start, end)])
        total, refused = total + compared, refused + len(no)
        shown = [*problems, *(no if given.verbose else ())]
        print(f"{end - given.seed}: {total} compared, {refused} refused", *shown, sep="\n", flush=True)


if __name__ == "__main__":
    main()
