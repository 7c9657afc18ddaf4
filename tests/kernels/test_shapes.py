"""What a convolution's geometry says of itself, against the places that its windows read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from aot_model.kernels.base import ConvShape

OUTSIDE = None
Place = tuple[int, int, int] | None


def windows(s: ConvShape) -> Iterator[list[Place]]:
    """Of each pixel of the result, in order: batch, row and column of each tap, or OUTSIDE."""
    for n in range(s.batch):
        for y in range(s.out_h):
            for x in range(s.out_w):
                yield [
                    (n, row, column) if 0 <= row < s.in_h and 0 <= column < s.in_w else OUTSIDE
                    for ky in range(s.kernel_h)
                    for kx in range(s.kernel_w)
                    for row in [y * s.stride_h + ky * s.dilation_h - s.pad_top]
                    for column in [x * s.stride_w + kx * s.dilation_w - s.pad_left]
                ]


def addresses(s: ConvShape) -> list[list[int | None]]:
    """Elements of the input that each pixel of the result reads, tap after tap, channel after channel."""
    batch, down, right, channel = s.strides
    return [
        [
            OUTSIDE if at is OUTSIDE else at[0] * batch + at[1] * down + at[2] * right + c * channel
            for at in taps
            for c in range(s.in_c)
        ]
        for taps in windows(s)
    ]


def random_shape(rng: np.random.Generator) -> ConvShape:
    """Often of one row, column or tap, cut (pads below 0), or with other distances between elements."""
    h, w = (int(rng.choice([1, 2, 3, 6, 8])) for _ in range(2))
    kernel, stride, dilation = (
        [int(v) for v in rng.choice(n, 2)] for n in ([1, 1, 2, 3], [1, 1, 2, 3], [1, 1, 2])
    )
    pads, more = [int(v) for v in rng.choice([0, 0, 0, -1, 1], 2)], 3
    if rng.random() < 0.5:  # windows that follow one another, without a border
        stride, dilation, pads, more = list(kernel) if rng.random() < 0.5 else [1, 1], [1, 1], [0, 0], 1
    batch, channels = (int(v) for v in rng.integers(1, 3, 2))
    out = [max(1, (n - (k - 1) * d - 1) // t + 1 - (more > 1) + int(rng.integers(0, more)))
           for n, k, d, t in zip((h, w), kernel, dilation, stride, strict=True)]  # fmt: skip
    apart = None if rng.random() < 0.7 else (2 * h * w * channels, 2 * w * channels, 2 * channels, 1)
    return ConvShape(
        batch, h, w, channels, *out, 2, *kernel, *stride, *dilation, pads[0], pads[1], x_strides=apart
    )


SHAPES = [random_shape(np.random.default_rng(seed)) for seed in range(3000)]
DENSE = [s for s in SHAPES if s.x_strides is None and min(s.pad_top, s.pad_left) >= 0]
"""As kernels of integers meet them: they read no other input."""


def test_inside_is_where_no_tap_is_outside() -> None:
    found = [s.inside for s in SHAPES]
    assert found == [all(at is not OUTSIDE for taps in windows(s) for at in taps) for s in SHAPES]
    assert 300 < sum(found) < 2700
    assert any(s.inside and min(s.pad_top, s.pad_left) < 0 for s in SHAPES)


def test_in_place_is_where_pixels_read_themselves() -> None:
    for s in SHAPES:
        dense = np.arange(s.batch * s.in_h * s.in_w * s.in_c).reshape(-1, s.in_c).tolist()
        itself = s.kernel_h == s.kernel_w == 1 and addresses(s) == dense
        assert itself or not s.in_place
        assert s.in_place or not itself or s.batch * s.out_h * s.out_w == 1 or s.stride_h * s.stride_w > 1
    assert sum(s.in_place for s in SHAPES) > 30


@pytest.mark.parametrize("other", ["along_row", "row_of_windows"])
def test_another_form_reads_the_same(other: str) -> None:
    changed = 0
    for s in DENSE:
        form: ConvShape = getattr(s, other)
        changed += form != s
        assert addresses(form) == addresses(s) and form.out_c == s.out_c and form.macs == s.macs, s
    assert changed > 30


def test_adjacent_taps_follow_one_another() -> None:
    for s in DENSE:
        rows = [np.diff(np.array(at).reshape(s.kernel_h, -1)) for at in addresses(s) if OUTSIDE not in at]
        if rows:
            assert s.adjacent_taps == all((steps == 1).all() for steps in rows)
