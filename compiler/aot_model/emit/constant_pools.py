"""Pools of flash: which array of constants goes where, and in which linker section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aot_model.errors import fail
from aot_model.ir.program import Buffer
from aot_model.memory import Pool


@dataclass(frozen=True)
class ConstantPool:
    """Arrays of constants that one section holds, bytes with the gaps between them."""

    name: str
    size: int
    align: int
    section: str | None
    buffers: tuple[Buffer, ...]


def place(
    constants: Iterable[Buffer], pools: Sequence[Pool], sections: Mapping[str, str]
) -> tuple[ConstantPool, ...]:
    """Each array, in the order in which the layers read them, to the most preferred pool that has room for
    it.

    CompileError E401 with a table when none has.
    """
    ranked = sorted(pools, key=lambda p: -p.speed)
    ends = dict.fromkeys(ranked, 0)
    inside: dict[Pool, list[Buffer]] = {p: [] for p in ranked}
    left = []
    for buffer in constants:
        for pool in ranked:
            end = _end(ends[pool], buffer, pool)
            if pool.size is None or end <= pool.size:
                ends[pool] = end
                inside[pool].append(buffer)
                break
        else:
            left.append(buffer)
    if left:
        rows = [f"  {b.name}: {b.nbytes} bytes" for b in left]
        rows += [f"  {p.name}: {(p.size or 0) - ends[p]} of {p.size} bytes free" for p in ranked]
        raise fail(
            "E401",
            "no constant pool has room for:\n" + "\n".join(rows),
            hint="give a pool more bytes, or another pool to spill into",
        )
    return tuple(
        ConstantPool(
            p.name,
            ends[p],
            max([p.align, *(b.align for b in inside[p])]),
            sections.get(p.name),
            tuple(inside[p]),
        )
        for p in pools
    )


def _end(at: int, buffer: Buffer, pool: Pool) -> int:
    align = max(buffer.align, pool.align)
    return -(-at // align) * align + buffer.nbytes
