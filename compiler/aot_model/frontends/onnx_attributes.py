"""Attributes of ONNX nodes as the fields of our operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from aot_model.c.names import printable
from aot_model.frontends.onnx_words import words_of
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.types import DType


def plain(raw: Any) -> Any:
    """An attribute's value: text for bytes, tuples for lists."""
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace")
    if isinstance(raw, (list, tuple)) or type(raw).__name__.startswith("Repeated"):
        return tuple(plain(v) for v in raw)
    return raw


def make_operator(
    cls: type[Operator], attributes: dict[str, Any], element_type: Callable[[int], DType], strings: DType
) -> Operator:
    """The operator with ONNX attributes; OperatorError for one that it does not know or that is missing.

    element_type: the type of an ONNX code (KeyError, TypeError or ValueError when there is none); strings:
    that of strings.
    """
    known = {f.name: f for f in fields(cls)}
    given: dict[str, Any] = {}
    for name, value in attributes.items():
        if name not in known:
            raise OperatorError(f"attribute '{printable(name)}' is not supported", "E202")
        declared = str(known[name].type)
        if declared.startswith("DType"):
            try:
                value = element_type(value)
            except (KeyError, TypeError, ValueError):
                value = printable(str(value))
                raise OperatorError(
                    f"attribute '{name}' names the element type {value}, which is not supported", "E202"
                ) from None
        elif not _fits(declared, value):
            raise OperatorError(f"attribute '{name}' is {printable(repr(value))}, not {declared}")
        words = words_of(cls.name, name)
        if words and value not in words:
            raise OperatorError(
                f"attribute '{name}' is {printable(repr(value))}, not one of {', '.join(filter(None, words))}"
            )
        given[name] = value
    if "string_type" in known:
        given["string_type"] = strings
    missing = [
        n
        for n, f in known.items()
        if n not in given and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        raise OperatorError(f"attribute '{missing[0]}' is missing")
    return cls(**given)


_ATTRIBUTE_TYPES: dict[str, type | tuple[type, ...]] = {"float": (float, int), "int": int, "str": str}


def _fits(declared: str, value: Any) -> bool:
    """Whether the value of an ONNX attribute is of the type that the operator's field declares."""
    name = declared.removesuffix(" | None").replace("Ints", "tuple[int, ...]")
    if name.startswith("tuple["):
        item = _ATTRIBUTE_TYPES.get(name[6:-6], object)
        return isinstance(value, tuple) and all(isinstance(v, item) for v in value)
    return isinstance(value, _ATTRIBUTE_TYPES.get(name, object))
