"""The planner's question and its answer: blocks of bytes with live ranges in, offsets in pools out.

Steps are the positions of the calls in the program. A range [first, last] is inclusive at both ends: a
result that is written by call 3 and last read by call 7 is live over [3, 7].
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A contiguous buffer: `size` bytes at a multiple of `align` (a power of two), live over steps [first,
    last].

    `pools` are the candidates in order of preference; empty means every pool in declared order.
    """

    id: str
    size: int
    align: int
    first: int
    last: int
    pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overlap:
    """Permission for `late` to be written over `early` at the step where one dies and the other is born.

    It holds when `early.last == late.first` and both are in one pool: then they may share bytes as long as
    `offset(late) - offset(early) <= slack`. In terms of the kernel: before it writes byte i of `late` it has
    read every byte of `early` up to and including i + slack. So 0 is an element-wise operation in place; -k
    says that `late` must begin k bytes before `early` (the kernel still needs k bytes that it has passed); +k
    that it may begin as much as k bytes after it. Everything else that is live keeps its distance.
    """

    early: str
    late: str
    slack: int = 0


@dataclass(frozen=True)
class View:
    """`child` is the bytes [offset, offset + child.size) of `parent`: slice, reshape, or a piece of a
    concatenation.

    Views chain. The bytes of the child are live over the hull of the child's and the parent's ranges; the
    rest of the parent over the parent's own range alone, so that the free part of a concatenation
    that is still growing, or of a tensor of which only a slice is still read, is used by other blocks.
    """

    child: str
    parent: str
    offset: int = 0


@dataclass(frozen=True)
class Pool:
    """A memory region: at most `size` bytes (None: no limit), based at a multiple of `align`.

    speed: its class; pools of a higher one are preferred, and those of one class in the order in which they
    are given. targets: names of those that may touch it; empty: all.
    """

    name: str
    size: int | None = None
    align: int = 16
    speed: int = 0
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement:
    """Where a block lies: `offset` bytes from the base of `pool`."""

    pool: str
    offset: int


@dataclass(frozen=True)
class Unplaced:
    """A row of PlanError: a block for which no candidate pool had room.

    `tried` holds (pool, its size limit, the largest gap that is free during the whole live range), in bytes.
    """

    block: str
    size: int
    first: int
    last: int
    tried: tuple[tuple[str, int | None, int], ...]


class PlanError(Exception):
    """The blocks do not fit in the pools. `rows` has every block that was left over."""

    def __init__(self, rows: tuple[Unplaced, ...]) -> None:
        self.rows = rows
        super().__init__(self._table())

    def _table(self) -> str:
        lines = [f"no room for {len(self.rows)} block{'s' if len(self.rows) != 1 else ''} in the given pools"]
        for row in self.rows:
            pools = ", ".join(f"{pool} has {free} of {limit} bytes free" for pool, limit, free in row.tried)
            lines.append(f"  {row.block}: {row.size} bytes, live over steps {row.first}..{row.last}; {pools}")
        return "\n".join(lines)
