"""What kernels decide by a number, just below it and just above: which layers they take, and how.

Whether either way is right is seen elsewhere; a limit that moves changes what is here.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from float32_cases import DenseTail

from aot_model.cycles.rules import memory_of
from aot_model.ir.types import DType
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32 import blocks_fpu, panels
from aot_model.kernels.float32.blocks import Blocks
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.int8 import (
    conv_host,
    conv_mve,
    depthwise_columns_mve,
    depthwise_taps_mve,
    fully_connected_dsp,
    nibbles_dsp,
    pooling,
    requantise,
)
from aot_model.kernels.int8.held_dsp import held
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.int16 import depthwise_dsp, depthwise_mve, groups_mve
from aot_model.kernels.int16.finish import Finish, Rule, finish
from aot_model.kernels.int16.finish_mve import Ending
from aot_model.kernels.reading import Reading


def _window(height: int, width: int, channels: int = 4) -> ConvShape:
    """One window, as large as the image."""
    return ConvShape(1, height, width, channels, 1, 1, channels, height, width)


def _row(ins: int, outs: int) -> ConvShape:
    return ConvShape(1, 1, 1, ins, 1, 1, outs)


def _quant(zero: int = 0) -> QuantSpec:
    """For which weights of 4 bits are read where they lie."""
    one = np.array([1717986918], np.int32), np.array([-4], np.int32)
    return QuantSpec(3, *one, -5, -128, 127, weight_zero_point=zero)


@pytest.mark.parametrize(
    ("windows", "dtype", "taken", "refused"),
    [
        (pooling.HELIUM, "int8", (50, 100), (1, 5001)),
        (pooling.HELIUM, "uint8", (40, 100), (4001, 1)),
        (pooling.HELIUM, "int16", (255, 257), (256, 256)),
        (pooling.AVX2, "int8", (511, 128), (1, 129)),
        (pooling.AVX2, "uint8", (1, 128), (512, 128)),
    ],
)
def test_windows_that_sums_hold(
    windows: pooling.Windows, dtype: str, taken: tuple[int, int], refused: tuple[int, int]
) -> None:
    assert windows.takes(_window(*taken), dtype)
    assert not windows.takes(_window(*refused), dtype)
    narrow = ConvShape(1, 7, 100, 4, 1, 3, 4, 7, 200, pad_left=60)  # 100 columns are in the image
    assert windows.takes(narrow, dtype)


@pytest.mark.parametrize(
    ("kind", "dtype", "window", "channels", "step"),
    [
        ("average", "int8", (15, 17), 8, 4),
        ("average", "int8", (16, 16), 8, 1),
        ("max", "int8", (16, 16), 8, 4),
        ("average", "int16", (16, 16), 8, 2),
        ("average", "uint8", (2, 2), 6, 1),
        ("average", "int16", (2, 2), 6, 2),
        ("average", "int16", (2, 2), 5, 1),
    ],
)
def test_channels_of_a_word(
    kind: pooling.Kind, dtype: str, window: tuple[int, int], channels: int, step: int
) -> None:
    note = pooling.pool(kind, _window(*window, channels), dtype, dsp=True).note
    assert f", {step} channel{'s' * (step > 1)} at a time" in note


@pytest.mark.parametrize(
    ("change", "sums"),
    [({}, True), ({"kernel_h": 1, "out_h": 15, "kernel_w": 1, "out_w": 17}, False),
     ({"in_h": 16, "kernel_h": 16}, False), ({"in_c": 6, "out_c": 6, "groups": 6}, False),
     ({"out_c": 16}, False), ({"in_w": 33, "dilation_w": 2}, False), ({"pad_top": 1}, False)],
)  # fmt: skip
def test_sums_of_windows(change: dict[str, int], sums: bool) -> None:
    shape = ConvShape(**{**vars(_window(15, 17, 8)), "groups": 8, **change})
    ones = np.ones((shape.kernel_h, shape.kernel_w, shape.out_c), np.int8)
    assert pooling.are_sums(shape, ones, _quant()) is sums
    assert not pooling.are_sums(shape, ones, _quant(zero=1))
    ones[0, 0, -1] = 2
    assert not pooling.are_sums(shape, ones, _quant())


@pytest.mark.parametrize(
    ("ins", "outs", "expanded"),
    [(256, 16, True), (260, 16, False), (256, 15, False), (6, 4, True), (4, 16, True), (3, 4, True)],
)
def test_rows_that_are_expanded_once(ins: int, outs: int, expanded: bool) -> None:
    w = np.ones((outs, ins), np.int8)
    code = fully_connected_dsp.fully_connected(_row(ins, outs), w, None, _quant())
    assert ("expanded once" in code.note) is expanded
    assert (f"(wide, x, {ins // 4}u)" in code.body) is (expanded and ins > 3)
    assert [piece.nbytes for piece in code.scratch if piece.name == "wide"] == [
        2 * (ins + -ins % 4)
    ] * expanded


@pytest.mark.parametrize(
    ("ins", "outs", "pixels", "taken"),
    [(124, 8, 1, True), (128, 8, 1, False), (128, 8, 2, True), (16, 4, 1, True), (16, 3, 1, False)],
)
def test_weights_of_4_bits_that_are_read_where_they_lie(
    ins: int, outs: int, pixels: int, taken: bool
) -> None:
    shape = ConvShape(1, 1, pixels, ins, 1, pixels, outs)
    w = np.random.default_rng(3).integers(-8, 8, (outs, 1, 1, ins)).astype(np.int8)
    assert (nibbles_dsp.conv(shape, w, None, _quant()) is not None) is taken


@pytest.mark.parametrize(
    ("kernel", "columns", "taken"),
    [((2, 1), 4681, True), ((2, 1), 4682, False), ((8, 10), 20, True), ((9, 9), 20, False)],
)
def test_turned_rows_that_offsets_reach(kernel: tuple[int, int], columns: int, taken: bool) -> None:
    """Seven planes of a channel have 16 bits, and windows are of 80 bytes."""
    shape = ConvShape(1, kernel[0], columns, 2, 1, columns - kernel[1] + 1, 2, *kernel, groups=2)
    assert depthwise_columns_mve.applicable(shape) is taken


@pytest.mark.parametrize(
    ("outputs", "kernel", "compact", "eight"),
    [
        (8, (8, 8), False, True),
        (7, (8, 8), False, False),
        (8, (5, 13), False, False),
        (8, (8, 8), True, False),
    ],
)
def test_blocks_of_eight_outputs(outputs: int, kernel: tuple[int, int], compact: bool, eight: bool) -> None:
    """Where a vector is left for the sums of the first four."""
    shape = ConvShape(1, kernel[0], outputs + kernel[1] - 1, 2, 1, outputs, 2, *kernel, groups=2)
    assert depthwise_columns_mve._plan(shape, compact).eight is eight


@pytest.mark.parametrize(
    ("shape", "taken"),
    [
        (ConvShape(1, 1, 32_768, 1, 1, 1, 1, 1, 2, dilation_w=32_767), True),
        (ConvShape(1, 1, 32_769, 1, 1, 1, 1, 1, 2, dilation_w=32_768), False),
        (ConvShape(1, 1, 16_384, 2, 1, 1, 2, 1, 2, dilation_w=16_383, groups=2), True),
        (ConvShape(1, 1, 16_385, 2, 1, 1, 2, 1, 2, dilation_w=16_384, groups=2), False),
        (ConvShape(1, 2, 16_383, 2, 1, 16_383, 2, 2, 1, groups=2), True),
        (ConvShape(1, 2, 16_384, 2, 1, 16_384, 2, 2, 1, groups=2), False),
        (ConvShape(1, 1, 8, 255, 1, 4, 255, 1, 2, groups=255), True),
        (ConvShape(1, 1, 8, 256, 1, 4, 256, 1, 2, groups=256), False),
        (ConvShape(1, 1, 80, 89, 1, 4, 89, 1, 2, stride_w=23, groups=89), True),
        (ConvShape(1, 1, 80, 128, 1, 4, 128, 1, 2, stride_w=16, groups=128), False),
        (ConvShape(1, 1, 130, 2, 1, 4, 2, 1, 120, groups=2), True),
        (ConvShape(1, 1, 130, 2, 1, 4, 2, 1, 121, groups=2), False),
    ],
)
def test_taps_of_int16_that_offsets_reach(shape: ConvShape, taken: bool) -> None:
    taps = np.ones((shape.out_c, shape.kernel_h * shape.kernel_w), np.int8)
    assert depthwise_mve.applicable(shape, taps, None) is taken


@pytest.mark.parametrize(
    ("shape", "taken"),
    [
        (ConvShape(1, 1, 21_846, 3, 1, 1, 3, 1, 2, dilation_w=21_845, groups=3), True),
        (ConvShape(1, 1, 65_537, 1, 1, 1, 1, 1, 2, dilation_w=65_536), False),
        (ConvShape(1, 2, 21_845, 3, 1, 21_845, 3, 2, 1, groups=3), True),
        (ConvShape(1, 2, 21_846, 3, 1, 21_846, 3, 2, 1, groups=3), False),
        (ConvShape(1, 1, 8, 341, 1, 4, 1023, 1, 2, groups=341), True),
        (ConvShape(1, 1, 8, 512, 1, 4, 1024, 1, 2, groups=512), False),
        (ConvShape(1, 1, 80, 315, 1, 4, 315, 1, 2, stride_w=13, groups=315), True),
        (ConvShape(1, 1, 80, 512, 1, 4, 512, 1, 2, stride_w=8, groups=512), False),
        (ConvShape(1, 16, 80, 3, 1, 4, 3, 16, 8, groups=3), True),
        (ConvShape(1, 3, 80, 3, 1, 4, 3, 3, 43, groups=3), False),
    ],
)
def test_taps_of_bytes_that_offsets_reach(shape: ConvShape, taken: bool) -> None:
    assert depthwise_taps_mve.applicable(shape) is taken


@pytest.mark.parametrize(
    ("channels", "groups", "zero", "taken"),
    [
        (131_071, 1, 5, True),
        (131_072, 1, 0, False),
        (65_534, 2, 0, True),
        (65_536, 2, 0, False),
        (8, 2, 5, False),
    ],
)
def test_dot_products_that_32_bits_hold(channels: int, groups: int, zero: int, taken: bool) -> None:
    shape = ConvShape(1, 1, 2, channels, 1, 2, 4, groups=groups)
    assert conv_mve.applicable(shape, _quant(zero)) is taken
    for more in (0, 1):  # taps count as channels do
        deep = ConvShape(1, 3, 2, 21_845 + more, 1, 1, 4, 3, 2)
        assert conv_mve.applicable(deep, _quant()) is (more == 0)


@pytest.mark.parametrize(("offset", "narrow"), [(8191, True), (-8191, True), (8192, False), (-8192, False)])
def test_offsets_that_lanes_of_16_bits_add(
    offset: int, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cut to 16 bits stays beyond all results then. Offsets that are found are far smaller."""
    ends = np.array([-5000]), np.array([5000])
    found = np.array([1 << 30]), np.array([0]), np.array([offset])
    monkeypatch.setattr(requantise, "_all_affine", lambda *given: found)
    assert requantise.plan(_quant(), *ends, rounded=False).narrow is narrow


