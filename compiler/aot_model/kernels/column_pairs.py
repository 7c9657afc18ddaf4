"""A convolution to one channel as one to two channels: those of neighbouring columns of the result.

Micro-kernels compute pairs of channels, of which one would be of no use. A window of both columns is wider by
the stride, and each channel has weights of nothing where its column's own window is not; the results lie as
they did. Source: the definition of the convolution, y[i] = sum over k of x[i s + k] w[k], for i = 2 j + c:
y[2 j + c] = sum over k of x[j 2 s + k] w[k - c s].
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.expr import Expr, const
from aot_model.ir.index import add, floordiv, mod, mul
from aot_model.kernels.base import ConvShape
from aot_model.kernels.site import Coordinates


def pays(s: ConvShape) -> bool:
    """Whether the windows of pairs have fewer taps than two windows. Columns come in pairs in each row, so
    that pixels that are counted over rows and images do, too.
    """
    plain = s.out_c == s.groups == s.dilation_w == 1
    return plain and s.out_w % 2 == 0 and s.kernel_w > s.stride_w


def paired(s: ConvShape) -> ConvShape:
    return replace(s, out_c=2, out_w=s.out_w // 2, kernel_w=s.kernel_w + s.stride_w, stride_w=2 * s.stride_w)


def weights_of_pair(s: ConvShape, weights: np.ndarray, zero: int) -> np.ndarray:
    """[1, kernel_h, kernel_w, in_c] -> [2, kernel_h, kernel_w + stride_w, in_c]; zero: their zero point."""
    both = np.full((2, s.kernel_h, s.kernel_w + s.stride_w, weights.shape[3]), zero, weights.dtype)
    both[0, :, : s.kernel_w] = weights[0]
    both[1, :, s.stride_w :] = weights[0]
    return both


def place_of_pair(s: ConvShape, index: Coordinates) -> Coordinates:
    """(n, y, x, channel) of the convolution to two channels, where n and y may be 0 and x count on over rows
    and images, to those of the result.
    """
    n, y, x, c = index
    pairs = s.out_w // 2
    row = add(y, floordiv(x, pairs))
    image: Expr = const(0)
    if s.batch > 1:
        image, row = add(n, floordiv(row, s.out_h)), mod(row, s.out_h)
    return image, row, add(mul(mod(x, pairs), 2), c), const(0)
