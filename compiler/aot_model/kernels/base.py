"""What a kernel gets and what it returns: the contract between lowering and the writers of inner loops.

A kernel is a Python function that writes the C of one heavy operator for one shape on one instruction set:

    conv(shape: ConvShape, weights: np.ndarray, tail: Tail, ...) -> KernelCode

It packs the weights into exactly the order in which its loops read them. Activations are channels last
(N, H, W, C); a 1-D operator has H = 1, a matrix product [M, K] x [K, N] is a 1x1 convolution over M pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from aot_model.ir.admissible import Ranges


@dataclass(frozen=True)
class Depth:
    """The axis before the rows of a 3-D convolution: as a row's."""

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    pad: int
    x_stride: int


@dataclass(frozen=True)
class ConvShape:
    """Geometry of a 2-D convolution or pooling, channels last. All sizes in elements."""

    batch: int
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    kernel_h: int = 1
    kernel_w: int = 1
    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    groups: int = 1
    x_strides: tuple[int, int, int, int] | None = None
    """Element strides (n, h, w, c) of the input where it is not dense channels last (a fused transpose)."""
    depth: Depth | None = None
    """Of a 3-D convolution, which is 2-D in each of its planes."""

    @property
    def strides(self) -> tuple[int, int, int, int]:
        if self.x_strides is not None:
            return self.x_strides
        return (self.in_h * self.in_w * self.in_c, self.in_w * self.in_c, self.in_c, 1)

    @property
    def group_in(self) -> int:
        """Input channels of a group."""
        return self.in_c // self.groups

    @property
    def group_out(self) -> int:
        """Output channels of a group."""
        return self.out_c // self.groups

    @property
    def keeps_size(self) -> bool:
        """Whether images of results are as large as those of the input. A phase of a transposed convolution
        may compute fewer pixels than there are."""
        return (self.in_h, self.in_w) == (self.out_h, self.out_w)

    @property
    def dense(self) -> bool:
        """Whether the input lies dense, channels last."""
        return self.strides == replace(self, x_strides=None).strides

    @property
    def pointwise(self) -> bool:
        """Whether output pixel i is made of input pixel i: 1x1, stride 1, images of one size, no padding (one
        window may lie beside the image).
        """
        one = self.kernel_h == self.kernel_w == self.stride_h == self.stride_w == 1
        return one and self.keeps_size and self.inside

    @property
    def in_place(self) -> bool:
        """Whether output pixel i is made of input pixel i, whose channels lie one behind the other."""
        return self.pointwise and self.dense

    @property
    def one_row(self) -> bool:
        """Whether it is a row of input by a matrix."""
        return self.in_place and self.groups == self.batch * self.out_h * self.out_w == 1

    @property
    def adjacent_taps(self) -> bool:
        """Whether the taps of a kernel row of dense input, with all their channels, lie one behind the
        other.
        """
        return self.kernel_w == 1 or self.dilation_w == 1

    @property
    def tall(self) -> int:
        """Rows from the first tap of a window to its last."""
        return (self.kernel_h - 1) * self.dilation_h + 1

    @property
    def wide(self) -> int:
        """Columns of a window."""
        return (self.kernel_w - 1) * self.dilation_w + 1

    @property
    def fits(self) -> bool:
        """Whether a window is no larger than the image."""
        return self.tall <= self.in_h and self.wide <= self.in_w

    @property
    def inside(self) -> bool:
        """Whether no window reaches beyond the image."""
        bottom = (self.out_h - 1) * self.stride_h + self.tall - self.pad_top
        right = (self.out_w - 1) * self.stride_w + self.wide - self.pad_left
        return self.pad_top <= 0 and self.pad_left <= 0 and bottom <= self.in_h and right <= self.in_w

    @property
    def along_row(self) -> ConvShape:
        """A convolution of dense input down a single column as one along a row: the memory is the same.
        Others as they are.
        """
        s = self
        if (s.in_w, s.out_w, s.kernel_w, s.pad_left) != (1, 1, 1, 0) or s.in_h == 1:
            return s
        return replace(
            s, in_h=1, in_w=s.in_h, out_h=1, out_w=s.out_h, kernel_h=1, kernel_w=s.kernel_h, stride_h=1,
            stride_w=s.stride_h, dilation_h=1, dilation_w=s.dilation_h, pad_top=0, pad_left=s.pad_top,
        )  # fmt: skip

    @property
    def row_of_windows(self) -> ConvShape:
        """A convolution of dense input whose windows lie one behind the other in memory as a pointwise one, a
        pixel for each window; its weights are [out_c, 1, 1, taps * in_c]. Others as they are.
        """
        s = self
        taps, pixels, whole = s.kernel_h * s.kernel_w, s.out_h * s.out_w, s.kernel_w == s.in_w
        close = (s.kernel_h == 1 or s.dilation_h == 1) and (s.kernel_w == 1 or s.dilation_w == 1)
        if taps == 1 or s.groups > 1 or not s.inside or not close:
            return s
        if whole:
            follow = s.out_h == 1 or s.stride_h == s.kernel_h
        else:
            along = s.out_w == 1 or s.stride_w == s.kernel_w
            rows = s.out_h == 1 or (s.stride_h == 1 and s.out_w * taps == s.in_w)
            follow = s.kernel_h == 1 and along and rows
        if not follow or (s.batch > 1 and pixels * taps != s.in_h * s.in_w):
            return s
        return ConvShape(s.batch, 1, pixels, taps * s.in_c, 1, pixels, s.out_c)

    @property
    def macs(self) -> int:
        taps = self.kernel_h * self.kernel_w * self.group_in
        planes = self.depth.out * self.depth.kernel if self.depth else 1
        return self.batch * planes * self.out_h * self.out_w * self.out_c * taps


