"""What a target that takes over parts of a model says of itself: which parts, and what becomes of them.

Each hook is called with what its type says; what it returns is checked, and an exception in it becomes an
error that names the target and the hook. docs/targets.md goes through them with an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aot_model.ir.pattern import Pattern
from aot_model.ir.program import Device
from aot_model.ir.values import Value

if TYPE_CHECKING:
    from aot_model.c.function import CFunction
    from aot_model.kernels.target import Target
    from aot_model.partition.region import Match, Region


@dataclass(frozen=True)
class Claim:
    """A pattern that a target takes over. `check` says why it does not take a match, None when it does."""

    name: str
    pattern: Pattern
    check: Callable[[Match, Target], str | None] = lambda match, target: None


@dataclass(frozen=True)
class Source:
    """A region as C text that defines `function`, with pointers to the region's inputs, outputs and scratch,
    and the context of the target's device, in this order.

    text: without #include; `function` is static, or declared in one of `includes` when the text is empty.
    scratch, align: bytes. fails: it returns an int32_t, 0 when all is well.
    """

    text: str
    function: str
    includes: tuple[str, ...] = ()
    scratch: int = 0
    align: int = 4
    fails: bool = False


@dataclass(frozen=True)
class Blob:
    """A region as bytes, and the function that interprets them, which `header` declares:

        int32_t function(const uint8_t *blob, uint32_t size, const void *const *inputs, void *const *outputs,
        uint8_t *scratch);

    with the context of the target's device behind them. scratch, align: bytes; scratch is NULL when there is
    none. The blob is aligned as well.
    """

    data: bytes
    function: str
    header: str
    scratch: int = 0
    align: int = 16


@dataclass(frozen=True)
class Offload:
    """How a target takes over parts of a model. One of `lower` and `compile_region` is needed.

    patterns: in order of preference. keep: composite operators that the patterns want whole (`Softmax`,
    `Gemm` …): they are expanded only where no pattern took them. merge: whether regions that touch become
    one. constants_as_inputs: constants are inputs of the region, not in it.
    """

    patterns: tuple[Claim, ...]
    lower: Callable[[Region, Any], None] | None = None
    """Adds the calls of a region at its RegionSite (lower.py)."""
    compile_region: Callable[[Region], Source | Blob] | None = None
    emit: Callable[[Sequence[CFunction]], str] | None = None
    """C text that defines functions: each has a signature(), and in `function` its body, parameters and note.
    """
    update_constants: Callable[[Region], Mapping[Value, Value | None]] | None = None
    """By constant of the region: what takes its place in memory, None when nothing does."""
    keep: frozenset[str] = frozenset()
    merge: bool = True
    constants_as_inputs: bool = False
    device: Device | None = None
