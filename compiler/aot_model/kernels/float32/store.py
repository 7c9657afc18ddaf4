"""From the accumulators of a block to the tail."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from aot_model.c.text import CText, total
from aot_model.kernels.base import Tail
from aot_model.kernels.float32.dialect import VectorDialect

_LONG = 200
"""Characters of a tail that is not repeated for every accumulator."""


@dataclass(frozen=True)
class Accumulators:
    """What a block has computed: names[pixel][vector] of `channels` channels from `channel` on."""

    dialect: VectorDialect
    names: list[list[str]]
    at: list[tuple[str, str]]
    """(y, x) of each pixel."""
    n: str
    channel: str
    channels: int | None = None
    """How many of them are of the result; None: all."""
    left: str | None = None
    """C expression: how many pixels are of the result; None: all."""

    def store(self, text: CText, tail: Tail, vector_tail: bool) -> None:
        """Give them to the tail: vectors if it takes them and they are full, or some of their lanes can be
        stored; otherwise channel by channel.

        A long tail is written once, in a loop over the accumulators in memory.
        """
        d = self.dialect
        rest = 0 if self.channels is None else self.channels % d.lanes
        by_vector = d.lanes == 1 or (vector_tail and (not rest or d.loads_some))
        several = len(self.names) * len(self.names[0]) > 1
        if not by_vector or (several and len(tail.store("acc", ("n", "y", "x", "c"), d.lanes)) > _LONG):
            self._from_memory(text, tail, d.lanes if by_vector else 1)
            return
        for p, (y, x) in enumerate(self.at):
            with text.block(f"if ({self.left} > {p})") if self.left and p else nullcontext():
                for v, name in enumerate(self.names[p]):
                    lanes = rest if rest and v == len(self.names[p]) - 1 else d.lanes
                    index = self.n, y, x, total(self.channel, str(v * d.lanes))
                    text.line(tail.store(name if lanes > 1 else d.first(name), index, lanes))

    def _from_memory(self, text: CText, tail: Tail, lanes: int) -> None:
        d = self.dialect
        pixels, width = len(self.names), len(self.names[0]) * d.lanes
        channels = width if self.channels is None else self.channels
        with text.block():
            text.line(f"float done[{pixels}][{width}];")
            for i, vectors in enumerate(self.names):
                for v, name in enumerate(vectors):
                    if d.lanes == 1:
                        text.line(f"done[{i}][{v}] = {name};")
                    else:
                        text.line(d.store(total(f"done[{i}]", str(v * d.lanes)), name))
            y, x = self._coordinate(text, "y_at", 0), self._coordinate(text, "x_at", 1)
            count = str(pixels)
            if self.left:
                text.line(f"const int32_t pixels = {self.left} < {pixels} ? {self.left} : {pixels};")
                count = "pixels"
            with text.loop("p", count, needed=pixels > 1):
                row = "done[p]" if pixels > 1 else "done[0]"

                def stored(lane: str, some: int) -> None:
                    acc = f"{row}[{lane}]" if some == 1 else d.load(total(row, lane))
                    text.line(tail.store(acc, (self.n, y, x, total(self.channel, lane)), some))

                rest = channels % lanes
                if channels > rest:
                    with text.loop("l", str(channels - rest), lanes, channels - rest > lanes):
                        stored("l" if channels - rest > lanes else "0", lanes)
                if rest:
                    stored(str(channels - rest), rest)

    def _coordinate(self, text: CText, name: str, axis: int) -> str:
        """An expression of `p` for one coordinate of the pixels."""
        values = [pair[axis] for pair in self.at]
        if len(set(values)) == 1:
            return values[0]
        text.line(f"const int32_t {name}[{len(values)}] = {{{', '.join(values)}}};")
        return f"{name}[p]"
