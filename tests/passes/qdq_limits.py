"""Cases of fuse_qdq at the limits of numbers: sums, biases, factors that no integer holds, endless ranges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pass_case import PassCase, made, numbers, tensor
from qdq_cases import ODD, Net, Scales, case_of, largest

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.fuse_qdq import fuse_qdq
from graphs import Maker


def _long(terms: int, weight: int = 255) -> PassCase:
    """Sums of so many products of 255, which 32 bits hold 33025 times, and the weight."""
    scales = Scales((0.01, 0), (0.01, 0), (0.01, 0), (0.03 * terms, 0), DType.UINT8)

    def build(n: Net, x: Value) -> Value:
        w = n.m.DequantizeLinear(
            numbers(np.full((terms, 1), weight), "uint8"), numbers(0.01), numbers(0, "uint8")
        )
        return n.m.MatMul(x, w)  # type: ignore[no-any-return]

    return case_of((build, [(1, terms)]), scales)


def _two_long() -> PassCase:
    scales = Scales((0.01, 0), (0.01, 0), (1, 0), (900, 0), DType.UINT8)
    return case_of((lambda n, x, y: n.m.MatMul(x, y), [(1, 33026), (33026, 1)]), scales)


def _vast_bias(bias: float) -> PassCase:
    """Sums of 64 bits hold it, in units of 1e-8, or do not; the factor of 16 bits takes its share."""
    scales = Scales((1e-4, 0), (1, 0), (1e-4, 0), (40, 0), DType.INT16)
    biases = numbers([bias, -bias, 1e4])
    return case_of((lambda n, x: n.m.Gemm(x, n.weights(9, 3), biases), [(2, 9)]), scales)


def _coarse(terms: int) -> PassCase:
    """Factors of 2^-33: of sums of 32 bits they make nothing, of larger ones something."""
    scales = Scales((2.0**-15, 0), (2.0**-15, 0), (1, 0), (8, 0), DType.INT16, DType.INT8)
    return case_of((lambda n, x, y: n.m.MatMul(x, y), [(1, terms), (terms, 1)]), scales)


def _fine(terms: int, x_type: DType) -> PassCase:
    """Factors far above 1: whatever is not 0 leaves the range."""
    scales = Scales((20000.0, 1), (20000.0, 9), (1, 0), (2.0**-8, 128), x_type, DType.UINT8)
    return case_of((lambda n, x, y: n.m.MatMul(x, y), [(1, terms), (terms, 1)]), scales)


def _bias_of_few_units(bias: float) -> PassCase:
    """A unit of the sums is millions of steps of the result, and the weights are nothing."""
    scales = Scales((0.5, 0), (1, 0), (1, 0), (0.01, 0), DType.INT8)

    def build(n: Net, x: Value) -> Value:
        w = n.m.DequantizeLinear(numbers(np.zeros((9, 3)), "int8"), numbers(1e5), numbers(0, "int8"))
        return n.m.Gemm(x, w, numbers([bias, 0, -bias]))  # type: ignore[no-any-return]

    return case_of((build, [(2, 9)]), scales)


def _slopes(scale: float, slope: float) -> PassCase:
    """Results of a unit of 0.01 from numbers of this one, below 0 times slopes that two channels have."""
    scales = Scales((scale, 0), (1, 0), (1, 0), (0.01, 0), DType.INT8, DType.INT8)
    return case_of((lambda n, x: n.m.PRelu(x, numbers([[slope], [-slope / 3]])), [(1, 2, 9)]), scales)


def _vanished_channel(*bias: float) -> PassCase:
    """Weights of 16-bit tensors whose scale is next to nothing, beside a bias."""
    scales = Scales((1e-3, 0), (1, 0), (1, 0), (1e-3, 0), DType.INT16)

    def build(n: Net, x: Value) -> Value:
        q = numbers(np.arange(27).reshape(9, 3) - 13, "int8")
        w = n.m.DequantizeLinear(q, numbers([0.01, 1e-9, 1e-12]), numbers([0, 0, 0], "int8"), axis=1)
        return n.m.Gemm(x, w, numbers(bias))  # type: ignore[no-any-return]

    return case_of((build, [(2, 9)]), scales)


def _clipped(low: float | None, high: float | None) -> PassCase:
    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        ends = [None if v is None else numbers(v) for v in (low, high)]
        return n.quantised(m.Clip(m.MatMul(n.x(q), n.weights(9, 2)), *ends))

    return PassCase(fuse_qdq, made(build, tensor("q", 2, 9, dtype=DType.INT8)), units=1)


def _windows(function: Callable[[Net, Value], Value]) -> PassCase:
    return case_of((function, [(1, 2, 4)]), ODD)


INF = float("inf")
LIMITS = {
    "as many bytes as 32 bits hold": _long(33025),
    "more bytes than 32 bits hold": _long(33026),
    "sums beyond 32 bits": _long(100000),
    "small weights in long sums": _long(40000, 3),
    "two tensors in long sums": _two_long(),
    "a bias of 47 bits": _vast_bias(1.3e6),
    "a bias of 48 bits": _vast_bias(1.5e6),
    "a bias beyond 64 bits": _vast_bias(1e20),
    "a bias without end": _vast_bias(INF),
    "factors too small for sums of 32 bits": _coarse(1),
    "factors too small": _coarse(20),
    "a vanished channel": _vanished_channel(0.5, 0, 0),
    "a bias beside a vanished channel": _vanished_channel(0.5, -1, 2),
    "factors far above 1, 16 bits": _fine(1, DType.UINT16),
    "factors far above 1, more terms": _fine(2, DType.UINT16),
    "factors far above 1, 8 bits": _fine(2, DType.UINT8),
    "a bias that is next to nothing of a unit": _bias_of_few_units(0.8),
    "a bias of a unit": _bias_of_few_units(5e4),
    "slopes as large as 32 bits hold": _slopes(1, 1.6e5),
    "slopes beyond 32 bits": _slopes(1, 2e5),
    "a large factor and small slopes": _slopes(50, 0.3),
    "a mean of all, far above": case_of(
        (lambda n, x: n.m.ReduceMean(x, keepdims=0), [(1, 1)]), Scales((1e30, 0), (1, 0), (1, 0), (1e-40, 9))
    ),
    "a mean of all without an axis": case_of(
        (lambda n, x: n.m.ReduceMean(x, keepdims=0), [(3, 7)]),
        Scales((0.1 + 1e-9, 3), (1, 0), (1, 0), (0.0371, 9)),
    ),
    "a clip below infinity": _clipped(INF, None),
    "a clip above infinity": _clipped(None, -INF),
    "a clip between infinities": _clipped(-INF, INF),
    "a clip that is no number": _clipped(float("nan"), None),
    "windows between whose taps the image is": _windows(
        lambda n, x: largest(n, x, kernel_shape=(2,), dilations=(5,), pads=(1, 1))
    ),
    "windows with taps apart": _windows(lambda n, x: largest(n, x, kernel_shape=(2,), dilations=(2,))),
    "windows with padding": _windows(lambda n, x: largest(n, x, kernel_shape=(2,), pads=(1, 1))),
}
CASES = {f"fuse_qdq: {name}": case for name, case in LIMITS.items()}
