"""Helium int8 kernels against the numpy model: portable twins under sanitizers, assembly in QEMU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import int8_model
import numpy as np
import pytest
from helium_cases import RANGES, Draw, conv_case, depthwise_case, with_tail
from int8_program import Case, program

from aot_model.installation import include_dir
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.int8 import depthwise_columns_mve
from aot_model.kernels.int8.affine_sum import Rescaling, affine, mve_sum, mve_sum_of_uint8
from aot_model.kernels.int8.conv_mve import conv
from aot_model.kernels.int8.depthwise_columns_mve import depthwise_columns
from aot_model.kernels.int8.depthwise_lanes_mve import depthwise_lanes
from aot_model.kernels.int8.depthwise_taps_mve import depthwise_taps
from aot_model.kernels.int8.pooling import HELIUM
from aot_model.kernels.int8.spec import QuantSpec
from qemu import BOARDS, available, build_and_run
from sanitizers import REPORTS, built_and_run
from turns import in_turn

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")


def conv_cases() -> list[Case]:
    draw, cases = Draw(1), []
    for i in range(36):
        kernel = [(1, 1), (3, 3), (1, 1), (2, 5), (10, 4), (3, 1)][i % 6]
        in_c = int(draw.rng.choice([1, 2, 3, 4, 5, 8, 13, 16, 20, 33]))
        cases.append(conv_case(draw, draw.geometry(kernel, in_c, int(draw.rng.integers(1, 23)))))
    for pixels, in_c, out_c in (
        (6, 64, 64),
        (5, 23, 9),
        (1, 7, 3),
        (4, 192, 8),
        (3, 208, 5),
        (2, 300, 4),
        (7, 4100, 2),
    ):
        cases.append(conv_case(draw, ConvShape(1, 1, pixels, in_c, 1, pixels, out_c)))
    cases.append(conv_case(draw, ConvShape(1, 5, 6, 60, 5, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1)))
    for i, kernel in enumerate(((3, 3), (5, 5), (1, 5), (2, 2), (10, 4), (9, 1), (3, 3), (1, 1))):
        for outputs in (1, 2 + i, 24):  # one channel: as a depthwise layer where there is room
            shape = draw.geometry(kernel, 1, outputs)
            cases.append(conv_case(draw, shape, partial(conv, room=1 << 16)))
            square = replace(shape, in_h=12, in_w=14, out_h=13 - kernel[0], out_w=15 - kernel[1], pad_top=0,
                             pad_left=0, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1)  # fmt: skip
            cases.append(conv_case(draw, square, partial(conv, room=1 << 16)))
    return cases


def group_cases() -> list[Case]:
    """Groups of 1 to 6 and more channels and outputs: units of 1, 2 and 4 bytes, some groups together."""
    draw, cases = Draw(7), []
    kernels = ((3, 3), (1, 1), (2, 5), (1, 7), (3, 1))
    for i in range(40):
        groups, ins, outs = 2 + i % 7, 1 + i % 6 if i % 9 else 16, int(draw.rng.integers(1, 7))
        shape = draw.geometry(kernels[i % 5], groups * ins, groups * outs, groups)
        cases.append(conv_case(draw, shape))
    for groups, ins, outs in ((2, 8, 8), (8, 4, 4), (16, 2, 2), (12, 1, 1), (3, 20, 5)):
        s = ConvShape(1, 7, 8, groups * ins, 7, 8, groups * outs, 3, 3, pad_top=1, pad_left=1, groups=groups)
        cases.append(conv_case(draw, s))
    return cases


ROWS = ((1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (1, 9), (2, 2), (3, 1), (3, 3), (4, 2),
        (5, 3), (6, 6), (7, 7), (8, 8))  # fmt: skip


LANES = ((1, 3), (3, 1), (3, 3), (5, 5), (2, 2), (1, 1), (7, 7), (1, 21), (9, 1), (8, 8))


def depthwise_cases() -> list[Case]:
    draw, cases = Draw(2), []
    for kernel in ((3, 3), (5, 5), (1, 7), (9, 1), (4, 4), (2, 2), (10, 8), (1, 1)):
        for _ in range(3):
            c, multiplier = int(draw.rng.integers(1, 20)), int(draw.rng.choice([1, 1, 2, 3]))
            cases.append(depthwise_case(draw, draw.geometry(kernel, c, c * multiplier, c), depthwise_taps))
    for kernel in ((3, 3), (5, 5), (1, 7), (9, 1), (7, 7), (2, 2), (10, 4), (1, 40), (1, 1)):
        for _ in range(3):
            c, multiplier = int(draw.rng.choice([1, 3, 7, 8, 9, 20])), int(draw.rng.choice([1, 1, 2, 11]))
            shape = draw.geometry(kernel, c, c * multiplier, c)
            if depthwise_columns_mve.applicable(shape):
                cases.append(depthwise_case(draw, shape, depthwise_columns))
    for i, c in enumerate((2, 4, 6, 8, 10, 16, 20, 34, 64, 130)):  # whole blocks of channels, and parts
        for kernel in (LANES[i], LANES[-1 - i], (1, 1 + i)):
            cases.append(depthwise_case(draw, draw.geometry(kernel, c, c, c), depthwise_lanes))
    for c, taps in ((2, 21), (60, 5), (40, 64), (8, 1), (130, 2)):  # one output, over all that there is
        shape = ConvShape(1, taps, 1, c, 1, 1, c, taps, 1, groups=c)
        cases.append(depthwise_case(draw, shape, depthwise_lanes))
    wide = ConvShape(1, 4, 33, 130, 2, 32, 130, 3, 2, groups=130)  # rows of more than 4095 bytes
    cases.append(depthwise_case(draw, wide, depthwise_lanes))
    for k, kernel in enumerate(ROWS):  # rows of eight outputs and of what is left of them
        for stride, dilation, out_w in (
            (1, 1, 8 + k % 8),
            (1, 1, 16 + (3 * k) % 8),
            (2, 1, 4 + k % 5),
            (3, 1, 9 + k % 7),
            (1, 2, 12 + k % 4),
        ):
            c, left = int(draw.rng.choice([1, 5, 16])), int(draw.rng.integers(0, kernel[1]))
            w = (out_w - 1) * stride + (kernel[1] - 1) * dilation + 1 - left
            s = ConvShape(1, kernel[0] + 1, w, c, 2, out_w, c, *kernel, 1, stride, 1, dilation, 0, left, c)
            cases.append(depthwise_case(draw, s, depthwise_taps))
            if depthwise_columns_mve.applicable(s):
                cases.append(depthwise_case(draw, s, depthwise_columns))
    for out_w, kernel in ((8, (1, 3)), (13, (3, 3)), (18, (1, 2)), (9, (5, 5))):  # blocks of four alone
        s = ConvShape(1, kernel[0], out_w, 6, 1, out_w, 6, *kernel, pad_left=kernel[1] // 2, groups=6)
        cases.append(depthwise_case(draw, s, partial(depthwise_columns, compact=True)))
    for length, taps, c in ((30, 3, 40), (15, 15, 24), (20, 10, 7)):  # down a single column
        shape = ConvShape(1, length, 1, c, length - taps + 1, 1, c, taps, 1, groups=c)
        cases.append(depthwise_case(draw, shape))
        cases.append(depthwise_case(draw, replace(shape, out_h=length, pad_top=taps // 2)))
    return cases


def dense_cases() -> list[Case]:
    draw, cases = Draw(3), []
    for in_c, out_c in (
        (640, 128),
        (128, 8),
        (8, 24),
        (64, 12),
        (27, 13),
        (1, 1),
        (30, 5),
        (256, 2),
        (100, 15),
        (12, 7),
    ):
        shape = ConvShape(1, 1, 1, in_c, 1, 1, out_c)
        spec, bias = draw.quantised(in_c, out_c)
        spec = draw.zero_point(spec)
        x, w = draw.input(spec, 1, 1, 1, in_c), draw.weights(out_c, in_c)
        expected = int8_model.conv(shape, x, w[:, None, None], bias, spec)
        tail, expected = with_tail(draw, shape, expected)
        cases.append(Case(f"{in_c} x {out_c} {spec}", conv(shape, w, bias, spec, tail), x, expected))
    return cases


def pool_cases() -> list[Case]:
    draw, cases = Draw(4), []
    shapes = [ConvShape(1, 25, 5, 64, 1, 1, 64, 25, 5), ConvShape(1, 40, 30, 13, 1, 1, 13, 40, 30)]
    shapes += [ConvShape(1, 17, 15, 5, 1, 1, 5, 17, 15), ConvShape(1, 16, 16, 5, 1, 1, 5, 16, 16)]
    shapes += [ConvShape(1, 16, 8, 5, 1, 1, 5, 16, 8), ConvShape(1, 43, 3, 5, 1, 1, 5, 43, 3)]
    shapes += [ConvShape(1, 63, 63, 3, 1, 1, 3, 63, 63)]
    for kernel in ((2, 2), (3, 3), (1, 1), (3, 5)) * 2:
        c = int(draw.rng.integers(1, 40))
        shape = draw.geometry(kernel, c, c)
        shapes.append(replace(shape, dilation_h=1, dilation_w=1, pad_top=0, pad_left=0, out_h=1, out_w=1))
        shapes.append(ConvShape(2, 7, 9, c, 4, 5, c, 3, 3, 2, 2, 1, 1, 1, 1))
    for shape in shapes:
        limits = RANGES[int(draw.rng.integers(len(RANGES)))]
        spec = draw.typed(QuantSpec(0, np.array([1]), np.array([0]), *limits))
        spec, low, high = replace(spec, x_dtype=spec.out_dtype), spec.act_min, spec.act_max
        x = draw.input(spec, shape.batch, shape.in_h, shape.in_w, shape.in_c)
        for kind, model in (("average", int8_model.average_pool), ("max", int8_model.max_pool)):
            tail, expected = with_tail(draw, shape, model(shape, x, low, high))
            code = HELIUM.pool(kind, shape, low, high, x.dtype.name, tail)  # type: ignore[arg-type]
            cases.append(Case(f"{kind} {shape}", code, x, expected))
    for tall in (64, 127):  # means just below halves: a quotient that is one too large shows
        n, s = 2 * tall, ConvShape(1, tall, 2, 60, 1, 1, 60, tall, 2)
        for start in (0, 130, 195):
            sums = np.arange(start, start + 60) * n + n // 2 - 1
            x = (sums // n + (np.arange(n)[:, None] < sums % n)).astype(np.uint8).reshape(1, tall, 2, 60)
            code, expected = HELIUM.pool("average", s, 0, 255, "uint8"), int8_model.average_pool(s, x, 0, 255)
            cases.append(Case(f"around halves {s}", code, x, expected))
    return cases


def _sum_by_hand(
    a: int, b: int, terms: tuple[Rescaling, Rescaling], result: Rescaling, low: int, high: int
) -> int:
    """The sum of one pair in Python integers, as TensorFlow Lite's reference kernel states it."""

    def scaled(x: int, r: Rescaling) -> int:
        h = (x * r.multiplier + (1 << 30)) >> 31
        magnitude = (abs(h) + ((1 << -r.shift) >> 1)) >> -r.shift  # halves away from zero
        return magnitude if h >= 0 else -magnitude

    total = sum(scaled((x - r.zero_point) << 20, r) for x, r in zip((a, b), terms, strict=True))
    return min(max(scaled(total, result) + result.zero_point, low), high)


