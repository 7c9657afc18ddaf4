"""Float32 kernels against numpy: random and nasty shapes, every dialect, under the sanitisers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from float32_cases import (
    Case,
    DenseTail,
    check,
    conv_reference,
    input_bytes,
    main_source,
    transposed_reference,
    unit,
    windows,
)

import qemu
from aot_model.installation import include_dir
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32 import conv as conv_kernels
from aot_model.kernels.float32 import pool
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.float32.matmul import MatmulShape, matmul
from aot_model.kernels.float32.repack import GIVEN, Weights
from sanitizers import REPORTS, built_and_run
from turns import commit_number

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
HOST_FLAGS = {"scalar": [], "v4": [], "v8": ["-mavx2", "-mfma"]}


def write(cases: list[Case], folder: Path) -> None:
    (folder / "kernels.c").write_text(unit(cases))
    (folder / "main.c").write_text(main_source(cases))
    (folder / "in.bin").write_bytes(input_bytes(cases))


def build_and_run(cases: list[Case], tmp: Path, flags: list[str], compiler: str = "gcc") -> None:
    write(cases, tmp)
    commands = [
        [compiler, "-O1", *WARNINGS, *REPORTS, *flags, "-c", "kernels.c"],
        [compiler, *REPORTS, "main.c", "kernels.o", "-lm", "-o", "run"],
    ]
    built_and_run(commands, ["./run", "in.bin", "out.bin"], tmp)
    check(cases, np.fromfile(tmp / "out.bin", np.float32))


def _extent(size: int, kernel: int, stride: int, dilation: int, pads: int) -> int:
    return (size + pads - (kernel - 1) * dilation - 1) // stride + 1


def random_conv(rng: np.random.Generator, depthwise: bool = False) -> ConvShape:
    """Shapes that a convolution may have; small, so that borders and remainders are most of them."""
    while True:
        pick = lambda *values: int(rng.choice(values))  # noqa: E731
        groups = pick(1, 3, 8, 12, 16, 21) if depthwise else pick(1, 1, 1, 1, 2, 3)
        kernel_h, kernel_w = pick(1, 1, 2, 3, 5), pick(1, 1, 2, 3, 4, 70 if depthwise else 5)
        dilation_h, dilation_w = pick(1, 1, 2), pick(1, 1, 3)
        pads = [int(rng.integers(0, 4)) for _ in range(4)]
        in_h, in_w = pick(1, 2, 5, 8), pick(1, 3, 7, 13, 30)
        if kernel_w == 70:
            pads[1], dilation_w = 40, 1
        stride_h, stride_w = pick(1, 1, 2, 4), pick(1, 1, 2, 3)
        out_h = _extent(in_h, kernel_h, stride_h, dilation_h, pads[0] + pads[2])
        out_w = _extent(in_w, kernel_w, stride_w, dilation_w, pads[1] + pads[3])
        if out_h < 1 or out_w < 1:
            continue
        in_c, out_c = groups * pick(1, 2, 3, 4, 5, 8), groups * pick(1, 2, 5, 8, 12, 17, 24)
        if depthwise:
            in_c, out_c = groups, groups * pick(1, 1, 1, 2, 3, 8)
        batch = pick(1, 1, 2)
        strides = None
        if rng.integers(3) == 0:
            strides = (in_c * in_h * in_w, in_w, 1, in_h * in_w)
        return ConvShape(
            batch, in_h, in_w, in_c, out_h, out_w, out_c, kernel_h, kernel_w, stride_h, stride_w,
            dilation_h, dilation_w, pads[0], pads[1], groups, strides,
        )  # fmt: skip


def _stored(s: ConvShape, x: np.ndarray) -> np.ndarray:
    """x as it lies in memory."""
    return np.ascontiguousarray(x if s.x_strides is None else x.transpose(0, 3, 1, 2))


def dense_tail(shape: tuple[int, int, int, int], d: VectorDialect, rng: np.random.Generator) -> DenseTail:
    """A short tail, or a long one, which kernels do not repeat."""
    return DenseTail(shape, d, f" /* {'long ' * 60}*/" if rng.integers(4) == 0 else "")


def conv_case(s: ConvShape, rng: np.random.Generator, d: VectorDialect, transposed: bool = False) -> Case:
    x = rng.standard_normal((s.batch, s.in_h, s.in_w, s.in_c)).astype(np.float32)
    w = rng.standard_normal((s.out_c, s.kernel_h, s.kernel_w, s.in_c // s.groups)).astype(np.float32)
    bias = rng.standard_normal(s.out_c).astype(np.float32) if rng.integers(2) else None
    tail = dense_tail((s.batch, s.out_h, s.out_w, s.out_c), d, rng)
    kernel = conv_kernels.conv_transpose if transposed else conv_kernels.conv
    given = bias is None and bool(rng.integers(2))
    code = kernel(s, Weights(w, bias, given), tail, d, vector_tail=bool(rng.integers(2)))
    want = (transposed_reference if transposed else conv_reference)(s, x, w)
    return Case(
        f"{'transposed ' if transposed else ''}{s}",
        code,
        [_stored(s, x), *([w] * given)],
        want + (0 if bias is None else bias),
        ["x", *([GIVEN] * given)],
    )


def _mirrored(s: ConvShape) -> ConvShape:
    """The other way round: the result of a convolution becomes its input."""
    return replace(s, in_h=s.out_h, in_w=s.out_w, out_h=s.in_h, out_w=s.in_w, x_strides=None)


def conv_cases(rng: np.random.Generator, d: VectorDialect, count: int) -> list[Case]:
    cases = []
    for _ in range(count):
        cases.append(conv_case(random_conv(rng), rng, d))
    for _ in range(count // 2):
        cases.append(conv_case(_mirrored(random_conv(rng)), rng, d, transposed=True))
    # weights too large for the caches
    cases.append(conv_case(ConvShape(1, 5, 7, 128, 5, 7, 74, 3, 3, 1, 1, 1, 1, 1, 1), rng, d))
    # channels first, with borders
    cases.append(
        conv_case(
            ConvShape(1, 9, 11, 3, 9, 11, 6, 3, 3, 1, 1, 1, 1, 1, 1, x_strides=(297, 11, 1, 99)), rng, d
        )
    )
    for m, k, n in ((1, 7, 33), (1, 64, 10), (5, 16, 16), (13, 3, 24), (31, 20, 40)):
        cases.append(conv_case(ConvShape(1, 1, m, k, 1, m, n), rng, d))
    return cases


@pytest.mark.parametrize("name", [*HOST_FLAGS, "apart"])
def test_convolution_matches_numpy(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    build_and_run(conv_cases(rng, DIALECTS[name], 14), tmp_path, HOST_FLAGS.get(name, []))


def depthwise_case(
    s: ConvShape, rng: np.random.Generator, d: VectorDialect, transposed: bool = False
) -> Case:
    x = rng.standard_normal((s.batch, s.in_h, s.in_w, s.in_c)).astype(np.float32)
    w = rng.standard_normal((s.out_c, s.kernel_h, s.kernel_w, 1)).astype(np.float32)
    bias = rng.standard_normal(s.out_c).astype(np.float32) if rng.integers(2) else None
    tail = dense_tail((s.batch, s.out_h, s.out_w, s.out_c), d, rng)
    given = bias is None and bool(rng.integers(2))
    code = pool.depthwise(
        s, Weights(w, bias, given), tail, d, vector_tail=bool(rng.integers(2)), transposed=transposed
    )
    want = (transposed_reference if transposed else conv_reference)(s, x, w)
    return Case(
        f"{'transposed ' if transposed else ''}depthwise {s}",
        code,
        [_stored(s, x), *([w] * given)],
        want + (0 if bias is None else bias),
        ["x", *([GIVEN] * given)],
    )


def pool_case(s: ConvShape, rng: np.random.Generator, d: VectorDialect) -> Case:
    s = replace(s, out_c=s.in_c, groups=1)
    x = rng.standard_normal((s.batch, s.in_h, s.in_w, s.in_c)).astype(np.float32)
    tail = dense_tail((s.batch, s.out_h, s.out_w, s.out_c), d, rng)
    kind = int(rng.integers(3))
    vector_tail = bool(rng.integers(2))
    if kind == 0:
        code = pool.max_pool(s, tail, d, vector_tail=vector_tail)
        want = windows(s, x, -np.inf).max((4, 5))
    elif kind == 1:
        code = pool.average_pool(s, tail, d, vector_tail=vector_tail)
        count = np.maximum(np.isfinite(windows(s, x, np.nan)).sum((4, 5)), 1)
        want = windows(s, x, 0).sum((4, 5)) / count
    else:
        pads = (int(rng.integers(0, 3)), int(rng.integers(0, 3)))
        code = pool.average_pool(s, tail, d, count_include_pad=pads, vector_tail=vector_tail)
        padded = replace(
            s, in_h=s.in_h + s.pad_top + pads[0], in_w=s.in_w + s.pad_left + pads[1], pad_top=0, pad_left=0
        )
        ones = np.ones((s.batch, padded.in_h, padded.in_w, s.in_c))
        want = windows(s, x, 0).sum((4, 5)) / np.maximum(windows(padded, ones, 0).sum((4, 5)), 1)
    return Case(f"pool {kind} {s}", code, [_stored(s, x)], want)


def window_cases(rng: np.random.Generator, d: VectorDialect, count: int) -> list[Case]:
    cases = [depthwise_case(random_conv(rng, depthwise=True), rng, d) for _ in range(count)]
    for _ in range(count):
        s = random_conv(rng, depthwise=True)
        cases.append(depthwise_case(_mirrored(s), rng, d, transposed=True))
    cases += [pool_case(random_conv(rng, depthwise=True), rng, d) for _ in range(count)]
    whole = ConvShape(1, 25, 5, 24, 1, 1, 24, 25, 5)
    cases += [pool_case(whole, rng, d), pool_case(whole, rng, d)]
    for channels in (2, 3):  # fewer than fill a vector, each an image of its own
        apart = ConvShape(
            1, 6, 5, channels, 5, 4, channels, 2, 2, groups=channels, x_strides=(30 * channels, 5, 1, 30)
        )
        cases += [depthwise_case(apart, rng, d), *(pool_case(apart, rng, d) for _ in range(4))]
    return cases


@pytest.mark.parametrize("name", HOST_FLAGS)
def test_windows_match_numpy(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    build_and_run(window_cases(rng, DIALECTS[name], 12), tmp_path, HOST_FLAGS[name])


def matmul_cases(rng: np.random.Generator, d: VectorDialect) -> list[Case]:
    cases = []
    for m, n, k in (
        (1, 1, 1),
        (1, 37, 20),
        (5, 8, 3),
        (17, 17, 16),
        (13, 24, 33),
        (4, 3, 9),
        (7, 66, 5),
        (6, 1, 19),
        (1, 1, 21),
        (2, 2, 300),
    ):
        for transposed_a, transposed_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            i, j = (1, 1) if m == 1 < n else (2, 3)
            a = rng.standard_normal((i, j, k, m) if transposed_a else (i, j, m, k)).astype(np.float32)
            # heads side by side: i, row, j, column
            b = rng.standard_normal((i, n, j, k) if transposed_b else (i, k, j, n)).astype(np.float32)
            a_strides = (j * m * k, m * k, *((1, m) if transposed_a else (k, 1)))
            b_strides = (n * j * k, k, 1, j * k) if transposed_b else (n * j * k, n, j * n, 1)
            shape = MatmulShape((i, j), m, n, k, a_strides, b_strides)
            code = matmul(shape, dense_tail((i, j, m, n), d, rng), d, vector_tail=bool(rng.integers(2)))
            left = a.swapaxes(2, 3) if transposed_a else a
            right = b.transpose(0, 2, 3, 1) if transposed_b else b.transpose(0, 2, 1, 3)
            cases.append(Case(f"matmul {shape}", code, [a, b], left.astype(float) @ right, ["x", "b"]))
    for h, i, j in ((2, 3, 2), (2, 3, 1), (1, 3, 2), (2, 1, 1), (1, 1, 3)):
        a = rng.standard_normal((h, i, j, 5, 6)).astype(np.float32)
        b = rng.standard_normal((h, 1, j, 6, 9)).astype(np.float32)
        strides = (i * j * 30, j * 30, 30, 6, 1), (j * 54, 0, 54, 9, 1)
        shape = MatmulShape((h, i, j), 5, 9, 6, *strides)
        code = matmul(shape, dense_tail((h * i, j, 5, 9), d, rng), d)
        wanted = (a.astype(float) @ b).reshape(h * i, j, 5, 9)
        cases.append(Case(f"matmul {shape}", code, [a, b], wanted, ["x", "b"]))
    return cases


@pytest.mark.parametrize("name", [*HOST_FLAGS, "apart"])
def test_products_match_numpy(name: str, tmp_path: Path) -> None:
    cases = matmul_cases(np.random.default_rng(3), DIALECTS[name])
    build_and_run([*cases[1::2], *cases[-9:]], tmp_path, HOST_FLAGS.get(name, []))


@pytest.mark.skipif(not qemu.available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
@pytest.mark.parametrize(("board", "name"), [("m4", "apart"), ("m55", "mve")])
def test_cortex_m_matches_numpy(board: str, name: str, tmp_path: Path) -> None:
    """Other shapes for every commit."""
    rng = np.random.default_rng(commit_number())
    d = DIALECTS[name]
    products = matmul_cases(rng, d)
    cases = [*conv_cases(rng, d, 12), *window_cases(rng, d, 10), *products[::2], *products[1::4]]
    write(cases, tmp_path)
    qemu.build_and_run(
        qemu.BOARDS[board], ["main.c", "kernels.c"], tmp_path, ["-O2", *WARNINGS, f"-I{include_dir()}"]
    )
    check(cases, np.fromfile(tmp_path / "out.bin", np.float32))