class Tail(Protocol):
    """What becomes of an accumulator: bias, activation, residual, requantisation and the store to `y`."""

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        """C statements that finish the accumulator(s) and store them.

        acc: C expression of the accumulator: a scalar for lanes == 1, else a vector, whose first `lanes` are
            stored.
        index: C expressions of (n, y, x, channel) of the first element, channel being the fastest in memory.
        """


@dataclass(frozen=True)
class Packed:
    """A constant that the kernel reads through the parameter `name`.

    admissible: what its elements must be for the code to be safe, here and where they are read from a file
    of parameters that somebody else may have made; ANYTHING for mere data. None: integers are between the
    least and the greatest of `data`.
    """

    name: str
    data: np.ndarray
    align: int = 4
    admissible: Ranges | None = None
    code: bool = False
    """Part of the program rather than a parameter of it: it stays in the C file, whatever becomes of
    parameters.
    """
    layout: str = ""
    """The order of its elements, in words for who reads the C file."""


@dataclass(frozen=True)
class Scratch:
    """Memory that the kernel needs while it runs; planned together with the tensors."""

    name: str
    nbytes: int
    align: int = 4
    ctype: str = "int8_t"


@dataclass(frozen=True)
class KernelCode:
    """C of one kernel. The body reads `x`, writes `y` through the tail and names its constants and
    scratch.
    """

    body: str
    constants: tuple[Packed, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    includes: frozenset[str] = frozenset()
    helpers: tuple[str, ...] = ()
    """Texts of static inline functions that the body calls; equal texts are emitted once per model."""
    slack: int | None = None
    """Where `y` may lie over `x`: address(y) - address(x) <= slack bytes. None: they must not overlap."""
    slack_step: int = 1
    """... and the difference must be a multiple of this many bytes (one channel at a time: the pixel's size).
    """
    sizes: tuple[int, int] | None = None
    """Bytes of an element of `x` and of `y` that `slack` was counted with; None: both as large as those of
    `x`. A tail may make the elements of `y` larger: it does not lie over `x` then.
    """
    residual: int | None = None
    """The same for an element of another tensor that is read where the one of `y` is stored, if it may lie
    elsewhere than in the very place of `y`: groups of elements are stored, not each one in the order of
    memory.
    """
    note: str = ""
    """What the schedule is, for the comment above the function: blocking, loads per MAC."""
    wish: int | None = None
    """Bytes of scratch memory from which on another kernel would be faster; None: none would."""