@pytest.mark.parametrize(
    ("vectors", "rows", "taken"),
    [
        ("v8", 1, True),
        ("v16", 1, True),
        ("v4", 4, True),
        ("v4", 3, False),
        ("scalar", 64, False),
        ("mve", 64, False),
    ],
)
def test_rows_that_are_worth_a_panel(vectors: str, rows: int, taken: bool) -> None:
    assert panels.takes(rows, DIALECTS[vectors]) is taken


@pytest.mark.parametrize(
    ("vectors", "rows", "columns", "bits", "said", "loops"),
    [
        ("v8", 1, 64, 8, "32 columns, 1 row", "column b k"),
        ("v8", 4, 64, 4, "32 columns, 1 row", "column b mb k"),
        ("v16", 4, 20, 4, "32 columns, 4 rows", "b k p l k"),
        ("v16", 13, 100, 8, "64 columns, 2 rows", "b mb k k b mb k p l k k l k"),
        ("v4", 5, 64, 8, "8 columns, 5 rows", "column b j k"),
        ("v4", 4, 9, 4, "12 columns, 4 rows", "b j j k p l k"),
        ("v4", 4, 192, 8, "16 columns, 2 rows", "column b j mb k"),  # weights as large as the nearest cache
        ("v4", 4, 193, 8, "12 columns, 4 rows", "column b j k b j k"),
    ],
)
def test_panels(vectors: str, rows: int, columns: int, bits: int, said: str, loops: str) -> None:
    """How wide they are, and what is a loop: one product in each, so nothing over a batch."""
    scales, zeros = np.ones((columns, 2), np.float32), np.zeros((columns, 2), np.int16)
    matrix = Blocks(np.ones((columns, 32), np.uint8), bits, scales, zeros, 16)
    tail = DenseTail((1, 1, rows, columns), DIALECTS[vectors])
    code = panels.panel_matmul(rows, matrix, tail, DIALECTS[vectors], True)
    assert code.note == f"panels of {said} at a time; {bits} bits in blocks of 16"
    (panel,) = code.scratch
    assert panel.nbytes == 4 * 32 * int(said.split()[0])
    assert " ".join(re.findall(r"for \(int32_t (\w+)", code.body)) == loops
    one = replace(matrix, q=matrix.q[:, :16], scales=scales[:, :1], zeros=zeros[:, :1])
    assert "int32_t b " not in panels.panel_matmul(rows, one, tail, DIALECTS[vectors], True).body


