"""Parts of kernels at the edges that no layer of the table is large or odd enough for, each by what it
means."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from aot_model.c.assembly import advance
from aot_model.c.text import CText
from aot_model.ir.types import DType
from aot_model.kernels import cases
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32.axis import Axis, Segment
from aot_model.kernels.float32.conv import pixels_in_a_row
from aot_model.kernels.float32.dialects import DIALECTS, SCALAR
from aot_model.kernels.float32.segments import Segments
from aot_model.kernels.int8 import depthwise_channels_dsp, requantise
from aot_model.kernels.int8.affine_sum import Affine, Rescaling, affine, mve_sum, sum_table
from aot_model.kernels.int8.instructions import InstructionSet
from aot_model.kernels.int8.mve import ordered
from aot_model.kernels.int8.spec import QuantSpec, Rounding
from aot_model.kernels.int8.vectors import AVX2, SDOT, VNNI
from aot_model.kernels.int16.finish import _scaling
from aot_model.kernels.recurrent import panels_for
from aot_model.kernels.recurrent_cells import PASSES, Cells, Recurrent
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.requantise import Rescale

DISTANCES = (0, 1, 4094, 4095, 4096, 4097, 65535, 65536, 65537, (1 << 17) + 1, (1 << 20) + 12345)


def moved(lines: list[str], pointer: str, start: int = 1 << 24) -> int:
    """Where a register is after additions and subtractions of constants, with the limits of their
    encodings."""
    registers = {pointer: start}
    for line in lines:
        name, *operands = re.split(r"[ ,]+", line)
        if name in ("movw", "movt"):
            value = int(operands[1].lstrip("#"))
            assert 0 <= value < 1 << 16
            kept = registers.get(operands[0], 0) & 0xFFFF
            registers[operands[0]] = kept | value << 16 if name == "movt" else value
            continue
        assert name in ("addw", "subw", "add", "sub") and operands[0] == operands[1] == pointer
        by = int(operands[2][1:]) if operands[2].startswith("#") else registers[operands[2]]
        assert not operands[2].startswith("#") or 0 <= by < 1 << 12
        registers[pointer] += by if name.startswith("add") else -by
    return registers[pointer] - start


@pytest.mark.parametrize("distance", DISTANCES)
def test_pointers_move_by_any_distance(distance: int) -> None:
    """In one instruction where one can."""
    back, forth = advance("%[x]", -distance, "r0"), advance("r3", distance, "r12")
    assert moved(back, "%[x]") == -distance and moved(forth, "r3") == distance
    assert all((len(lines) <= 1) == (distance < 4096) for lines in (back, forth))


@pytest.mark.parametrize("dialect", [AVX2, VNNI, SDOT], ids=lambda s: s.name)
def test_weights_that_a_dot_product_takes(dialect: InstructionSet) -> None:
    """Of as many bits as its lanes have, the ends included."""
    most = 1 << (15 if dialect.group == 2 else 7)
    for least, largest, fits in (
        (-most, most - 1, True),
        (0, most, False),
        (-most - 1, 0, False),
        (-most - 1, most, False),
    ):
        assert dialect.weights_fit(np.array([[least, 3], [-1, largest]])) is fits


@pytest.mark.parametrize(
    ("largest", "ctype"), [((1 << 15) - 1, "int16_t"), (1 << 15, "int32_t"), (1 << 16, "int32_t")]
)
def test_tables_of_segments_are_as_wide_as_they_must(largest: int, ctype: str) -> None:
    rows = (Segment(0, 1, 0, 0, 2, 2), Segment(1, 5, largest, 0, 3, 3))
    text = CText()
    Segments("cols", "s", Axis(rows, 1, 1, 1, (0, 1, 2))).declare(text)
    assert f"struct {{ {ctype} " in str(text) and str(largest) in str(text)


def rescalings(seed: int) -> tuple[Rescaling, Rescaling, Rescaling, int, int, int]:
    """Two terms, a result, the shift to the left, the limits. Many sums are half-way between two integers."""
    rng = np.random.default_rng(seed)
    exact = bool(seed % 2)

    def factor(low: int, high: int) -> tuple[int, int]:
        return 1 << 30 if exact else int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(low, high))

    terms = [Rescaling(int(rng.integers(-20, 20)), *factor(-3, 1)) for _ in range(2)]
    result = Rescaling(int(rng.integers(-20, 20)), *factor(-20, -16))
    low, high = ((-128, 127), (-128, 90), (-7, 127))[seed % 3]
    return (*terms, result, 20, low, high)  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_pairs(seed: int) -> None:
    """The table that forms are looked for in is the operator's, and the form that is found gives it in 32
    bits."""
    a, b, result, left, low, high = rescalings(seed)
    node = QuantisedSum(
        "add", *(Rescale(r.zero_point, r.multiplier, r.shift) for r in (a, b, result)), left, low, high
    )
    every = np.arange(-128, 128).astype(np.int8)
    some = np.r_[every[seed % 5 :: 5], -128, -127, 126, 127].astype(np.int8)
    wanted = node.reference([np.repeat(some[:, None], some.size, 1), np.repeat(some[None], some.size, 0)])[0]
    table = sum_table(a, b, result, left, low, high)
    np.testing.assert_array_equal(table[some.astype(int) + 128][:, some.astype(int) + 128], wanted)
    form = affine(a, b, result, left, low, high)
    if isinstance(form, Affine):
        wide = every.astype(np.int64)
        value = wide[:, None] * form.ma + wide[None, :] * form.mb + form.offset
        assert np.abs(value).max() < 1 << 31
        np.testing.assert_array_equal(np.clip(value >> form.shift, low, high), table)


@pytest.mark.parametrize("rounding", ["double", "single", "even"])
@pytest.mark.parametrize("function", ["add", "sub"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_forms_of_operators(dtype: DType, function: str, rounding: str) -> None:
    """Of both types, functions and roundings, in either order of the inputs."""
    low, high = (int(v) for v in dtype.limits)
    found = 0
    for seed in range(4):
        a, b, result, left, _, _ = rescalings(seed)
        scales = [Rescale(r.zero_point + low + 128, r.multiplier, r.shift) for r in (a, b, result)]
        node = QuantisedSum(function, *scales, left, low + seed, high - seed, rounding)
        form, turned = node.affine(dtype), node.affine(dtype, swapped=True)
        if form is None:
            continue
        found += 1
        assert turned is not None and (turned.ma, turned.mb) == (form.mb, form.ma)
        some = np.r_[np.arange(low + seed, high, 7), low, high]
        x, y = np.repeat(some[:, None], some.size, 1), np.repeat(some[None], some.size, 0)
        value = x * form.ma + y * form.mb + form.offset
        parts = (x * form.ma, y * form.mb, x * form.ma + form.offset, y * form.mb + form.offset, value)
        assert all(np.abs(part).max() < 1 << 31 for part in parts)
        wanted = node.reference([x.astype(dtype.numpy), y.astype(dtype.numpy)])[0]
        np.testing.assert_array_equal(np.clip(value >> form.shift, form.low, form.high), wanted)
    assert found >= 1 + (rounding != "even")


@pytest.mark.parametrize(("rounding", "shifts", "left"), [
    ("single", (14,), 16), ("single", (15,), None), ("single", (-1, -30), 1), ("single", (-1, -31), None),
    ("even", (-31,), 0), ("even", (-32,), None), ("double", (14, 14), 15), ("double", (15, 15), None),
    ("double", (1, 0), None), ("double", (-1, -30), 1), ("double", (-1, -31), None)])  # fmt: skip
def test_scalings_of_16_bits_shift_within_a_word(
    rounding: str, shifts: tuple[int, ...], left: int | None
) -> None:
    found = _scaling(rounding, np.full(len(shifts), 1 << 30), np.array(shifts))
    assert (found and found[1]) == left


@pytest.mark.parametrize(("multiplier", "has_form"), [(1, True), (0, True), (-1, False)])
def test_scalings_of_16_bits_multiply_by_what_is_not_negative(multiplier: int, has_form: bool) -> None:
    found = _scaling("double", np.array([1 << 30, multiplier]), np.array([-9, -9]))
    assert (found is not None) == has_form


def test_squares_and_words_have_no_form() -> None:
    parts = Rescale(0, 1 << 30, 0), Rescale(0, 1 << 30, 0), Rescale(0, 1 << 30, -18)
    assert QuantisedSum("add", *parts, 20).affine(DType.INT8) is not None
    assert QuantisedSum("add", *parts, 20).affine(DType.INT16) is None
    assert QuantisedSum("squared difference", *parts, 20).affine(DType.INT8) is None


def test_most_sums_have_a_form() -> None:
    assert sum(affine(*rescalings(seed)) is not None for seed in range(12)) >= 6


def test_a_bias_moves_as_little_as_it_can() -> None:
    """By b, so that ((acc + b) * step + half + c * 2^32) >> (32 + s) reaches each level where it should."""
    rng, moves = np.random.default_rng(8), []
    for half in (0, 1 << 31) * 20:
        m, right = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(4, 9))
        quant = QuantSpec(
            0, np.array([m], np.int32), np.array([-right - 1], np.int32), 0, -128, 127, rounding="single"
        )
        ends = np.array([-3000]), np.array([3000])
        levels, threshold = requantise.thresholds(quant, *quant.channels(1), *ends)
        found = requantise._affine(levels, threshold[0], -3000, 3000, m, right, 0, half)
        if found is None:
            continue
        t, moved = threshold[0], np.arange(-abs(found[0]), abs(found[0]) + 1)
        unit, inside = levels * (1 << 32 + right), (t > -3000) & (t <= 3000)
        low = int((unit - t * m)[inside].max()) - moved * m - half
        high = int((unit - (t - 1) * m)[inside].min()) - 1 - moved * m - half
        fits = (high >> 32) >= -(-low >> 32)  # a multiple of 2^32 between them
        assert fits[moved == found[0]].all() and not fits[1:-1].any(), (m, right, found)
        moves.append(found[0])
    assert max(moves) > 20 and len(moves) > 20


@pytest.mark.parametrize(
    ("least", "rounding", "shift"),
    [(1, "single", 0), (2, "single", 0), (3, "single", 3), (5, "double", 3), (14, "double", None)],
)
def test_layers_share_their_shift(least: int, rounding: Rounding, shift: int | None) -> None:
    """All channels are right with the shift that other layers have, unless it leaves too little of their
    multipliers.
    """
    rng = np.random.default_rng(least)
    m, right = rng.integers(1 << 30, 1 << 31, 6), rng.integers(least, least + 4, 6)
    right[0] = least
    scale = m.astype(np.int32), (-1 - right).astype(np.int32)
    quant = QuantSpec(0, *scale, -128, -128, 127, rounding=rounding)
    low, high = -40 << right + 1, 220 << right + 1
    rq = requantise.plan(quant, low, high)
    assert rq.form == "affine" and (rq.shift.tolist() == [shift] * 6 or shift is None)
    for c in range(6):
        acc = np.unique(np.r_[rng.integers(low[c], high[c] + 1, 20_000), low[c], -1, 0, 1, high[c]])
        product = ((acc + rq.bias_shift[c]) * rq.multiplier[c] + (1 << 31) >> 32) + rq.offset[c]
        wanted = requantise.rescale(acc, m[c], -1 - right[c], rounding) - 128
        np.testing.assert_array_equal(np.clip(product >> rq.shift[c], -128, 127), np.clip(wanted, -128, 127))


def test_windows_that_follow_each_other_are_rows_of_a_matrix() -> None:
    """Element k of window i is element i * size + k of the input, and every such shape is found."""
    rng, seen = np.random.default_rng(4), {True: 0, False: 0}
    for _ in range(4000):
        pick = lambda *values: int(rng.choice(values))  # noqa: E731
        kernel, out, stride = ((pick(1, 1, 2, 3), pick(1, 2, 3)) for _ in range(3))
        dilation, pad = (pick(1, 1, 1, 2), pick(1, 1, 2)), (pick(0, 0, 0, 1), 0)
        more = pick(0, 0, 1), pick(0, 0, 1)
        size = [
            (o - 1) * s + (k - 1) * d + 1 - p + m
            for o, s, k, d, p, m in zip(out, stride, kernel, dilation, pad, more, strict=True)
        ]
        if min(size) < 1:
            continue
        batch, channels = pick(1, 2), pick(1, 3)
        shape = ConvShape(batch, *size, channels, *out, 5, *kernel, *stride, *dilation, *pad)
        image = np.arange(batch * size[0] * size[1] * channels).reshape(batch, *size, channels)
        image = np.pad(image, ((0, 0), (pad[0], 9), (pad[1], 9), (0, 0)), constant_values=-1)
        tall, wide = ((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
        begin = [(n, y * stride[0], x * stride[1])
                 for n in range(batch) for y in range(out[0]) for x in range(out[1])]  # fmt: skip
        taken = [
            image[n, y : y + tall : dilation[0], x : x + wide : dilation[1]].ravel() for n, y, x in begin
        ]
        found, taps = shape.row_of_windows, kernel[0] * kernel[1]
        rows = bool((np.concatenate(taken) == np.arange(len(taken) * taps * channels)).all())
        assert (found is not shape) is (
            rows
            and taps > 1
            and (batch == 1 or len(taken) * taps * channels == (batch * size[0] * size[1] * channels))
        ), shape
        seen[rows] += 1
        if found is not shape:
            assert found == ConvShape(batch, 1, out[0] * out[1], taps * channels, 1, out[0] * out[1], 5)
    assert min(seen.values()) > 100, seen


@pytest.mark.parametrize(
    ("batch", "strides", "row"),
    [
        (1, (96, 32, 8, 1), True),
        (2, (96, 32, 8, 1), True),
        (1, (200, 32, 8, 1), True),
        (2, (200, 32, 8, 1), False),
        (3, (200, 32, 8, 1), False),
        (2, (96, 40, 8, 1), False),
        (2, (192, 64, 16, 2), True),
    ],
)
def test_pixels_are_one_row_where_they_follow_each_other(
    batch: int, strides: tuple[int, int, int, int], row: bool
) -> None:
    shape = ConvShape(batch, 3, 4, 8, 3, 4, 5, x_strides=strides)
    found = pixels_in_a_row(shape)
    assert (found is not None) is row
    assert found is None or (found.in_w, found.strides[2:]) == (12 * batch, strides[2:])


@pytest.mark.parametrize("seed", range(60))
def test_outputs_whose_windows_are_not_inside(seed: int) -> None:
    """As many as there are, counted one by one."""
    rng = np.random.default_rng(seed)
    size, taps, stride, dilation = (int(rng.integers(1, most)) for most in (12, 5, 4, 4))
    before, after = (int(v) for v in rng.integers(0, (taps - 1) * dilation + 1, 2))
    out = (size + before + after - (taps - 1) * dilation - 1) // stride + 1
    starts = [k * stride - before for k in range(out)]
    beyond = sum(at < 0 or at + (taps - 1) * dilation >= size for at in starts)
    assert out <= 0 or cases._beyond(size, out, taps, stride, dilation, before) == beyond


def test_the_least_number_has_a_name() -> None:
    """A compiler takes -2147483648 for the negative of a number that has no type int32_t."""
    for offset, said in (
        (-(1 << 31), "INT32_MIN"),
        (1 - (1 << 31), "-2147483647"),
        (-(1 << 30), "-1073741824"),
    ):
        (text,) = mve_sum(Affine(1, 1, offset, 3, -128, 127)).helpers
        assert f", {said}, 3, " in text


def test_as_many_sums_have_a_form_as_the_search_is_wide() -> None:
    """Of sums with many ties: a search among fewer neighbours finds half as many."""
    found = [affine(*rescalings(2 * seed + 1)) for seed in range(60)]
    assert sum(form is not None for form in found) == 49


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("function", ["tanh", ""])
def test_gates_are_vectors_where_there_are_functions(dialect: str, function: str) -> None:
    """In Helium alone; of activations that have one."""
    window = (2, 1, 4, 8, False, (4, 4), (8, 8), 8, 0, 0)
    layer = Recurrent("RNN", DType.FLOAT32, *window, (), functions=(function,))
    assert Cells(layer, DIALECTS[dialect], CText()).vectors is (dialect == "mve" and function == "tanh")


class Places:
    """A tail that knows where it was asked to store."""

    def __init__(self) -> None:
        self.seen = set[tuple[str, ...]]()

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        self.seen.add(index[:3])
        return f"y[{index[3]}] = (int8_t)({acc});"


@pytest.mark.parametrize("along", ["w", "h"])
def test_results_of_channels_lie_along_their_axis(along: str) -> None:
    quant = QuantSpec(0, np.array([1 << 30]), np.array([-5]), 0, -128, 127)
    sizes = {f"in_{along}": 3, f"out_{along}": 1, f"kernel_{along}": 3}
    shape = replace(ConvShape(1, 1, 1, 8, 1, 1, 8, groups=8), **sizes)  # type: ignore[arg-type]
    places, weights = Places(), np.ones((shape.kernel_h, shape.kernel_w, 8), np.int8)
    for outputs in (1, 2):
        window = replace(shape, **{f"in_{along}": 2 + outputs, f"out_{along}": outputs})  # type: ignore[arg-type]
        assert depthwise_channels_dsp.applicable(window, quant)
        depthwise_channels_dsp.depthwise(window, weights, None, quant, places)
    assert ("n", *(("j", "0") if along == "h" else ("0", "j"))) in places.seen


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_panels_have_the_least_padding_that_registers_allow(cell: str, dialect: str) -> None:
    """Found by trying all; sums of a pass, two registers for operands, at most 16 registers."""
    sums = max(p.accumulators for p in PASSES[cell])
    for hidden in range(1, 70):
        window = (2, 1, 4, hidden, False, (4, 4), (hidden, hidden), hidden, 0, 0)
        found = panels_for(Recurrent(cell, DType.FLOAT32, *window, ()), DIALECTS[dialect])
        lanes = DIALECTS[dialect].lanes if DIALECTS[dialect].lanes <= hidden else 1
        registers = min(16, (DIALECTS[dialect] if lanes > 1 else SCALAR).registers - 2)
        fitting = [lanes * v for v in (1, 2, 4, 8, 16) if sums * v <= registers]
        padded = {units: -(-hidden // units) * units for units in fitting}
        best = max(units for units in fitting if padded[units] == min(padded.values()))
        assert (found.units, found.padded) == (best, padded[best]), hidden


def test_first_multiple() -> None:
    """Against counting."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        modulus = int(rng.integers(2, 120))
        a, low = int(rng.integers(0, 2 * modulus)), int(rng.integers(0, modulus))
        high = int(rng.integers(low, modulus))
        want = next((k for k in range(modulus) if low <= a * k % modulus <= high), None)
        assert requantise.first_multiple(a, modulus, low, high) == want


@pytest.mark.parametrize(
    "lines",
    [
        ["lsl r0, r1, #2", "add r2, r0, r3", "mul r4, r5, r6"],
        ["ldr r0, [r1]", "add r2, r0, r3", "add r4, r5, r6"],
    ],
)
def test_what_does_not_wait_comes_before_what_does(lines: list[str]) -> None:
    first, waiting, independent = lines
    assert ordered(lines) == [first, independent, waiting]
    assert ordered([first, independent, waiting]) == [first, independent, waiting]


def test_memory_that_is_stored_to_is_not_loaded_from_before() -> None:
    lines = ["strb r0, [r1]", "ldrb r2, [r1]", "strb r2, [r3]"]
    assert ordered(lines) == lines
