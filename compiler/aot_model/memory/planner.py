"""plan(): from blocks to offsets, with the algorithm chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from .blocks import Block, Overlap, Placement, PlanError, Pool, Unplaced, View
from .bodies import Problem, problem
from .bound import lower_bound
from .heuristics import best_fit, greedy, local_search
from .layout import Layout, tightest
from .optimal import auto, optimal
from .verify import verify

# From the problem to a layout of all its bodies; what does not fit is left unplaced. A package brings its own
# through an entry point of group ENTRY_POINTS; it is chosen by the entry point's name, and its layouts are
# checked.
Algorithm = Callable[[Problem], Layout]

ALGORITHMS: Mapping[str, Algorithm] = {
    "greedy": greedy,
    "best-fit": best_fit,
    "local-search": local_search,
    "auto": auto,
    "optimal": optimal,
}
DEFAULT = "auto"
ENTRY_POINTS = "aot_model.planners"


@dataclass(frozen=True)
class PoolPlan:
    """What one pool has to provide: `size` bytes at a multiple of `align`. `bound` is the peak of what lives
    in it.
    """

    size: int
    align: int
    bound: int


@dataclass(frozen=True)
class MemoryPlan:
    """Where every block lies (`offsets`), and how good that is. All sizes are in bytes.

    `lower_bound` is the peak of live bytes over all steps, wherever the blocks lie; it is reached at
    `peak_step`, where `peak_live` (block, size) hold data. `proved`: no plan is smaller.
    """

    offsets: Mapping[str, Placement]
    pools: Mapping[str, PoolPlan]
    lower_bound: int
    peak_step: int
    peak_live: tuple[tuple[str, int], ...]
    proved: bool

    @property
    def pool_sizes(self) -> dict[str, int]:
        return {name: pool.size for name, pool in self.pools.items()}

    def distance(self) -> float:
        """How far the pools together are above the bounds of what lies in each: 0.05 is 5 %."""
        bound = sum(pool.bound for pool in self.pools.values())
        return sum(pool.size for pool in self.pools.values()) / bound - 1 if bound else 0.0

    def report(self) -> str:
        """The plan in a few lines of text: pools, bound and distance, and what is live at the peak."""
        lines = [
            f"pool {name}: {pool.size} bytes, aligned to {pool.align} (live at its peak: {pool.bound})"
            for name, pool in self.pools.items()
        ]
        verdict = "; no plan is smaller" if self.proved else ""
        lines.append(
            f"lower bound: {self.lower_bound} bytes; distance {100 * self.distance():.1f} %{verdict}"
        )
        lines.append(f"live at the peak, step {self.peak_step}:")
        lines += [f"  {size:>10} {block}" for block, size in self.peak_live]
        together = sum(size for _, size in self.peak_live)
        above = together - self.lower_bound
        shared = f", {above} of them shared in place" if above > 0 else ""
        padding = f", and {-above} between them for alignment" if above < 0 else ""
        lines.append(f"  {together:>10} together{shared}{padding}")
        return "\n".join(lines) + "\n"


def algorithm_names() -> list[str]:
    """Names that plan() accepts: the algorithms of this package and of installed others."""
    return sorted({*ALGORITHMS, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def plan(
    blocks: Iterable[Block],
    overlaps: Iterable[Overlap] = (),
    views: Iterable[View] = (),
    pools: Sequence[Pool] = (Pool("workspace"),),
    algorithm: str | Algorithm = DEFAULT,
) -> MemoryPlan:
    """Places every block in a pool. The result depends on the input's contents alone, not on its order.

    Raises PlanError if blocks do not fit in the pools, ValueError if the input contradicts itself, the
    algorithm is unknown, or returns a wrong layout.
    """
    blocks, overlaps, views = list(blocks), list(overlaps), list(views)
    planned = problem(blocks, overlaps, views, pools)
    layout = (_algorithm(algorithm) if isinstance(algorithm, str) else algorithm)(planned)
    if -1 in layout.pool:
        raise PlanError(_unplaced(planned, layout))
    offsets = _offsets(planned, layout)
    verify(offsets, blocks, overlaps, views, pools)  # no search may be wrong in silence
    peak = lower_bound(planned, shared_base=len(pools) == 1)
    sizes = layout.pool_sizes()
    by_pool: dict[str, PoolPlan] = {}
    for number, pool in enumerate(pools):
        inside = [index for index, where in enumerate(layout.pool) if where == number]
        align = max((planned.bodies[index].align for index in inside), default=1)
        bound = peak if len(pools) == 1 else lower_bound(planned, inside)
        by_pool[pool.name] = PoolPlan(sizes[number], max(align, pool.align), bound.bytes)
    live = tuple((piece.owner, piece.size) for piece in peak.live)
    proved = layout.proved or sum(sizes) == peak.bytes
    return MemoryPlan(offsets, by_pool, peak.bytes, peak.step, live, proved)


def around(kept: Mapping[str, Placement]) -> Algorithm:
    """An algorithm that leaves blocks where they are, as far as they may be there, and puts others, the
    largest first, into the gaps that they fill best.
    """

    def layout_of(planned: Problem) -> Layout:
        layout = Layout(planned)
        rest = []
        for index, body in enumerate(planned.bodies):
            places = {
                Placement(kept[name].pool, kept[name].offset - start)
                for name, start in body.members
                if name in kept
            }
            if len(places) != 1 or not layout.keep(index, places.pop()):
                rest.append(index)
        for index in sorted(rest, key=lambda k: (-planned.bodies[k].size, planned.bodies[k].id)):
            layout.place(index, tightest)
        return layout

    return layout_of


def _algorithm(name: str) -> Algorithm:
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    for point in sorted(entry_points(group=ENTRY_POINTS, name=name), key=lambda point: point.value):
        loaded: Algorithm = point.load()
        return loaded
    raise ValueError(f"unknown memory planner '{name}'; there are {', '.join(algorithm_names())}")


def _offsets(planned: Problem, layout: Layout) -> dict[str, Placement]:
    return {
        member: Placement(planned.pools[pool].name, offset + start)
        for body, pool, offset in zip(planned.bodies, layout.pool, layout.offset, strict=True)
        for member, start in body.members
    }


def _unplaced(planned: Problem, layout: Layout) -> tuple[Unplaced, ...]:
    rows = []
    for index, body in enumerate(planned.bodies):
        if layout.pool[index] < 0:
            tried = tuple(
                (planned.pools[pool].name, planned.pools[pool].size, layout.free(index, pool))
                for pool in body.pools
            )
            rows.append(Unplaced(body.id, body.size, body.first, body.last, tried))
    return tuple(sorted(rows, key=lambda row: (-row.size, row.block)))
