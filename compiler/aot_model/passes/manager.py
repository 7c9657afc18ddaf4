"""The order of the passes, and what is done around each: verification, dumps, explanations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aot_model.c.names import printable
from aot_model.errors import fail
from aot_model.ir.graph import Graph, subgraphs
from aot_model.ir.operator import OperatorError
from aot_model.ir.program import Buffer, Program
from aot_model.kernels.target import GRAPH_PHASES, Target
from aot_model.lowering.memory_plan import PLANNED
from aot_model.ops.piecewise import MOST
from aot_model.partition.hooks import checked, wrong
from aot_model.partition.lower import update_constants
from aot_model.partition.partition import Partition, partition
from aot_model.passes.count_turns import count_turns
from aot_model.passes.dead_channels import dead_channels
from aot_model.passes.expand import expand
from aot_model.passes.explain import reasons
from aot_model.passes.fold_constants import fold_constants
from aot_model.passes.fold_pads import fold_pads
from aot_model.passes.fuse_affine import fuse_affine
from aot_model.passes.fuse_lines import fuse_lines, own_forms
from aot_model.passes.fuse_lines import pays as lines_pay
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.passes.fuse_quotients import fuse_quotients
from aot_model.passes.fuse_quotients import pays as quotients_pay
from aot_model.passes.fuse_tables import fuse_tables
from aot_model.passes.move_reshapes import move_reshapes
from aot_model.passes.move_transposes import move_transposes
from aot_model.passes.settled_states import settled_states
from aot_model.passes.share_results import share_results
from aot_model.passes.share_tables import pays as share_tables_pay
from aot_model.passes.share_tables import share_tables
from aot_model.passes.signed_weights import signed_weights
from aot_model.passes.widen import widen

GraphPass = Callable[[Graph], bool]


def prune(graph: Graph) -> bool:
    """Remove nodes that nothing reads."""
    return graph.prune()


ORDER: tuple[tuple[str, GraphPass], ...] = (
    ("settled_states", settled_states),
    ("share_results", share_results),
    ("fuse_qdq", fuse_qdq),
    ("share_results", share_results),
    ("widen", widen),
    ("fold_constants", fold_constants),
    ("count_turns", count_turns),
    ("expand", expand),
    ("fold_constants", fold_constants),
    ("move_transposes", move_transposes),
    ("move_reshapes", move_reshapes),
    ("fold_constants", fold_constants),
    ("fold_pads", fold_pads),
    ("fuse_affine", fuse_affine),
    ("signed_weights", signed_weights),
    ("fuse_tables", fuse_tables),
    ("share_tables", share_tables),
    ("fuse_lines", fuse_lines),
    ("fuse_quotients", fuse_quotients),
    ("dead_channels", dead_channels),
    ("prune", prune),
)
"""Every pass in the order in which it runs, before the partition: a convolution is one node with channels
last, an integer layer its accumulators, bias and requantisation, whatever the file format."""

REST: tuple[tuple[str, GraphPass], ...] = (
    ("expand", expand),
    ("fold_constants", fold_constants),
    ("move_transposes", move_transposes),
    ("fold_constants", fold_constants),
    ("prune", prune),
)
"""After the partition, when operators were kept whole for a target: what it did not take."""


@dataclass
class Observer:
    """What the user wants to see, told through `write`: IR after a pass, and where a pass did not fire and
    why.
    """

    dump_after: frozenset[str] = frozenset()
    explain: frozenset[str] = frozenset()
    write: Callable[[str], None] = print
    log: list[str] = field(default_factory=list)


def _check_names(wanted: frozenset[str], known: list[str]) -> None:
    unknown = sorted(wanted - set(known))
    if unknown:
        raise fail(
            "E501", f"there is no pass '{unknown[0]}'", hint=f"there are: {', '.join(dict.fromkeys(known))}"
        )


def pieces(target: Target) -> int:
    """Of functions of 16 bits: `optimize=size` has half a kilobyte for one."""
    return MOST // 2 if target.wish == "size" else MOST


def nested(graph: Graph) -> Iterator[Graph]:
    """A graph and the bodies of control flow in it."""
    yield graph
    for node in graph.nodes:
        for body in subgraphs(node):
            yield from nested(body)


def run_passes(graph: Graph, target: Target, observer: Observer | None = None) -> Partition:
    """Run all passes on a graph in place, and the partition among them, those of the targets at their
    phases.
    """
    observer = observer or Observer()
    kept = frozenset[str]().union(*(t.offloads.keep for t in target.asked() if t.offloads is not None))
    own: dict[GraphPass, GraphPass] = {
        fuse_qdq: partial(fuse_qdq, pieces=pieces(target), bytes_too=target.wish == "size"),
        fuse_lines: partial(fuse_lines, forms=own_forms(target)),
    }
    if kept:
        own[expand] = _expand_but(kept)
    pays: dict[GraphPass, bool] = {
        share_tables: share_tables_pay(target),
        fuse_lines: lines_pay(target),
        fuse_quotients: quotients_pay(target),
    }
    first = [(n, own.get(p, p)) for n, p in ORDER if pays.get(p, True)]
    rest = list(REST) if kept else []
    every = (target, *target.before)
    early = [p for t in every for p in _of_target(t, GRAPH_PHASES[0], graph)]
    late = [p for t in every for p in _of_target(t, GRAPH_PHASES[1], graph)]
    known = [name for name, _ in (*first, *early, *rest, *late)]
    _check_names(observer.dump_after | observer.explain, [*known, *(n for n, _ in ORDER), "partition"])
    for name, function in (*first, *early):
        _run(graph, name, function, observer)
    result = partition(graph, target.asked())
    observer.log.append(f"partition: {len(result.regions)} regions")
    if "partition" in observer.explain:
        observer.write(f"; partition: {len(result.regions)} regions")
        for node in result.assignments:
            for who, pattern, why in node.refused:
                observer.write(
                    f";   {node.operator} '{node.node}': {who}{f':{pattern}' if pattern else ''}: {why}"
                )
    if "partition" in observer.dump_after:
        observer.write("\n".join([f"; after partition\n{graph}", *(str(r.graph) for r in result.regions)]))
    for name, function in (*rest, *_of_target(target, GRAPH_PHASES[1], graph)):
        _run(graph, name, function, observer)
    for region in result.regions:
        border = region.border()
        for name, function in _of_target(region.target, GRAPH_PHASES[1], region.graph):
            _run(region.graph, name, function, observer)
        if region.border() != border:
            raise wrong(
                region.target,
                f"a pass ({GRAPH_PHASES[1]})",
                f"changes the inputs or outputs of region {region.name}",
            )
        update_constants(region)
    return result


def _of_target(target: Target, phase: str, whole: Graph) -> list[tuple[str, GraphPass]]:
    """The graph passes of a target and its ancestors for a phase, ancestors first, and what is said when one
    fails.
    """
    return [
        (p.__name__, _guarded(p, owner, phase, whole.verify))
        for owner in reversed(target.lineage())
        for p in owner.graph_passes.get(phase, ())
    ]


def _expand_but(kept: frozenset[str]) -> GraphPass:
    """The expansion of all operators but those that a target may want whole."""

    def run(graph: Graph) -> bool:
        return expand(graph, lambda node: node.kind not in kept)

    return run


@contextmanager
def _refusals() -> Iterator[None]:
    """What an operator refuses of a node that a pass made is for the user: CompileError with the node."""
    try:
        yield
    except OperatorError as error:
        raise fail(error.code, printable(str(error)), where=printable(error.node), hint=error.hint) from error


def _run(graph: Graph, name: str, function: GraphPass, observer: Observer) -> None:
    with reasons() as said, _refusals():
        changed = any(list(map(function, nested(graph))))
    if name in observer.explain:
        observer.write(f"; {name}: {'changed the graph' if changed else 'did nothing'}")
        for line in said:
            observer.write(f";   {line}")
    observer.log.append(f"{name}: {'changed' if changed else 'nothing to do'}")
    with _refusals():
        graph.verify()
    if name in observer.dump_after:
        observer.write(f"; after {name}\n{graph}")


def run_program_passes(
    program: Program, target: Target, phase: str, placed: Collection[Buffer] | None = None
) -> None:
    """Run the program passes of a processor and the targets before it for a phase, ancestors first, in place.

    placed: the buffers that have addresses, once they have. CompileError E502 when a pass fails or leaves no
    program.
    """

    def verify() -> None:
        program.verify()
        if placed is None:
            return
        for call in program.calls():
            for buffer in call.arguments:
                known = buffer.root()[0].role not in PLANNED or buffer in placed
                assert known, f"'{call.function.name}' has '{buffer.name}', which the plan does not know"

    for chosen in (target, *target.before):
        for owner in reversed(chosen.lineage()):
            for function in owner.program_passes.get(phase, ()):
                _guarded(function, owner, phase, verify)(program)


def _guarded(
    function: Callable[[Any], Any], owner: Target, phase: str, verify: Callable[[], None]
) -> Callable[[Any], Any]:
    """A target's pass whose failure, or that of the check afterwards, names the target and the hook:
    CompileError E502.
    """

    def run(subject: Any) -> Any:
        result = function(subject)
        verify()
        return result

    return lambda subject: checked(owner, f"pass '{function.__name__}' ({phase})", lambda: run(subject))
