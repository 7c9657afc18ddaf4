"""The int8 kernels of hosts against the numpy model of the arithmetic, under the sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import arithmetic
import numpy as np
import pytest
from int8_cases import (
    KINDS,
    TableTail,
    finished,
    quantisation,
    random_shape,
    some_bias,
    some_input,
    some_weights,
)
from kernel_program import Case, run_host

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import affine_sum, conv_host, depthwise_host, pooling
from aot_model.kernels.int8.host_loops import split
from aot_model.kernels.int8.instructions import InstructionSet
from aot_model.kernels.int8.vectors import AVX2, SDOT, VNNI
from machines import MACHINES

has_avx2 = "avx2" in Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else False
needs_avx2 = pytest.mark.skipif(not has_avx2, reason="needs a processor with AVX2")
AVX2_FLAGS = ("-mavx2",)


def conv_case(rng: np.random.Generator, shape: ConvShape, kind: str, dialect: InstructionSet = AVX2) -> Case:
    w = some_weights(rng, (shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c // shape.groups))
    quant = quantisation(rng, shape.out_c, w[0].size, kind)
    if rng.random() < 0.1:
        w = rng.integers(0, 256, w.shape).astype(np.uint8)
        quant = replace(quant, weight_zero_point=int(rng.choice([1, 128, 255])))
    bias = some_bias(rng, shape.out_c)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    kernel = conv_host.conv(shape, w, bias, quant, tail, dialect)
    return finished(kernel, x, arithmetic.conv(x, w, bias, shape, quant), quant, tail)


def depthwise_case(rng: np.random.Generator, shape: ConvShape, kind: str) -> Case:
    w = some_weights(rng, (shape.kernel_h, shape.kernel_w, shape.out_c))
    quant = quantisation(rng, shape.out_c, shape.kernel_h * shape.kernel_w, kind)
    bias = some_bias(rng, shape.out_c)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    kernel = depthwise_host.depthwise(shape, w, bias, quant, tail)
    return finished(kernel, x, arithmetic.depthwise(x, w, bias, shape, quant), quant, tail)


def pool_case(rng: np.random.Generator, average: bool) -> Case:
    """Windows as SAME pads them, or a single one over everything, which reaches the extremes of the sums."""
    h, w, c = int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.choice([1, 3, 16, 21, 40]))
    kernel, stride = [int(v) for v in rng.integers(1, 4, 2)], [int(v) for v in rng.integers(1, 3, 2)]
    kernel = [min(kernel[0], h), min(kernel[1], w)] if rng.random() < 0.7 else [h, w]
    out = [-(-h // stride[0]), -(-w // stride[1])]
    pad = [max((o - 1) * s + k - n, 0) // 2 for o, s, k, n in zip(out, stride, kernel, (h, w), strict=True)]
    shape = ConvShape(int(rng.choice([1, 2])), h, w, c, *out, c, *kernel, *stride, 1, 1, *pad)
    dtype = str(rng.choice(["int8", "uint8"]))
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    act = (low, high) if rng.random() < 0.5 else (low + 20, high - 30)
    x = rng.integers(low, high + 1, (shape.batch, h, w, c))
    if rng.random() < 0.3:
        x[:] = rng.choice([low, high])
    x = x.astype(dtype)
    want = (arithmetic.average_pool if average else arithmetic.max_pool)(x, shape, *act)
    tail = TableTail(shape, low) if rng.random() < 0.25 else None
    kernel_code = pooling.AVX2.pool("average" if average else "max", shape, *act, dtype, tail)
    if tail is None:
        return Case(kernel_code, x, want)
    return finished(kernel_code, x, want, replace(quantisation(rng, 1, 1, "relu"), out_dtype=dtype), tail)


def convolutions(
    rng: np.random.Generator, dialect: InstructionSet, kinds: tuple[str, ...] = KINDS
) -> list[Case]:
    """Windows of all kinds, products with few and many rows, groups."""
    found = []
    for kind in kinds:
        found.append(
            conv_case(
                rng,
                replace(random_shape(rng, depthwise=False), out_c=int(rng.integers(1, 40))),
                kind,
                dialect,
            )
        )
        n, c = int(rng.integers(1, 40)), int(rng.choice([1, 3, 4, 6, 16, 20]))
        oc = int(rng.choice([1, 2, 5, 8, 16, 24, 33, 64, 80]))
        found.append(conv_case(rng, ConvShape(1, 1, n, c, 1, n, oc), kind, dialect))
    found.append(conv_case(rng, ConvShape(2, 3, 4, 12, 3, 4, 6, groups=3), kinds[0], dialect))
    found.append(
        conv_case(rng, ConvShape(1, 4, 5, 6, 4, 5, 40, 3, 3, 1, 1, 1, 1, 1, 1, groups=2), kinds[-1], dialect)
    )
    found.append(conv_case(rng, ConvShape(1, 1, 1, 30, 1, 1, 100), kinds[-1], dialect))
    found.append(conv_case(rng, ConvShape(2, 12, 1, 5, 6, 1, 20, 3, 1, 2, 1, 1, 1, 1, 0), kinds[-1], dialect))
    return found


def channelwise(rng: np.random.Generator) -> list[Case]:
    found = [pool_case(rng, average) for average in (False, True) for _ in range(3)]
    for kind in KINDS:
        found.append(depthwise_case(rng, random_shape(rng, depthwise=True), kind))
        ch = int(rng.choice([2, 4, 8, 16, 24, 40]))
        found.append(depthwise_case(rng, ConvShape(2, 12, 1, ch, 9, 1, ch, 3, 1, 1, 1, 2, 1, 1, 0, ch), kind))
        found.append(depthwise_case(rng, ConvShape(1, 5, 8, ch, 5, 8, ch, 3, 3, 1, 1, 1, 1, 1, 1, ch), kind))
    return found


@needs_avx2
@pytest.mark.parametrize(
    "cases", [lambda rng: convolutions(rng, AVX2), channelwise], ids=["convolution", "channelwise"]
)
def test_sanitized(cases, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run_host(cases(np.random.default_rng(0)), tmp_path, ("-O1", *AVX2_FLAGS))


@needs_avx2
@pytest.mark.parametrize(("compiler", "seed"), [("gcc", 1), ("gcc", 2), ("gcc", 3), ("clang", 4)])
def test_optimised(compiler: str, seed: int, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    rng = np.random.default_rng(seed)
    run_host(
        [*convolutions(rng, AVX2), *channelwise(rng)],
        tmp_path,
        ("-O2", *AVX2_FLAGS),
        compiler,
        sanitized=False,
    )


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize(("table", "machine"), [(VNNI, "vnni"), (SDOT, "sdot")], ids=["AVX-512 VNNI", "SDOT"])
def test_other_tables(table: InstructionSet, machine: str, seed: int, tmp_path: Path) -> None:
    """The same schedules over other tables, among them layers that fall back on another one."""
    m = MACHINES[machine]
    if m.missing():
        pytest.skip(m.missing())
    run_host(
        convolutions(np.random.default_rng(seed), table),
        tmp_path,
        ("-O2", *m.flags),
        m.compiler,
        sanitized=False,
        runner=m.runner,
    )


@needs_avx2
def test_sum(tmp_path: Path) -> None:
    """The sum of two tensors, all pairs of bytes."""
    forms = []
    a, b, y = (
        affine_sum.Rescaling(*given)
        for given in ((3, 2**30, 0), (-128, 1623821475, -2), (-128, 1098017566, -17))
    )
    for low, high in ((-128, 127), (-128, 100), (-20, 127)):
        form = affine_sum.affine(a, b, y, 20, low, high)
        assert form is not None
        forms.append((form, affine_sum.sum_table(a, b, y, 20, low, high)))
    text = '#include "aot_model/int8_avx2_rows.h"\n'
    main = ""
    for i, (form, table) in enumerate(forms):
        text += (
            f"static int sum{i}(const int8_t *a, const int8_t *b, int8_t *y, int32_t n)\n{{\n    "
            f"{affine_sum.avx2_sum(form).call('a', 'b', 'y', 'n')}    return 0;\n}}\n"
        )
        text += f"static const int8_t want{i}[] = {{{','.join(str(v) for v in table.reshape(-1))}}};\n"
        main += f"    for (int32_t n = 1; n < 256; n += 5) {{ bad += run(sum{i}, want{i}, n); }}\n"
    text += """
