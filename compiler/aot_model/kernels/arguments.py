"""From what a kernel names to parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aot_model.ir.admissible import ANYTHING, beyond_type
from aot_model.ir.operator import OperatorError
from aot_model.ir.program import Access, Buffer, Param, Role
from aot_model.ir.strided import Strided
from aot_model.ir.types import MAX_BYTES, DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.base import Packed, Scratch


@dataclass(frozen=True)
class Argument:
    """A pointer parameter of a function: its name in the body and the memory behind it."""

    name: str
    memory: Value | Strided | Packed | Scratch
    access: Access = Access.READ


def written(name: str, value: Value) -> Argument:
    """A parameter that the function writes (and may read back)."""
    return Argument(name, value, Access.WRITE)


def scratch_buffer(name: str, piece: Scratch) -> Buffer:
    """Memory that is used during one call. OperatorError when it is too large to be indexed by int32."""
    if piece.nbytes > MAX_BYTES:
        raise OperatorError(f"{piece.nbytes:,} bytes of memory while it runs are too many", "E202")
    return Buffer(name, TensorType(DType.UINT8, (piece.nbytes,)), Role.WORKSPACE, align=piece.align)


def _safe(piece: Packed) -> Packed:
    """OperatorError where a constant is not what its code relies on; a file of parameters with it is refused
    when it is opened.
    """
    dtype = DType.of(piece.data.dtype)
    for r in beyond_type(piece.admissible or ANYTHING, dtype) if dtype.is_integer else ():
        if not r.holds(piece.data):
            raise OperatorError(
                f"a number of its {piece.name} is not from {r.low} to {r.high}, on which its code relies",
                "E302",
                "quantise the model again",
            )
    return piece


def bound(
    arguments: Sequence[Argument],
    place: Callable[[Value | Strided], Buffer],
    pack: Callable[[str, Packed], Buffer],
    prefix: str,
) -> tuple[tuple[Param, ...], tuple[Buffer, ...]]:
    """Parameters and buffers. place: memory of a value; pack: memory of a constant, by a name that begins
    with `prefix`. OperatorError when a constant is not what its code relies on, or memory is too large.
    """
    params: list[Param] = []
    buffers: list[Buffer] = []
    for a in arguments:
        m = a.memory
        if isinstance(m, Scratch):
            params.append(Param(a.name, DType.UINT8, Access.SCRATCH, m.ctype))
            buffers.append(scratch_buffer(f"{prefix}_{a.name}", m))
        elif isinstance(m, Packed):
            params.append(Param(a.name, DType.of(m.data.dtype), Access.READ))
            buffers.append(pack(f"{prefix}_{a.name}", _safe(m)))
        else:
            params.append(Param(a.name, m.dtype if isinstance(m, Value) else m.source.dtype, a.access))
            buffers.append(place(m))
    return tuple(params), tuple(buffers)


def shapes_of(arguments: Sequence[Argument]) -> str:
    """Types of the values that are read and written, for reports."""
    types = {
        access: ", ".join(
            str(a.memory.type) for a in arguments if isinstance(a.memory, Value) and a.access is access
        )
        for access in Access
    }
    return f"{types[Access.READ]} -> {types[Access.WRITE]}"
