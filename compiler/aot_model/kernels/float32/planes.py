"""The planes of a 3-D operator over windows: a loop around the kernel of a 2-D one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32.axis import Axis, conv_axis, transposed_axis
from aot_model.kernels.float32.segments import Segments


def conv_planes(shape: ConvShape, padded_end: int | None = None) -> Axis | None:
    """The axis before the rows; None of a 2-D convolution."""
    d = shape.depth
    return conv_axis(d.size, d.out, d.kernel, d.stride, d.dilation, d.pad, padded_end) if d else None


def transposed_planes(shape: ConvShape) -> Axis | None:
    """The same of a transposed convolution."""
    d = shape.depth
    return transposed_axis(d.size, d.out, d.kernel, d.stride, d.dilation, d.pad) if d else None


def segments_of(planes: Axis, averages: bool = False) -> Segments:
    return Segments("planes", "z", planes, averages)


def image_of(shape: ConvShape) -> str:
    """The input, or the first of the planes that an output plane meets."""
    return "plane" if shape.depth else "x"


def number_of(shape: ConvShape) -> str:
    """Number of the image of the result: the planes of all images are counted."""
    return "n" if shape.batch * (shape.depth.out if shape.depth else 1) > 1 else "0"


@contextmanager
def each_plane(text: CText, shape: ConvShape, axis: Axis | None) -> Iterator[None]:
    """A loop over the output planes, which sets n and plane; nothing of a 2-D convolution."""
    d = shape.depth
    if d is None or axis is None:
        yield
        return
    planes, batch = segments_of(axis), shape.batch
    with (
        text.loop("volume", str(batch), needed=batch > 1),
        text.loop("z", str(planes.number), needed=planes.number > 1),
        text.loop("o", planes.count, needed=planes.repeated),
    ):
        volume, o = "volume" if batch > 1 else "0", "o" if planes.repeated else "0"
        if number_of(shape) == "n":
            out = total(product(volume, d.out), planes.out, product(o, axis.out_step))
            text.line(f"const int32_t n = {out};")
        start = total(
            "x",
            product(volume, shape.strides[0]),
            product(planes.first, d.x_stride),
            product(o, axis.in_step * d.x_stride),
        )
        text.line(f"const float *const plane = {start};")
        yield
