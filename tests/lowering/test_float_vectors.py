"""Loops over floats in Helium: their functions against the scalar ones, and loops against the plain ones
beside them, in QEMU at every optimisation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from aot_model.c.statements import LONG_SUM
from aot_model.installation import include_dir
from aot_model.ir.expr import Expr, Index, call, cast, const, load, reduce, select, var
from aot_model.ir.index import add as index_add
from aot_model.ir.index import dense_position, index_variables
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.loops import LoopNest, loop_nest
from qemu import BOARDS, available, build_and_run

F32 = DType.FLOAT32
OPTIMISED = ["-O0", "-O1", "-O2", "-O3", "-Os"]
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
FUNCTIONS = """
#include <stdio.h>
#include <string.h>
#include "aot_model/float_vectors.h"
#include "aot_model/rational.h"

#if !AOT_MODEL_FLOAT_VECTORS
#error "no vectors"
#endif

static uint32_t bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

/* The same bits; any NaN for a NaN; where a subnormal number may have been 0 on the way, next to nothing. */
static int unlike(float a, float b)
{
    if (isnan(b)) {
        return !isnan(a);
    }
    if (fabsf(b) < 1e-35f) {
        return !(fabsf(a) < 1e-35f);
    }
    return bits(a) != bits(b);
}

static int wrong;
static void look(const char *name, float x, float a, float b)
{
    if (unlike(a, b)) {
        wrong++;
        printf("%s(%08lx): %08lx, not %08lx\\n", name, (unsigned long)bits(x), (unsigned long)bits(a), (unsigned long)bits(b));
    }
}

#define TRY(name, vector, scalar)                                                                                                \\
    aot_model_store_f32(y, vector(aot_model_load_f32(x)));                                                                       \\
    for (int32_t k = 0; k < 4; k++) {                                                                                            \\
        look(name, x[k], y[k], scalar(x[k]));                                                                                    \\
    }

static void four(const float *x)
{
    float y[4];
    TRY("exp", aot_model_four_exp, aot_model_short_exp)
    TRY("expm1", aot_model_four_expm1, aot_model_short_expm1)
    TRY("log", aot_model_four_log, aot_model_short_log)
    TRY("log1p", aot_model_four_log1p, aot_model_short_log1p)
    TRY("softplus_rest", aot_model_four_softplus_rest, aot_model_short_softplus_rest)
    TRY("erf", aot_model_four_erf, aot_model_short_erf)
    TRY("tanh", aot_model_four_tanh, aot_model_tanh_float32)
    TRY("logistic", aot_model_four_logistic, aot_model_logistic_float32)
    TRY("sigmoid", aot_model_four_sigmoid, aot_model_short_logistic)
    TRY("libm_tanh", aot_model_four_libm_tanh, aot_model_short_tanh)
    aot_model_store_f32(y, aot_model_four_quotients(aot_model_load_f32(x), vdupq_n_f32(x[3])));
    for (int32_t k = 0; k < 4; k++) {
        look("quotient", x[k], y[k], x[k] / x[3]);
    }
}

/* Of logarithms that are numbers. */
static void four_logs(const float *any)
{
    float x[4];
    float y[4];
    for (int32_t k = 0; k < 4; k++) {
        x[k] = isnan(any[k]) ? 3.0f : fabsf(any[k]);
    }
    TRY("log", aot_model_four_log, aot_model_short_log)
    TRY("log1p", aot_model_four_log1p, aot_model_short_log1p)
    for (int32_t k = 0; k < 4; k++) {
        x[k] = isinf(x[k]) ? 1.0f : 1.0f / (1.0f + x[k]);
    }
    TRY("log", aot_model_four_log, aot_model_short_log)
    for (int32_t k = 0; k < 4; k++) {
        x[k] = (k % 2 == 0) ? 0.5f * x[k] - 1.0f : 0.5f - x[k];
    }
    TRY("log1p", aot_model_four_log1p, aot_model_short_log1p)
}

