"""How much scratch the functions of CMSIS-NN need, in bytes, by the instruction set that the library is built
for.

The library says it in functions (`…_get_buffer_size()`), which cannot be called when memory is planned;
generated code compares what they return with what was planned. Source: CMSIS-NN, its documentation of those
functions.
"""

from __future__ import annotations

from aot_model.kernels.base import ConvShape

EXTENSIONS = ("none", "dsp", "mve")
_BLOCK_MVE = 124
"""Channels that a depthwise convolution works on at once with Helium."""


def convolution(shape: ConvShape, extension: str) -> int:
    """arm_convolve_wrapper_s8() for more than one row, or a kernel of one element without padding."""
    flat = shape.dilation_h == shape.dilation_w == 1
    if flat and shape.kernel_h == shape.kernel_w == 1 and shape.pad_top == shape.pad_left == 0:
        # Two pixels as int16, which only some compilers' builds of the unstrided case use.
        return 4 * shape.in_c if extension == "dsp" and shape.stride_h == shape.stride_w == 1 else 0
    patch = shape.in_c * shape.kernel_h * shape.kernel_w
    return 4 * _up(patch, 16 if extension == "mve" else 4)


def depthwise(shape: ConvShape, extension: str) -> int:
    """arm_depthwise_conv_wrapper_s8() for more than one input channel."""
    if (
        shape.in_c != shape.out_c
        or shape.batch != 1
        or shape.dilation_h != 1
        or shape.dilation_w != 1
        or extension == "none"
    ):
        return 0
    taps = shape.kernel_h * shape.kernel_w
    if extension == "mve":
        return 4 * _BLOCK_MVE * taps
    if shape.kernel_h == shape.kernel_w == 3 and shape.pad_top <= 1 and shape.pad_left <= 1:
        return 0
    return 2 * shape.in_c * taps


def average_pool(shape: ConvShape, extension: str) -> int:
    """arm_avgpool_s8()."""
    return 4 * shape.in_c if extension == "dsp" else 0


def fully_connected(rows: int, extension: str) -> int:
    """arm_fully_connected_s8(): the constant part of each accumulator, for `rows` outputs. It is not scratch
    but data.
    """
    return 4 * rows if extension == "mve" else 0


def _up(n: int, step: int) -> int:
    return -(-n // step) * step
