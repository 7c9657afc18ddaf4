"""Steps from a frame of audio to its spectrum's energies in fixed point: window, scale, energies.
filter_bank.py has the rest.

Each is an operator of TensorFlow Lite Micro, and gives the same integers: its kernels are the source of all
formulas.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.expr import Expr, Index, call, cast, const, select
from aot_model.ir.index import add, mul
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.elementwise import clamp
from aot_model.ops.registry import operator, required
from aot_model.ops.requantise import two_widened

WORD = 2**32


def needs(value: TensorType, *dtypes: DType) -> None:
    if value.dtype not in dtypes or value.rank != 1:
        raise OperatorError(f"{value} is not a vector of {' or '.join(d.label for d in dtypes)}")


def shift_count(bits: int, most: int = 31) -> None:
    if not 0 <= bits <= most:
        raise OperatorError(f"a shift by {bits} bits")


@operator("ScaledWindow", domain="aot", elementwise=True)
class ScaledWindow(Operator):
    """x * window >> shift, saturated; int16."""

    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, window = required(inputs, 0), required(inputs, 1)
        if {x.dtype, window.dtype} != {DType.INT16} or window.type.rank != 1 or x.shape[-1:] != window.shape:
            raise OperatorError(f"window {window.type} does not fit {x.type}")
        shift_count(self.shift)
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, window = two_widened(at, inputs, index)
        y = call("sar", call("mul", x, window), const(self.shift))
        return cast(clamp(y, const(-32768), const(32767)), DType.INT16)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, window = (np.asarray(a, np.int64) for a in arrays)
        return [np.clip(x * window // 2**self.shift, -32768, 32767).astype(np.int16)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[-32768, -32768, 32767, 5, -5, 0], [1, -1, 300, -300, 9, 32767]], np.int16)
        window = np.asarray([-32768, 32767, 32767, 3, 3, 9], np.int16)
        return [Sample((x, window), {"shift": s}) for s in (0, 2, 12, 15, 31)]


@operator("AutoScale", domain="aot", stores_itself=True)
class AutoScale(Operator):
    """int16, shifted left as far as its largest absolute value allows; by how many bits.

    Next to -32768, of which 16 bits have no absolute value, only numbers that come later count: so does the
    original.
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        needs(required(inputs).type, DType.INT16)
        return [required(inputs).type, TensorType(DType.INT32, ())]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        n = x.type.elements
        text = CText()
        text.line("int32_t most = 0;\nint32_t shift = 0;")
        with text.loop("i", str(n)):
            text.line("const int32_t v = x[i];")
            text.line("most = (v > most) ? v : (-v > most) ? ((v == -32768) ? v : -v) : most;")
        with text.block("if (most > 0)"):
            text.line("shift = aot_model_leading_zeros(most) - 17;")
        with text.loop("i", str(n)):
            text.line("y[i] = (int16_t)(uint16_t)((uint32_t)x[i] << shift);")
        text.line("*bits = shift;")
        arguments = [
            Argument("x", x),
            *(written(name, site.node.outputs[k]) for k, name in enumerate(("y", "bits"))),
        ]
        site.call("auto_scale", block(text), arguments, includes=["aot_model/scalar.h"])

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        most = 0
        for v in x.tolist():
            if v > most or v == -32768:
                most = v
            elif -v > most:
                most = -v
        bits = 15 - most.bit_length() if most > 0 else 0
        return [(x.astype(np.int64) << bits).astype(np.int16), np.asarray(bits, np.int32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rows = (
            [0] * 5,
            [1, -1, 0],
            [-4096, 4095],
            [4095, -4000],
            [32767, 5],
            [-32767, -1],
            [-32768, 5, -3],
            [-32768, -5, 3],
            [-32768, -9, -3],
            [7, -32768],
            [16384, 1],
        )
        return [Sample((np.asarray(r, np.int16),)) for r in rows]


@operator("SpectrumEnergy", domain="aot")
class SpectrumEnergy(Operator):
    """Squared absolute values of int16 pairs from `start` to before `end`; 0 outside."""

    start: int
    end: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        needs(x.type, DType.INT16)
        if x.shape[0] % 2 or not 0 <= self.start <= self.end <= x.shape[0] // 2:
            raise OperatorError(f"energies {self.start} to {self.end} of {x.type}")
        return [TensorType(DType.UINT32, (x.shape[0] // 2,))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, (i,) = required(inputs), index
        parts = [cast(at(x, (add(mul(i, 2), k),)), DType.INT32) for k in range(2)]
        squares = [cast(call("mul", p, p), DType.UINT32) for p in parts]
        total = call("add", *squares)
        if (self.start, self.end) == (0, x.shape[0] // 2):
            return total
        if self.start == self.end:
            return const(0, DType.UINT32)
        inside = call(
            "and",
            call("le", const(self.start), i, dtype=DType.BOOL),
            call("lt", i, const(self.end), dtype=DType.BOOL),
            dtype=DType.BOOL,
        )
        return select(inside, total, const(0, DType.UINT32))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        pairs = np.asarray(arrays[0], np.int64).reshape(-1, 2)
        y = (pairs**2).sum(axis=1)
        y[: self.start] = y[self.end :] = 0
        return [y.astype(np.uint32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([3, 4, -32768, -32768, 32767, -32768, 0, 0, 5, -12], np.int16)
        return [Sample((x,), {"start": a, "end": b}) for a, b in ((0, 5), (1, 4), (2, 2))]
