"""How far the result may lie over the input, from the order in which a kernel reads and writes.

A kernel's loop nest is a sequence of blocks. Each block reads elements of x and writes elements of y; what it
writes may lie on what it and later blocks need no more. So a kernel says for each of its blocks, in their
order, the lowest element of x that it reads and where its writes end, and `slack` gives the largest distance.
`by_pixels` is the trace of the usual nest: groups of output pixels in the order of memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape

Elements = npt.NDArray[np.int64]

MANY_OUTPUTS, MANY_COLUMNS = 1 << 24, 1 << 16
"""Beyond so many outputs the order is not followed: the result lies clear of the input."""


def slack(reads: Elements, ends: Elements, *, reread: bool, size: int, element: int = 1) -> int:
    """Largest address(y) - address(x) in bytes at which no block overwrites what it or a later one still
    reads.

    reads: lowest element of x that each block reads, in the order of the blocks (`size` where it reads none).
    ends: the element of y after the last one that each block writes. reread: a block still reads after its
    first write; otherwise all its reads come before. size: elements of x. element: bytes of one, of x as of
    y.
    """
    future = np.minimum.accumulate(reads[::-1])[::-1]
    if not reread:
        future = np.append(future[1:], size)
    pending = future < size
    return element * int(min((future - ends)[pending].min(initial=size), size))


def first_taps(outputs: int, stride: int, dilation: int, pad: int, taps: int, size: int) -> Elements:
    """Smallest input coordinate inside of the image that each output of an axis reads; `size` where there is
    none.
    """
    at = np.arange(outputs)[:, None] * stride - pad + np.arange(taps)[None, :] * dilation
    first: Elements = np.where((at >= 0) & (at < size), at, size).min(axis=1)
    return first


def span(s: ConvShape) -> int:
    """Elements from the first of x to its last."""
    return 1 + sum((e - 1) * t for e, t in zip((s.batch, s.in_h, s.in_w, s.in_c), s.strides, strict=True))


def windows(s: ConvShape) -> Elements:
    """Lowest element of x that each output pixel reads, in the order of memory; `span` where it reads
    none.
    """
    n, h, w, _ = s.strides
    rows = first_taps(s.out_h, s.stride_h, s.dilation_h, s.pad_top, s.kernel_h, s.in_h)[:, None]
    columns = first_taps(s.out_w, s.stride_w, s.dilation_w, s.pad_left, s.kernel_w, s.in_w)[None, :]
    image = np.where((rows < s.in_h) & (columns < s.in_w), rows * h + columns * w, span(s)).reshape(-1)
    every: Elements = np.minimum(np.arange(s.batch)[:, None] * n + image[None, :], span(s)).reshape(-1)
    return every


def by_pixels(
    s: ConvShape,
    pixels: int,
    *,
    reread: bool = False,
    through_images: bool = False,
    by_channel: bool = False,
    sizes: tuple[int, int] = (1, 1),
) -> int | None:
    """Slack of a kernel that computes `pixels` output pixels after another, all their channels.

    sizes: bytes of an element of x and of y.

    through_images: a group may begin in one image and end in the next. by_channel: a channel of the result is
    written after the same channel of its window was read, and not before: what pooling does.
    """
    count = s.out_h * s.out_w
    if s.batch * count > MANY_OUTPUTS:
        return None
    images = (
        [(0, s.batch * count)] if through_images else [(n * count, (n + 1) * count) for n in range(s.batch)]
    )
    begins = np.concatenate([np.arange(first, last, pixels) for first, last in images])
    reads = np.minimum.reduceat(windows(s), begins) * sizes[0]
    ends = np.append(begins[1:], s.batch * count) * s.out_c * sizes[1]
    size = span(s) * sizes[0]
    found = slack(reads, ends, reread=reread, size=size)
    # Of one pixel channel c is written where c are behind it, and reads from the window's c-th element on: as
    # close as the next pixel, but for the first one, before which none is written.
    return min(found, int(reads.min())) if by_channel else found


def residual(pixels: int, s: ConvShape, size: int = 1) -> int:
    """The same for a tensor that is read where the result is stored: any order within a group of pixels."""
    return -min(pixels, s.batch * s.out_h * s.out_w) * s.out_c * size


def by_rows(batch: int, in_h: int, row: int, out_h: int, out_row: int, rows: int, unread: list[int]) -> int:
    """Slack of a kernel that buffers rows of the input and writes `rows` rows of outputs at a time.

    row, out_row: elements of a row of x and y. unread: the first row that step k reads and no step before it
    did; rows outside of the image are none.
    """
    size = batch * in_h * row
    first = [n * in_h * row + max(r, 0) * row if r < in_h else size for n in range(batch) for r in unread]
    ends = [
        (n * out_h + min((k + 1) * rows, out_h)) * out_row for n in range(batch) for k in range(len(unread))
    ]
    return slack(np.array(first, np.int64), np.array(ends, np.int64), reread=False, size=size)
