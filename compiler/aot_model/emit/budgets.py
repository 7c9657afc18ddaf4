"""Budgets: exceeding one is an error with the table by layer, and with what would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aot_model.emit.report import report
from aot_model.emit.view import ModelView
from aot_model.errors import CompileError, Problem, fail
from aot_model.ir.types import MAX_BYTES


@dataclass(frozen=True)
class Budgets:
    """Bytes; None is no limit."""

    ram: int | None = None
    """Of the workspace."""
    flash: int | None = None
    """Of the constants."""


def check_budgets(
    view: ModelView, budgets: Budgets, alternatives: Callable[[], Mapping[str, ModelView]], where: str = ""
) -> None:
    """CompileError E402 when the workspace or the constants exceed a budget, or the constants what a program
    may have at all.

    alternatives: the model compiled with other options, by the words that ask for them; called when a budget
    is exceeded.
    """
    where = where or view.source_name
    if view.constant_bytes > MAX_BYTES:
        message = (
            f"{view.constant_bytes:,} bytes of constants, {MAX_BYTES:,} are the most that a program may have"
        )
        raise fail("E402", message, where=where)
    measures: list[tuple[str, Callable[[ModelView], int], int | None, Callable[[ModelView], list[str]]]] = [
        ("RAM", lambda v: v.workspace_size, budgets.ram, _ram_hints),
        ("flash for constants", lambda v: v.constant_bytes, budgets.flash, _flash_hints),
    ]
    problems = []
    others: Mapping[str, ModelView] | None = None
    for what, size, limit, hints in measures:
        if limit is None or size(view) <= limit:
            continue
        others = alternatives() if others is None else others
        better = [
            f"`{words}` needs {size(other):,}" for words, other in others.items() if size(other) < size(view)
        ]
        message = f"needs {size(view):,} bytes of {what}, the budget is {limit:,}"
        problems.append(Problem("E402", message, where, "; ".join([*better, *hints(view)])))
    if problems:
        last = problems[-1]
        raise CompileError(
            [
                *problems[:-1],
                Problem("E402", f"{last.message}\n{report(view).rstrip()}\n", last.where, last.hint),
            ]
        )


def _ram_hints(view: ModelView) -> list[str]:
    plan = view.addresses.plan
    if plan.proved or not plan.distance():
        blocks = sorted(
            ((size, block.partition(" ")[2] or block) for block, size in plan.peak_live), reverse=True
        )
        widest = ", ".join(f"'{name[:48]}' ({size:,})" for size, name in blocks[:2])
        return [
            "no placement of these layers needs less: what is live at the peak must shrink, first of all "
            f"{widest}"
        ]
    return [
        f"a placement may need as little as {sum(pool.bound for pool in plan.pools.values()):,}: try "
        "--planner optimal"
    ]


def _flash_hints(view: ModelView) -> list[str]:
    real = sum(b.nbytes for b in view.constants if b.type.dtype.is_float)
    hints = (
        [f"{real:,} of them are real numbers, which int8 weights would make a quarter of"]
        if real * 2 > view.constant_bytes
        else []
    )
    if not view.external:
        hints.append("--params external moves them out of the program, to where there is room")
    return hints