@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [(1, 20, 8), (1, 19, 4), (1, 10, 4), (1, 8, 8), (1, 15, 8), (1, 36, 8), (1, 26, 4), (2, 16, 4)],
)
def test_columns_that_share_a_block_of_few_bits(rows: int, columns: int, tile: int) -> None:
    """Eight, where what fills the last ones up is a fifth at most and rows do not share them."""
    numbers = np.ones((columns, 1), np.float32), np.zeros((columns, 1), np.int16)
    matrix = Blocks(np.ones((columns, 16), np.uint8), 8, *numbers, 16)
    code = blocks_fpu.block_matmul(rows, matrix, DenseTail((1, 1, rows, columns), DIALECTS["scalar"]), False)
    assert code.constants[0].layout.startswith(f"for each {tile} columns")


@pytest.mark.parametrize(("taps", "bits", "taken"), [(511, 8, True), (512, 8, False), (9, 16, False)])
def test_taps_of_int16_whose_sums_have_32_bits(taps: int, bits: int, taken: bool) -> None:
    """One more makes 2^31 of the least activations and weights."""
    shape = ConvShape(1, 1, taps + 15, 2, 1, 16, 2, 1, taps, groups=2)
    weights, most = np.ones((1, taps, 2), f"int{bits}"), 1 << 15 + bits - 1
    assert depthwise_dsp.applicable(shape, weights, most, None) is taken
    ending = Ending.of(_ending())
    groups = ConvShape(1, 1, 16, 2 * taps, 1, 16, 2, groups=2)
    assert groups_mve.applicable(groups, np.ones((2, taps), f"int{bits}"), most, ending) is (
        taps * most < 1 << 31
    )


