"""Loops over integers in Helium against the plain loops beside them: one program in QEMU that runs both."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from aot_model.installation import include_dir
from aot_model.ir.expr import Expr, Index, call, cast, const, load, reduce, select, var
from aot_model.ir.index import add, dense_position, floordiv, index_variables, mod, sub
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.loops import LoopNest, loop_nest
from qemu import BOARDS, available, build_and_run

I8, U8, I16, U16, I32 = DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32


def tensor(name: str, dtype: DType, *shape: int) -> Value:
    return Value(name, TensorType(dtype, shape))


def nest(number: int, to: DType, shape: tuple[int, ...], element: Callable[[Index], Expr]) -> LoopNest:
    out, index = tensor("y", to, *shape), index_variables(shape)
    return loop_nest(f"f{number}", out, index, dense_position(index, shape), element(index), dialect="mve")


def clamped(x: Expr, to: DType) -> Expr:
    low, high = (int(v) for v in to.limits)
    return cast(call("min", call("max", x, const(low)), const(high)), to)


def nests() -> list[LoopNest]:
    """Every operation, type, way of reading and rest of a vector."""
    found: list[LoopNest] = []

    def take(to: DType, shape: tuple[int, ...], element: Callable[[Index], Expr]) -> None:
        found.append(nest(len(found), to, shape, element))

    def at(dtype: DType, name: str, *index: Expr, shape: tuple[int, ...]) -> Expr:
        return cast(load(tensor(name, dtype, *shape), tuple(index)), I32)

    for extent in (4, 5, 7, 8, 16, 24, 33, 48):
        for dtype in (I8, U8, I16, U16, I32):
            shape = (3, extent)
            take(dtype, shape, lambda i, d=dtype, s=shape: load(tensor("a", d, *s), tuple(i)))
            # padding: rows of zero points, of constants and of what is in memory
            take(
                dtype,
                shape,
                lambda i, d=dtype, s=shape: select(
                    call("lt", i[0], const(2), dtype=DType.BOOL),
                    select(
                        call("lt", i[0], const(1), dtype=DType.BOOL),
                        const(int(d.limits[1]), d),
                        load(tensor("a", d, *s), tuple(i)),
                    ),
                    const(int(d.limits[0]), d),
                ),
            )

    def truth(op: str, *args: Expr) -> Expr:
        return call(op, *args, dtype=DType.BOOL)

    def operand(kind: int, i: Index) -> Expr:
        """Along both axes, one value for a row, or the same row again."""
        if kind == 0:
            return at(I32, "a", *i, shape=(2, 9))
        return at(I16, "b", i[0], shape=(2,)) if kind == 1 else at(I16, "b", i[1], shape=(9,))

    for op in ("add", "sub", "mul", "min", "max", "bitand", "high_multiply"):
        for kinds in ((0, 1), (1, 0), (0, 2), (2, 0)):
            take(I32, (2, 9), lambda i, o=op, k=kinds: call(o, *(operand(n, i) for n in k)))
    for op in ("neg", "leading_zeros"):
        take(I32, (11,), lambda i, o=op: call(o, at(I32, "a", *i, shape=(11,))))
    for extent in (8, 24, 33):
        take(
            I32,
            (3, extent),
            lambda i, s=(3, extent): call("reciprocal", call("max", at(I32, "a", *i, shape=s), const(1))),
        )
    take(I32, (40,), lambda i: call("reciprocal", call("max", at(U8, "a", *i, shape=(40,)), const(1))))
    for bits in (1, 8, 31):
        take(I32, (8,), lambda i, n=bits: call("sar", at(I32, "a", *i, shape=(8,)), const(n)))
        take(I32, (8,), lambda i, n=bits: call("rounding_shift", at(I32, "a", *i, shape=(8,)), const(n)))
    take(
        I32,
        (3, 8),
        lambda i: call(
            "rounding_shift",
            at(I32, "a", *i, shape=(3, 8)),
            call("bitand", at(U8, "b", i[1], shape=(8,)), const(31)),
        ),
    )
    take(
        I32,
        (3, 24),
        lambda i: call(
            "softmax_ratio",
            *(call("bitand", at(I32, name, *i, shape=(3, 24)), const(2**31 - 1)) for name in "ab"),
            call("max", at(I32, "c", *i, shape=(3, 24)), const(1 << 19)),
            const(35),
        ),
    )
    for shift in (-20, -1, 0, 3):
        take(
            U8,
            (2, 10),
            lambda i, n=shift: clamped(
                call(
                    "add",
                    call("requantise", at(I32, "a", *i, shape=(2, 10)), const(1503238553), const(n)),
                    const(-7),
                ),
                U8,
            ),
        )
    for shift in (-31, -9, -2, -1):  # ties: products with zeros at their ends
        for factor in (1 << 30, 3 << 28, 1503238553, 5 << 24):
            take(
                I32,
                (2, 9),
                lambda i, n=shift, f=factor: call(
                    "requantise_even",
                    call("mul", at(I16, "a", *i, shape=(2, 9)), const(64)),
                    const(f),
                    const(n),
                ),
            )
            take(
                I32,
                (2, 9),
                lambda i, n=shift, f=factor: call(
                    "requantise_even", at(I16, "a", *i, shape=(2, 9)), const(f), const(n)
                ),
            )
        take(
            I32,
            (2, 8),
            lambda i, n=shift: call(
                "requantise_even", *(at(I32, name, *i, shape=(2, 8)) for name in "ab"), const(n)
            ),
        )
    for shift in (-31, -9, -1, 0):
        for factor in (1 << 30, 3 << 28, 1503238553):
            take(
                I32,
                (2, 9),
                lambda i, n=shift, f=factor: call(
                    "requantise_single", at(I32, "a", *i, shape=(2, 9)), const(f), const(n)
                ),
            )
    for terms in (4, 9, 65):
        q = var("q", terms)
        take(
            DType.INT64,
            (3,),
            lambda i, v=q, n=terms: reduce(
                "add", (v,), cast(at(I32, "a", i[0], v, shape=(3, n)), DType.INT64)
            ),
        )
    for to in (I8, U8, I16):  # a form of one product
        take(
            to,
            (3, 12),
            lambda i, t=to: clamped(
                call(
                    "add",
                    call(
                        "requantise",
                        call(
                            "mul",
                            call("sub", at(I8, "a", *i, shape=(3, 12)), const(4)),
                            at(I8, "b", i[1], shape=(12,)),
                        ),
                        const(1319688538),
                        const(-7),
                    ),
                    const(3),
                ),
                t,
            ),
        )
    for extent in (8, 11, 24):  # products of bytes, eight at a time
        for to, kind, shift, zero in ((I8, I8, -7, 3), (U8, U8, -6, 90), (I8, U8, -13, -20), (U8, I8, -8, 0)):
            for along in ((1,), (0,), (0, 1)):

                def scaled(i: Index, n: int = extent, d: DType = kind, k: tuple[int, ...] = along) -> Expr:
                    one = call("sub", at(I8, "a", *i, shape=(5, n)), const(-122))
                    b = at(d, "b", *(i[axis] for axis in k), shape=tuple((5, n)[axis] for axis in k))
                    return call("mul", one, call("sub", b, const(int(d.limits[0]))))

                take(
                    to,
                    (5, extent),
                    lambda i, f=scaled, t=to, s=shift, z=zero: clamped(
                        call("add", call("requantise_even", f(i), const(1324185741), const(s)), const(z)), t
                    ),
                )
    table = tensor("t", I16, 256)
    take(I16, (13,), lambda i: load(table, (add(at(I8, "a", *i, shape=(13,)), 128),)))
    take(I8, (6, 10), lambda i: load(tensor("a", I8, 10, 6), (i[1], i[0])))  # a transposed copy
    take(I8, (6, 16), lambda i: load(tensor("a", I8, 2, 6, 8), (floordiv(i[1], 8), i[0], mod(i[1], 8))))
    take(I8, (6, 18), lambda i: load(tensor("a", I8, 3, 6, 6), (floordiv(i[1], 6), i[0], mod(i[1], 6))))
    for dtype in (I8, U16, I32):
        for groups, size in ((3, 20), (2, 3), (9, 5)):  # shuffled channels: their loop comes in two
            take(
                dtype,
                (4, groups * size),
                lambda i, n=groups, d=dtype, m=size: load(
                    tensor("a", d, 4, n, m), (i[0], mod(i[1], n), floordiv(i[1], n))
                ),
            )
        take(dtype, (13, 3), lambda i, d=dtype: load(tensor("a", d, 3, 13), (i[1], i[0])))  # along the longer
        take(dtype, (2, 7), lambda i, d=dtype: load(tensor("a", d, 2, 7), (i[0], sub(const(6), i[1]))))
    for op, dtype in (("add", I32), ("max", I8), ("min", U16)):
        r = var("r", 5)
        take(
            dtype,
            (3, 10),
            lambda i, o=op, d=dtype, r=r: reduce(
                o, (r,), cast(load(tensor("a", d if d is not I32 else I8, 3, 5, 10), (i[0], r, i[1])), d)
            ),
        )

    def weighed(i: Index, columns: int) -> Expr:
        """A row that a table chooses, by two numbers of its own, and another one; some of it in a branch."""
        row = call("bitand", at(I8, "b", i[0], shape=(5,)), const(3))
        one = at(I16, "a", row, i[1], shape=(4, columns))
        own = call("mul", call("mul", one, at(I8, "b", i[0], shape=(5,))), at(I16, "c", i[0], shape=(5,)))
        guarded = select(
            call("lt", i[0], const(3), dtype=DType.BOOL),
            at(I16, "d", call("bitand", at(I8, "e", i[0], shape=(3,)), const(1)), i[1], shape=(2, columns)),
            const(5),
        )
        other = call("mul", at(I16, "a", i[0], i[1], shape=(5, columns)), at(I16, "c", i[0], shape=(5,)))
        return call("add", call("add", own, guarded), other)

    def nearest(i: Index, bits: int, twice: bool) -> Expr:
        total, half = call("mul", at(I16, "a", *i, shape=(2, 40)), const(8)), const(1 << bits - 1)
        up = call("lt", const(0), total, dtype=DType.BOOL)
        down = call("sub", total, const(1 << bits - twice - 1))
        return call("div", select(up, call("add", total, half), down), const(1 << bits))

    for columns in (8, 11):
        take(I32, (5, columns), lambda i, n=columns: weighed(i, n))
    for bits in (1, 3, 4, 10, 20):
        take(I32, (2, 40), lambda i, n=bits: nearest(i, n, False))
    take(I32, (2, 40), lambda i: nearest(i, 3, True))  # stays plain
    for op, dtype in (("add", I32), ("max", I8), ("min", U16), ("max", U8), ("min", I32)):
        for results, terms in ((1, 4), (3, 5), (5, 16), (9, 11)):  # along the terms
            over, sizes = (var("q", 2), var("r", terms)), (results, 2, terms)
            take(
                dtype,
                (results,),
                lambda i, o=op, d=dtype, v=over, n=sizes: reduce(
                    o, v, cast(load(tensor("a", d if d is not I32 else I16, *n), (i[0], *v)), d)
                ),
            )
    r = var("r", 10)
    take(
        I32,
        (3,),
        lambda i: reduce(
            "add",
            (r,),
            call(
                "mul",
                load(tensor("t", I32, 256), (add(at(I8, "a", i[0], r, shape=(3, 10)), 128),)),
                call("sub", at(I16, "b", i[0], shape=(3,)), at(I16, "c", r, shape=(10,))),
            ),
        ),
    )
    take(
        I32,
        (3, 9),
        lambda i: call(
            "sar", at(I32, "a", *i, shape=(3, 9)), call("bitand", at(U8, "b", i[0], shape=(3,)), const(31))
        ),
    )
    take(I8, (9,), lambda i: cast(call("mul", at(I16, "a", *i, shape=(9,)), const(77)), I8))  # low bits
    for n in (12, 21):
        for op in ("lt", "le", "eq"):  # leaky, and others that choose by their own element
            take(
                I8,
                (n,),
                lambda i, o=op, n=n: select(
                    call(o, at(I8, "a", *i, shape=(n,)), const(3), dtype=DType.BOOL),
                    load(tensor("a", I8, n), tuple(i)),
                    const(1, I8),
                ),
            )
            take(
                I16,
                (2, n),
                lambda i, o=op, n=n: clamped(
                    select(
                        call(
                            o, at(I16, "a", *i, shape=(2, n)), at(I8, "b", i[1], shape=(n,)), dtype=DType.BOOL
                        ),
                        call("mul", at(I16, "a", *i, shape=(2, n)), at(I8, "c", i[1], shape=(n,))),
                        call("sub", at(I16, "a", *i, shape=(2, n)), const(77)),
                    ),
                    I16,
                ),
            )
            for join in ("and", "or"):
                take(
                    I8,
                    (n,),
                    lambda i, o=op, n=n, j=join: select(
                        truth(
                            j,
                            truth("not", truth(o, at(I8, "a", *i, shape=(n,)), const(3))),
                            load(tensor("m", DType.BOOL, n), tuple(i)),
                        ),
                        load(tensor("a", I8, n), tuple(i)),
                        const(1, I8),
                    ),
                )
        # beyond the end where the condition says no: stays plain
        take(
            I32,
            (n,),
            lambda i, n=n: select(
                call("lt", add(i[0], const(0)), const(n - 1), dtype=DType.BOOL),
                at(I32, "a", add(i[0], const(1)), shape=(n,)),
                const(5),
            ),
        )
    for to in (I8, U8, I16):  # rows too short for vectors: four of them at a time, in place
        take(
            to,
            (9, 3),
            lambda i, d=to: clamped(
                call("add", at(d, "a", *i, shape=(9, 3)), at(I16, "b", i[0], shape=(9,))), d
            ),
        )
    return found


def test_products_of_bytes_are_eight_at_a_time() -> None:
    assert sum("vmull" in one.function.body for one in nests()) == 36


def program(found: list[LoopNest]) -> str:
    rng, text, calls = np.random.default_rng(3), "", ""
    headers = {h for one in found for h in one.function.includes}
    for k, one in enumerate(found):
        body = one.function.body
        parts = re.fullmatch(r"#if AOT_MODEL_INTEGER_VECTORS\n(.*)\n#else\n(.*)\n#endif", body, re.DOTALL)
        if parts is None:
            continue
        params, arguments = [], []
        for p, value in zip(one.function.params, (*one.reads, None), strict=True):
            if value is None:
                params.append(f"{p.dtype.c_type} *{p.name}")
                continue
            low, high = (int(v) for v in p.dtype.limits)
            data = rng.integers(low, high, value.type.elements, endpoint=True)
            data[::3] = rng.integers(-9 if low < 0 else 0, 9, len(data[::3]))
            data[1::4] = min(3, high)  # what numbers are compared with
            numbers = ", ".join("(-2147483647 - 1)" if v == -(2**31) else str(v) for v in data)
            text += f"static const {p.dtype.c_type} d{k}_{p.name}[] = {{{numbers}}};\n"
            params.append(f"const {p.dtype.c_type} *{p.name}")
            arguments.append(f"d{k}_{p.name}")
        for suffix, part in zip("vp", parts.groups(), strict=True):
            text += f"static void f{k}{suffix}({', '.join(params)})\n{{\n{part}\n}}\n"
        out = one.function.params[-1].dtype
        text += f"static {out.c_type} y{k}v[256], y{k}p[256];\n"
        given = "".join(f"{a}, " for a in arguments)
        calls += (
            f"    f{k}v({given}y{k}v);\n    f{k}p({given}y{k}p);\n"
            f"    if (memcmp(y{k}v, y{k}p, sizeof y{k}v) != 0) {{\n"
            f'        printf("%d ", {k});\n        wrong = 1;\n    }}\n'
        )
    names = "".join(f'#include "{h}"\n' if "/" in h else f"#include <{h}>\n" for h in sorted(headers))
    return (
        f"#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n{names}"
        f"{text}\nint main(void)\n{{\n    int wrong = 0;\n{calls}    return wrong;\n}}\n"
    )


def test_what_has_vectors() -> None:
    plain = [k for k, one in enumerate(nests()) if "_VECTORS" not in one.function.body]
    assert len(plain) == 3  # halves that differ, what is not there where it is not chosen
    one = nest(0, I8, (12,), lambda i: load(tensor("a", I8, 12), tuple(i)))
    index = index_variables((12,))
    scalar = loop_nest(
        "f", tensor("y", I8, 12), index, dense_position(index, (12,)), load(tensor("a", I8, 12), tuple(index))
    )
    assert "vstr" in one.function.body and "vstr" not in scalar.function.body


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
def test_the_same_numbers(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(program(nests()))
    build_and_run(
        BOARDS["m55"],
        ["program.c"],
        tmp_path,
        ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{include_dir()}"],
    )


def test_no_intrinsic_counts_a_register_up() -> None:
    """GCC 12 takes the register of vidupq for the constant that it began with (lanes_mve.h)."""
    folder = include_dir().parent.parent
    texts = [p for p in folder.rglob("*") if p.suffix in (".py", ".h", ".j2") and p.name != "lanes_mve.h"]
    assert len(texts) > 100
    counting = re.compile(r"\bv(i|d|iw|dw)dupq|_wb_[su]\d")
    assert not [str(p) for p in texts if counting.search(p.read_text())]
