"""Loops over floats that Helium has vectors for, in all forms, and some that stay plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from aot_model.c.statements import LONG_SUM
from aot_model.ir.expr import Expr, Index, call, cast, const, load, reduce, select, var
from aot_model.ir.index import add as index_add
from aot_model.ir.index import dense_position, index_variables
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.loops import LoopNest, loop_nest

F32 = DType.FLOAT32


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