def _ending(to: DType = DType.INT16, zero: int = 0, shift: int = -8) -> Finish | None:
    one = np.ones(1, np.int64)
    return finish(1, 0 * one, Rule("single", one << 30, shift * one, zero, *to.limits, to), 1 << 20)


@pytest.mark.parametrize(
    ("to", "channels", "taken"),
    [
        (DType.INT16, 8191, True),
        (DType.INT16, 8192, False),
        (DType.UINT16, 64, False),
        (DType.INT8, 64, True),
    ],
)
def test_patches_of_groups_that_offsets_reach(to: DType, channels: int, taken: bool) -> None:
    """Bytes of a patch have 16 bits; vectors store what has a sign."""
    shape = ConvShape(1, 2, 3, channels, 1, 2, channels, 2, 2, groups=1)
    weights = np.ones((channels, 4), np.int8)
    assert groups_mve.applicable(shape, weights, 1 << 22, Ending.of(_ending(to))) is taken


@pytest.mark.parametrize(
    ("zero", "shift", "done"),
    [
        (16383, -17, True),
        (16384, -17, False),
        (-16384, -17, True),
        (-16385, -17, False),
        (0, -31, True),
        (0, -32, False),
    ],
)
def test_zero_points_beside_which_a_rounding_fits(zero: int, shift: int, done: bool) -> None:
    assert (_ending(zero=zero, shift=shift) is not None) is done