def sum_cases() -> list[Case]:
    draw, cases = Draw(6), []
    r = draw.rng
    for i in range(12):
        scales = np.exp(r.uniform(-3, 0, 2)) if i % 4 else np.array([0.25, 0.25])
        out = float(scales.max() * r.uniform(0.6, 2.0))
        zero, low, high = RANGES[i % len(RANGES)]
        common = 2 * scales.max()
        factors = [*(scales / common), common / (2.0**20 * out)]
        zeros = [int(r.integers(-128, 128)), int(r.integers(-128, 128)), zero]
        parts = [np.frexp(f) for f in factors]
        a, b, result = (
            Rescaling(z, int(f * (1 << 31)), int(e)) for z, (f, e) in zip(zeros, parts, strict=True)
        )
        if low == high:
            continue
        form = affine(a, b, result, 20, low, high)
        assert form is not None, (a, b, result)
        row = mve_sum(form)
        count = int(r.integers(1, 700))
        x = r.integers(-128, 128, (2, count)).astype(np.int8)
        expected = np.array(
            [_sum_by_hand(int(p), int(q), (a, b), result, low, high) for p, q in x.T], np.int8
        )
        code = KernelCode(
            row.call("x", f"x + {count}", "y", str(count)),
            includes=frozenset({row.header}),
            helpers=row.helpers,
            slack=0,
        )
        cases.append(Case(f"sum {form}", code, x, expected))
        low, high, r_u = low + 128, high + 128, replace(result, zero_point=zero + 128)
        of = tuple(replace(t, zero_point=t.zero_point + 128) for t in (a, b))
        form = affine(*of, r_u, 20, low, high, least=0)
        assert form is not None
        x, row = (x.astype(np.int16) + 128).astype(np.uint8), mve_sum_of_uint8(form)
        expected = np.array([_sum_by_hand(int(p), int(q), of, r_u, low, high) for p, q in x.T], np.uint8)
        code = replace(code, body=row.call("x", f"x + {count}", "y", str(count)), helpers=row.helpers)
        cases.append(Case(f"sum of uint8 {form}", code, x, expected))
    return cases