static int run(int (*sum)(const int8_t *, const int8_t *, int8_t *, int32_t), const int8_t *want, int32_t n)
{
    int8_t a[256], y[256];
    int bad = 0;
    for (int32_t first = 0; first < 256; first++) {
        for (int32_t i = 0; i < n; i++) {
            a[i] = (int8_t)(first - 128);
            y[i] = (int8_t)(i - 128);
        }
        bad |= sum(a, y, y, n);
        for (int32_t i = 0; i < n; i++) {
            bad |= y[i] != want[256 * first + i];
        }
    }
    return bad;
}
"""
    text += f"int main(void)\n{{\n    int bad = 0;\n{main}    return bad;\n}}\n"
    (tmp_path / "sum.c").write_text(text)
    flags = [
        *STRICT,
        "-O1",
        *AVX2_FLAGS,
        f"-I{include_dir()}",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ]
    subprocess.run(["gcc", *flags, str(tmp_path / "sum.c"), "-o", str(tmp_path / "sum")], check=True)
    subprocess.run([str(tmp_path / "sum")], check=True)


def test_rows_are_split_evenly() -> None:
    for width in range(1, 60):
        blocks = split(width, 6)
        assert sum(p * k for p, k in blocks) == width
        assert max(p for p, _ in blocks) <= 6
        assert len(blocks) <= 2
