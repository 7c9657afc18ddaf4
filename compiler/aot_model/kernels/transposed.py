"""A transposed convolution as ordinary ones.

y[p] = sum over taps k with p + pad - k * dilation = i * stride of x[i] * w[k]. Of the outputs whose position
modulo the stride is the same, a phase, each meets the same taps, and neighbours of them meet neighbours of x:
a convolution with stride 1. Every product of the transposed convolution is computed once, in one of
stride_h * stride_w calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from aot_model.ir.expr import Expr, const
from aot_model.ir.index import add, floordiv, mod, mul
from aot_model.kernels.base import ConvShape
from aot_model.kernels.site import Coordinates


@dataclass(frozen=True)
class Line:
    """One phase along one axis."""

    first: int
    """The first output; the others follow in strides."""
    stride: int
    outputs: int
    taps: tuple[int, ...]
    """Of the transposed kernel, in the order of the input; -1: no tap, a weight of nothing. None at all: only
    the bias.
    """
    dilation: int
    pad: int


def lines(outputs: int, taps: int, stride: int, dilation: int, pad: int) -> Iterator[Line]:
    """The phases of an axis that have outputs."""
    for first in range(min(stride, outputs)):
        met = [k for k in range(taps) if (first + pad - k * dilation) % stride == 0][::-1]
        begin = (first + pad - met[0] * dilation) // stride if met else 0
        step = dilation // math.gcd(dilation, stride) if len(met) > 1 else 1
        before = -(-max(begin, 0) // step)  # the kernels know of padding, not of less than none
        yield Line(
            first,
            stride,
            -(-(outputs - first) // stride),
            (*[-1] * before, *met),
            step,
            before * step - begin,
        )


@dataclass(frozen=True)
class Phase:
    """The outputs of one phase in both directions, as a convolution."""

    shape: ConvShape
    rows: Line
    columns: Line
    zero: int
    """The weights' zero point, which stands where no tap is."""

    def weights(self, whole: np.ndarray) -> np.ndarray:
        """[out_c, kernel_h, kernel_w, in_c / groups] of the transposed convolution -> those of this one."""
        if not self.rows.taps or not self.columns.taps:
            return np.full((whole.shape[0], 1, 1, whole.shape[3]), self.zero, whole.dtype)
        rows, columns = np.array(self.rows.taps), np.array(self.columns.taps)
        taken: np.ndarray = whole[:, rows][:, :, columns]
        taken[:, rows < 0] = self.zero
        taken[:, :, columns < 0] = self.zero
        return taken

    def place(self, rank: int) -> Callable[[Coordinates], tuple[Expr, ...]]:
        """(n, y, x, channel) of this convolution, where n and y may be 0 and x count on over rows and images,
        to the index of the result (of 3 or 4 axes).
        """
        s = self.shape

        def at(index: Coordinates) -> tuple[Expr, ...]:
            n, y, x, c = index
            row = add(y, floordiv(x, s.out_w))
            image = add(n, floordiv(row, s.out_h)) if s.batch > 1 else const(0)
            row = mod(row, s.out_h) if s.batch > 1 else row
            x = add(mul(mod(x, s.out_w), self.columns.stride), self.columns.first)
            row = add(mul(row, self.rows.stride), self.rows.first)
            return (image, x, c) if rank == 3 else (image, row, x, c)

        return at


def phases(s: ConvShape, zero: int) -> Iterator[Phase]:
    """The convolutions of a transposed one; `s`: its geometry, strides, pads and all."""
    for rows in lines(s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top):
        for columns in lines(s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left):
            empty = not rows.taps or not columns.taps
            sizes = (1, 1) if empty else (len(rows.taps), len(columns.taps))
            pads = (0, 0) if empty else (rows.pad, columns.pad)
            shape = replace(
                s,
                out_h=rows.outputs,
                out_w=columns.outputs,
                kernel_h=sizes[0],
                kernel_w=sizes[1],
                stride_h=1,
                stride_w=1,
                dilation_h=rows.dilation,
                dilation_w=columns.dilation,
                pad_top=pads[0],
                pad_left=pads[1],
            )
            yield Phase(shape, rows, columns, zero)
