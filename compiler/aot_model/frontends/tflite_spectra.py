"""TFLite: Fourier transforms and complex numbers. A complex value is two: the real part stands for it, the
imaginary part is kept beside (`Host.imaginary`). What only moves elements, or adds them, does so with each
part.
"""

from __future__ import annotations

from dataclasses import replace

from aot_model.frontends.tflite_conversion import Conversion, Rule, rule
from aot_model.frontends.tflite_movement import slices
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.movement import Pad
from aot_model.ops.signal import fourier

_BY_PART = frozenset(
    (
        "RESHAPE",
        "SQUEEZE",
        "EXPAND_DIMS",
        "TRANSPOSE",
        "SLICE",
        "STRIDED_SLICE",
        "CONCATENATION",
        "PACK",
        "UNPACK",
        "SPLIT",
        "SPLIT_V",
        "GATHER",
        "REVERSE_V2",
        "TILE",
        "ADD",
        "SUB",
        "NEG",
    )
)
_OF_BOTH = frozenset(("COMPLEX_ABS", "REAL", "IMAG"))


def of_complex(n: Conversion, function: Rule) -> list[Value]:
    """An operator of which an input is complex."""
    if n.operator.kind in _OF_BOTH:
        found = function(n)
        return [found] if isinstance(found, Value) else list(found)
    parts = n.host.imaginary
    if n.operator.kind not in _BY_PART or any(t.kind != "COMPLEX64" for t in n.out_tensors):
        raise OperatorError("complex numbers are not supported", "E202")
    if n.operator.kind in ("CONCATENATION", "PACK", "ADD", "SUB") and any(
        v not in parts for v in n.inputs if v is not None
    ):
        raise OperatorError("complex and real numbers together are not supported", "E202")
    outs = tuple(replace(t, kind="FLOAT32", dtype=DType.FLOAT32) for t in n.out_tensors)
    results = []
    for inputs in (n.inputs, tuple(v if v is None else parts.get(v, v) for v in n.inputs)):
        found = function(replace(n, inputs=inputs, out_tensors=outs))
        results.append([found] if isinstance(found, Value) else list(found))
    parts.update(zip(*results, strict=True))
    return results[0]


@rule("RFFT2D")
def rfft2d(n: Conversion) -> Value:
    """The transform of the last two axes, of which the last is real: half of its spectrum."""
    x, lengths = n.real(), n.ints(1, "the length")
    if len(lengths) != 2 or x.type.rank < 2 or min(lengths) < 1:
        raise OperatorError(f"a transform of length {list(lengths)} of {x.type}")
    lead = x.type.rank - 2
    x = slices(
        n,
        x,
        [
            *((0, d, 1) for d in x.shape[:lead]),
            *((0, min(d, w), 1) for d, w in zip(x.shape[lead:], lengths, strict=True)),
        ],
    )
    more = [w - d for d, w in zip(x.shape[lead:], lengths, strict=True)]
    if any(more):
        x = n.build(
            Pad(),
            x,
            n.constant([*[0] * x.type.rank, *[0] * lead, *more], DType.INT64),
            n.constant(0, DType.FLOAT32),
        )
    y = fourier(n.build, n.reshape(x, (*x.shape, 1)), lead + 1, lengths[1], lengths[1] // 2 + 1, False)
    if lengths[0] > 1:
        y = fourier(n.build, y, lead, lengths[0], lengths[0], False)
    whole = [(0, d, 1) for d in y.shape[:-1]]
    real, imaginary = (n.reshape(slices(n, y, [*whole, (k, k + 1, 1)]), y.shape[:-1]) for k in range(2))
    n.host.imaginary[real] = imaginary
    return real


def _parts(n: Conversion) -> tuple[Value, Value]:
    real = n.x()
    imaginary = n.host.imaginary.get(real)
    if imaginary is None:
        raise OperatorError(f"{real.type} is not complex", "E202")
    return real, imaginary


@rule("COMPLEX_ABS")
def complex_abs(n: Conversion) -> Value:
    real, imaginary = _parts(n)
    return n.add("Sqrt", n.add("Add", n.add("Mul", real, real), n.add("Mul", imaginary, imaginary)))


@rule("REAL", "IMAG")
def part(n: Conversion) -> Value:
    """One part; a value of its own, for the real part stands for the whole."""
    return n.add("Identity", _parts(n)[n.operator.kind == "IMAG"])
