"""Options of custom operators of TFLite: a flexbuffer with a map of names to numbers, strings and lists of
them.
"""

from __future__ import annotations

from typing import Any

from flatbuffers import flexbuffers

from aot_model.ir.operator import OperatorError

MAX_OPTIONS = 1 << 16
"""Bytes: the reader trusts the offsets that it finds."""

DAMAGED = (
    IndexError,
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
    AttributeError,
    RecursionError,
    MemoryError,
)


class CustomOptions:
    """The map in the options of one operator."""

    def __init__(self, data: bytes) -> None:
        self._map: Any = None
        if not data:
            return
        if len(data) > MAX_OPTIONS:
            raise OperatorError(f"its options have {len(data)} bytes", "E102")
        try:
            root = flexbuffers.GetRoot(bytearray(data))
            self._map = root.AsMap if root.IsMap else None
        except DAMAGED:
            raise OperatorError("its options are not a flexbuffer", "E102") from None

    def _find(self, name: str) -> Any:
        if self._map is None:
            return None
        try:
            names = [k.AsKey for k in self._map.Keys]
            return self._map.Values[names.index(name)] if name in names else None
        except DAMAGED as error:
            raise OperatorError(f"option '{name}' cannot be read: {type(error).__name__}", "E102") from None

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number. OperatorError when it is missing and has no default."""
        found = self._number(name, default)
        if not -(2.0**63) <= found < 2.0**63:  # not a number neither
            raise OperatorError(f"option '{name}' is {found}, not a whole number", "E102")
        return int(found)

    def real(self, name: str, default: float | None = None) -> float:
        return float(self._number(name, default))

    def flag(self, name: str, default: bool | None = None) -> bool:
        return bool(self._number(name, default))

    def has(self, name: str) -> bool:
        return self._find(name) is not None

    def _number(self, name: str, default: float | None) -> float:
        found = self._find(name)
        try:
            if found is not None and found.IsNumeric:
                return float(found.AsFloat) if found.IsFloat else int(found.AsInt)
            if found is not None and found.IsBool:
                return bool(found.AsBool)
        except DAMAGED as error:
            raise OperatorError(f"option '{name}' cannot be read: {type(error).__name__}", "E102") from None
        if default is None:
            raise OperatorError(f"option '{name}' is missing", "E102")
        return default

    def text(self, name: str, default: str) -> str:
        found = self._find(name)
        try:
            return default if found is None else str(found.AsString)
        except DAMAGED as error:
            raise OperatorError(f"option '{name}' cannot be read: {type(error).__name__}", "E102") from None

    def integers(self, name: str) -> list[int]:
        """A list of whole numbers; a missing one is empty."""
        found = self._find(name)
        try:
            return [] if found is None else [int(v) for v in found.Value]
        except (*DAMAGED,) as error:
            raise OperatorError(f"option '{name}' cannot be read: {type(error).__name__}", "E102") from None
