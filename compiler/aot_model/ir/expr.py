"""Scalar expressions: what one element of a tensor is.

    element (i, j) of y  =  max(x[i, j] + b[j], 0)      Call("max", (Call("add", (Load(x, (i, j)), Load(b, (j,)))), 0))

Expressions are interned: equal expressions are one object, so a shared sub-expression is shared in memory and in the
emitted C, and substitution (fusion) is cheap. Index expressions are int32 and are kept in a normal form: a sum of
`coefficient * atom` plus a constant, where an atom is a variable, a floor division, a remainder or a value that is
read from memory. That form is what makes reshapes, transposes and slices cost nothing after substitution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from aot_model.ir.graph import Value
from aot_model.ir.types import DType, strides_of

Number = int | float | bool


@dataclass(frozen=True, eq=False)
class Expr:
    """A scalar of `dtype`. Interned: compare with `is`."""

    dtype: DType

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Const(Expr):
    value: Number


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A loop index in [0, extent)."""

    name: str
    extent: int


@dataclass(frozen=True, eq=False)
class Leaf(Expr):
    """A value computed elsewhere and known by a C name: an accumulator in a fused tail."""

    name: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """An element of a tensor in memory."""

    value: Value
    index: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.index


@dataclass(frozen=True, eq=False)
class Cell(Expr):
    """An element of a tensor in memory by its position; what a Load becomes before C is written."""

    value: Value
    position: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.position,)


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A scalar operation of the table in ir/scalar_ops.py."""

    op: str
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, eq=False)
class Reduce(Expr):
    """Fold of `body` over all values of `over`, with "add", "mul", "min", "max", "and" or "or"."""

    op: str
    over: tuple[Var, ...]
    body: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.body,)


_interned: dict[tuple[object, ...], Expr] = {}
_texts: dict[Expr, str] = {}
_fresh_count = 0
_table_limits: dict[Value, tuple[int, int]] = {}


def _intern(kind: type[Expr], *parts: object) -> Expr:
    key = (kind, *(("c", type(p), repr(p)) if isinstance(p, (int, float, bool)) else p for p in parts))
    found = _interned.get(key)
    if found is None:
        found = kind(*parts)  # type: ignore[arg-type]
        _interned[key] = found
    return found


def forget() -> None:
    """Drop the intern table; called between two compilations in one process. Variables are numbered anew."""
    global _fresh_count
    _interned.clear()
    _texts.clear()
    _table_limits.clear()
    _fresh_count = 0


def const(value: Number, dtype: DType = DType.INT32) -> Expr:
    if dtype.is_float:
        value = float(value)
    elif dtype is DType.BOOL:
        value = bool(value)
    else:
        value = int(value)
    return _intern(Const, dtype, value)


def var(name: str, extent: int) -> Expr:
    """The loop index `name`; an index over one element is the constant 0."""
    return const(0) if extent == 1 else _intern(Var, DType.INT32, name, extent)


def fresh(prefix: str, extent: int) -> Expr:
    """A loop index with a name that no other has."""
    global _fresh_count
    _fresh_count += 1
    return var(f"{prefix}{_fresh_count}", extent)


def leaf(name: str, dtype: DType, low: int | None = None, high: int | None = None) -> Expr:
    return _intern(Leaf, dtype, name, low, high)


def load(value: Value, index: tuple[Expr, ...]) -> Expr:
    assert len(index) == len(value.shape), f"{value} indexed with {len(index)} indices"
    return _intern(Load, value.dtype, value, index)


def cell(value: Value, position: Expr) -> Expr:
    return _intern(Cell, value.dtype, value, position)


def flat(x: Load) -> Expr:
    """The load by position."""
    total = const(0)
    for i, stride in zip(x.index, strides_of(x.value.shape), strict=True):
        total = add(total, mul(i, stride))
    return cell(x.value, total)


def reduce(op: str, over: tuple[Expr, ...], body: Expr) -> Expr:
    variables = tuple(v for v in over if isinstance(v, Var))
    return _intern(Reduce, body.dtype, op, variables, body) if variables else body


def call(op: str, *args: Expr, dtype: DType | None = None) -> Expr:
    """A data operation, without simplification. The type defaults to that of the first argument."""
    return _intern(Call, dtype or args[0].dtype, op, args)


def cast(x: Expr, dtype: DType) -> Expr:
    if x.dtype is dtype:
        return x
    if x.dtype.storage and dtype is not x.dtype.compute:
        return cast(cast(x, x.dtype.compute), dtype)
    if dtype.storage and x.dtype is not dtype.compute:
        # Floats become small integers by way of int32, so that they wrap as integers do.
        return cast(cast(cast(x, DType.INT32) if dtype.is_integer else x, dtype.compute), dtype)
    if isinstance(x, Const) and dtype is DType.FLOAT32 and x.dtype in (DType.INT32, DType.BOOL):
        return const(x.value, dtype)
    return call("cast", x, dtype=dtype)


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """`yes` where the condition holds, else `no`; only the chosen one is evaluated."""
    if isinstance(condition, Const):
        return yes if condition.value else no
    return yes if yes is no else call("select", condition, yes, no, dtype=yes.dtype)


def logical_and(a: Expr, b: Expr) -> Expr:
    for x, other in ((a, b), (b, a)):
        if isinstance(x, Const):
            return other if x.value else x
    return a if a is b else call("and", a, b, dtype=DType.BOOL)


# --- index arithmetic -----------------------------------------------------------------------------------------------


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
    # A stable order that does not hang on object identity: larger strides first, then the text.
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


def _reduced(rest: dict[Expr, int], base: int, n: int) -> tuple[Expr, int, int]:
    """Cancel a common divisor g of n and all coefficients: (x, g, base % g), rest + base = g * x + base % g."""
    g = math.gcd(n, *rest.values())
    return _from_terms({a: c // g for a, c in rest.items()}, base // g), g, base % g


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
    inner, g, r = _reduced(rest, r_base, n)
    if n // g == 1:
        return const(r)
    if isinstance(inner, Call) and inner.op == "imod":
        divisor = inner.args[1]
        assert isinstance(divisor, Const)
        if int(divisor.value) % (n // g) == 0:
            return add(mul(mod(inner.args[0], n // g), g), r)
    return add(mul(call("imod", inner, const(n // g), dtype=DType.INT32), g), r)


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


def bounds(x: Expr) -> tuple[int | None, int | None]:
    """Smallest and largest value of an integer expression, None where unknown."""
    if isinstance(x, Const):
        return (int(x.value), int(x.value)) if not isinstance(x.value, float) else (None, None)
    if isinstance(x, Var):
        return 0, x.extent - 1
    if isinstance(x, Leaf):
        return x.low, x.high
    if x.dtype.is_float:
        return None, None
    if isinstance(x, (Load, Cell)) and x.value.data is not None and x.value.data.size and x.dtype.is_integer:
        return _table_bounds(x.value)
    widest = x.dtype.limits if x.dtype.bits <= 16 else (None, None)
    if isinstance(x, Call) and x.op in _BOUNDS:
        low, high = _BOUNDS[x.op](x.args)
        least, most = x.dtype.limits
        wraps = (low is not None and low < least) or (high is not None and high > most)
        return widest if wraps or low is None or high is None else (low, high)
    return widest


def _table_bounds(value: Value) -> tuple[int, int]:
    """Smallest and largest element of a constant."""
    found = _table_limits.get(value)
    if found is None:
        assert value.data is not None
        found = _table_limits[value] = int(value.data.min()), int(value.data.max())
    return found


def _sum_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    base = args[-1]
    assert isinstance(base, Const)
    low: int | None = int(base.value)
    high = low
    for atom, factor in zip(args[:-1:2], args[1::2], strict=False):
        assert isinstance(factor, Const)
        c = int(factor.value)
        a, b = bounds(atom)
        if c < 0:
            a, b = b, a
        low = None if low is None or a is None else low + c * a
        high = None if high is None or b is None else high + c * b
    return low, high


def _div_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    n = args[1]
    assert isinstance(n, Const)
    low, high = bounds(args[0])
    return None if low is None else low // int(n.value), None if high is None else high // int(n.value)


def _mod_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    n = args[1]
    assert isinstance(n, Const)
    return 0, int(n.value) - 1


def _corner_bounds(f: Callable[[int, int], int]) -> Callable[[tuple[Expr, ...]], tuple[int | None, int | None]]:
    def rule(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
        (a, b), (c, d) = bounds(args[0]), bounds(args[1])
        if a is None or b is None or c is None or d is None:
            return None, None
        corners = [f(x, y) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)

    return rule


def _min_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    (a, b), (c, d) = bounds(args[0]), bounds(args[1])
    highs = [h for h in (b, d) if h is not None]
    return None if a is None or c is None else min(a, c), min(highs) if highs else None


def _max_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    (a, b), (c, d) = bounds(args[0]), bounds(args[1])
    lows = [v for v in (a, c) if v is not None]
    return max(lows) if lows else None, None if b is None or d is None else max(b, d)


def _union_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    (a, b), (c, d) = bounds(args[1]), bounds(args[2])
    return None if a is None or c is None else min(a, c), None if b is None or d is None else max(b, d)


def _cast_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    return bounds(args[0]) if not args[0].dtype.is_float else (None, None)


_BOUNDS: dict[str, Callable[[tuple[Expr, ...]], tuple[int | None, int | None]]] = {
    "isum": _sum_bounds,
    "idiv": _div_bounds,
    "imod": _mod_bounds,
    "add": _corner_bounds(lambda x, y: x + y),
    "sub": _corner_bounds(lambda x, y: x - y),
    "mul": _corner_bounds(lambda x, y: x * y),
    "min": _min_bounds,
    "max": _max_bounds,
    "select": _union_bounds,
    "cast": _cast_bounds,
}


# --- traversal ------------------------------------------------------------------------------------------------------


def walk(x: Expr) -> Iterator[Expr]:
    """Every distinct sub-expression, children first."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(x, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((c, False) for c in reversed(node.children))


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
    return call(node.op, *args, dtype=node.dtype)


def index_text(x: Expr) -> str:
    """A text that identifies an index expression; used for stable orders only. Long ones are cut to a digest."""
    if x not in _texts:
        text = _index_text(x)
        _texts[x] = text if len(text) <= 120 else f"{text[:40]}#{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return _texts[x]


def _index_text(x: Expr) -> str:
    if isinstance(x, Const):
        return str(x.value)
    if isinstance(x, (Var, Leaf)):
        return x.name
    if isinstance(x, Load):
        return f"{x.value.name}[{','.join(map(index_text, x.index))}]"
    if isinstance(x, Cell):
        return f"{x.value.name}[{index_text(x.position)}]"
    if isinstance(x, Call):
        return f"{x.op}({','.join(map(index_text, x.args))})"
    assert isinstance(x, Reduce)
    return f"{x.op}{{{index_text(x.body)}}}"
