"""Winograd's convolution against the numpy model of the arithmetic, byte for byte: every variant, on the host
under sanitizers and in QEMU, with weights and inputs for which sums wrap; and which layers it must refuse.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import arithmetic
import numpy as np
import pytest
from int8_cases import KINDS, TableTail, finished, quantisation, some_bias, some_input, some_weights
from kernel_program import Case, run_board, run_host

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import affine_sum, winograd, winograd_dsp
from aot_model.kernels.int8.spec import QuantSpec
from qemu import available

needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
FILTER = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]])
INPUT = np.array([[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0],
                  [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]])  # fmt: skip


PLAIN_CYCLES = winograd.plain_cycles


@pytest.fixture(autouse=True)
def _all_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the plain kernel is faster."""
    monkeypatch.setattr(winograd, "plain_cycles", lambda shape: 1e15)


def random_shape(rng: np.random.Generator) -> ConvShape:
    """SAME, VALID and explicit padding on each side, sizes that are no multiple of the tile, odd channels."""
    height, width = (int(v) for v in rng.integers(1, 14, 2))
    top, left, bottom, right = (int(v) for v in rng.integers(0, 3, 4))
    ins, outs = int(rng.choice([4, 5, 6, 7, 8, 12, 16, 20, 32])), int(rng.choice([2, 3, 4, 5, 7, 8]))
    out_h, out_w = max(height + top + bottom - 2, 1), max(width + left + right - 2, 1)
    batch = int(rng.choice([1, 1, 2]))
    return ConvShape(batch, height, width, ins, out_h, out_w, outs, 3, 3, pad_top=top, pad_left=left)


class SumTail(TableTail):
    """The sum with an array, a row at a time, as a residual that is fused."""

    row_helpers: tuple[str, ...] = ()
    adjacent = True
    form = affine_sum.affine(affine_sum.Rescaling(4, 2**30, 0), affine_sum.Rescaling(-128, 1623821475, -2),
                          affine_sum.Rescaling(-128, 1098017566, -17), 20, -128, 127)  # fmt: skip

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int | str) -> str:
        n, y, x, c = (f"({i})" for i in index)
        assert self.form is not None
        at = f"(({n} * {self.shape.out_h} + {y}) * {self.shape.out_w} + {x}) * {self.shape.out_c} + {c}"
        return affine_sum.dsp_sum(self.form).call(source, f"residual + {at}", f"y + {at}", str(count))


def summed(
    code: winograd_dsp.KernelCode, x: np.ndarray, want: np.ndarray, rng: np.random.Generator, number: int
) -> Case:
    """The case with a residual of its own."""
    residual = rng.integers(-128, 128, want.shape)
    given = (4, 2**30, 0), (-128, 1623821475, -2), (-128, 1098017566, -17)
    a, b, y = (affine_sum.Rescaling(*g) for g in given)
    table = affine_sum.sum_table(a, b, y, 20, -128, 127)
    name = f"residual{number}"
    text = f"static const int8_t {name}[{residual.size}] = {{{', '.join(map(str, residual.reshape(-1)))}}};"
    return Case(replace(code, body=code.body.replace("residual", name)), x,
                table[want.astype(np.int64) + 128, residual + 128].astype(np.int8), text)  # fmt: skip


WHOLE = ((4, 4), (5, 8), (8, 12), (1, 8))
"""Heights and widths of results: rows of whole tiles, behind the last of which lies the next row."""


