"""Conditions of kernels that models hardly ever meet, or that no caller lets through: both ways of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from aot_model.c.text import CText
from aot_model.errors import CompileError
from aot_model.ir.admissible import ANYTHING
from aot_model.ir.types import DType
from aot_model.kernels import fourier
from aot_model.kernels.base import ConvShape, Packed
from aot_model.kernels.float32 import pool, vector_text
from aot_model.kernels.float32.conv import pixels_in_a_row
from aot_model.kernels.float32.dialects import SCALAR
from aot_model.kernels.float32.matmul import MatmulShape, _Product
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.int8 import (
    affine_sum,
    depthwise_mve,
    finish,
    mve,
    nibbles,
    nibbles_dsp,
    requantise_mve,
)
from aot_model.kernels.int8.depthwise_pairs_dsp import Pairs
from aot_model.kernels.int8.depthwise_steps_dsp import _Steps
from aot_model.kernels.int8.plane import Axis, Plane
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.int16 import conv as conv_int16
from aot_model.kernels.int16 import depthwise_dsp, depthwise_lanes_mve, dot_dsp
from aot_model.kernels.int16.depthwise_mve import _End
from aot_model.kernels.int16.finish import Finish, Rule
from aot_model.kernels.int16.finish import finish as finished
from aot_model.kernels.int16.finish_mve import Ending
from aot_model.kernels.target import Attribute, Target

QUANT = QuantSpec(3, np.array([1 << 30], np.int32), np.array([-8], np.int32), 0, -128, 127)
SUMS = QuantSpec.accumulators(0, "int8", 0)


class Plain:
    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        return f"y[{index[3]}] = {acc};"


# ---- float32


@pytest.mark.parametrize(("change", "row"), [({}, True), ({"out_w": 3}, False), ({"out_h": 2}, False)])
def test_pixels_that_are_left_out_are_no_row(change: dict[str, int], row: bool) -> None:
    shape = replace(ConvShape(1, 3, 4, 8, 3, 4, 5), **change)  # type: ignore[arg-type]
    assert (pixels_in_a_row(shape) is not None) is row


@pytest.mark.parametrize("batch", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 1, 4, 3, 2)])
def test_leading_axes_are_counted_as_one(batch: tuple[int, ...]) -> None:
    zeros = (0,) * (len(batch) + 2)
    shape = MatmulShape(batch, 2, 2, 2, zeros, zeros)
    text, leading = CText(), batch[:-1]
    _Product(shape, Plain(), SCALAR, "a", "b").leading(text)
    value = str(text).partition("=")[2].strip().rstrip(";") or "i"
    for number, place in enumerate(product(*map(range, leading))):
        names = dict(zip(shape.variables, place, strict=False))
        assert eval(value, {"i": number}, names) == number, value


def test_what_no_depthwise_kernel_is_for() -> None:
    weights = Weights(np.ones((4, 1, 1, 1), np.float32))
    for shape in (ConvShape(1, 1, 1, 4, 1, 1, 4, groups=2), ConvShape(1, 1, 1, 4, 1, 1, 6, groups=4)):
        with pytest.raises(ValueError, match="not depthwise"):
            pool.depthwise(shape, weights, Plain(), SCALAR)
    many = ConvShape(1, 1, 8, 512, 1, 4, 1024, 1, 2, groups=512)
    with pytest.raises(ValueError, match="not for the depthwise kernels"):
        depthwise_mve.depthwise(many, np.ones((1, 2, 1024), np.int8), None, QUANT)


@pytest.mark.parametrize(("to", "text"), [
    ("int8", "vstrbq_s32(aot_model_written_int8_t(y + 4), "),
    ("uint8", "vstrbq_s32(aot_model_written_int8_t((int8_t *)(y + 4)), "),
    ("int16", "vstrhq_s32(aot_model_written_int16_t(y + 4), "),
    ("uint16", "vstrhq_s32(aot_model_written_int16_t((int16_t *)(y + 4)), "),
])  # fmt: skip
def test_stores_of_rounded_vectors(to: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_text, "rounded", lambda rounding, value: value)
    assert vector_text.store_rounded("y + 4", cast(Any, None), "v", DType[to.upper()]) == f"{text}v);"


@pytest.mark.parametrize(("n", "found"), [(1, None), (7, None), (14, None), (60, [4, 3, 5]), (8, [4, 2])])
def test_lengths_that_have_butterflies(n: int, found: list[int] | None) -> None:
    assert fourier.factors(n) == found


# ---- int16


def _finish(shift: int, zero: int = 0, to: DType = DType.INT16, rounding: str = "double") -> Finish:
    one = np.ones(2, np.int64)
    found = finished(1, 0 * one, Rule(rounding, one << 30, shift * one, zero, *to.limits, to), 1 << 12)
    assert found is not None
    return found


@pytest.mark.parametrize(("shift", "left", "right"), [(-3, 0, 3), (0, 0, 0), (1, 1, 0), (3, 3, 0)])
def test_shifts_of_sums_of_int16(shift: int, left: int, right: int) -> None:
    """The product is doubled by its instruction, so that a shift to the left is that of the rule."""
    ending = Ending.of(_finish(shift))
    assert ending is not None
    lines = "\n".join(_End(ending).finished(1, False))
    assert ("vshl.s32" in lines) is (left > 0) and (f"vshl.s32 q0, q0, #{left}" in lines) is (left > 0)
    assert ("vrshr.s32" in lines) is (right > 0) and (f"vrshr.s32 q0, q0, #{right}" in lines) is (right > 0)
    assert ("vshr.s32 q7, q0, #31" in lines) is (right > 0)  # a tie of what is negative
    text = "\n".join(dot_dsp._finish(ending.finish, 2)), dot_dsp._kernel(0, ending.finish, 2)[1]
    assert ("asr #31" in text[0]) is (right > 0) and ("(high >> 31)" in text[1]) is (right > 0)


@pytest.mark.parametrize(("shift", "halved"), [(-8, 1), (1, 0)])
def test_multipliers_that_are_halved(shift: int, halved: int) -> None:
    """Where sums are shifted to the left, it is by one place less instead."""
    ending = Ending.of(_finish(shift, rounding="single"))
    assert ending is not None and _End(ending).halved == halved
    assert (ending.finish.left > 0) is (halved == 0)


@pytest.mark.parametrize(
    ("to", "low", "high", "limits"),
    [
        (DType.INT16, -32768, 32767, []),
        (DType.INT16, -32768, 100, ["min.s16"]),
        (DType.UINT16, 0, 32767, ["max.s32", "min.s32"]),
        (DType.INT8, -128, 127, ["max.s32", "min.s32"]),
    ],
)
def test_limits_that_no_narrowing_has(to: DType, low: int, high: int, limits: list[str]) -> None:
    ending = Ending(replace(_finish(-3), to=to, low=low, high=high))
    lines = ending.clamped("q0", "q7", "r0")
    assert [line[1:8] for line in lines if line.startswith(("vmax", "vmin"))] == limits


def test_weights_of_16_bits_are_for_other_kernels() -> None:
    shape, whole = ConvShape(1, 8, 8, 8, 8, 8, 8, groups=8), _finish(-3, rounding="single")
    for kind, taken in ((np.int8, True), (np.int16, False)):
        weights = np.ones((1, 1, 8), kind)
        assert depthwise_lanes_mve.applicable(shape, weights) is taken
        assert depthwise_dsp.applicable(shape, weights, 1 << 22, whole) is taken
    assert not depthwise_dsp.applicable(replace(shape, groups=1), np.ones((1, 1, 8), np.int8), 1 << 22, whole)


@pytest.mark.parametrize(("taps", "pixels"), [(2044, 2), (2046, 1)])
def test_pixels_at_a_time_of_long_rows(taps: int, pixels: int) -> None:
    conv = conv_int16.Conv(
        ConvShape(1, 1, 2, taps, 1, 2, 4), np.ones((4, taps), np.int8), conv_int16.Elements("int16", 0, 0),
        conv_int16.Dots(True, taps, 1), None, np.zeros(4, np.int64), None, "int64_t", ("int16_t", 2),
    )  # fmt: skip
    method = conv_int16._method(conv)
    assert isinstance(method, conv_int16.Fours) and method.pixels == pixels


# ---- int8


@pytest.mark.parametrize("limits", [(-128, 127), (0, 127), (-128, 99)])
def test_sums_within_limits(limits: tuple[int, int]) -> None:
    found = affine_sum.dsp_sum(affine_sum.Affine(3, 5, 7, 9, *limits))
    whole = ("dsp_sum", (3, 5, 7, 9))
    narrower = ("dsp_sum_between", (3, 5, 7, 9, *limits))
    assert (found.name, found.numbers) == (whole if limits == (-128, 127) else narrower)


def _plane(length: int, lines: int, kernel: int, dilation: int) -> Plane:
    u = Axis(lines, 1, lines, 1, 1, 0, length, 8)
    return Plane(u, Axis(length, 2, kernel, 1, dilation, 0, 1, 1), False, length, 1)


@pytest.mark.parametrize(("length", "far"), [(900, True), (1100, False)])
def test_dilated_taps_of_lines_that_loads_do_not_reach(length: int, far: bool) -> None:
    assert (Pairs.of(_plane(length, 2, 2, 3)).dilation > 1) is far


def test_stores_that_are_too_far_for_two() -> None:
    """Below is a register of its own."""
    some = SimpleNamespace(size=1, y_u=10, y_v=2050)
    lines = _Steps.stores(cast(Any, some), ("r10", "r11"), ("r12", "lr"))
    assert lines[:2] == ["strb.w r12, [r1, #10]", "addw r8, r1, #10"] and "strb lr, [r8, r9]" in lines


def test_stores_keep_their_order() -> None:
    """Though more waits for the second."""
    stores = ["str r1, [r0]", "str r4, [r3], #4"]
    found = mve.ordered([*stores, "ldr r5, [r3]", "mul r6, r5, r5", "mul r6, r6, r6"])
    assert [line for line in found if line in stores] == stores


def test_no_numbers_without_a_requantisation() -> None:
    assert finish.raw_constants(SUMS, 4) == []
    assert [c.data.size for c in finish.raw_constants(QUANT, 4)] == [8]
    with pytest.raises(ValueError, match="not for the Helium kernels"):
        requantise_mve.requantiser(replace(QUANT, out_dtype="int16"), np.ones((1, 4), np.int8), None)


@pytest.mark.parametrize(("x", "taken"), [("int8", True), ("uint8", True), ("int16", False)])
def test_sums_of_bytes(x: str, taken: bool) -> None:
    assert requantise_mve.supports_sums(replace(SUMS, x_dtype=x)) is taken
    assert not requantise_mve.Ends.of(replace(SUMS, out_dtype="uint8")).unsigned_y
    assert requantise_mve.Ends.of(replace(QUANT, out_dtype="uint8")).unsigned_y


def test_starts_that_may_wrap_may_be_anything() -> None:
    zero = np.zeros(4, np.int64)
    rq = RequantisePlan("affine", zero + (1 << 30), zero + 5, zero + 8, zero, None, None)
    rows = finish.Rows(QUANT, rq, np.zeros((2, 5), np.int64), None, paired=True)
    assert rows.packed().admissible == ANYTHING != replace(rows, room=99).packed().admissible


@pytest.mark.parametrize(("last", "taken"), [(8, True), (9, False)])
def test_weights_of_4_bits_whose_channels_have_one_shift(
    last: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    zero, shift = np.zeros(4, np.int64), np.array([8, 8, 8, last])
    given = RequantisePlan("affine", zero + (1 << 30), zero + 5, shift, zero, None, None)
    monkeypatch.setattr(nibbles_dsp, "plan", lambda *some, **options: given)
    found = nibbles_dsp._plan(np.ones((4, 3), np.int64), zero, QUANT, np.arange(4))
    assert (found is not None) is taken


def test_floats_are_no_weights_of_4_bits() -> None:
    words = np.resize(np.array([1], "<i4"), 4096)
    assert nibbles._of_words(Packed("w", words, 4, ANYTHING)) is not None
    assert nibbles._of_words(Packed("w", words.view(np.float32), 4, ANYTHING)) is None


# ---- targets


def test_options_take_their_choices() -> None:
    option = Attribute("a", "", ("a", "b"))
    assert option.parse("option", "b") == "b" and Attribute("a", "").parse("option", "c") == "c"
    with pytest.raises(CompileError, match="one of a, b, not 'c'"):
        option.parse("option", "c")


def test_targets_that_have_no_wish() -> None:
    plain = Target("plain", "")
    assert plain.wish == "balanced" and plain.preferring("size") == {}
    some = replace(plain, attributes={"optimize": Attribute("speed", "", ("speed", "size"))})
    assert some.preferring("size") == {"optimize": "size"} and some.preferring("speed") == {}
