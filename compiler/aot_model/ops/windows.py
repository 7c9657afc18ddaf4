"""Windows of convolution and pooling: how many there are along an axis, and which are refused."""

from __future__ import annotations

from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType

Ints = tuple[int, ...]


def window(extent: int, kernel: int, stride: int, dilation: int, begin: int, end: int) -> int:
    """Positions of a window along one axis."""
    return (extent + begin + end - dilation * (kernel - 1) - 1) // stride + 1


MAX_BORDER = 4096
"""Outputs along an axis whose windows are partly in the padding; the code for each is its own."""


def check_windows(
    extents: Ints, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints, crops: bool = False
) -> None:
    """OperatorError when windows cannot be placed along each axis, or generated code could not count their
    positions. crops: pads below 0 mean something, as those of a transposed convolution, which takes them off
    its output; the standard of ONNX has none for the others, and kernels do not know them.
    """
    d = len(extents)
    for k, (extent, taps, stride, dilation) in enumerate(
        zip(extents, kernel, strides, dilations, strict=True)
    ):
        begin, end, reach = pads[k], pads[d + k], dilation * (taps - 1) + 1
        if min(stride, dilation, taps) < 1:
            raise OperatorError(f"a window of {taps} taps, strides of {stride} and dilations of {dilation}")
        if min(begin, end) < 0 and not crops:
            raise OperatorError(f"pads of {begin} and {end}: they are not below 0; a Slice before it crops")
        if (
            max(abs(begin), abs(end), reach, stride, extent + abs(begin) + abs(end) + reach)
            > DType.INT32.limits[1]
        ):
            raise OperatorError(
                f"a window of {reach} elements, strides of {stride} and pads of {begin} and {end} are too "
                "large",
                "E202",
            )
        if max(begin, 0) // stride + max(end, 0) // stride > MAX_BORDER:
            raise OperatorError(
                f"pads of {begin} and {end}, of which more than {MAX_BORDER} outputs see something", "E202"
            )