def tie_cases() -> list[Case]:
    """Sums around halves of every size, of both signs, within the activation range and beyond it: all
    kernels; factors with one bit and more, one and several for a layer.
    """
    draw, cases, lowered = Draw(8), [], []
    one = ConvShape(1, 1, 1, 9, 1, 1, 13)
    dense = (one, replace(one, out_c=8), replace(one, in_w=7, out_w=7, in_c=3),
             replace(one, in_h=6, in_w=9, out_h=5, out_w=8, in_c=2, kernel_h=2, kernel_w=2))  # fmt: skip
    apart = [replace(one, in_h=6, in_w=w, out_h=6, out_w=w, in_c=13, kernel_h=k, kernel_w=k, pad_top=k // 2,
                     pad_left=k // 2, groups=13) for k, w in ((3, 3), (3, 8), (5, 9), (1, 7))]  # fmt: skip
    kernels = [(conv, shape) for shape in dense]
    kernels += [(kernel, s) for s in apart for kernel in (depthwise_taps, depthwise_columns)]
    kernels += [(depthwise_lanes, replace(s, in_c=14, out_c=14, groups=14)) for s in apart]
    for kernel, shape in kernels:
        for odd, least in ((1, 1), (3, 1), (5, 1), (1, 0), (7, 0), (3, -1)):
            for several in (False, True):
                count = shape.out_c if several else 1
                right = draw.rng.integers(least, 7, count) if several or least > 0 else np.full(1, least)
                multiplier = np.full(count, odd << (31 - odd.bit_length()))
                if several and odd > 1:  # some channels have no ties
                    other = draw.rng.integers(1 << 30, 1 << 31, count)
                    multiplier = np.where(np.arange(count) % 3 == 2, other, multiplier)
                case, met = _ties(draw, kernel, shape, multiplier, -right, odd.bit_length())
                cases.append(case)
                lowered.append(met)
    total = np.concatenate(lowered)
    assert (total < 0).sum() > 1000 and (total > 0).sum() > 1000
    return cases


def _ties(
    draw: Draw,
    kernel: Callable[..., KernelCode],
    shape: ConvShape,
    multiplier: np.ndarray,
    shift: np.ndarray,
    bits: int,
) -> tuple[Case, np.ndarray]:
    """A layer whose weights are half a unit, or as much of it as fits them, 0, or the same below 0; and its
    results, without zero point, that ties up would make larger.
    """
    r, s = draw.rng, shape
    zero, low, high = ((-128, -128, 127), (3, -128, 127), (-20, -20, 90))[int(r.integers(3))]
    spec = QuantSpec(int(r.integers(-3, 4)), multiplier.astype(np.int32), shift.astype(np.int32), zero, low,
                     high, rounding="even")  # fmt: skip
    half = np.int64(1) << np.clip(bits - 1 - shift, 0, 5)
    unit = r.choice([-1, 1], s.out_c) * np.broadcast_to(half, (s.out_c,))
    bias = (r.integers(-60, 60, s.out_c) * unit).astype(np.int32)
    x = r.integers(-5, 6, (s.batch, s.in_h, s.in_w, s.in_c)).astype(np.int8)
    x[..., 0] = draw.int8(s.batch, s.in_h, s.in_w)
    w = (r.integers(-1, 2, (s.kernel_h, s.kernel_w, s.in_c // s.groups, s.out_c)) * unit).astype(np.int8)
    w = w[:, :, 0] if s.groups > 1 else w.transpose(3, 0, 1, 2)
    model = int8_model.depthwise if s.groups > 1 else int8_model.conv
    expected, up = (model(s, x, w, bias, replace(spec, rounding=rule)) for rule in ("even", "single"))
    met = expected[up != expected].astype(np.int64) - zero
    return Case(f"{kernel.__name__} {s} {spec}", kernel(s, w, bias, spec), x, expected), met


FAMILIES = {
    "conv": conv_cases,
    "groups": group_cases,
    "depthwise": depthwise_cases,
    "dense": dense_cases,
    "ties": tie_cases,
    "pool": pool_cases,
    "sum": sum_cases,
}


def _short(cases: list[Case]) -> list[Case]:
    return [
        replace(c, label=f"{i} " + c.label[:1500].replace("\n", " ").replace('"', "'"))
        for i, c in enumerate(cases)
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_twins_on_the_host(family: str, tmp_path: Path) -> None:
    """The portable C, strict warnings, address and undefined-behaviour sanitizers."""
    (tmp_path / "program.c").write_text(program(_short(FAMILIES[family]()), device=False))
    command = ["gcc", "-O1", *WARNINGS, *REPORTS, f"-I{include_dir()}", "program.c", "-o", "program"]
    built_and_run([command], ["./program"], tmp_path)


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", in_turn(["-O2", "-Os", "-O0"], 3))
@pytest.mark.parametrize("family", FAMILIES)
def test_on_cortex_m55(family: str, optimise: str, tmp_path: Path) -> None:
    """The assembly (-O0: the twins) in QEMU; inputs end where the memory ends, so reads beyond them fault."""
    (tmp_path / "program.c").write_text(program(_short(FAMILIES[family]()), device=True))
    build_and_run(BOARDS["m55"], ["program.c"], tmp_path, [optimise, *WARNINGS, f"-I{include_dir()}"])


def _conv1x1(spec: QuantSpec, **changes: int) -> KernelCode:
    shape = replace(ConvShape(1, 2, 2, 4, 2, 2, 4), **changes)
    return conv(shape, np.ones((4, 1, 1, 4), np.int8), None, spec)


@pytest.mark.parametrize(
    "change",
    [
        {"rounding": "even", "multiplier": np.array([-3])},
        {"rounding": "even", "multiplier": np.array([3 << 29]), "shift": np.array([-30])},
        {"rounding": "single", "multiplier": np.array([3 << 20]), "shift": np.array([2])},
        {"x_dtype": "int16"},
        {"out_dtype": "int16"},
        {"weight_zero_point": -129},
        {"out_zero_point": 200},
        {"act_min": 5, "act_max": 4},
    ],
)
def test_refuses_what_it_does_not_compute(change: dict[str, object]) -> None:
    spec = QuantSpec(0, np.array([1 << 30]), np.array([-5]), 0, -128, 127)
    with pytest.raises(ValueError):
        _conv1x1(replace(spec, **change))  # type: ignore[arg-type]


def test_equal_shapes_share_their_code() -> None:
    """Weights and requantisation are parameters: only the stream differs."""
    draw = Draw(5)
    shape = ConvShape(1, 5, 5, 64, 5, 5, 64)
    spec = QuantSpec(-128, np.full(64, 1 << 30, np.int32), np.full(64, -9, np.int32), -128, -128, 127)
    one, two = (conv(shape, draw.weights(64, 1, 1, 64), None, spec) for _ in range(2))
    assert one.helpers == two.helpers and one.body == two.body


def test_pointwise_may_overwrite_its_input() -> None:
    spec = QuantSpec(0, np.array([1 << 30]), np.array([-5]), 0, -128, 127)
    assert conv(ConvShape(1, 5, 5, 4, 5, 5, 4), np.ones((4, 1, 1, 4), np.int8), None, spec).slack == 0
