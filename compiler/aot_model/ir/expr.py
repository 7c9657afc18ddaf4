"""Scalar expressions: what one element of a tensor is.

    element (i, j) of y  =  max(x[i, j] + b[j], 0)      Call("max", (Call("add", (Load(x, (i, j)), Load(b,
                         (j,)))), 0))

Expressions are interned: equal expressions are one object, so a shared sub-expression is shared in memory and
in the emitted C, and substitution (fusion) is cheap. Index expressions are int32 and are kept in a normal
form: a sum of `coefficient * atom` plus a constant, where an atom is a variable, a floor division, a
remainder or a value that is read from memory. That form is what makes reshapes, transposes and slices cost
nothing after substitution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from aot_model.ir.admissible import clear_wanted
from aot_model.ir.types import DType
from aot_model.ir.values import Value

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """PEP 681, for type checkers alone."""
        return lambda function: function


Number = int | float | bool | bytes


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


def _intern(kind: type[Expr], *parts: object) -> Expr:
    key = (kind, *(("c", type(p), repr(p)) if isinstance(p, (int, float, bool)) else p for p in parts))
    found = _interned.get(key)
    if found is None:
        found = kind(*parts)  # type: ignore[arg-type]
        _interned[key] = found
    return found


def clear_interned() -> None:
    """Drop the intern table; called between two compilations in one process. Variables are numbered anew."""
    global _fresh_count
    _interned.clear()
    _texts.clear()
    _fresh_count = 0
    clear_wanted()


def const(value: Number, dtype: DType = DType.INT32) -> Expr:
    if dtype.is_float:
        value = float(value)
    elif dtype is DType.BOOL:
        value = bool(value)
    elif dtype.is_string:
        value = value or b""
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


def reduce(op: str, over: tuple[Expr, ...], body: Expr) -> Expr:
    variables = tuple(v for v in over if isinstance(v, Var))
    return _intern(Reduce, body.dtype, op, variables, body) if variables else body


_OF_ITSELF = {"lt": False, "le": True, "eq": True}


def call(op: str, *args: Expr, dtype: DType | None = None) -> Expr:
    """A data operation. The type defaults to that of the first argument. Nothing is simplified but what C
    compilers warn of: numbers (no NaN) compared with themselves.
    """
    if op in _OF_ITSELF and args[0] is args[1] and not args[0].dtype.is_float:
        return const(_OF_ITSELF[op], DType.BOOL)
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


def index_text(x: Expr) -> str:
    """A text that identifies an index expression; used for stable orders only. Long ones are cut to a
    digest.
    """
    if x not in _texts:
        text = _index_text(x)
        _texts[x] = (
            text
            if len(text) <= 120
            else f"{text[:40]}#{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        )
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


Index = tuple[Expr, ...]
