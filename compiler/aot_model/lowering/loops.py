"""Loop nests: the C function that stores a tensor expression.

Adjacent loops are merged where no access needs a division for it, so an element-wise chain over a 4-D tensor
is one loop over its elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from aot_model.c import float_vectors, integer_vectors, vector_nests
from aot_model.c.statements import CWriter
from aot_model.c.turns import is_better_whole, is_short
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, var, walk
from aot_model.ir.index import add, flatten, floordiv, mod, mul, substitute
from aot_model.ir.nibbles import element_text, read_parameter
from aot_model.ir.program import Access, Function, Overlap, Param
from aot_model.ir.values import Value

_VECTORS = (("INTEGER", integer_vectors.HEADER, vector_nests.vector_loops),
            ("FLOAT", float_vectors.HEADER, float_vectors.float_loops),
            ("FLOAT", float_vectors.HEADER, float_vectors.quantising_loops))  # fmt: skip
INDEX_NAMES = ("i", "j", "k", "l", "m", "n")


@dataclass(frozen=True)
class LoopNest:
    """A function, and the values that are its arguments after the output."""

    function: Function
    reads: tuple[Value, ...]
    overlaps: tuple[Overlap, ...]
    macs: int = 0
    operations: int = 0


def loop_nest(name: str,
              out: Value,
              index: tuple[Expr, ...],
              position: Expr,
              element: Expr,
              note: str = "",
              dialect: str = "scalar",
              turns: int = 1) -> LoopNest:
    """The function that does out[position] = element for all values of the index variables.

    position: where in `out` (elements) the element at `index` goes. dialect: the vectors of the target.
    turns: how many of a short loop are written one behind the other.
    """
    loops = [v for v in index if isinstance(v, Var)]
    element, position = flatten(element), position
    loops, position, element = _merge(loops, position, element)
    renamed = _canonical_names(loops, element)
    loops = [v for v in (renamed[v] for v in loops) if isinstance(v, Var)]
    position, element = substitute(position, renamed), substitute(element, renamed)

    reads = _memory_reads(element)
    names = {v: f"x{k}" if len(reads) > 1 else "x" for k, v in enumerate(reads)}
    headers: set[str] = set()
    writer = CWriter(lambda c, text: element_text(c, names[c.value], text, headers), turns=turns)

    def store(element: Expr, position: Expr) -> None:
        (text,) = writer.compute(element)
        writer.line(f"y[{writer.text(position)}] = {text};")

    writer.open_loops(loops[:-1])
    if loops:
        short = is_short(element) and not is_better_whole(loops[-1], element, position)
        writer.along(loops[-1], (element, position), store, turns if short else 1)
        writer.close_loops(len(loops) - 1)
    else:
        store(element, position)
    in_order = True
    for kind, header, vectors_of in _VECTORS if dialect == "mve" else ():
        vectors = vectors_of(loops, position, element, out.dtype, names)
        if vectors is None:
            parted = _parted(loops, position, element)
            vectors = vectors_of(*parted, out.dtype, names) if parted else None
        if vectors is not None:
            writer.lines[:] = [
                f"#if AOT_MODEL_{kind}_VECTORS", *vectors.lines, "#else", *writer.lines, "#endif"
            ]
            headers.add(header)
            in_order &= vectors.in_order
    params = (*(read_parameter(names[v], v) for v in reads), Param("y", out.dtype, Access.WRITE))
    function = Function(name, params, "\n".join(writer.lines), frozenset(writer.headers | headers), note=note)
    turns = math.prod(v.extent for v in loops)
    overlaps = tuple(_overlaps(reads, element, position, out, in_order))
    return LoopNest(function, reads, overlaps, turns * _macs(element), turns * _operations(element, 1, set()))


def _operations(x: Expr, turns: int, seen: set[Expr]) -> int:
    """Loads and operations of one element, those of a sum as often as it has terms; what is used twice counts
    once, indices of loads not at all.
    """
    count, waiting = 0, [x]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if isinstance(one, Reduce):
            inner = turns * math.prod(v.extent for v in one.over)
            count += inner + _operations(one.body, inner, seen)
            continue
        count += turns if isinstance(one, (Call, Cell)) else 0
        waiting += () if isinstance(one, Cell) else one.children
    return count


def _macs(element: Expr) -> int:
    """Multiply-accumulates of one element: the turns of sums over products of what is in memory."""
    sums = [n for n in walk(element) if isinstance(n, Reduce) and n.op == "add"]
    return sum(math.prod(v.extent for v in n.over) for n in sums if _is_product(n.body))


def _is_product(x: Expr) -> bool:
    if not isinstance(x, Call):
        return False
    if x.op == "select":  # padding
        return _is_product(x.args[1])
    return x.op == "mul" and all(
        isinstance(a, Cell) or (isinstance(a, Call) and a.op in ("cast", "sub", "select")) for a in x.args)


def _merge(loops: list[Var], position: Expr, element: Expr) -> tuple[list[Var], Expr, Expr]:
    """Merge neighbouring loops as long as no index needs more divisions than before."""
    k = len(loops) - 2
    cost = _divisions(position, element)
    while k >= 0:
        outer, inner = loops[k], loops[k + 1]
        joined = var(f"{outer.name}_{inner.name}", outer.extent * inner.extent)
        mapping: dict[Expr, Expr] = {outer: floordiv(joined, inner.extent), inner: mod(joined, inner.extent)}
        new_position, new_element = substitute(position, mapping), substitute(element, mapping)
        if _divisions(new_position, new_element) <= cost and isinstance(joined, Var):
            loops = [*loops[:k], joined, *loops[k + 2 :]]
            position, element = new_position, new_element
        k -= 1
    return loops, position, element


def _parted(loops: list[Var], position: Expr, element: Expr) -> tuple[list[Var], Expr, Expr] | None:
    """Loops in two where the index is read by its quotient and its remainder, as of channels that are
    shuffled; None where no loop is.
    """
    atoms = [n for x in (position, element) for n in walk(x)
             if isinstance(n, Call) and n.op in ("idiv", "imod")]  # fmt: skip
    found = False
    for v in tuple(loops):
        sizes = {int(n.args[1].value) for n in atoms if n.args[0] is v and isinstance(n.args[1], Const)}
        if len(sizes) != 1 or v.extent % min(sizes):
            continue
        size = sizes.pop()
        outer, inner = var(f"{v.name}_of", v.extent // size), var(f"{v.name}_in", size)
        mapping: dict[Expr, Expr] = {v: add(mul(outer, size), inner)}
        position, element = substitute(position, mapping), substitute(element, mapping)
        k, found = loops.index(v), True
        loops = [*loops[:k], *(n for n in (outer, inner) if isinstance(n, Var)), *loops[k + 1 :]]
    if not found:
        return None
    renamed = _canonical_names(loops, element)
    loops = [v for v in (renamed[v] for v in loops) if isinstance(v, Var)]
    return loops, substitute(position, renamed), substitute(element, renamed)


def _divisions(*expressions: Expr) -> int:
    return len({n for x in expressions for n in walk(x) if isinstance(n, Call) and n.op in ("idiv", "imod")})


def _canonical_names(loops: list[Var], element: Expr) -> dict[Expr, Expr]:
    """Names that do not depend on where the expression came from, so that equal loops are equal text."""
    mapping: dict[Expr, Expr] = {
        v: var(INDEX_NAMES[k] if k < len(INDEX_NAMES) else f"i{k}", v.extent) for k, v in enumerate(loops)
    }
    count = 0
    for node in walk(element):
        if isinstance(node, Reduce):
            for v in node.over:
                if v not in mapping:
                    mapping[v] = var(f"r{count}", v.extent)
                    count += 1
    return mapping


def _memory_reads(element: Expr) -> tuple[Value, ...]:
    """Values that an expression reads, in the order of reading."""
    return tuple(dict.fromkeys(n.value for n in walk(element) if isinstance(n, Cell)))


def _overlaps(reads: tuple[Value, ...], element: Expr, position: Expr, out: Value,
              in_order: bool) -> list[Overlap]:
    """Inputs that the output may overwrite: those read only at the element that is being written; in their
    very place alone where elements are stored in another order than that of memory.
    """
    if any(isinstance(n, Reduce) for n in walk(element)):
        return []
    result = []
    for k, value in enumerate(reads):
        if value.type.elements != out.type.elements:
            continue
        if all(n.position is position for n in walk(element) if isinstance(n, Cell) and n.value is value):
            slack = min(0, (value.dtype.size - out.dtype.size) * out.type.elements)
            if in_order:
                result.append(Overlap(k, len(reads), slack))
            elif value.dtype.size == out.dtype.size:
                result.append(Overlap(k, len(reads), 0, max(value.type.nbytes, 2)))
    return result
