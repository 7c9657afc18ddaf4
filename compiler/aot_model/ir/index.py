"""Index arithmetic in normal form, and substitution, which brings it there again.

An index is a sum of `coefficient * atom` plus a constant; see ir/expr.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from aot_model.ir.bounds import bounds
from aot_model.ir.expr import (
    Call,
    Cell,
    Const,
    Expr,
    Index,
    Load,
    Reduce,
    Var,
    call,
    cell,
    const,
    index_text,
    load,
    logical_and,
    reduce,
    select,
    var,
    walk,
)
from aot_model.ir.types import DType, strides_of


def _terms(x: Expr) -> tuple[dict[Expr, int], int]:
    """x as {atom: coefficient} and a constant."""
    if isinstance(x, Const):
        return {}, int(x.value)
    if isinstance(x, Call) and x.op == "isum":
        coefficients = [int(a.value) for a in x.args[1::2] if isinstance(a, Const)]
        base = x.args[-1]
        assert isinstance(base, Const)
        return dict(zip(x.args[:-1:2], coefficients, strict=False)), int(base.value)
    return {x: 1}, 0


def _from_terms(terms: dict[Expr, int], base: int) -> Expr:
    terms = {a: c for a, c in terms.items() if c}
    terms = _join_div_mod(terms)
    if not terms:
        return const(base)
    if base == 0 and len(terms) == 1:
        atom, coefficient = next(iter(terms.items()))
        if coefficient == 1:
            return atom
    # A stable order that does not depend on object identity: larger strides first, then the text.
    ordered = sorted(terms.items(), key=lambda item: (-abs(item[1]), index_text(item[0])))
    args = (*(x for atom, c in ordered for x in (atom, const(c))), const(base))
    return call("isum", *args, dtype=DType.INT32)


def _join_div_mod(terms: dict[Expr, int]) -> dict[Expr, int]:
    """(x // n) * n * k + (x % n) * k = x * k."""
    for atom, coefficient in terms.items():
        if isinstance(atom, Call) and atom.op == "imod":
            x, n = atom.args
            assert isinstance(n, Const)
            quotient = floordiv(x, int(n.value))
            if terms.get(quotient) == coefficient * int(n.value):
                rest = {a: c for a, c in terms.items() if a is not atom and a is not quotient}
                inner, base = _terms(x)
                if base:
                    continue
                for a, c in inner.items():
                    rest[a] = rest.get(a, 0) + c * coefficient
                return _join_div_mod({a: c for a, c in rest.items() if c})
    return terms


def add(x: Expr, y: Expr | int) -> Expr:
    """Sum of two indices."""
    left, base = _terms(x)
    right, other = _terms(const(y) if isinstance(y, int) else y)
    total = dict(left)
    for atom, c in right.items():
        total[atom] = total.get(atom, 0) + c
    return _from_terms(total, base + other)


def mul(x: Expr, factor: int) -> Expr:
    """An index times a constant."""
    terms, base = _terms(x)
    return _from_terms({a: c * factor for a, c in terms.items()}, base * factor)


def sub(x: Expr, y: Expr | int) -> Expr:
    return add(x, -y if isinstance(y, int) else mul(y, -1))


def _split(x: Expr, n: int) -> tuple[dict[Expr, int], int, dict[Expr, int], int]:
    """x = n * (quotient terms + quotient base) + (rest terms + rest base), with 0 <= rest base < n."""
    terms, base = _terms(x)
    quotient = {a: c // n for a, c in terms.items() if c % n == 0}
    rest = {a: c for a, c in terms.items() if c % n}
    return quotient, base // n, rest, base % n


def _reduced(rest: dict[Expr, int], base: int, n: int) -> tuple[Expr, int, Expr]:
    """(x, g, small) with rest + base = g * x + small, 0 <= small < g, for the largest divisor g of n that one
    of the coefficients has in common with it.
    """
    for g in sorted({math.gcd(n, c) for c in rest.values()} | {math.gcd(n, *rest.values())}, reverse=True):
        small = _from_terms({a: c for a, c in rest.items() if c % g}, base % g)
        low, high = bounds(small)
        if low is not None and high is not None and low >= 0 and high < g:
            break
    return _from_terms({a: c // g for a, c in rest.items() if c % g == 0}, base // g), g, small


def floordiv(x: Expr, n: int) -> Expr:
    """Floor of an index over a positive constant."""
    if n == 1:
        return x
    quotient, q_base, rest, r_base = _split(x, n)
    low, high = bounds(_from_terms(rest, r_base))
    if low is not None and high is not None and low // n == high // n:
        return _from_terms(quotient, q_base + low // n)
    inner, g, _ = _reduced(rest, r_base, n)
    if isinstance(inner, Call) and inner.op == "idiv":
        divisor = inner.args[1]
        assert isinstance(divisor, Const)
        atom = floordiv(inner.args[0], int(divisor.value) * (n // g))
    else:
        atom = call("idiv", inner, const(n // g), dtype=DType.INT32) if n // g > 1 else inner
    terms, base = _terms(atom)
    for a, c in terms.items():
        quotient[a] = quotient.get(a, 0) + c
    return _from_terms(quotient, q_base + base)


def mod(x: Expr, n: int) -> Expr:
    """Non-negative remainder of an index by a positive constant."""
    if n == 1:
        return const(0)
    _, _, rest, r_base = _split(x, n)
    whole = _from_terms(rest, r_base)
    low, high = bounds(whole)
    if low is not None and high is not None and low // n == high // n:
        return add(whole, -(low // n) * n)
    inner, g, small = _reduced(rest, r_base, n)
    if n // g == 1:
        return small
    if isinstance(inner, Call) and inner.op == "imod":
        divisor = inner.args[1]
        assert isinstance(divisor, Const)
        if int(divisor.value) % (n // g) == 0:
            return add(mul(mod(inner.args[0], n // g), g), small)
    return add(mul(call("imod", inner, const(n // g), dtype=DType.INT32), g), small)


def less(x: Expr, y: Expr | int) -> Expr:
    """x < y for indices, decided at compile time where the ranges allow it."""
    difference = sub(x, y)
    low, high = bounds(difference)
    if high is not None and high < 0:
        return const(True, DType.BOOL)
    if low is not None and low >= 0:
        return const(False, DType.BOOL)
    right = const(y) if isinstance(y, int) else y
    return call("lt", x, right, dtype=DType.BOOL)


def turning_point(x: Expr, y: Expr, variable: Var) -> int | None:
    """The integer from which on, as a variable grows, x < y is no longer what it was below; None where that
    does not depend on the variable, or on something else, too.
    """
    if x.dtype is not DType.INT32:
        return None
    terms, base = _terms(sub(x, y))
    if set(terms) != {variable}:
        return None
    factor = terms[variable]
    return -(base // factor) if factor > 0 else base // -factor + 1


def flat(x: Load) -> Expr:
    """The load by position."""
    total = const(0)
    for i, stride in zip(x.index, strides_of(x.value.shape), strict=True):
        total = add(total, mul(i, stride))
    return cell(x.value, total)


def substitute(x: Expr, mapping: dict[Expr, Expr]) -> Expr:
    """x with every key replaced by its value; index arithmetic is brought to normal form again."""
    done: dict[Expr, Expr] = dict(mapping)
    for node in walk(x):
        if node not in done:
            done[node] = _rebuild(node, done)
    return done[x]


def flatten(x: Expr) -> Expr:
    """x with loads by position instead of by index."""
    done: dict[Expr, Expr] = {}
    for node in walk(x):
        fresh_node = _rebuild(node, done)
        done[node] = flat(fresh_node) if isinstance(fresh_node, Load) else fresh_node
    return done[x]


def _rebuild(node: Expr, done: dict[Expr, Expr]) -> Expr:
    if isinstance(node, Load):
        return load(node.value, tuple(done[i] for i in node.index))
    if isinstance(node, Cell):
        return cell(node.value, done[node.position])
    if isinstance(node, Reduce):
        return reduce(node.op, tuple(done.get(v, v) for v in node.over), done[node.body])
    if not isinstance(node, Call):
        return node
    args = tuple(done[a] for a in node.args)
    if node.op == "isum":
        total = args[-1]
        for atom, factor in zip(args[:-1:2], args[1::2], strict=False):
            assert isinstance(factor, Const)
            total = add(total, mul(atom, int(factor.value)))
        return total
    if node.op in ("idiv", "imod"):
        n = args[1]
        assert isinstance(n, Const)
        return floordiv(args[0], int(n.value)) if node.op == "idiv" else mod(args[0], int(n.value))
    if node.op == "select":
        return select(*args)
    if node.op == "and":
        return logical_and(*args)
    if node.op == "lt" and args[0].dtype is DType.INT32 and isinstance(args[1], Const):
        return less(args[0], int(args[1].value))
    known = _decided(node.op, args)
    if known is not None:
        return const(known, DType.BOOL)
    value = _folded(node.op, args, node.dtype)
    return call(node.op, *args, dtype=node.dtype) if value is None else const(value, node.dtype)


_EXACT: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "min": min, "max": max, "cast": lambda a: a,
}  # fmt: skip


def _folded(op: str, args: tuple[Expr, ...], dtype: DType) -> int | None:
    """The value of an operation on integers that are all known, where it does not wrap; else None.

    Such are made of constant indices: what clamps them, and what counts them from the end.
    """
    if op not in _EXACT or not all(
        isinstance(x, Const) and x.dtype.is_integer and not x.dtype.storage for x in args
    ):
        return None
    if not dtype.is_integer or dtype.storage:
        return None
    value = _EXACT[op](*(int(x.value) for x in args if isinstance(x, Const)))
    least, most = dtype.limits
    return value if least <= value <= most else None


def _decided(op: str, args: tuple[Expr, ...]) -> bool | None:
    """What a comparison of integers gives whatever their values, which compilers warn of (an unsigned number
    below 0); else None.
    """
    if op not in ("lt", "le", "eq") or not args[0].dtype.is_integer:
        return None
    (a, b), (c, d) = (
        (least if low is None else low, most if high is None else high)
        for (low, high), (least, most) in ((bounds(x), x.dtype.limits) for x in args)
    )
    if op == "eq":
        return False if b < c or d < a else None
    never, always = (a >= d, b < c) if op == "lt" else (a > d, b <= c)
    return True if always else False if never else None


def flatten_index(index: Index, shape: tuple[int, ...]) -> Expr:
    """Position of an index in a dense tensor."""
    total: Expr = const(0)
    for i, stride in zip(index, strides_of(shape), strict=True):
        total = add(total, mul(i, stride))
    return total


def unflatten(position: Expr, shape: tuple[int, ...]) -> Index:
    """Index in a dense tensor of the element at a position."""
    result: list[Expr] = []
    for extent, stride in zip(shape, strides_of(shape), strict=True):
        result.append(const(0) if extent <= 1 else mod(floordiv(position, max(stride, 1)), extent))
    return tuple(result)


def index_variables(shape: Sequence[int], prefix: str = "d") -> tuple[Expr, ...]:
    """One loop index for each dimension."""
    return tuple(var(f"{prefix}{k}", n) for k, n in enumerate(shape))


def dense_position(index: tuple[Expr, ...], shape: tuple[int, ...]) -> Expr:
    """Position of the element at an index in a dense tensor."""
    from aot_model.ir.index import flatten_index

    return flatten_index(index, shape)
