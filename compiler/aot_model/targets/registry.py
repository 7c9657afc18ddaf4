"""All targets by name: those of this package and those that other packages register (entry points)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from aot_model.errors import fail
from aot_model.targets.target import Target

ENTRY_POINTS = "aot_model.targets"


@cache
def targets() -> dict[str, Target]:
    """Every target by name. CompileError E502 when a plug-in cannot be loaded."""
    from aot_model.targets.builtin import BUILTIN

    found = {t.name: t for t in BUILTIN}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda e: e.name):
        try:
            target = entry.load()
        except Exception as error:
            raise fail("E502", f"target plug-in '{entry.name}' ({entry.value}) cannot be loaded: {error}") from error
        if not isinstance(target, Target):
            raise fail("E502", f"target plug-in '{entry.name}' ({entry.value}) is a {type(target).__name__}, not a Target")
        found[target.name] = target
    return found


def parse_target(text: str, options: Mapping[str, str] | None = None) -> Target:
    """A target from "name" or "name,key=value,…" plus options. CompileError E501 when it does not exist."""
    name, *settings = text.split(",")
    known = targets()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise fail("E501", f"unknown target '{name}'", hint=f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known)}")
    given: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise fail("E501", f"'{setting}' in target '{text}' is not of the form key=value")
        given[key] = value
    return known[name].with_options({**given, **(options or {})})
