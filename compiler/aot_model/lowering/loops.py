"""Loop nests: the C function that stores a tensor expression.

Adjacent loops are merged where no access needs a division for it, so an element-wise chain over a 4-D tensor
is one loop over its elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from aot_model.c.byte_pairs import BYTES, LANES
from aot_model.c.byte_pairs import HEADER as FOURS
from aot_model.c.lane_folds import VECTORS
from aot_model.c.reading_order import step_of
from aot_model.c.statements import CWriter
from aot_model.c.turns import is_better_whole, is_short
from aot_model.c.vectors import vectors
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, reduce, var, walk
from aot_model.ir.index import add, flatten, floordiv, mod, mul, substitute
from aot_model.ir.nibbles import element_text, read_parameter
from aot_model.ir.program import Access, Function, Overlap, Param
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.lowering.sections import Section, sections

INDEX_NAMES = ("i", "j", "k", "l", "m", "n")


@dataclass(frozen=True)
class LoopNest:
    """A function, and the values that are its arguments after the output."""

    function: Function
    reads: tuple[Value, ...]
    overlaps: tuple[Overlap, ...]
    macs: int = 0
    operations: int = 0


def loop_nest(
    name: str,
    out: Value,
    index: tuple[Expr, ...],
    position: Expr,
    element: Expr,
    note: str = "",
    dialect: str = "scalar",
    turns: int = 1,
) -> LoopNest:
    """The function that does out[position] = element for all values of the index variables.

    position: where in `out` (elements) the element at `index` goes. dialect: the vectors of the target.
    turns: how many of a short loop are written one behind the other.
    """
    whole = _named(_merged(Section([v for v in index if isinstance(v, Var)], position, flatten(element))))
    parts = sections(whole)
    reads = _memory_reads(whole.element)
    names = {v: f"x{k}" if len(reads) > 1 else "x" for k, v in enumerate(reads)}
    alone = len(parts) == 1
    nests = parts if alone else [_named(_merged(p)) for p in parts]
    written = [_written(nest, out.dtype, names, dialect, turns) for nest in nests]
    params = (*(read_parameter(names[v], v) for v in reads), Param("y", out.dtype, Access.WRITE))
    headers = frozenset(header for nest in written for header in nest.headers)
    function = Function(name, params, "\n".join(_body(written)), headers, note=note)
    elements, element = math.prod(v.extent for v in whole.loops), whole.element
    overlaps = tuple(
        _overlaps(reads, element, whole.position, out, alone and written[0].in_order, dialect in VECTORS)
    )
    return LoopNest(
        function, reads, overlaps, elements * _macs(element), elements * _operations(element, 1, set())
    )


@dataclass(frozen=True)
class _Written:
    """C of a nest, and what it includes; also in vectors of a kind, where they can do it. in_order: whether
    elements are stored in the order of the loops.
    """

    lines: list[str]
    headers: set[str]
    kind: str = ""
    vectors: list[str] | None = None
    in_order: bool = True


def _written(part: Section, to: DType, names: dict[Value, str], dialect: str, turns: int) -> _Written:
    headers: set[str] = set()
    parted = _parted(part)
    loops, position, element = _folds_parted(
        parted if parted and not _divisions(parted.element) else part, turns
    )
    writer = CWriter(
        lambda c, text: element_text(c, names[c.value], text, headers), turns=turns, lanes=dialect in VECTORS
    )

    short = bool(loops) and is_short(element, turns, loops[-1])
    short = short and not is_better_whole(loops[-1], element, position)
    fours = short and turns == len(LANES) and to in BYTES and step_of(position, loops[-1]) == 1
    waiting: list[tuple[str, str, str]] = []
    uncast = fours and loops[-1] in walk(element)  # what is the same in all turns has a name as it is

    def store(element: Expr, position: Expr) -> None:
        wide = element.args[0] if uncast and isinstance(element, Call) and element.op == "cast" else element
        wide = wide if wide.dtype is DType.INT32 else element
        writer.compute(wide)
        waiting.append((writer.text(position), writer.text(wide), writer.text(element)))
        if fours and len(waiting) == len(LANES):
            writer.headers.add(FOURS)
            writer.line(f"dsp_put_four(&y[{waiting[0][0]}], {', '.join(text for _, text, _ in waiting)});")
            waiting.clear()
        elif not fours:
            put()

    def put() -> None:
        for at, _, text in waiting:
            writer.line(f"y[{at}] = {text};")
        waiting.clear()

    for k, v in enumerate(loops[:-1]):
        writer.divisors(element, loops[:k])
        writer.open_loops([v])
    if loops:
        writer.divisors(element, loops[:-1])
        writer.steady(element, loops[-1:])
        writer.along(loops[-1], (element, position), store, turns if short else 1)
        put()
        writer.close_loops(len(loops) - 1)
    else:
        store(element, position)
    headers |= writer.headers
    if dialect == "mve":
        found = vectors(*part, to, names) or (vectors(*parted, to, names) if parted else None)
        if found is not None:
            return _Written(
                writer.lines, headers | {found.header}, found.kind, found.nest.lines, found.nest.in_order
            )
    return _Written(writer.lines, headers)


def _body(nests: list[_Written]) -> list[str]:
    """C of nests that are one function; those without vectors stand for themselves among vectors, too."""
    plain = _joined([n.lines for n in nests])
    kinds = {n.kind for n in nests if n.vectors is not None}
    if not kinds:
        return plain
    kind = "FLOAT" if "FLOAT" in kinds else "INTEGER"  # who has those of floats has both
    vectors = _joined([n.lines if n.vectors is None else n.vectors for n in nests])
    return [f"#if AOT_MODEL_{kind}_VECTORS", *vectors, "#else", *plain, "#endif"]


def _joined(nests: list[list[str]]) -> list[str]:
    """Nests in a row; what has names outside of its loops has a block for them."""
    if len(nests) == 1:
        return nests[0]
    return [line for nest in nests for line in (nest if _nameless(nest) else _block(nest))]


def _nameless(nest: list[str]) -> bool:
    """Whether there are loops and stores alone, beside each other."""
    outer = (line for line in nest if not line.startswith(" " * 8))
    return all(line.startswith(("    for (", "    }", "    y[")) for line in outer)


def _block(lines: list[str]) -> list[str]:
    return ["    {", *(f"    {line}" for line in lines), "    }"]


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
        isinstance(a, Cell) or (isinstance(a, Call) and a.op in ("cast", "sub", "select")) for a in x.args
    )


def _merged(nest: Section) -> Section:
    """Neighbouring loops become one as long as no index needs more divisions than before."""
    loops, position, element = nest
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
    return Section(loops, position, element)


def _parted(nest: Section) -> Section | None:
    """Loops in several where the index is read by quotients and remainders, as of channels that are shuffled
    or of a tensor that gets another shape; None where that leaves as many divisions.
    """
    loops, position, element = nest
    before = _divisions(position, element)
    waiting = list(loops)
    while waiting:
        v = waiting.pop()
        sizes = [s for s in _parts(v, position, element) if s < v.extent and v.extent % s == 0]
        if not sizes:
            continue
        outer, inner = var(f"{v.name}_of", v.extent // max(sizes)), var(f"{v.name}_in", max(sizes))
        mapping: dict[Expr, Expr] = {v: add(mul(outer, max(sizes)), inner)}
        position, element = substitute(position, mapping), substitute(element, mapping)
        parts = [n for n in (outer, inner) if isinstance(n, Var)]
        k = loops.index(v)
        loops, waiting = [*loops[:k], *parts, *loops[k + 1 :]], [*waiting, *parts]
    fewer = _divisions(position, element) < before
    return _named(Section(loops, position, element)) if fewer else None


def _folds_parted(nest: Section, turns: int) -> Section:
    """As `_parted`, of the loops of reductions: those that are written out turn by turn have no divisions."""
    loops, position, element = nest
    waiting = [n for n in walk(element) if isinstance(n, Reduce)]
    changed: dict[Expr, Expr] = {}
    for node in waiting:  # those inside come first
        body, over = substitute(node.body, changed), list(node.over)
        k = 0
        while k < len(over):
            v = over[k]
            sizes = [s for s in _parts(v, body) if s < v.extent and v.extent % s == 0]
            if not sizes or v.extent <= turns:
                k += 1
                continue
            size = max(sizes)
            outer, inner = var(f"{v.name}_of", v.extent // size), var(f"{v.name}_in", size)
            body = substitute(body, {v: add(mul(outer, size), inner)})
            over = [*over[:k], *(n for n in (outer, inner) if isinstance(n, Var)), *over[k + 1 :]]
        changed[node] = reduce(node.op, tuple(over), body)
    return _named(Section(loops, position, substitute(element, changed))) if changed else nest


def _parts(v: Var, *expressions: Expr) -> set[int]:
    """The numbers by which a variable is divided, or its quotients are."""
    of: dict[Expr, int] = {v: 1}
    sizes = set()
    for x in expressions:
        for n in walk(x):  # arguments come first
            if isinstance(n, Call) and n.op in ("idiv", "imod") and isinstance(n.args[1], Const):
                size = of.get(n.args[0], 0) * int(n.args[1].value)
                sizes |= {size} - {0}
                if n.op == "idiv":
                    of[n] = size
    return sizes


def _divisions(*expressions: Expr) -> int:
    return len({n for x in expressions for n in walk(x) if isinstance(n, Call) and n.op in ("idiv", "imod")})


def _named(nest: Section) -> Section:
    """With names that do not depend on where the expression came from, so that equal loops are equal text."""
    loops, position, element = nest
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
    loops = [v for v in (mapping[v] for v in loops) if isinstance(v, Var)]
    return Section(loops, substitute(position, mapping), substitute(element, mapping))


def _memory_reads(element: Expr) -> tuple[Value, ...]:
    """Values that an expression reads, in the order of reading."""
    return tuple(dict.fromkeys(n.value for n in walk(element) if isinstance(n, Cell)))


def _has_short_floats(*values: Value) -> bool:
    return any(v.dtype.is_float and v.dtype.bits < 32 for v in values)


def _overlaps(
    reads: tuple[Value, ...], element: Expr, position: Expr, out: Value, in_order: bool, vectors: bool
) -> list[Overlap]:
    """Inputs that the output may overwrite: those read only at the element that is being written; in their
    very place alone where elements are stored in another order than that of memory. vectors: compilers make
    vectors of loops whose memory is apart, or the same; a conversion of short floats takes ten times as long
    without.
    """
    if any(isinstance(n, Reduce) for n in walk(element)):
        return []
    result = []
    for k, value in enumerate(reads):
        if value.type.elements != out.type.elements:
            continue
        if vectors and value.dtype.size != out.dtype.size and _has_short_floats(value, out):
            continue
        if all(n.position is position for n in walk(element) if isinstance(n, Cell) and n.value is value):
            slack = min(0, (value.dtype.size - out.dtype.size) * out.type.elements)
            if in_order:
                result.append(Overlap(k, len(reads), slack))
            elif value.dtype.size == out.dtype.size:
                result.append(Overlap(k, len(reads), 0, value.type.nbytes))
    return result
