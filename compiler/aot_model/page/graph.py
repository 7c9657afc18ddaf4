"""The graph as it is drawn: boxes with two or three lines, and the paths between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aot_model.c.names import printable
from aot_model.emit.view import ModelView, Port
from aot_model.ir.program import Access, Buffer, Role
from aot_model.page.dataflow import Dataflow, Vertex
from aot_model.page.layered import WIDTH, Drawing, draw

HEIGHT, STEP, MARGIN = 62, 96, 12


@dataclass(frozen=True)
class Box:
    """A vertex of the drawing. x, y: its left upper corner; share: how much of the MACs of the largest layer,
    in percent; reads: boxes that it reads; heat: a colour of its accuracy, None where nothing is known."""

    number: int
    link: str
    kind: str
    title: str
    lines: tuple[str, ...]
    label: str
    x: int
    y: int
    share: float
    reads: tuple[int, ...]
    heat: int | None = None


@dataclass(frozen=True)
class Picture:
    """Boxes, and by box the path of the edges that leave it (empty where none does)."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    paths: tuple[tuple[int, str], ...]


def picture(view: ModelView, heats: Mapping[int, int] = MappingProxyType({})) -> Picture:
    """heats: by step."""
    flow = Dataflow.of(view.program)
    drawing = draw(len(flow.vertices), flow.edges)
    most = max((c.macs for c in view.program.calls()), default=0)
    reads: dict[int, list[int]] = {}
    for a, b in flow.edges:
        reads.setdefault(b, []).append(a)
    boxes = tuple(
        _box(view, k, v, drawing, tuple(reads.get(k, ())), most, heats) for k, v in enumerate(flow.vertices)
    )
    width = max((b.x for b in boxes), default=0) + WIDTH + MARGIN
    width = max(width, *(x + 2 * MARGIN for x in drawing.x)) if drawing.x else width
    height = (max(drawing.rank, default=0) + 1) * STEP - (STEP - HEIGHT) + 2 * MARGIN
    paths = [(k, _path(drawing, k, len(boxes))) for k in range(len(boxes))]
    return Picture(width, height, boxes, tuple((k, p) for k, p in paths if p))


def _box(
    view: ModelView,
    number: int,
    vertex: Vertex,
    drawing: Drawing,
    reads: tuple[int, ...],
    most: int,
    heats: Mapping[int, int],
) -> Box:
    x, y = MARGIN + drawing.x[number] - WIDTH // 2, MARGIN + drawing.rank[number] * STEP
    call = vertex.call
    if call is None:
        assert vertex.buffer is not None
        kind, link, title, label = _end(view, vertex.buffer, vertex.source)
        lines: tuple[str, ...] = (printable(vertex.buffer.name, 31), printable(str(vertex.buffer.type), 31))
        return Box(number, link, kind, title, lines, label, x, y, 0.0, reads)
    step, function = view.steps[call], view.calls[call].name.removeprefix(f"{view.name}_")
    kind = "elsewhere" if call.target else "weighs" if call.macs else "moves"
    results = [str(b.type) for b in call.buffers(Access.WRITE)]
    lines = (printable(function, 31), printable(", ".join(results), 31))
    label = f"Step {step}: {call.op}, {printable(call.layer, 120)}; {function}; {call.macs:,} MACs" + (
        f"; on {call.target}" if call.target else ""
    )
    return Box(
        number,
        f"step-{step}",
        kind,
        printable(call.op, 24),
        lines,
        label,
        x,
        y,
        round(100 * call.macs / most, 1) if most else 0.0,
        reads,
        heats.get(step),
    )


def _end(view: ModelView, buffer: Buffer, source: bool) -> tuple[str, str, str, str]:
    """(kind, link, title, label) of what is there before or after a run."""
    if buffer.role is Role.STATE:
        k = view.program.states.index(buffer)
        word = "State" if source else "State, next run"
        return "state", f"state-{k}", word, f"State {printable(buffer.name, 120)}"
    ports: tuple[Port, ...] = view.inputs if source else view.outputs
    k = next(k for k, p in enumerate(ports) if p.buffer is buffer)
    word = "Input" if source else "Output"
    return "port", f"{word.lower()}-{k}", word, f"{word} {printable(buffer.name, 120)}: {buffer.type}"


def _path(drawing: Drawing, vertex: int, count: int) -> str:
    """SVG's words for the edges that leave a vertex."""
    words = []
    for a, b in drawing.segments[vertex]:
        xa, xb = MARGIN + drawing.x[a], MARGIN + drawing.x[b]
        top, low = MARGIN + drawing.rank[a] * STEP, MARGIN + drawing.rank[b] * STEP
        ya = top + (HEIGHT if a < count else HEIGHT // 2)
        yb = low + (0 if b < count else HEIGHT // 2)
        middle = (ya + yb) // 2
        words.append(f"M{xa} {ya}V{yb}" if xa == xb else f"M{xa} {ya}C{xa} {middle} {xb} {middle} {xb} {yb}")
    return "".join(words)
