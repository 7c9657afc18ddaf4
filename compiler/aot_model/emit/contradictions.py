"""Options of a library that exclude each other: said all at once, before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aot_model.emit.view import Options
from aot_model.errors import CompileError, Problem
from aot_model.memory import Pool

TABLES = ("module", "tvm-ffi", "packed")
"""Interfaces that check tensors against the tables of --metadata full."""


def check_options(options: Options, pools: Sequence[Pool], targets: Sequence[str]) -> None:
    """CompileError E501 with every contradiction."""
    problems = [
        Problem("E501", message, hint=hint) for message, hint in _contradictions(options, pools, targets)
    ]
    if problems:
        raise CompileError(problems)


def _contradictions(
    options: Options, pools: Sequence[Pool], targets: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for interface in options.interfaces:
        if interface in TABLES and options.metadata != "full":
            yield (
                (
                    f"--interface {interface} with --metadata {options.metadata}: it checks tensors against "
                    "the metadata"
                ),
                "use --metadata full",
            )
        if options.io == "workspace":
            yield (
                f"--interface {interface} with --io workspace: its calls hand over inputs and outputs",
                "use --io caller",
            )
        if interface == "tvm-ffi" and options.workspace == "caller":
            yield (
                "--interface tvm-ffi with --workspace caller: its calls have no argument for the workspace",
                "use --workspace static",
            )
    flash = [p.name for p in options.constant_pools]
    names = [*(p.name for p in pools), *flash]
    twice = sorted({n.lower() for n in names if sum(m.lower() == n.lower() for m in names) > 1})
    if twice:
        yield (
            f"more than one memory pool is called '{twice[0]}'",
            ("give each a name of its own; C macros are in capitals"),
        )
    if flash and options.params == "external":
        yield (
            (
                "--constant-pool with --params external: the constants are in one file, which the program "
                "places"
            ),
            "leave one of them out",
        )
    for name in options.sections:
        if name not in names:
            yield f"--pool-section: there is no pool '{name}'", f"the pools are {', '.join(names)}"
    for target in dict.fromkeys(t for p in pools for t in p.targets):
        if target not in targets:
            yield (
                f"--pool-targets: '{target}' is not a target of this compilation",
                (f"the targets are {', '.join(targets)}"),
            )
    if set(options.sections) - set(flash) and options.workspace == "caller":
        yield "--pool-section with --workspace caller: the caller places the memory", "leave it out"
