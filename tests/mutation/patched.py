"""A mutant inside of functions, in a process that has loaded the compiler: their code is exchanged in place.

Loading the compiler and the samples takes longer than most mutants need to be caught. Whoever holds such a
function holds the changed one. What is computed when a module is loaded (tables, classes, defaults of
arguments) cannot be changed so.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


def patch(module_name: str, before: str, after: str) -> bool:
    """Make the functions of a loaded module those of another text. False, and nothing, where more differs."""
    module = sys.modules.get(module_name)
    if module is None or module.__file__ is None:
        return False
    changed = _changed(compile(before, module.__file__, "exec"), compile(after, module.__file__, "exec"))
    if changed is None:
        return False
    found = [(_function(module, path), code) for path, code in changed.items()]
    if any(f is None or len(f.__code__.co_freevars) != len(c.co_freevars) for f, c in found):
        return False
    for function, code in found:
        assert function is not None
        function.__code__ = code
    return True


def _changed(
    old: CodeType, new: CodeType, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], CodeType] | None:
    """The functions that differ, by the names that lead to them; None where a module's own code does."""
    if _own(old) != _own(new):
        return None
    found: dict[tuple[str, ...], CodeType] = {}
    for a, b in zip(_inner(old), _inner(new), strict=True):
        if _same(a, b):
            continue
        here = (*path, a.co_name)
        if a.co_flags & 0x2:  # CO_NEWLOCALS: a function, with all that is inside of it
            if not a.co_name.isidentifier():
                return None
            found[here] = b
            continue
        inner = _changed(a, b, here)
        if inner is None:
            return None
        found.update(inner)
    return found


def _inner(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _own(code: CodeType) -> tuple[Any, ...]:
    """What code is apart from the functions in it, and from line numbers."""
    constants = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, len(_inner(code))


def _same(a: CodeType, b: CodeType) -> bool:
    return _own(a) == _own(b) and all(map(_same, _inner(a), _inner(b)))


def _function(owner: Any, path: tuple[str, ...]) -> FunctionType | None:
    """The function of a name, without what decorates it."""
    for name in path[:-1]:
        owner = vars(owner).get(name)
        if not isinstance(owner, type):
            return None
    found: Any = vars(owner).get(path[-1])
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        elif isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        elif isinstance(getattr(found, "__wrapped__", None), Callable):  # type: ignore[arg-type]
            found = found.__wrapped__
        else:
            return None
    return found if found.__code__.co_name == path[-1] else None
