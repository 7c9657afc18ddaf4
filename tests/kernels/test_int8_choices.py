"""What int8 kernels choose and which layers they take, where wrong choices cost time or memory and no test of
numbers would notice: each against what it means.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import (
    affine_sum,
    conv_dsp,
    conv_mve,
    depthwise_columns_mve,
    depthwise_mve,
    depthwise_taps_mve,
    gemm_dsp,
    patch_dsp,
    requantise,
    requantise_mve,
)
from aot_model.kernels.int8.plane import Plane, plane_of
from aot_model.kernels.int8.spec import QuantSpec


def test_a_row_by_a_matrix_is_one_pixel_and_one_dense_group() -> None:
    shape = ConvShape(1, 1, 1, 8, 1, 1, 6)
    assert shape.one_row
    for other in (
        {"batch": 2},
        {"out_h": 2},
        {"out_w": 2},
        {"kernel_h": 2},
        {"kernel_w": 2},
        {"in_h": 2},
        {"in_w": 2},
        {"groups": 2},
        {"x_strides": (16, 16, 16, 2)},
    ):
        assert not replace(shape, **other).one_row, other  # type: ignore[arg-type]
    quant = QuantSpec.accumulators(0, "int8", 0)
    assert conv_dsp.applicable(shape, replace(quant, weight_zero_point=3))
    assert not conv_dsp.applicable(shape, replace(quant, weight_zero_point=200))


def test_depthwise_by_taps_takes_what_its_instructions_reach() -> None:
    """Gathers have offsets of 16 bits from the window's first element; of the ring, if rows are padded."""
    rng = np.random.default_rng(5)
    seen = {True: 0, False: 0}
    for _ in range(400):
        pick = lambda *values: int(rng.choice(values))  # noqa: E731
        kernel_h, kernel_w, pad, channels = pick(1, 2, 3, 9), pick(1, 3, 5), pick(0, 1), pick(1, 16, 100, 511)
        dilation_h, dilation_w, wide = pick(1, 2, 3), pick(1, 2), pick(3, 20, 64, 127, 128, 160)
        width, height = wide + (kernel_w - 1) * dilation_w, 4 + (kernel_h - 1) * dilation_h
        out_h, out_w = 4 + pad, wide + pad
        shape = ConvShape(
            1,
            height,
            width,
            channels,
            out_h,
            out_w,
            channels,
            kernel_h,
            kernel_w,
            1,
            1,
            dilation_h,
            dilation_w,
            pad,
            pad,
            groups=channels,
        )
        row = (width + pad if pad else width) * channels
        rows, columns = (kernel_h - 1) * dilation_h, (kernel_w - 1) * dilation_w * channels
        fits = rows * row + columns <= 65535
        assert depthwise_taps_mve.applicable(shape) == fits, shape
        seen[fits] += 1
        if fits:
            p = depthwise_taps_mve.tap_plan(shape)
            assert p.chunks == (kernel_h * kernel_w + 7) // 8
            assert (
                int(depthwise_taps_mve.tap_offsets(p, np.zeros(0, np.uint16)).max()) == rows * row + columns
            )
    assert min(seen.values()) > 50
    for channels, width, fits in ((255, 257, True), (256, 256, False)):  # 65535 and 65536 to the second row
        shape = ConvShape(1, 2, width, channels, 1, width, channels, 2, 1, groups=channels)
        assert depthwise_taps_mve.applicable(shape) is fits


@pytest.mark.parametrize(("channels", "outputs", "stride", "kernel", "taps", "columns"), [
    (819, 819, 5, (1, 1), True, True), (512, 512, 8, (1, 1), False, True),  # steps of 4095 and 4096
    (341, 1023, 1, (1, 1), True, True), (512, 1024, 1, (1, 1), False, False),
    (2, 2, 1, (8, 16), True, False), (2, 2, 1, (3, 43), False, False),  # 128 and 129 taps
    (2, 2, 127, (1, 1), True, True), (2, 2, 128, (1, 1), True, False)])  # fmt: skip
