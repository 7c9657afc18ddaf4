"""How many cases the windows of a node have, and how many are too many for a kernel.

Outputs of an axis are alike as long as they meet the same taps. A kernel has a row of a table, or code, for
each that is not like its neighbours: at the borders, and in each phase of a transposed convolution. A small
file may ask for millions; a loop over elements, which has no cases, then takes the kernel's place.
"""

from __future__ import annotations

import math

from aot_model.kernels.base import ConvShape

MOST_PHASES = 128
"""Of a transposed convolution, where each is a function with weights of its own."""
_MOST_OF_AN_AXIS = 2048
_MOST = 1 << 15
"""Pairs of a row's case with a column's: each is weighed when blocks are chosen."""


def _beyond(size_in: int, size_out: int, taps: int, stride: int, dilation: int, pad: int) -> int:
    """Outputs of an axis whose windows are not inside."""
    first = -(-max(pad, 0) // stride)
    behind = (size_in - 1 - dilation * (taps - 1) + pad) // stride + 1
    return size_out - max(0, min(behind, size_out) - first)


def _apart(size_in: int, size_out: int, taps: int, stride: int, dilation: int) -> int:
    """Of a transposed convolution: its phases, and outputs that do not meet all taps of theirs."""
    inside = max(0, (size_in - 1) * stride - (taps - 1) * dilation + 1)
    return min(stride, size_out) + max(0, size_out - inside)


def _refused(axes: list[int]) -> str | None:
    if max(axes) <= _MOST_OF_AN_AXIS and math.prod(axes) <= _MOST:
        return None
    return f"{' x '.join(map(str, axes))} outputs that meet other taps than their neighbours: too many cases"


def too_many_borders(s: ConvShape) -> str | None:
    """Why the windows of a convolution or of pooling have too many cases, if so."""
    d = s.depth
    axes = [
        _beyond(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top),
        _beyond(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left),
    ]
    if d is not None:
        axes.insert(0, _beyond(d.size, d.out, d.kernel, d.stride, d.dilation, d.pad))
    return _refused([n + 1 for n in axes])


def too_many_phases(s: ConvShape, each_is_code: bool) -> str | None:
    """The same of a transposed convolution. each_is_code: its phases are functions, not rows of a table."""
    if each_is_code:
        phases = min(s.stride_h, s.out_h) * min(s.stride_w, s.out_w)
        return f"{phases} phases, each of which would be a function" if phases > MOST_PHASES else None
    return _refused(
        [
            _apart(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h),
            _apart(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w),
        ]
    )