@pytest.mark.parametrize(
    ("memory", "ins", "outs", "pixels", "taken"),
    [
        ("0ws", 8, 4000, 9, True),
        ("0ws", 8, 4001, 9, False),
        ("0ws", 8, 16, 48, False),
        ("0ws", 8, 16, 49, True),
        ("0ws", 9, 16, 400, False),
        ("0ws", 1, 16, 400, False),
        ("l4-art", 8, 1429, 4, True),
        ("l4-art", 8, 1428, 4, False),
        ("l4-art", 8, 3000, 3, False),
    ],
)
def test_pixels_that_stay_in_registers(memory: str, ins: int, outs: int, pixels: int, taken: bool) -> None:
    """Their results are within an offset's reach, and they save 5,000 cycles; so does a copy of what waits,
    which is read once for two pixels: 3.5 cycles a channel where it is read twice.
    """
    weights = np.random.default_rng(1).integers(-99, 99, (outs, ins)).astype(np.int8)
    reading = Reading(memory_of(memory))
    assert (held(_pixels(pixels, ins, outs), weights, None, _quant(), reading) is not None) is taken


def _pixels(count: int, ins: int, outs: int) -> ConvShape:
    return ConvShape(1, 1, count, ins, 1, count, outs)


@pytest.mark.parametrize(
    ("rows", "pixels", "outs", "kernels"),
    [
        (1, 1, 64, ["1x64"]),
        (1, 1, 63, ["1x16"]),
        (1, 1, 80, ["1x16", "1x64"]),
        (1, 2, 32, ["2x32"]),
        (1, 3, 31, ["3x16"]),
        (1, 3, 48, ["3x16", "3x32"]),
        (1, 4, 64, ["4x16"]),
        (3, 1, 64, ["3x32"]),
        (3, 2, 64, ["6x16"]),
    ],
)
def test_channels_of_hosts_that_few_pixels_share(
    rows: int, pixels: int, outs: int, kernels: list[str]
) -> None:
    """Several blocks of 16 channels at a time where no more than three pixels share their weights."""
    shape = ConvShape(1, rows, pixels, 8, rows, pixels, outs)
    weights = np.random.default_rng(1).integers(-99, 99, (outs, 1, 1, 8)).astype(np.int8)
    body = conv_host.conv(shape, weights, None, _quant()).body
    assert sorted(set(re.findall(r"avx2_conv_(\d+x\d+)", body))) == kernels