def test_depthwise_kernels_take_what_encodings_hold(
    channels: int, outputs: int, stride: int, kernel: tuple[int, int], taps: bool, columns: bool
) -> None:
    shape = ConvShape(
        1, kernel[0], kernel[1] + stride, channels, 1, 2, outputs, *kernel, 1, stride, groups=channels
    )
    assert depthwise_taps_mve.applicable(shape) is taps
    assert depthwise_columns_mve.applicable(shape) is columns


@pytest.mark.parametrize(("kernel", "fits"), [((4, 8), True), ((8, 4), True), ((3, 11), False)])
def test_slices_have_addresses_for_so_many_taps(kernel: tuple[int, int], fits: bool) -> None:
    shape = ConvShape(1, 12, 12, 8, 13 - kernel[0], 13 - kernel[1], 8, *kernel, groups=2)
    assert patch_dsp.slices_fit(shape) is fits


def test_lines_of_a_plane_are_rows_unless_columns_take_less() -> None:
    same = ConvShape(1, 6, 6, 8, 4, 4, 8, 3, 3, groups=8)
    for shape, transposed in (
        (same, False),
        (replace(same, in_h=7, out_h=5), False),
        (replace(same, in_w=7, out_w=5), True),
        (replace(same, in_h=8, kernel_h=5), True),
    ):
        assert plane_of(shape, 1 << 16, False).transposed is transposed, shape


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("limit", [200, 500, 1000, 1500])
def test_a_plane_has_the_fewest_strips_that_fit(limit: int, stride: int) -> None:
    for lines in range(5, 15):
        shape = ConvShape(1, lines * stride + 2, 12, 8, lines, 10, 8, 3, 3, stride, groups=8)
        plane = plane_of(shape, limit, False)

        def room(outputs: int, p: Plane = plane) -> int:
            return 2 * p.length * ((outputs - 1) * p.u.stride + p.u.reach)

        assert 2 * plane.length * plane.lines == room(plane.lines_out) <= max(limit, room(1))
        assert plane.strips == 1 or room(-(-plane.u.size_out // (plane.strips - 1))) > limit


def test_loads_of_a_dot_product_are_those_it_tells() -> None:
    """Of vectors of 16 weights or inputs, for each of 16 products."""
    quant = QuantSpec(0, np.array([1 << 30]), np.array([-5]), 0, -128, 127)
    shape = ConvShape(1, 4, 4, 64, 4, 4, 8)
    code = conv_mve.conv(shape, np.ones((8, 1, 1, 64), np.int8), None, quant)
    dot = next(h for h in code.helpers if " aot_mve_dot_" in h)
    assembly = dot.partition("__asm__")[2].partition("#else")[0]
    loads, products = len(re.findall(r"vldrb", assembly)), len(re.findall(r"vmlada", assembly))
    assert loads and f", {loads / products / 16:.3f} loads per MAC" in code.note


def test_sums_of_bytes_have_forms_as_long_as_a_shift_leaves_something() -> None:
    term, whole = affine_sum.Rescaling(3, 1 << 30, 0), affine_sum.Rescaling(0, 1 << 30, -18)
    for shift, found in ((-30, True), (-31, False)):
        far = replace(whole, shift=shift)
        for a, b in ((far, term), (term, far)):
            assert (affine_sum.affine(a, b, whole, 20, -128, 127) is not None) is found, (shift, a, b)
    assert affine_sum.affine(term, replace(term, multiplier=0), whole, 20, -128, 127) is None


def test_sums_of_small_terms_shift_by_less_than_a_word() -> None:
    """However exact factors of a few bits would be."""
    whole = affine_sum.Rescaling(0, 1 << 30, -18)
    terms = [affine_sum.Rescaling(3, 1 << 30, shift) for shift in range(-20, -4)]
    forms = [affine_sum.affine(term, term, whole, 20, -128, 127) for term in terms]
    shifts = [form.shift for form in forms if form is not None]
    assert len(shifts) > 5 and max(shifts) == 31


def test_helium_rounds_once_by_multipliers_of_all_bits_alone() -> None:
    """A left shift of fewer would cut off what is within the range."""
    for multipliers, whole in (
        ([1 << 30, 0], True),
        ([(1 << 30) - 1, 1 << 30], False),
        ([1 << 20, 0], False),
    ):
        for rounding in ("single", "even"):
            quant = QuantSpec(0, np.array(multipliers), np.array([-5, -5]), 0, -128, 127, rounding=rounding)
            assert requantise_mve.supports(quant) is whole, (multipliers, rounding)
            assert requantise_mve.supports(replace(quant, rounding="double"))


def test_depthwise_turns_rows_where_that_takes_no_more_memory() -> None:
    """A padded image passes through a ring anyway; another one takes a ring when there is room."""
    quant = QuantSpec(0, np.array([1 << 30]), np.array([-5]), 0, -128, 127)
    padded = ConvShape(1, 12, 12, 16, 12, 12, 16, 5, 5, 1, 1, 1, 1, 2, 2, groups=16)
    bare = replace(padded, in_h=16, in_w=16, pad_top=0, pad_left=0)
    weights = np.ones((5, 5, 16), np.int8)

    def taken(shape: ConvShape, room: int | None = None) -> tuple[bool, int | None]:
        code = depthwise_mve.depthwise(shape, weights, None, quant, room=room)
        return "aot_mve_turn" in code.body, code.wish

    ring = 5 * 16 * 16 + 32 - 25
    assert taken(padded) == (True, None)
    assert taken(bare) == (False, ring)
    assert taken(bare, ring - 1) == (False, ring)
    assert taken(bare, ring) == (True, ring)  # as a plan that takes it back asks for
    for geometry, fits in (
        (replace(padded, kernel_h=9, kernel_w=9), False),  # 81 bytes of a window
        (replace(padded, dilation_w=4), False),
        (replace(padded, kernel_h=10, kernel_w=8), True),
        (ConvShape(1, 3, 3120, 2, 1, 3118, 2, 3, 3, groups=2), True),  # seven planes of 9360 bytes
        (ConvShape(1, 3, 3121, 2, 1, 3119, 2, 3, 3, groups=2), False),
    ):
        assert depthwise_columns_mve.applicable(geometry) is fits, geometry


def test_a_convolution_of_one_channel_is_a_depthwise_one_where_that_is_faster() -> None:
    """Of 24 outputs of 3x3 there must be room for the ring; of 64 of 10x4 products of the patch are."""
    quant = QuantSpec(0, np.array([1 << 30]), np.array([-5]), 0, -128, 127)

    def taken(size: int, kernel: tuple[int, int], outputs: int, room: int | None) -> tuple[bool, int | None]:
        pads = (kernel[0] - 1) // 2, (kernel[1] - 1) // 2
        shape = ConvShape(1, size, size, 1, size, size, outputs, *kernel, 1, 1, 1, 1, *pads)
        weights = np.ones((outputs, *kernel, 1), np.int8)
        code = conv_mve.conv(shape, weights, None, quant, room=room)
        return "aot_mve_turn" in code.body, code.wish

    ring = 3 * 26 + 16 - 9
    assert taken(24, (3, 3), 24, None) == (False, ring)
    assert taken(24, (3, 3), 24, ring) == (True, ring)
    assert taken(24, (10, 4), 8, 1 << 16)[0]
    assert taken(5, (10, 4), 64, 1 << 16) == (False, None)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_of_channels_are_joined_where_they_fit(seed: int) -> None:
    """256 A + B in halfwords: the weights, and the accumulators of A, which are the even channels; those of B
    may be as large as they like.
    """
    rng = np.random.default_rng(seed)
    joined = set()
    for taps, large, sign in product((4, 250, 254, 257, 264, 300), (0, 1), (1, -1)):
        w = np.zeros((4, taps), np.int64)
        w[large::2] = sign * rng.choice((126, 127), (2, taps))
        w[1 - large :: 2] = rng.integers(-3, 4, (2, taps))
        b = np.zeros(4, np.int64)
        none = np.zeros(4, np.int32)  # for each channel: with one for all, all have one range
        quant = replace(QuantSpec.accumulators(0, "uint8", 0), multiplier=none, shift=none)
        reach = 255 * np.abs(w[0::2]).sum(axis=1).max()
        fits = np.abs(256 * w[0::2] + w[1::2]).max() < 1 << 15 and reach + 4096 < 1 << 23
        found = gemm_dsp.plan_slots(w, b, quant, np.arange(4))[1]
        assert found == fits, (taps, large, sign)
        joined.add(found)
    assert joined == {True, False}


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 3), (5, 1), (1, 4)])
@pytest.mark.parametrize("pad", [(0, 0, 0, 0), (1, 1, 1, 1), (2, 0, 0, 1), (0, 0, 1, 3)])
def test_convolutions_look_at_each_pixel_only_where_it_may_lie_outside(
    stride: int, kernel: tuple[int, int], pad: tuple[int, ...]
) -> None:
    """Four neighbours are taken together wherever their patches are inside of the image, and only there."""
    (kh, kw), (top, left, bottom, right) = kernel, pad
    h, w = 7, 13
    out_h, out_w = (h + top + bottom - kh) // stride + 1, (w + left + right - kw) // stride + 1
    shape = ConvShape(1, h, w, 3, out_h, out_w, 4, kh, kw, stride, stride, pad_top=top, pad_left=left)
    quant = QuantSpec.accumulators(0, "int8", 0)
    body = conv_dsp.conv(shape, np.ones((4, kh, kw, 3), np.int8), None, quant).body
    test = re.search(
        r"const int32_t y0 = (.*?);\nconst int32_t x0 = (.*?);\nuint32_t \*to = columns;\n"
        r"(?:if \((.*?)\) \{)?",
        body,
    )
    assert test is not None
    met = range(0, out_w, 1 if out_w % 4 else 4)
    for row, column in product(range(out_h), met):
        places = {"row": row, "column": column}
        places |= {"y0": eval(test[1], {}, places), "x0": eval(test[2], {}, places)}
        y, x = row * stride - top, column * stride - left
        inside = y >= 0 and y + kh <= h and x >= 0 and x + 3 * stride + kw <= w and column + 4 <= out_w
        together = test[3] is None or eval(test[3].replace("&&", "and"), {}, places)
        assert together == inside, (row, column, test[3])


