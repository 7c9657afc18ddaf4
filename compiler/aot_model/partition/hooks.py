"""Calling what a target brings along: a hook that fails or returns nonsense is an error of the target, by
name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from aot_model.errors import CompileError, fail

if TYPE_CHECKING:
    from aot_model.ir.program import Device
    from aot_model.kernels.target import Target

T = TypeVar("T")
_STANDARD = frozenset(
    f"{h}.h"
    for h in "assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdarg stdbool stddef "  # noqa: E501
    "stdint stdio stdlib string tgmath time".split()
)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def wrong(target: Target, hook: str, what: str) -> CompileError:
    """The error of a hook: E502."""
    return fail("E502", f"target '{target.name}': {hook}: {what}")


def checked(target: Target, hook: str, call: Callable[[], T], *kinds: type) -> T:
    """What a hook returns, which is None or of one of these types if any are given. CompileError E502."""
    try:
        result = call()
    except CompileError:
        raise
    except Exception as error:
        raise fail(
            "E502", f"target '{target.name}': {hook} failed: {type(error).__name__}: {error}"
        ) from error
    if kinds and result is not None and not isinstance(result, kinds):
        raise wrong(
            target,
            hook,
            f"returned a {type(result).__name__}, not a {' or a '.join(k.__name__ for k in kinds)}",
        )
    return result


def identifier_of(target: Target, hook: str, what: str, name: object) -> str:
    """A name that is a C identifier. CompileError E502 when it is not."""
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
        raise wrong(target, hook, f"{what} {name!r} is not a C identifier")
    return name


def header_of(target: Target, hook: str, name: object) -> str:
    """A header as Function.includes has it: those of C by name, others in quotes. CompileError E502."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_./+-]+", name):
        raise wrong(target, hook, f"{name!r} is not the name of a header, without quotes")
    return name if name in _STANDARD or name.startswith("aot_model/") else f'"{name}"'


def check_device(target: Target, device: Device) -> None:
    """CompileError E502 when the names of a device cannot be written into C."""
    where = f"device '{device.name}'"
    identifier_of(target, where, "the name", device.name)
    header_of(target, where, device.header)
    for step in (device.activate, device.open, device.close, device.deactivate):
        if step is not None:
            identifier_of(target, where, "a function", step)
    if device.context is not None and not re.fullmatch(r"(struct )?[A-Za-z_][A-Za-z0-9_]*", device.context):
        raise wrong(
            target,
            where,
            f"the context type {device.context!r} is neither a type name nor 'struct' and a tag",
        )