def random_cases(seed: int, count: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    for turn in range(count + len(WHOLE)):
        shape, kind = random_shape(rng), KINDS[turn % len(KINDS)]
        if turn >= count:
            height, width = WHOLE[turn - count]
            shape = ConvShape(1 + turn % 2, height + 2, width + 2, 4, height, width, 3, 3, 3)
            kind = "signed"
        weights, bias = some_weights(rng, (shape.out_c, 3, 3, shape.in_c)), some_bias(rng, shape.out_c)
        quant = quantisation(rng, shape.out_c, 9 * shape.in_c, kind)
        x = some_input(rng, shape, quant)
        assert winograd.fits(shape, quant, weights)
        fused = quant.out_dtype == "int8" and (turn >= count or rng.random() < 0.3)
        looked_up = TableTail(shape, quant.out_range[0]) if rng.random() < 0.3 else None
        tail = SumTail(shape, -128) if fused else looked_up
        variants = list(winograd.variants(shape, tail is not None))
        variant = variants[int(rng.integers(len(variants)))]
        code = winograd_dsp.conv(shape, weights, bias, quant, tail, variant)
        want = arithmetic.conv(x, weights, bias, shape, quant)
        cases.append(summed(code, x, want, rng, turn) if fused else finished(code, x, want, quant, tail))
    return cases


def extreme(
    channels: int, pattern: str, zero: int = -128
) -> tuple[ConvShape, np.ndarray, np.ndarray, QuantSpec]:
    """A layer of one tile for whose weights and inputs the sums of products are as large as they can be."""
    shape = ConvShape(1, 6, 6, channels, 4, 4, 4, 3, 3)
    if pattern == "position":  # the largest sum at one position of the transform
        weights = np.where(np.outer(FILTER[3], FILTER[3]) >= 0, 127, -128)
        x = np.where(np.outer(INPUT[1], INPUT[1]) >= 0, 127, -128)
    else:
        weights, x = np.full((3, 3), -128), np.full((6, 6), 127)
    each = np.broadcast_to(weights[None, :, :, None], (4, 3, 3, channels)).astype(np.int8)
    quant = QuantSpec(zero, np.array([2**30], np.int32), np.array([-18], np.int32), 0, -128, 127)
    return shape, each, np.broadcast_to(x[None, :, :, None], (1, 6, 6, channels)).astype(np.int8), quant


def wraps(weights: np.ndarray, x: np.ndarray, zero: int) -> bool:
    """Whether a sum of products leaves int32."""
    u = np.einsum("ia,oabc,jb->oijc", FILTER, weights.astype(np.int64), FILTER)
    v = np.einsum("ia,abc,jb->ijc", INPUT, x[0].astype(np.int64) - zero, INPUT)
    assert np.abs(u).max() <= 49 * 128 and np.abs(v).max() <= 100 * 255
    return bool(np.abs((u * v).sum(-1)).max() >= 2**31)


def extreme_cases() -> list[Case]:
    """Of every variant: 112 channels are the most that any weights may have."""
    cases = []
    for pattern, zero in (("position", -128), ("position", 127), ("all", -128)):
        shape, weights, x, quant = extreme(112, pattern, zero)
        assert winograd.fits(shape, quant, weights) and wraps(weights, x, zero) == (pattern == "position")
        want = arithmetic.conv(x, weights, None, shape, quant)
        cases += [Case(winograd_dsp.conv(shape, weights, None, quant, None, v), x, want)
                  for v in winograd.variants(shape, False)]  # fmt: skip
    return cases


def deep_case() -> Case:
    """So many channels that what pointers move on by is no constant of an addition."""
    rng, shape = np.random.default_rng(6), ConvShape(1, 4, 5, 464, 4, 5, 4, 3, 3, pad_top=1, pad_left=1)
    weights = rng.integers(-20, 21, (4, 3, 3, 464)).astype(np.int8)
    quant = QuantSpec(-100, np.array([2**30], np.int32), np.array([-13], np.int32), 0, -128, 127)
    assert winograd.fits(shape, quant, weights)
    x, variant = some_input(rng, shape, quant), next(winograd.variants(shape, False))
    code = winograd_dsp.conv(shape, weights, None, quant, None, variant)
    assert any(f"winograd_{464 // 16}x8" in helper and "mov" in helper for helper in code.helpers)
    return Case(code, x, arithmetic.conv(x, weights, None, shape, quant))


@pytest.mark.parametrize("seed", range(3))
def test_host(seed: int, tmp_path: Path) -> None:
    run_host(random_cases(seed, 14) + (extreme_cases() if seed == 0 else []), tmp_path)


@needs_qemu
@pytest.mark.parametrize(("core", "level"), [("m4", "-O2"), ("m4", "-Os"), ("m33", "-O2")])
def test_cores(core: str, level: str, tmp_path: Path) -> None:
    run_board([*random_cases(7, 14), *extreme_cases(), deep_case()], tmp_path, core, (level,))


def test_all_variants_are_among_the_cases() -> None:
    shapes = [ConvShape(1, 20, 20, channels, 18, 18, 8, 3, 3) for channels in (4, 16, 32)]
    every = {
        (v.together, v.unroll, v.in_parts, min(v.tiles // v.together, 2))
        for shape in shapes
        for v in winograd.variants(shape, True)
    }
    assert len(every) == 14  # 2 forms x (4, 8 pairs; in parts of 8, 4, 2), whole ones of one product or more


def test_sums_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, weights, x, quant = extreme(120, "all")
    assert not winograd.fits(shape, quant, weights)
    assert winograd.fits(shape, quant, weights // 2)  # it is the weights that decide, not their number
    want = arithmetic.conv(x, weights, None, shape, quant)
    monkeypatch.setattr(winograd, "LIMIT", 1 << 31)
    assert winograd.fits(shape, quant, weights)
    code = winograd_dsp.conv(shape, weights, None, quant, None, next(winograd.variants(shape, False)))
    with pytest.raises(AssertionError):  # and the refusal is needed
        run_host([Case(code, x, want)], tmp_path)


@pytest.mark.parametrize("change", [{"stride_w": 2}, {"dilation_h": 2}, {"kernel_w": 1}, {"groups": 4},
                                    {"in_c": 3}, {"out_c": 1}])  # fmt: skip
def test_other_layers_are_refused(change: dict[str, int]) -> None:
    shape, weights, _, quant = extreme(16, "all")
    assert winograd.fits(shape, quant, weights // 8)
    assert not winograd.fits(replace(shape, **change), quant, weights[:1] // 8)


def test_zero_points_of_weights_are_refused() -> None:
    shape, weights, _, quant = extreme(16, "all")
    assert not winograd.fits(shape, replace(quant, weight_zero_point=1), weights // 8)


def test_the_choice_is_within_the_room_and_not_slower_with_more() -> None:
    shape = ConvShape(1, 32, 32, 16, 32, 32, 16, 3, 3, pad_top=1, pad_left=1)
    least = winograd.smallest(shape, False)
    assert least is not None and winograd.choose(shape, False, least.scratch - 1) is None
    cycles = []
    for room in range(least.scratch, 40_000, 1000):
        chosen = winograd.choose(shape, False, room)
        assert chosen is not None and chosen.scratch <= room
        cycles.append(chosen.cycles)
    assert cycles == sorted(cycles, reverse=True) and cycles[-1] < cycles[0]


def test_only_what_saves_enough_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth, and 100,000 cycles."""
    monkeypatch.setattr(winograd, "plain_cycles", PLAIN_CYCLES)
    taken = []
    for size in (6, 8, 12, 16, 24):
        shape = ConvShape(1, size, size, 16, size, size, 16, 3, 3, pad_top=1, pad_left=1)
        plain = PLAIN_CYCLES(shape)
        found = list(winograd.variants(shape, False))
        assert all(v.cycles + 100_000 < plain and v.cycles < 0.9 * plain for v in found)
        taken += [size] if found else []
    assert taken == [16, 24]


def test_a_wrong_coefficient_is_seen(tmp_path: Path) -> None:
    (case, *_) = random_cases(11, 1)
    text = next(h for h in case.code.helpers if "0x38e38e39" in h)
    wrong = tuple(h.replace("0x38e38e39", "0x38e38e3b") if h is text else h for h in case.code.helpers)
    with pytest.raises(AssertionError):
        run_host([replace(case, code=replace(case.code, helpers=wrong))], tmp_path)


def test_every_depth_holds_all_channels() -> None:
    """In whole turns of the product; those in parts fill nothing up, the others less than a turn."""
    for channels in range(1, 200):
        pairs = 2 * -(-channels // 4)
        for filled, turn, in_parts in winograd.depths(ConvShape(1, 6, 6, channels, 4, 4, 4, 3, 3)):
            assert filled % turn == 0, channels
            assert filled == pairs if in_parts else pairs <= filled < pairs + turn, channels


def test_more_results_than_the_kernel_counts_are_refused() -> None:
    """By image, row, column and channel together."""
    shape, weights, _, quant = extreme(16, "all")
    few = weights // 8
    most = winograd.LARGEST // (shape.out_h * shape.out_w * shape.out_c)
    assert winograd.fits(replace(shape, batch=most), quant, few)
    assert not winograd.fits(replace(shape, batch=most + 1), quant, few)
    wide = replace(shape, out_w=winograd.LARGEST // shape.out_h // shape.out_c + 1)
    assert not winograd.fits(wide, quant, few)


@pytest.mark.parametrize("zero", [-128, -5, 0, 90, 127])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_the_largest_inputs_are_within_the_limit(zero: int, sign: int) -> None:
    """One weight more in a filter of equal ones, and the sum is beyond; on the side where inputs reach
    farthest.
    """
    far = max(127 - zero, zero + 128)
    weight = 100 * sign
    channels = winograd.LIMIT // (9 * 100 * far)
    quant = QuantSpec(zero, np.array([1 << 30]), np.array([-5]), 0, -128, 127)
    for ins, fits in ((channels, True), (channels + 1, False)):
        shape = ConvShape(1, 6, 6, ins, 4, 4, 2, 3, 3)
        weights = np.full((2, 3, 3, ins), weight, np.int8)
        assert winograd.fits(shape, quant, weights) is fits


def followed(s: ConvShape, tiles: int) -> int:
    """How far results may lie over the input, element by element, with padding that holds whole tiles."""
    rows, columns = winograd.tiles_of(s)
    last = s.batch * s.in_h * s.in_w * s.in_c
    blocks: list[tuple[int, int]] = []
    for image in range(s.batch):
        for first in range(0, rows * columns, tiles):
            least, end = last, 0
            for tile in range(first, min(first + tiles, rows * columns)):
                top, left = (4 * place for place in divmod(tile, columns))
                for y, x in np.ndindex(6, 6):
                    row, column = top + y - s.pad_top, left + x - s.pad_left
                    if 0 <= row < s.in_h and 0 <= column < s.in_w:
                        least = min(least, ((image * s.in_h + row) * s.in_w + column) * s.in_c)
                row, column = min(top + 4, s.out_h) - 1, min(left + 4, s.out_w)
                end = max(end, ((image * s.out_h + row) * s.out_w + column) * s.out_c)
            blocks.append((least, end))
    later = [min((least for least, _ in blocks[k + 1 :]), default=last) for k in range(len(blocks))]
    return min([last, *(least - end for least, (_, end) in zip(later, blocks, strict=True) if least < last)])


def test_how_far_results_may_lie_over_the_input() -> None:
    rng, found = np.random.default_rng(9), set()
    for _ in range(60):
        height, width, top, left, bottom, right = (int(v) for v in rng.integers(1, 10, 6))
        out_h, out_w = max(height + top + bottom - 2, 1), max(width + left + right - 2, 1)
        batch, ins, outs = (int(v) for v in rng.integers((1, 4, 2), (3, 9, 4)))
        shape = ConvShape(batch, height, width, ins, out_h, out_w, outs, 3, 3, pad_top=top, pad_left=left)
        for tiles in (2, 4, 8):
            reach = winograd.reach(shape, tiles)
            assert reach == followed(shape, tiles), (shape, tiles)
            found.add(reach)
    assert len(found) > 100