ENDS = {"int8": (-128, 127), "uint8": (0, 255)}


@pytest.mark.parametrize("dtype", sorted(ENDS))
@pytest.mark.parametrize("reach", [1000, 1 << 24])
def test_requantisations_limit_what_the_type_does_not(dtype: str, reach: int) -> None:
    """Results reach beyond both ends of the type; those of the larger reach may wrap."""
    lo, hi = ENDS[dtype]
    limits = np.array([-reach]), np.array([reach])
    shift = np.array([-1 if reach == 1000 else 12], np.int32)
    for low, high in ((lo, hi), (lo + 1, hi), (lo, hi - 1)):
        quant = QuantSpec(0, np.array([1 << 30], np.int32), shift, lo + 128, low, high, out_dtype=dtype)
        found = requantise.plan(quant, *limits)
        wanted = None if low == lo else low, None if high == hi else high
        assert (found.clamp_low, found.clamp_high) == wanted


def test_ends_that_are_just_reached_are_limits() -> None:
    """The form of a requantisation is sure of the side of each threshold alone, not of how far beyond."""
    limits = np.array([-100]), np.array([100])  # a quarter of them: -25 and 25
    for end, limited in ((24, True), (25, True), (26, False)):
        quant = QuantSpec(0, np.array([1 << 30], np.int32), np.array([-1], np.int32), 0, -end, end)
        found = requantise.plan(quant, *limits)
        assert (found.clamp_low, found.clamp_high) == ((-end, end) if limited else (None, None))


@pytest.mark.parametrize("dtype", sorted(ENDS))
@pytest.mark.parametrize("zero", [0, 3, -5])
def test_the_largest_bias_leaves_room_for_all_products(dtype: str, zero: int) -> None:
    quant = QuantSpec.accumulators(0, dtype, zero)
    taps, weight = 37, max(-128 - zero, 127 - zero, key=abs)
    room = requantise.room_for_bias(np.dtype(np.int8), taps, quant)
    assert room + taps * abs(weight) * max(map(abs, ENDS[dtype])) == (1 << 31) - 1
