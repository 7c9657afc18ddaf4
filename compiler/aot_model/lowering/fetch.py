"""Weights that come to the workspace while the layers before compute.

    fetch w2                    begins a copy, which DMA makes, or whatever the program has
    layer 1
    wait for w2, fetch w3
    layer 2                     reads the copy of w2
    wait for w3
    layer 3

One copy of a run is under way at a time: it begins when the one before is complete, and behind the last step
that can end the run with an error, so that none is left under way. What then has nothing before it, as the
first layer, reads its weights where they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from aot_model.ir.program import Access, Buffer, Call, Function, Param, Program, Role, Step, walk_calls
from aot_model.ir.types import DType, TensorType

FETCH = "Fetch"
"""Operator of the calls that begin a copy."""
LEAST = 512
"""Bytes from which on a copy is worth its calls."""
LINE = 32
"""Bytes of a line of a data cache: a copy is whole lines, so that they can be invalidated."""
_COPY = Param("to", DType.UINT8, Access.WRITE, "void")


@dataclass(frozen=True)
class Fetched:
    """A call of the run and its largest constant, which it is to read from a copy."""

    step: int
    earliest: int
    """The step before which its copy may begin."""
    call: Call
    constant: Buffer

    @property
    def room(self) -> int:
        """Bytes of the copy in the workspace."""
        return -(-self.constant.nbytes // LINE) * LINE


def fetch(program: Program, most: int, library: str) -> None:
    """Let calls read weights from copies that at no time take more than `most` bytes.

    library: prefix of the functions <library>_fetch() and <library>_fetched().
    """
    before: dict[int, list[Step]] = defaultdict(list)
    free = 0
    for found in _chosen(_candidates(program), most):
        begin = _begin(found, library)
        copy = begin.arguments[1]
        before[max(free, found.earliest)].append(begin)
        before[found.step].append(_wait(found, copy, library))
        found.call.arguments = tuple(copy if b is found.constant else b for b in found.call.arguments)
        free = found.step
    program.body = [s for at, step in enumerate(program.body) for s in (*before[at], step)]


def _candidates(program: Program) -> list[Fetched]:
    """Calls that multiply with a constant which no other argument is or looks into. A table of which a call
    reads few elements is none: it takes no products.
    """
    readers = Counter(b.root()[0] for call in program.calls() for b in call.arguments)
    found, earliest = [], 0
    for k, call in enumerate(program.body):
        begins = earliest
        if any(c.function.fails or c.function.device is not None for c in walk_calls([call])):
            earliest = k + 1
        if begins == k or not isinstance(call, Call) or call.target or call.function.owner or not call.macs:
            continue
        own = [
            b
            for p, b in zip(call.function.params, call.arguments, strict=True)
            if b.role is Role.CONSTANT and b.view_of is None and readers[b] == 1 and p.access is Access.READ
        ]
        largest = max(own, key=lambda b: b.nbytes, default=None)
        if largest is not None and largest.nbytes >= LEAST:
            found.append(Fetched(k, begins, call, largest))
    return found


def _chosen(found: Sequence[Fetched], most: int) -> list[Fetched]:
    """Those with the most bytes in all of which no two that follow each other take more than `most`: the
    second is copied while the first is read.
    """
    best: list[tuple[int, list[Fetched]]] = []
    """By candidate: the most bytes of those up to it, itself among them, and which these are."""
    for one in found:
        before = [made for made in best if made[1] and made[1][-1].room + one.room <= most]
        nbytes, chain = max(before, key=lambda made: made[0], default=(0, []))
        best.append((nbytes + one.room, [*chain, one]) if one.room <= most else (0, []))
    return max(best, key=lambda made: made[0], default=(0, []))[1]


def _begin(found: Fetched, library: str) -> Call:
    copy = Buffer(
        f"{found.constant.name}_fetched", TensorType(DType.UINT8, (found.room,)), Role.WORKSPACE, align=LINE
    )
    params = (Param("from", DType.UINT8, Access.READ, "void"), _COPY)
    function = Function("fetch", params, f"{library}_fetch(to, from, {found.constant.nbytes}u);\n")
    return Call(function, (found.constant, copy), layer=found.call.layer, op=FETCH)


def _wait(found: Fetched, copy: Buffer, library: str) -> Call:
    function = Function("fetched", (_COPY,), f"{library}_fetched(to, {found.constant.nbytes}u);\n")
    return Call(function, (copy,), layer=found.call.layer, op="Wait")
