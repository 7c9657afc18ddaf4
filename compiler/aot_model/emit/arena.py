"""One memory for several models that do not run at the same time: each pool as large as the model that needs
most of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aot_model import __version__
from aot_model.c.names import identifiers
from aot_model.emit.render import environment
from aot_model.errors import CompileError, Problem, fail
from aot_model.library.metadata import Metadata


@dataclass(frozen=True)
class SharedPool:
    """A pool of the arena, and the models that use it: (C name, their macros' prefix, bytes)."""

    name: str
    c_name: str
    size: int
    align: int
    section: str | None
    users: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Arena:
    """The pools by name, in the order in which the models name them first."""

    name: str
    models: tuple[Metadata, ...]
    pools: Mapping[str, SharedPool]

    @property
    def used(self) -> list[SharedPool]:
        return [p for p in self.pools.values() if p.size]

    @property
    def version(self) -> str:
        return __version__

    @property
    def upper(self) -> str:
        return self.name.upper()

    @property
    def size(self) -> int:
        return sum(p.size for p in self.pools.values())

    def address(self, pool: str) -> str:
        """C text of the base of a pool."""
        found = self.pools[pool]
        return f"{self.name}_{found.c_name}" if found.size else "NULL"


def arena_files(name: str, libraries: Sequence[Path], sections: Mapping[str, str]) -> dict[str, str]:
    """<name>.h and <name>.c for the libraries with these .json files.

    CompileError E101 or E102 for a file that is not such metadata, E501 for libraries that cannot share
    memory.
    """
    models = [Metadata.read(path) for path in libraries]
    _check(name, list(zip(models, libraries, strict=True)))
    arena = _arena(name, models, sections)
    unknown = sorted(set(sections) - set(arena.pools))
    if unknown:
        raise fail(
            "E501",
            f"--pool-section: there is no pool '{unknown[0]}'",
            hint=f"the pools are {', '.join(arena.pools)}",
        )
    return {
        f"{name}.{kind}": environment().get_template(f"arena.{kind}.j2").render(arena=arena)
        for kind in ("h", "c")
    }


def _check(name: str, models: Sequence[tuple[Metadata, Path]]) -> None:
    problems = []
    names = [m.name.lower() for m, _ in models]
    for model, path in models:
        if not model.caller_owns_workspace:
            problems.append(
                Problem(
                    "E501",
                    f"the library '{model.name}' owns its workspace",
                    str(path),
                    "compile it with --workspace caller",
                )
            )
        if model.state_bytes:
            problems.append(
                Problem(
                    "E501",
                    f"the library '{model.name}' keeps state in its workspace from run to run, which another "
                    "model would overwrite",
                    str(path),
                    "give it a workspace of its own",
                )
            )
        if names.count(model.name.lower()) > 1 or model.name.lower() == name.lower():
            problems.append(
                Problem("E501", f"'{model.name}' is the name of more than one library", str(path))
            )
    if problems:
        raise CompileError(problems)


def _arena(name: str, models: Sequence[Metadata], sections: Mapping[str, str]) -> Arena:
    names = list(dict.fromkeys(p.name for m in models for p in m.pools))
    pools = {}
    for pool, c_name in zip(names, identifiers(names, "pool"), strict=True):
        users = [(m, p) for m in models for p in m.pools if p.name == pool]
        pools[pool] = SharedPool(
            pool, c_name, max(p.size for _, p in users), max(p.align for _, p in users), sections.get(pool),
            tuple((m.name, m.macro(p), p.size) for m, p in users if p.size),
        )  # fmt: skip
    return Arena(name, tuple(models), pools)