int main(void)
{
    static const float ends[] = {0.0f, 1.0f, 87.0f, 87.1f, 88.8f, 89.5f, 103.0f, 105.0f, 0.92f, 0.91999996f, 4.0f, 3.9999998f, 4.1f,
        9.0f, 9.1f, 18.0f, 18.1f, 1e30f, 2e-38f, INFINITY, NAN, 0.5f, 0.25f, 1e-6f,
        0.55f, 0.54999995f, 0.55000001f, 40.0f, 40.1f, 43.5f, 43.6f, 64.1f,
        0.70710677f, 0.7071068f, 0.7071069f, 1.4142135f, 1.4142137f, 0.41421354f, 0.41421357f, 64.0f,
        33554428.0f, 33554432.0f, 16777216.0f, 16777217.0f, 1.1754944e-38f, 3.4028235e38f, 1.5f, 2.0f};
    uint32_t state = 1u;
    for (uint32_t k = 0; k + 4 <= sizeof ends / sizeof ends[0]; k++) {
        float x[4] = {ends[k], ends[k + 1], -ends[k + 2], -ends[k + 3]};
        four(x);
        four_logs(x);
        x[0] = -x[0];
        x[1] = -x[1];
        four(x);
    }
    for (int turn = 0; turn < 4000; turn++) {
        float x[4];
        for (int32_t k = 0; k < 4; k++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t any = (state & 0x807fffffu) | ((114u + (state >> 24) % 22u) << 23); /* 2^-13 to 2^9 */
            memcpy(&x[k], &any, sizeof any);
        }
        four(x);
        four_logs(x);
    }
    return wrong != 0;
}
"""  # noqa: E501


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", OPTIMISED)
def test_functions_have_the_bits_of_the_scalar_ones(optimise: str, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(FUNCTIONS)
    build_and_run(BOARDS["m55"], ["program.c"], tmp_path, [optimise, *FLAGS, f"-I{include_dir()}"])


def nest(number: int, shape: tuple[int, ...], element: Callable[[Index], Expr], to: DType = F32) -> LoopNest:
    out, index = Value("y", TensorType(to, shape)), index_variables(shape)
    return loop_nest(f"f{number}", out, index, dense_position(index, shape), element(index), dialect="mve")


def at(name: str, *index: Expr, shape: tuple[int, ...], dtype: DType = F32) -> Expr:
    return load(Value(name, TensorType(dtype, shape)), tuple(index))


def truth(op: str, *args: Expr) -> Expr:
    return call(op, *args, dtype=DType.BOOL)


def _conditions(shape: tuple[int, ...]) -> Iterator[Callable[[Index], Expr]]:
    """Comparisons, also of NaN, a mask from memory, and what joins them."""

    def compared(i: Index, op: str) -> Expr:
        return truth(op, at("a", *i, shape=shape), at("b", i[1], shape=shape[1:]))

    def beside(i: Index, op: str) -> Expr:
        return truth(op, at("a", *i, shape=shape), const(-0.75, F32))

    def odd(i: Index) -> Expr:
        return truth("isnan", at("a", *i, shape=shape))

    def mask(i: Index) -> Expr:
        return at("m", *i, shape=shape, dtype=DType.BOOL)

    yield from (partial(one, op=op) for one in (compared, beside) for op in ("lt", "le", "eq"))
    yield from (odd, mask)
    for join in ("and", "or"):
        yield lambda i, o=join: truth(o, truth("or", odd(i), compared(i, "eq")), mask(i))
        yield lambda i, o=join: truth(o, mask(i), truth("not", truth("and", odd(i), mask(i))))


def nests() -> list[LoopNest]:
    """Rests of a vector, what is read along a row or is the same for it, every operation."""
    found: list[LoopNest] = []

    def take(shape: tuple[int, ...], element: Callable[[Index], Expr]) -> None:
        found.append(nest(len(found), shape, element))

    for extent in (4, 5, 6, 7, 8, 31):
        for f in (
            "exp",
            "expm1",
            "log",
            "log1p",
            "softplus_rest",
            "erf",
            "rational_tanh",
            "rational_logistic",
            "sigmoid",
            "tanh",
        ):
            take(
                (3, extent),
                lambda i, f=f, s=(3, extent): call(
                    "mul", at("a", *i, shape=s), call(f, at("a", *i, shape=s))
                ),
            )
    for op in ("add", "sub", "mul", "div"):
        for turn in range(4):
            first, second = (((0, 1), (0,)), ((0,), (0, 1)), ((0, 1), (1,)), ((1,), (0,)))[turn]
            sides = (("a", first), ("b", second))
            take(
                (3, 9),
                lambda i, o=op, s=sides: call(
                    "rational_logistic",
                    call(
                        o,
                        *(
                            at(name, *(i[k] for k in axes), shape=tuple((3, 9)[k] for k in axes))
                            for name, axes in s
                        ),
                    ),
                ),
            )
    for shape in ((2, 8), (3, 11)):
        x = lambda i, s=shape: at("a", *i, shape=s)  # noqa: E731
        for limit in (0.0, -0.75, float("inf"), float("-inf")):
            for op in ("max", "min"):
                take(shape, lambda i, o=op, x=x, n=limit: call(o, x(i), const(n, F32)))
        for op in ("lt", "le"):  # leaky, by channel; one of two
            take(
                shape,
                lambda i, o=op, x=x, s=shape: select(
                    call(o, x(i), const(0.0, F32), dtype=DType.BOOL),
                    call("mul", x(i), at("b", i[1], shape=s[1:])),
                    x(i),
                ),
            )
            take(
                shape,
                lambda i, o=op, x=x, s=shape: select(
                    call(o, x(i), at("b", i[0], shape=s[:1]), dtype=DType.BOOL),
                    const(2.0, F32),
                    call("neg", x(i)),
                ),
            )
        for condition in _conditions(shape):
            take(shape, lambda i, c=condition, x=x: select(c(i), const(1.0, F32), x(i)))
            take(
                shape,
                lambda i, c=condition, x=x: select(truth("not", c(i)), call("exp", x(i)), const(1.0, F32)),
            )
        take(
            shape,
            lambda i, x=x, s=shape: call(
                "mul",
                x(i),
                select(
                    call("lt", i[0], const(1), dtype=DType.BOOL),
                    call("exp", x(i)),
                    at("b", i[0], shape=s[:1]),
                ),
            ),
        )
    for op in ("neg", "abs"):
        take((11,), lambda i, o=op: call("exp", call(o, at("a", *i, shape=(11,)))))
    take((5,), lambda i: call("add", call("erf", at("a", *i, shape=(5,))), const(1.0, F32)))
    for op in ("quantise_rint", "quantise_round"):
        for to, zero in ((DType.INT8, 2), (DType.UINT8, 130), (DType.INT16, 0), (DType.INT16, -4000)):
            limits = tuple(const(int(n)) for n in (zero, *to.limits))
            # the last four: columns that are read as rows
            for shape in ((3, 8), (2, 27), (17, 3), (8, 2), (9, 8), (4, 30)):

                def quantised(
                    i: Index,
                    o: str = op,
                    t: DType = to,
                    n: tuple[int, ...] = shape,
                    rest: tuple[Expr, ...] = limits,
                    scale: float = 0.25,
                ) -> Expr:
                    turned = n[1] <= 3 or n[0] > 3
                    x = at("a", i[1], i[0], shape=n[::-1]) if turned else at("a", *i, shape=n)
                    return cast(call(o, call("div", x, const(scale, F32)), *rest, dtype=DType.INT32), t)

                found.append(nest(len(found), shape, quantised, to))
                found.append(nest(len(found), shape, partial(quantised, scale=0.0235), to))

    def looked_up(i: Index, n: tuple[int, ...], columns: bool) -> Expr:
        """A table at what a float becomes; integers that become floats and integers again."""
        x = at("a", *(i[::-1] if columns else i), shape=n[::-1] if columns else n, dtype=DType.INT8)
        real = call("mul", cast(call("add", cast(x, DType.INT32), const(11)), F32), const(0.0371, F32))
        whole = call("quantise_rint", call("div", real, const(0.0525, F32)), *map(const, (5, -128, 127)),
                     dtype=DType.INT32)  # fmt: skip
        return load(Value("b", TensorType(DType.INT16, (256,))), (index_add(whole, 128),))

    def from_integers(i: Index, f: str, d: DType, n: tuple[int, ...], columns: bool) -> Expr:
        x = at("a", *(i[::-1] if columns else i), shape=n[::-1] if columns else n, dtype=d)
        return call(f, call("mul", cast(call("sub", cast(x, DType.INT32), const(-7)), F32), const(0.02, F32)))

    for shape in ((3, 8), (2, 27)):
        for columns in (False, True):
            found.append(nest(len(found), shape, partial(looked_up, n=shape, columns=columns), DType.INT16))
            for f, dtype in (("rational_tanh", DType.INT8), ("neg", DType.UINT8), ("abs", DType.INT16)):
                found.append(nest(len(found), shape, partial(
                    from_integers, f=f, d=dtype, n=shape, columns=columns), F32))  # fmt: skip

    def of_function(i: Index, f: str, n: tuple[int, ...]) -> Expr:
        x = at("a", *i, shape=n)
        real = call("mul", x, call(f, call("sub", at("b", i[0], shape=n[:1]), x)))
        real = call("div", real, const(0.02, F32))
        return cast(call("quantise_rint", real, *map(const, (-3, -128, 127)), dtype=DType.INT32), DType.INT8)

    for f in ("exp", "erf", "rational_tanh", "rational_logistic"):
        for shape in ((3, 8), (2, 27)):
            found.append(nest(len(found), shape, lambda i, f=f, n=shape: of_function(i, f, n), DType.INT8))

    def by_computed(i: Index, n: tuple[int, ...], zero: Expr | None, f: str) -> Expr:
        """A scale for each row; a zero point that is read, or one for each column."""
        point = at("z", i[1], shape=n[1:], dtype=DType.INT8) if zero is None else zero
        real = call("div", at("a", *i, shape=n), at("b", i[0], shape=n[:1]))
        limits = (cast(point, DType.INT32), const(-128), const(127))
        return cast(call(f, real, *limits, dtype=DType.INT32), DType.INT8)

    one = at("z", const(0), shape=(1,), dtype=DType.INT8)
    for f in ("quantise_rint", "quantise_round"):
        for shape in ((9, 8), (7, 13)):
            for zero in (None, one, const(-128), const(127)):
                computed = partial(by_computed, n=shape, zero=zero, f=f)
                found.append(nest(len(found), shape, computed, DType.INT8))

    def summed(i: Index, n: tuple[int, ...], over: tuple[int, ...], f: str) -> Expr:
        """A mean over rows of each column; long ones are sums of sums."""
        terms = tuple(var(f"r{k}", extent) for k, extent in enumerate(over))
        x = at("a", i[0], *terms, i[1], shape=(n[0], *over, n[1]))
        total = reduce("add", terms, call("mul", x, call(f, x)) if f else x)  # type: ignore[arg-type]
        return call("div", total, const(float(math.prod(over)), F32))

    for over in ((5,), (3, 4), (2, LONG_SUM // 2 + 3)):
        for shape in ((1, 8), (2, 5)):
            for f in ("", "rational_logistic"):
                take(shape, partial(summed, n=shape, over=over, f=f))

    def ends(i: Index, n: tuple[int, ...], over: tuple[int, ...], lanes: bool, op: str) -> Expr:
        """The least or largest one of neighbours (lanes), or of each column; a scale that takes both."""
        terms = tuple(var(f"r{k}", extent) for k, extent in enumerate(over))
        place, shape = ((i[0], *terms), (n[0], *over)) if lanes else ((*terms, i[0]), (*over, n[0]))
        x = at("a", *place, shape=shape)
        if op == "scale":
            least, most = (reduce(o, terms, x) for o in ("min", "max"))  # type: ignore[arg-type]
            return call("div", call("max", call("abs", least), call("abs", most)), const(127.0, F32))
        return reduce(op, terms, call("mul", x, at("b", i[0], shape=n)))  # type: ignore[arg-type]

    for op in ("min", "max", "scale"):
        for over in ((4,), (7,), (3, 5), (2, 3, 8)):
            take((1,), partial(ends, n=(1,), over=over, lanes=True, op=op))
            take((9,), partial(ends, n=(9,), over=over, lanes=True, op=op))
            take((9,), partial(ends, n=(9,), over=over, lanes=False, op=op))

    def along(i: Index, n: tuple[int, ...], over: tuple[int, ...], f: str) -> Expr:
        """A sum of functions of neighbours, a long one too."""
        terms = tuple(var(f"r{k}", extent) for k, extent in enumerate(over))
        x = at("a", i[0], *terms, shape=(*n, *over))
        return call("log", reduce("add", terms, call(f, call("sub", x, at("b", i[0], shape=n)))))  # type: ignore[arg-type]

    for over in ((4,), (7,), (3, 5), (2, 3, 8), (LONG_SUM + 5,)):
        for f in ("exp", "rational_logistic"):
            take((3,), partial(along, n=(3,), over=over, f=f))
    for op in ("min", "max"):
        take((11,), lambda i, o=op: call(o, at("a", *i, shape=(11,)), at("b", *i, shape=(11,))))
    return found


def plain() -> list[LoopNest]:
    """What stays a plain loop."""
    r = var("r", 5)
    return [
        nest(0, (3, 9), lambda i: call("mul", at("a", *i, shape=(3, 9)), at("b", i[1], shape=(9, )))),
        nest(1, (3, ), lambda i: call("exp", at("a", *i, shape=(3, )))),
        nest(2, (6, 10), lambda i: call("exp", at("a", i[1], i[0], shape=(10, 6)))),
        nest(3, (10, 3), lambda i: reduce("add", (r, ), at("a", i[0], r, i[1], shape=(10, 5, 3)))),
        nest(4, (3, 10),
             lambda i: call("mul", at("a", *i, shape=(3, 10)), call("exp", at("b", i[0], shape=(3, ))))),
        nest(5, (12, ), lambda i: cast(cast(at("a", *i, shape=(12, ), dtype=DType.INT64), DType.INT32), F32)),
        nest(6, (2, ), lambda i: reduce("max", (r, ), at("a", r, i[0], shape=(5, 2)))),
        # may take the memory of what it reads
        nest(7, (12, 3), lambda i: cast(call("quantise_rint", call(
            "div", at("a", *i, shape=(12, 3)), at("b", i[1], shape=(3,))), *map(const, (2, -128, 127)),
                                             dtype=DType.INT32), DType.INT8), DType.INT8),
    ]  # fmt: skip


def test_what_has_vectors() -> None:
    assert all("FLOAT_VECTORS" in one.function.body for one in nests())
    assert not any("vstr" in one.function.body for one in plain())


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", OPTIMISED)
def test_the_same_numbers(optimise: str, tmp_path: Path) -> None:
    rng, text, calls, found = np.random.default_rng(3), "", "", nests()
    headers = {h for one in found for h in one.function.includes}
    for k, one in enumerate(found):
        parts = re.fullmatch(
            r"#if AOT_MODEL_FLOAT_VECTORS\n(.*)\n#else\n(.*)\n#endif", one.function.body, re.DOTALL
        )
        assert parts is not None
        params, arguments = [], []
        for p, value in zip(one.function.params, (*one.reads, None), strict=True):
            if value is not None:
                if value.dtype is not F32:
                    low, high = (int(n) for n in value.dtype.limits)
                    whole = rng.integers(low, high, value.type.elements, endpoint=True)
                    text += (
                        f"static const {value.dtype.c_type} d{k}_{p.name}[] = "
                        f"{{{', '.join(map(str, whole))}}};\n"
                    )
                    arguments.append(f"d{k}_{p.name}, ")
                    params.append(f"const {p.dtype.c_type} *{p.name}")
                    continue
                data = rng.uniform(0.5, 3, value.type.elements) * rng.choice([-1, 1], value.type.elements)
                if re.search("vcmp|_four_m", one.function.body):
                    data[::7] = np.nan
                    data[1::8] = np.resize([-0.75, 0.0, -0.0, np.inf], len(data[1::8]))
                if "_odd" in one.function.body:
                    data[::29] = np.nan
                    data[2::11] = rng.choice([-np.inf, -0.75, np.inf], len(data[2::11]))
                if one.function.params[-1].dtype is not F32:  # ties, limits, what is beyond them
                    data = np.round(data * rng.choice([8, 40, 1e4, 1e30], len(data))) / 8
                    data[:5] = (np.inf, -np.inf, np.nan, 0, 3e38)[: len(data)]
                special = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
                numbers = ", ".join(special.get(str(v), f"{v:.6f}f") for v in data)
                text += f"static const float d{k}_{p.name}[] = {{{numbers}}};\n"
                arguments.append(f"d{k}_{p.name}, ")
            params.append(f"{'' if value is None else 'const '}{p.dtype.c_type} *{p.name}")
        for suffix, part in zip("vp", parts.groups(), strict=True):
            text += f"static void f{k}{suffix}({', '.join(params)})\n{{\n{part}\n}}\n"
        text += f"static {one.function.params[-1].dtype.c_type} y{k}v[256], y{k}p[256];\n"
        calls += f"    f{k}v({''.join(arguments)}y{k}v);\n    f{k}p({''.join(arguments)}y{k}p);\n"
        if one.function.params[-1].dtype is F32:
            calls += f"    one_nan(y{k}v, y{k}p);\n"
        calls += (
            f"    if (memcmp(y{k}v, y{k}p, sizeof y{k}v) != 0) {{\n"
            f'        printf("%d ", {k});\n        wrong = 1;\n    }}\n'
        )
    text += """
/* Any NaN for a NaN. */
static void one_nan(float *a, const float *b)
{
    for (int32_t i = 0; i < 256; i++) {
        a[i] = (isnan(a[i]) && isnan(b[i])) ? b[i] : a[i];
    }
}
"""
    names = "".join(f'#include "{h}"\n' if "/" in h else f"#include <{h}>\n" for h in sorted(headers))
    program = (
        f"#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n{names}"
        f"{text}\nint main(void)\n{{\n    int wrong = 0;\n{calls}    return wrong;\n}}\n"
    )
    (tmp_path / "program.c").write_text(program)
    build_and_run(BOARDS["m55"], ["program.c"], tmp_path, [optimise, *FLAGS, f"-I{include_dir()}"])
