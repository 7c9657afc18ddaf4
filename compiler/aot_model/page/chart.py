"""The picture of memory over time: steps to the right, addresses upwards."""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.page.memory import Held, Lane
from aot_model.page.shorter import Shorter

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 960, 340, 78, 22, 14, 30
TEXT_ROOM = 8
"""Width of a character and height of a line that must be free for a name to be drawn."""


@dataclass(frozen=True)
class Rectangle:
    """A buffer; text: its name, or what tells it from others, where there is room for it."""

    held: Held
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A lane drawn. ticks: (place, words) of both axes; curve: the bytes in use."""

    lane: Lane
    width: int
    height: int
    rectangles: tuple[Rectangle, ...]
    steps: tuple[tuple[float, str], ...]
    sizes: tuple[tuple[float, str], ...]
    peak: tuple[float, float]
    """Left end and width of the step at which most is in use."""
    curve: str


def chart(lane: Lane) -> Chart:
    count, size = len(lane.used), max(lane.size, 1)
    height = HEIGHT if lane.pool else 150
    across, up = (WIDTH - LEFT - RIGHT) / count, (height - TOP - BOTTOM) / size
    base = height - BOTTOM

    def y(address: float) -> float:
        return round(base - address * up, 2)

    rectangles = []
    names = Shorter(h.buffer.name for h in lane.held)
    for one in sorted(lane.held, key=lambda h: (h.window, h.what == "scratch", -h.size, h.number)):
        x, width = round(LEFT + one.first * across, 2), round((one.last - one.first + 1) * across, 2)
        room = int(width / TEXT_ROOM)
        text = names.of(one.buffer.name, room) if one.size * up > 14 and room > 3 else ""
        rectangles.append(
            Rectangle(one, x, y(one.offset + one.size), width, round(max(one.size * up, 0.8), 2), text)
        )
    curve = "".join(
        f"{'M' if k == 0 else 'L'}{LEFT + k * across:.1f} {y(used)}H{LEFT + (k + 1) * across:.1f}"
        for k, used in enumerate(lane.used)
    )
    return Chart(
        lane,
        WIDTH,
        height,
        tuple(rectangles),
        tuple((round(LEFT + (k + 0.5) * across, 1), str(k)) for k in _marks(count - 1, 16)),
        tuple((y(at), f"{at:,}") for at in _marks(size, 6)),
        (round(LEFT + lane.peak * across, 2), round(across, 2)),
        curve,
    )


def _marks(end: int, most: int) -> list[int]:
    """Round numbers from 0 to the end, not more than about `most`."""
    step = next(m * 10**k for k in range(16) for m in (1, 2, 5) if m * 10**k * most >= end)
    return list(range(0, end + 1, step))
