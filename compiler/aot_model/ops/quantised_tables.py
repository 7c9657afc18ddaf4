"""Functions of one quantised value as tables: of all values of 8 bits, and of 16 bits by interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const, load
from aot_model.ir.index import add
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import operator, required


@dataclass(frozen=True)
class Table:
    """The values of a function of one integer, the argument `low` first."""

    values: tuple[int, ...]
    dtype: DType
    low: int

    @property
    def value(self) -> Value:
        """The constant in flash; equal tables are one."""
        return _table_value(self)

    def __repr__(self) -> str:
        return f"{self.dtype.label}[{len(self.values)}]"

    def at(self, x: Expr) -> Expr:
        """The entry for an argument, which must be in range."""
        return load(self.value, (add(cast(x, DType.INT32), -self.low),))


@cache
def _table_value(table: Table) -> Value:
    return constant("table", np.asarray(table.values, dtype=table.dtype.numpy))


@operator("Lookup", domain="aot", elementwise=True, movement=True)
class Lookup(Operator):
    """table[x] for 8-bit x: any function of one quantised value."""

    table: Table

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8 or len(self.table.values) != 256 or x.dtype.limits[0] != self.table.low:
            raise OperatorError(
                f"a table of {len(self.table.values)} from {self.table.low} does not fit {x.type}"
            )
        return [TensorType(self.table.dtype, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return self.table.at(at(required(inputs), index))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return exact.by_element(
            lambda x: self.table.values[x - self.table.low], self.table.dtype.numpy, arrays[0]
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        table = Table(tuple((k * k) % 251 - 125 for k in range(256)), DType.INT8, -128)
        return [Sample((np.asarray([[-128, 127, 0], [5, -1, 77]], dtype=np.int8),), {"table": table})]


def lookup(dtype: DType, function: Sequence[int], to: DType | None = None) -> Lookup:
    """The operator for the values of a function at all values of an 8-bit type, smallest argument first."""
    return Lookup(Table(tuple(function), to or dtype, dtype.limits[0]))


def sigmoid_table() -> list[int]:
    """Logistic function at k / 24 in Q0.16, raised by half the error of linear interpolation between the
    entries.
    """
    result = []
    for k in range(255):
        y = 1 / (1 + math.exp(-k / 24))
        curvature = y * (1 - y) * (2 * y - 1)
        result.append(round(2**16 * (y + curvature / 24**2 / 16)))
    return [*result, 65535]


@operator("SigmoidInt16", domain="aot", elementwise=True)
class SigmoidInt16(Operator):
    """Logistic function or hyperbolic tangent of int16 by linear interpolation in one table of 256 entries.

    The argument is |x| * multiplier / 2^shift in steps of 1 / (24 * 512); tanh(x) = 2 * logistic(2 * x) - 1.
    """

    hyperbolic: bool
    multiplier: int
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if required(inputs).dtype is not DType.INT16:
            raise OperatorError(f"{required(inputs).type} is not int16")
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        def sar(v: Expr, bits: int) -> Expr:
            return call("sar", v, const(bits)) if bits else v

        def plus(v: Expr, k: int) -> Expr:
            return call("add", v, const(k))

        bits = 8 if self.hyperbolic else 9
        scaled = call("mul", cast(at(required(inputs), index), DType.INT32), const(self.multiplier))
        x = sar(plus(scaled, 1 << (self.shift - 1)), self.shift) if self.shift else scaled
        size, last = call("abs", x), (255 << bits) - 1
        if (abs(self.multiplier) << 15) + (1 << self.shift) > (last + 1) << self.shift:
            # the last piece ends just before its last entry: the result is the same from there on
            size = call("min", size, const(last))
        place, part = sar(size, bits), call("bitand", size, const((1 << bits) - 1))
        table = Table(tuple(sigmoid_table()), DType.UINT16, 0)
        left, right = (cast(table.at(v), DType.INT32) for v in (place, plus(place, 1)))
        between = call(
            "add", call("mul", left, const(1 << bits)), call("mul", part, call("sub", right, left))
        )
        # of a negative argument the complement of the distance from the middle
        middle, half = 1 << 15 + bits, 1 << (7 if self.hyperbolic else 9)
        y = call("bitxor", plus(between, -middle), sar(x, 31))
        y = sar(plus(y, half if self.hyperbolic else middle + half), 8 if self.hyperbolic else 10)
        return cast(y, DType.INT16)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.concatenate([np.arange(-32768, 32768, 257), [-1, 0, 1, 32767]]).astype(np.int16)
        return [
            Sample((x,), {"hyperbolic": h, "multiplier": m, "shift": s}, tolerance=8)
            for h in (False, True)
            for m, s in ((3, 0), (20000, 14))
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        real = np.asarray(arrays[0], np.float64) * self.multiplier / 2.0**self.shift / (24 * 512)
        return [
            np.minimum(
                np.rint(np.tanh(real) * 2**15 if self.hyperbolic else 2**15 / (1 + np.exp(-real))), 32767
            ).astype(np.int16)
        ]
