"""The page of a compilation with what others measured of it; and beside the error when a budget is
exceeded."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from aot_model.emit.budgets import Budgets
from aot_model.emit.files import write_files
from aot_model.errors import CompileError
from aot_model.layers.measure import fused_nodes
from aot_model.layers.sides import nodes_of
from aot_model.page.given import Given, Node, accuracy, frontier, growth, times
from aot_model.pipeline import Compiled, Request, compile_model, page_of


def page_text(
    compiled: Compiled,
    model: Path,
    arguments: argparse.Namespace | None = None,
    exceeded: tuple[str, ...] = (),
) -> str:
    """The page, with the files that the arguments name."""
    asked = vars(arguments) if arguments is not None else {}
    view = compiled.view
    comparison, time, against, curve = (
        asked.get(name) for name in ("comparison", "times", "against", "frontier")
    )
    return page_of(compiled,
                   Given(
                       None if comparison is None else accuracy(comparison, view),
                       None if time is None else times(time, view),
                       None if against is None else growth(against, view),
                       None if curve is None else frontier(curve),
                       exceeded,
                       _nodes(compiled, model),
                   ))  # fmt: skip


def _nodes(compiled: Compiled, model: Path) -> dict[int, tuple[Node, ...]]:
    """By step: the nodes of the file that became the layer."""
    view = compiled.view
    made = {tensor.key: view.steps[traced.calls[-1]] for traced in view.traced for tensor in traced.tensors}
    nodes = nodes_of(model, compiled.signature)
    produced = {key for node in nodes for key in node.outputs}
    found: dict[int, dict[Node, None]] = {}
    for key, group in fused_nodes(nodes, {key for key in made if key in produced}).items():
        found.setdefault(made[key], {}).update(
            {Node(n.kind, n.name): None for n in group if n.kind != "Constant"}
        )
    return {step: tuple(group) for step, group in found.items()}


@contextlib.contextmanager
def page_beside_error(
    asked: Request, path: Path | None, arguments: argparse.Namespace | None = None
) -> Iterator[None]:
    """When a budget is exceeded there is a page all the same, for it shows what would have to shrink."""
    try:
        yield
    except CompileError as error:
        if path is not None and all(problem.code == "E402" for problem in error.problems):
            compiled = compile_model(replace(asked, budgets=Budgets()))
            words = tuple("; ".join(filter(None, (p.message.split("\n")[0], p.hint))) for p in error.problems)
            write_files({path: page_text(compiled, asked.model, arguments, words)})
        raise
