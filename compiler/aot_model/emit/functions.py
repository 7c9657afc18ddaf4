"""Which C functions a program needs: equal functions once, pointers `restrict` where nothing overlaps.

Two calls share a function when text and parameters are equal and their arguments overlap in the same way.
Where an input lies exactly where the output does, the function has one pointer for both: the C compiler then
sees that element i is read before it is written, and keeps its vector code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from aot_model.ir.program import Access, Buffer, Call, Program, Role
from aot_model.partition.hooks import checked, wrong

if TYPE_CHECKING:
    from aot_model.kernels.target import Target
from aot_model.c.function import Aliasing, CFunction, alike


def collect_functions(
    program: Program, addresses: Mapping[Buffer, tuple[str, int]], prefix: str
) -> dict[Call, CFunction]:
    """The C function of each call, numbered in the order of first use."""
    known: dict[tuple[object, ...], CFunction] = {}
    result: dict[Call, CFunction] = {}
    for call in program.calls():
        f = call.function
        aliasing = Aliasing() if f.external else _aliasing(call, addresses)
        key = (
            f.name,
            f.params,
            f.body,
            f.includes,
            f.helpers,
            f.external,
            f.fails,
            f.device,
            f.owner,
            aliasing,
        )
        if key not in known:
            known[key] = CFunction(
                f.name if f.external else f"{prefix}_{len(known):02d}_{f.name}", f, aliasing, []
            )
        known[key].layers.append(call)
        result[call] = known[key]
    return result


def emitted_by_targets(target: Target, functions: Iterable[CFunction]) -> list[tuple[str, str]]:
    """(name of the target, C text) for each target that writes its functions itself. CompileError E502."""
    result = []
    for owner in target.asked():
        own = [f for f in functions if f.function.owner == owner.name]
        emit = owner.offloads.emit if owner.offloads is not None else None
        if not own or emit is None:
            continue
        text = checked(owner, "emit", partial(emit, own), str)
        missing = [f.name for f in own if text is None or not re.search(rf"\b{f.name}\s*\(", text)]
        if text is None or missing:
            raise wrong(owner, "emit", f"gives no text of {', '.join(missing)}")
        result.append((owner.name, text.rstrip("\n")))
    return result


def _span(buffer: Buffer, addresses: Mapping[Buffer, tuple[str, int]]) -> tuple[object, int, int]:
    """(memory, begin, end) of an argument. One without elements has an address too: it is as if it had a
    byte.
    """
    owner, begin = buffer.root()
    memory: object = owner
    if buffer in addresses:
        memory, begin = addresses[buffer]
    return memory, begin, begin + max(buffer.nbytes, 1)


def _aliasing(call: Call, addresses: Mapping[Buffer, tuple[str, int]]) -> Aliasing:
    params = call.function.params
    spans = [_span(b, addresses) for b in call.arguments]
    same: list[tuple[int, int]] = []
    shared: set[int] = set()
    retyped: set[int] = set()
    for o, writer in enumerate(params):
        if writer.access is Access.READ:
            continue
        for i, reader in enumerate(params):
            if i == o or call.arguments[i].root()[0].role is Role.CONSTANT:
                continue
            (pool_a, a, b), (pool_c, c, d) = spans[i], spans[o]
            if pool_a != pool_c or b <= c or d <= a:
                continue
            exact = a == c and reader.access is Access.READ and reader.element == writer.element
            if exact and not any(i == k for k, _ in same):
                same.append((i, o))
            else:
                shared.update((i, o))
                if not alike(reader.element, writer.element):
                    retyped.add(o)
    return Aliasing(tuple(same), frozenset(shared), frozenset(retyped))
