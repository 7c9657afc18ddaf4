"""How far a result may lie over its input: the figure of kernels/overlap.py against the loop nest played
element by element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from float32_cases import DenseTail
from int8_cases import conv_case, random_shape
from kernel_program import run_host
from table import GROUPS, case_of

from aot_model.kernels.base import ConvShape, Depth
from aot_model.kernels.float32 import pool
from aot_model.kernels.float32.dialects import APART
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.overlap import by_pixels, by_rows, span
from batch import compiled_case


def taps(s: ConvShape, n: int, y: int, x: int) -> list[int]:
    """Elements of x of the first channel in a window."""
    rows = [y * s.stride_h - s.pad_top + k * s.dilation_h for k in range(s.kernel_h)]
    columns = [x * s.stride_w - s.pad_left + k * s.dilation_w for k in range(s.kernel_w)]
    step = s.strides
    return [
        n * step[0] + r * step[1] + c * step[2]
        for r in rows
        if 0 <= r < s.in_h
        for c in columns
        if 0 <= c < s.in_w
    ]


def events(
    s: ConvShape, pixels: int, through_images: bool, reread: bool, by_channel: bool
) -> Iterator[tuple[str, int]]:
    """("r", element of x), ("w", element of y), in the order in which a kernel may do them."""
    count = s.out_h * s.out_w
    images = (
        [range(s.batch * count)]
        if through_images
        else [range(n * count, (n + 1) * count) for n in range(s.batch)]
    )
    for image in images:
        for first in range(image.start, image.stop, pixels):
            group = range(first, min(first + pixels, image.stop))
            read = [
                [t + c * s.strides[3] for t in taps(s, p // count, p // s.out_w % s.out_h, p % s.out_w)]
                for p in group
                for c in range(s.in_c)
            ]
            if by_channel:
                for c, elements in enumerate(read):
                    yield from (("r", e) for e in elements)
                    yield "w", first * s.out_c + c
                continue
            everything = [("r", e) for elements in read for e in elements]
            yield from everything
            for p in group:
                for c in range(s.out_c):
                    yield "w", p * s.out_c + c
            if reread:
                yield from everything


def harmless(order: list[tuple[str, int]], distance: int) -> bool:
    """Whether nothing that is read was overwritten, y being `distance` behind x."""
    written: set[int] = set()
    for kind, element in order:
        if kind == "w":
            written.add(element + distance)
        elif element in written:
            return False
    return True


def shapes(rng: np.random.Generator) -> Iterator[ConvShape]:
    while True:
        s = random_shape(rng, depthwise=False)
        if s.in_h * s.in_w * s.in_c < 150 and s.out_h * s.out_w * s.out_c < 200:
            yield s


@pytest.mark.parametrize("kind", ["groups", "images", "reread", "channels"])
def test_by_pixels(kind: str) -> None:
    """Harmless at the slack and below; one element further something is lost, unless y then lies behind all
    of x.
    """
    rng, tight = np.random.default_rng(1), 0
    cases = shapes(rng)
    for _ in range(60):
        s = next(cases)
        pixels = 1 if kind == "channels" else int(rng.choice([1, 2, 4]))
        if kind == "channels":
            s = ConvShape(**{**s.__dict__, "out_c": s.in_c, "groups": 1})
        flags = {
            "through_images": kind == "images",
            "reread": kind == "reread",
            "by_channel": kind == "channels",
        }
        order = list(events(s, pixels, **flags))
        found = by_pixels(s, pixels, **flags)
        assert found is not None
        for distance in (found, found - 1, found - 7):
            assert harmless(order, distance), (s, pixels, distance)
        tight += found >= span(s) or not harmless(order, found + 1)
    assert tight >= 50


@pytest.mark.parametrize("target", ["c", "cortex-m4"])
def test_channels_one_after_the_other_overlap_whole_pixels(target: str, tmp_path: Path) -> None:
    """Where the place of a result is bound to a step, that is a pixel of the input."""
    found = set()
    for group in ("int8 convolution", "integer convolution"):
        for layer in GROUPS[group]():
            op = layer.steps[0].operator
            if layer.x.shape[-1] > 1 and getattr(op, "group", 1) == layer.x.shape[-1]:
                compiled = compiled_case(case_of(group, layer, {}), tmp_path / "model", "m", target)
                for call in compiled.view.program.calls():
                    found |= {
                        (layer.x.dtype.itemsize, o.step == layer.x.shape[-1] * layer.x.dtype.itemsize)
                        for o in call.overlaps
                        if o.input == 0 and o.step > 1
                    }
    assert found == {(1, True), *([(2, True)] if target == "cortex-m4" else [])}


def test_of_a_pointwise_convolution() -> None:
    """Four pixels are consumed before their outputs are written."""
    assert by_pixels(ConvShape(1, 1, 8, 16, 1, 8, 16), 4) == 0
    assert by_pixels(ConvShape(1, 1, 8, 16, 1, 8, 8), 4) == 32
    assert by_pixels(ConvShape(1, 1, 8, 8, 1, 8, 16), 4) == -32
    assert by_pixels(ConvShape(1, 1, 4, 8, 1, 4, 16), 4) == 32


def test_by_rows() -> None:
    """Three rows of four elements are buffered before a row of two is written; the second image begins
    anew.
    """
    unread = [0, 3, 4]
    assert by_rows(2, 5, 4, 3, 2, 1, unread) == 3 * 4 - 2
    assert by_rows(2, 5, 4, 3, 9, 1, unread) == 5 * 4 + 4 * 4 - 5 * 9


def test_groups_that_end_in_the_next_image(tmp_path: Path) -> None:
    """Seven pixels of an image in groups of four: the third group begins at the second image's second
    pixel.
    """
    rng = np.random.default_rng(2)
    shape = ConvShape(2, 1, 7, 4, 1, 7, 8)
    run_host(
        [conv_case(rng, shape, kind, plain) for kind in ("relu", "signed") for plain in (False, True)],
        tmp_path,
    )


@pytest.mark.parametrize(
    ("sizes", "by_channel"), [((2, 2), False), ((2, 1), False), ((1, 2), False), ((2, 2), True)]
)
def test_elements_of_different_sizes(sizes: tuple[int, int], by_channel: bool) -> None:
    """The same by bytes, where elements have several, and one of x others than one of y."""
    rng, tight = np.random.default_rng(3), 0
    cases = shapes(rng)
    for turn in range(20):
        s, pixels, reread = next(cases), 1 + turn % 2, turn % 4 > 1
        if by_channel:
            s, pixels, reread = ConvShape(**{**s.__dict__, "out_c": s.in_c, "groups": 1}), 1, False
        elements = events(s, pixels, True, reread, by_channel)
        width = {"r": sizes[0], "w": sizes[1]}
        order = [(kind, e * width[kind] + b) for kind, e in elements for b in range(width[kind])]
        found = by_pixels(s, pixels, reread=reread, through_images=True, by_channel=by_channel, sizes=sizes)
        assert found is not None
        for distance in (found, found - 2, found - 6):
            assert harmless(order, distance), (s, pixels, distance)
        tight += found >= span(s) * sizes[0] or not harmless(order, found + max(sizes))
    assert tight >= 15


@pytest.mark.parametrize("channels", [2, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_that_slide(channels: int, stride: int) -> None:
    """Harmless at the slack, in the order of blocks of a row, output channels, planes of a window."""
    s = ConvShape(1, 7, 9, channels, 9 // stride, 9, 2, 3, 3, stride, 1, 1, 1, 2 if stride == 1 else 1, 1)
    values = np.ones((s.out_c, 3, 3, channels), np.float32)
    code = pool.sliding(
        s, Weights(values, None), DenseTail((s.batch, s.out_h, s.out_w, s.out_c), APART), APART
    )
    assert code is not None and code.slack is not None
    blocks = [int(n) for n in re.findall(r"(\d+) outputs?", code.note)]
    assert sum(blocks) == s.out_w, code.note
    order: list[tuple[str, int]] = []
    for y in range(s.out_h):
        begin = 0
        for width in blocks:
            pixels = range(begin, begin + width)
            read = [t + c for x in pixels for t in taps(s, 0, y, x) for c in range(channels)]
            for oc in range(s.out_c):
                order += [("r", e) for e in read]
                order += [("w", (y * s.out_w + x) * s.out_c + oc) for x in pixels]
            begin += width
    distance = code.slack // 4
    assert harmless(order, distance - 1) and harmless(order, distance)
    assert not harmless(order, distance + s.out_c)  # a pixel further


def test_several_planes_of_results_overlap_nothing() -> None:
    """Each begins in the input of the one before it."""
    for depth, free in (
        (Depth(3, 1, 3, 1, 1, 0, 24), True),
        (Depth(5, 3, 3, 1, 1, 0, 24), False),
        (Depth(3, 1, 3, 2, 1, 1, 24), False),
    ):
        s = ConvShape(1, 4, 6, 1, 2, 4, 2, 3, 3, x_strides=(24 * depth.size, 6, 1, 1), depth=depth)
        weights = Weights(np.ones((2, 3, 3, 3, 1), np.float32), None)
        assert (
            pool.depthwise(s, weights, DenseTail((s.batch, s.out_h, s.out_w, s.out_c), APART), APART).slack
            is not None
        ) is free


@pytest.mark.parametrize("planes", [1, 2, 3])
def test_one_result_lies_anywhere_over_its_planes(planes: int) -> None:
    """Which are read before it is written."""
    s = ConvShape(1, 4, 6, 1, 1, 1, 1, 3, 3, x_strides=(24 * planes, 6, 1, 1))
    s = replace(s, depth=Depth(planes, 1, planes, 1, 1, 0, 24))
    weights = Weights(np.ones((1, planes, 3, 3, 1), np.float32), None)
    assert pool.depthwise(s, weights, DenseTail((1, 1, 1, 1), APART), APART).slack == 4 * 24 * planes
