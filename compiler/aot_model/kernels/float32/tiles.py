"""Direct convolution by the functions of sums_fpv4.py: a block of pixels by a block of channels is one call.

The weights lie as in direct.py. What the last pixels of a rectangle need, which do not fill a block, a
smaller function may compute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, gcd, prod

import numpy as np

from aot_model.c.text import CText, product, total
from aot_model.c.words import counted
from aot_model.kernels.base import Depth, KernelCode, Packed, Scratch
from aot_model.kernels.float32.axis import Axis
from aot_model.kernels.float32.block import Block, channel_vectors
from aot_model.kernels.float32.direct import DirectConvolution
from aot_model.kernels.float32.panel_fpv4 import PanelSums, pack_panel
from aot_model.kernels.float32.pixels import next_pixel, times
from aot_model.kernels.float32.planes import each_plane, image_of, number_of, segments_of
from aot_model.kernels.float32.sums_fpv4 import POINTERS, Sums
from aot_model.kernels.reading import LEAST_SAVING, UNKNOWN, Reading

_FEWEST = 14
"""Fewest products of a sum that are worth a call: of 9 loops that are written out take 80 % of the time, of
13 90 %, of 16 96 %, of 45 104 %.
"""
_SHORT = 4
"""Fewest elements one behind the other that are worth a loop of their own."""
_TAIL = 10
"""Cycles of finishing a sum."""
_WEIGHT = 1.5
"""Cycles for which a weight is waited for: half of what it takes from a flash with wait states."""
_GAIN = 0.98
"""A second function must save two per cent."""
_MANY = 32
"""Results for which a pixel's elements are worth copying."""
_LONG = 120
"""Characters of a tail that is not repeated for every channel."""


@dataclass(frozen=True)
class Tiling:
    """Blocks of `pixels` x `channels`; of `few` pixels where less than `enough` are left."""

    pixels: int
    channels: int
    few: int = 0
    enough: int = 0

    def begins(self, pixels: int) -> np.ndarray:
        """The first pixels of the blocks of so many."""
        rest = pixels % self.pixels
        whole = pixels - rest if rest < self.enough else pixels
        few = range(whole, pixels, self.few) if self.few else ()
        return np.array([*range(0, whole, self.pixels), *few])

    @property
    def sizes(self) -> list[int]:
        return [self.pixels, *([self.few] if self.few else [])]


@dataclass(frozen=True)
class TiledConvolution(DirectConvolution):
    """A convolution whose blocks are calls."""

    reading: Reading = UNKNOWN

    @property
    def order(self) -> str | None:
        """How the taps of a row are walked: `row` where they are one run, `taps` where each is one,
        `channels` where each channel's taps are one; None where elements do not lie one behind the other.
        """
        _, _, w, c = self.shape.strides
        if (c == 1 or self.shape.group_in == 1) and (
            self.cols.taps == 1 or self.cols.tap_step * w == self.shape.group_in
        ):
            return "row"
        if self.shape.depth:
            return None
        if c == 1 and self.shape.group_in >= _SHORT:
            return "taps"
        return "channels" if self.cols.tap_step * w == 1 and self.cols.taps > 1 else None

    def fits(self) -> bool:
        """Whether this shape can be computed so, and should be."""
        axes = [axis for axis in (self.planes, self.rows, self.cols) if axis]
        products = self.shape.group_in * prod(max(g.taps for g in axis.segments) for axis in axes)
        return self.order is not None and products >= _FEWEST

    def walk(self, taps: int) -> tuple[int, int]:
        """(runs, steps) of a row with so many taps."""
        return {
            "row": (1, taps * self.shape.group_in),
            "taps": (taps, self.shape.group_in),
            "channels": (self.shape.group_in, taps),
        }[str(self.order)]

    @property
    def staged(self) -> int:
        """Elements of each pixel that are copied aside before its results are written. Where no other pixel
        reads them, and many blocks of channels do, results may then take their place: the memory saved is
        worth the time (under three per cent).
        """
        alone = (self.rows.taps, self.cols.taps) == (1, 1)
        several = self.shape.groups == 1 and self._most > 1 and self.shape.depth is None
        return self.shape.in_c if alone and several and self.shape.group_out >= _MANY else 0

    @property
    def _most(self) -> int:
        """Pixels of the largest rectangle."""
        return max(pixels for pixels, _, _ in self.kinds())

    def in_order(self, weights: np.ndarray) -> np.ndarray:
        if self.order != "channels":
            return super().in_order(weights)
        return np.ascontiguousarray(weights.swapaxes(2, 3))

    # ---- weights that wait less in RAM

    def _ends(self, tiling: Tiling) -> list[int]:
        """Elements of the weights up to the end of each block of channels."""
        loops = self.vectors(Block(tiling.pixels, tiling.channels)) * self.shape.groups
        return list(accumulate(self.block_size(vectors) for _, count, vectors in loops for _ in range(count)))

    def _saving(self, elements: int, tiling: Tiling) -> float:
        """Cycles less where so many elements of the weights are read in RAM."""
        if self.weights.given or not self.reading.waits(4 * elements):
            return 0
        deep = self.shape.depth.out if self.shape.depth else 1
        times = sum(len(tiling.begins(pixels)) * number for (pixels, _, _), number in self.kinds().items())
        return self.reading.saving(4 * elements, self.shape.batch * deep * times)

    def copied(self, tiling: Tiling) -> int:
        """Elements of the weights that are copied to RAM: blocks of channels for which there is room, where
        that pays.
        """
        room = (self.reading.room - 4 * tiling.pixels * self.staged) // 4
        most = max((end for end in self._ends(tiling) if end <= room), default=0)
        return most if self._saving(most, tiling) >= LEAST_SAVING else 0

    def wish(self, tiling: Tiling) -> int | None:
        """Bytes of scratch memory from which on copying pays."""
        pays = [end for end in self._ends(tiling) if self._saving(end, tiling) >= LEAST_SAVING]
        return 4 * (tiling.pixels * self.staged + pays[0]) if pays else None

    # ---- blocks

    def sums(self, pixels: int, channels: int) -> Sums:
        """The function of a block: several steps at a time."""
        if self.staged:
            several = (4, 3, 2, 1) if self.reading.code_is_fast else (2, 3, 1)
            return PanelSums(pixels, channels, next(u for u in several if self.staged % u == 0), False)
        steps = gcd(*(self.walk(taps)[1] for taps in {s.taps for s in self.cols.segments} if taps))
        most = 4 if pixels * channels <= 8 or self.reading.code_is_fast else 2
        unroll = next((u for u in (most, 3, 2) if steps % u == 0), 0)
        between = self.order == "channels" or self.shape.depth
        whole = not between or {s.taps for s in self.cols.segments} == {self.cols.taps}
        return Sums(pixels, channels, unroll or most, not (unroll and whole))

    def _cycles(self, pixels: int, channels: int, rows: int, cols: int) -> float:
        """Of one block with so many taps."""
        f = self.sums(pixels, channels)
        if not rows or not cols:
            return f.block_cycles
        runs, steps = self.walk(cols)
        rows *= max(g.taps for g in self.planes.segments) if self.planes else 1
        turns = ceil(steps / f.unroll) * f.turn_cycles
        step = f.step_cycles + (0 if self.reading.code_is_fast else _WEIGHT * channels)
        return f.block_cycles + rows * (f.run_cycles + runs * (f.run_cycles + steps * step + turns))

    def _of_rectangles(self, tiling: Tiling) -> float:
        """Cycles of everything."""
        cycles = 0.0
        every = channel_vectors(self.shape.group_out, 1, tiling.channels)
        for (pixels, down, along), number in self.kinds().items():
            cost = {
                n: sum(alike * self._cycles(n, v, down, along) for v, alike in every) + 30 + 10 * n
                for n in tiling.sizes
            }
            blocks, rest = divmod(pixels, tiling.pixels)
            cycles += number * blocks * cost[tiling.pixels]
            if rest and rest < tiling.enough:
                cycles += number * ceil(rest / tiling.few) * cost[tiling.few]
            elif rest:
                cycles += number * cost[tiling.pixels]
        return cycles

    def tiling(self) -> Tiling:
        """The cheapest blocks."""
        most = self._most
        taps = max(r.taps for r in self.rows.segments), max(c.taps for c in self.cols.segments)
        found: list[tuple[float, Tiling]] = []
        for channels in sorted({min(v, self.shape.group_out) for v in (1, 2, 3, 4, 6, 8, 12)}):
            for pixels in range(1, min(len(POINTERS), most) + 1):
                if not self.sums(pixels, channels).fits:
                    continue
                whole = Tiling(pixels, channels)
                found.append((self._of_rectangles(whole), whole))
                for few in range(1, min(3, pixels)):
                    costs = [self._cycles(n, channels, *taps) for n in (pixels, few)]
                    enough = next(
                        (n for n in range(1, pixels) if ceil(n / few) * costs[1] >= costs[0]), pixels
                    )
                    two = Tiling(pixels, channels, few, enough)
                    found.append((self._of_rectangles(two) / _GAIN, two))
        return min(found, key=lambda f: (f[0], f[1].pixels * f[1].channels))[1]

    # ---- code

    def emit(self) -> KernelCode:
        if self.bias is None:
            start = np.zeros(self.shape.out_c, np.float32)
            return replace(self, weights=replace(self.weights, bias=start)).emit()
        tiling = self.tiling()
        copied = self.copied(tiling)
        text = CText()
        if copied:
            text.line(f"memcpy(copied, weights, {4 * copied}); /* weights wait less in RAM */")
        self._declare(text)
        batch = "1" if self.shape.depth else str(self.shape.batch)
        with each_plane(text, self.shape, self.planes), text.loop("n", batch, needed=batch != "1"):  # noqa: SIM117
            with text.loop("r", str(self._rows.number), needed=self._rows.number > 1):
                with text.loop("s", str(self._cols.number), needed=self._cols.number > 1):
                    self._rectangle(text, tiling)
        body = str(text)
        widths = channel_vectors(self.shape.group_out, 1, tiling.channels)
        functions = [self.sums(n, v) for n in tiling.sizes for v, _ in widths]
        helpers = self.dialect.helpers(body)
        scratch = (
            Scratch("staged", 4 * tiling.pixels * self.staged, 4, "float"),
            Scratch("copied", 4 * copied, 4, "float"),
        )
        packed = Block(tiling.pixels, tiling.channels)
        over, residual = self.slack(packed, tiling.begins, reread=not self.staged)
        few = f", of the last {counted(tiling.few, 'pixel')}" if tiling.few else ""
        code = KernelCode(
            body=body,
            constants=(
                Packed(
                    "weights",
                    self.pack(packed),
                    4,
                    layout="for each block of channels: bias; for each tap those of the block",
                ),
            ),
            helpers=(*helpers, *dict.fromkeys(f.text() for f in functions)),
            includes=frozenset({"string.h"} if copied else ()),
            scratch=tuple(piece for piece in scratch if piece.nbytes),
            wish=self.wish(tiling),
            slack=over,
            residual=residual,
            note=f"{counted(tiling.pixels, 'pixel')} x {counted(tiling.channels, 'channel')} in registers"
            f"{few}",
        )
        return self.packed_by(code, packed)

    def _rectangle(self, text: CText, tiling: Tiling) -> None:
        n, h, w, _ = self.shape.strides
        rows, cols = self._rows, self._cols
        batch = product("n", n) if self.shape.batch > 1 and not self.shape.depth else "0"
        if not self.staged:
            self._geometry(text)
        start = total(image_of(self.shape), batch, product(rows.first, h), product(cols.first, w))
        text.line(f"const float *in = {start};")
        if rows.repeated:
            text.line(f"int32_t oy = {rows.out};")
        if cols.repeated:
            text.line(f"int32_t ox = {cols.out};")
        if rows.repeated and cols.repeated:
            text.line(f"const int32_t ox_end = ox + {product(cols.count, cols.axis.out_step)};")
        count = times(rows.count, cols.count)
        if self._most == 1:
            with text.block():
                text.line("const float *const at[1] = {in};")
                self._channel_blocks(text, tiling, tiling.pixels, None)
            return
        two = bool(tiling.few)
        size = "now" if two else str(tiling.pixels)
        with text.block(f"for (int32_t left = {count}{', now' if two else ''}; left > 0; left -= {size})"):
            if two:
                text.line(f"now = left >= {tiling.enough} ? {tiling.pixels} : {tiling.few};")
            text.line(f"const float *at[{tiling.pixels}] = {{0}};")
            for name, axis in (("y_at", rows), ("x_at", cols)):
                if axis.repeated:
                    text.line(f"int32_t {name}[{tiling.pixels}];")
            # past the last pixel the block repeats it
            with text.loop("p", size, needed=tiling.pixels > 1):
                p = "p" if tiling.pixels > 1 else "0"
                text.line(f"at[{p}] = in;")
                for name, axis, value in (("y_at", rows, "oy"), ("x_at", cols, "ox")):
                    if axis.repeated:
                        text.line(f"{name}[{p}] = {value};")
                with text.block(f"if (left > {total(p, '1')})"):
                    next_pixel(text, self.shape, self._rows, self._cols)
            if self.staged:
                pack_panel(text, self.staged, tiling.pixels, size)
            self._channel_blocks(text, tiling, tiling.pixels, size)

    def _geometry(self, text: CText) -> None:
        """The table `taps` of sums_fpv4.TAPS."""
        _, h, w, c = self.shape.strides
        rows, cols = self._rows, self._cols
        taps, step = product(cols.taps, self.shape.group_in), self.cols.tap_step * w
        tap = total(product(rows.tap, self.cols.taps), cols.tap)
        begin = product(tap if tap.isdigit() else f"({tap})", self.shape.group_in)
        missing = _less(str(self.cols.taps), cols.taps)
        between, skip = "0", product(missing, self.shape.group_in)
        if self.order == "row":
            runs, steps, right, through = "1", taps, "0", taps
        elif self.order == "taps":
            runs, steps, right = cols.taps, str(self.shape.group_in), str(step - self.shape.group_in)
            through = product(cols.taps, step)
        else:
            runs, steps, right = str(self.shape.group_in), cols.taps, _less(str(c), cols.taps)
            through = str(self.shape.group_in * c)
            begin = total(product(rows.tap, self.cols.taps * self.shape.group_in), cols.tap)
            between, skip = missing, "0"
        some = all(g.taps for g in self.cols.segments)
        count = rows.taps if some else f"{cols.taps} > 0 ? {rows.taps} : 0"
        down = _less(str(self.rows.tap_step * h), through)
        values: tuple[str, ...] = (count, runs, steps, right, down, begin, between, skip)
        if self.shape.depth and self.planes:
            values = self._deep(self.shape.depth, self.planes, taps, begin)
        fixed = "static " if all(v.lstrip("(-").rstrip(")").isdigit() for v in values) else ""
        text.line(f"{fixed}const int32_t taps[{len(values)}] = {{{', '.join(values)}}};")

    def _deep(self, depth: Depth, axis: Axis, steps: str, begin: str) -> tuple[str, ...]:
        """The same of a 3-D convolution: its planes are the rows, their rows the runs."""
        _, h, _, _ = self.shape.strides
        rows, cols, planes = self._rows, self._cols, segments_of(axis)
        some = [*self.rows.segments, *self.cols.segments]
        count = (
            planes.taps
            if all(g.taps for g in some)
            else (f"{rows.taps} > 0 && {cols.taps} > 0 ? {planes.taps} : 0")
        )
        down = self.rows.tap_step * h
        return (
            count,
            rows.taps,
            steps,
            _less(str(down), steps),
            _less(str(axis.tap_step * depth.x_stride), product(rows.taps, down)),
            total(product(planes.tap, self.plane_size), begin),
            product(_less(str(self.cols.taps), cols.taps), self.shape.group_in),
            product(_less(str(self.rows.taps), rows.taps), self.cols.taps * self.shape.group_in),
        )

    def _channel_blocks(self, text: CText, tiling: Tiling, pixels: int, size: str | None) -> None:
        for channels in self._channels(text, Block(tiling.pixels, tiling.channels)):
            pointers = "at"
            if self.shape.groups > 1:
                pointers = "of_group"
                text.line(f"const float *of_group[{pixels}] = {{0}};")
                with text.loop("p", size or "1", needed=pixels > 1):
                    p = "p" if pixels > 1 else "0"
                    group = product("g", self.shape.group_in * self.shape.strides[3])
                    text.line(f"of_group[{p}] = at[{p}] + {group};")
            text.line(f"float sums[{pixels}][{channels.vectors}];")
            weights = self._weights(text, tiling, channels.weights)
            self._call(text, tiling, channels.vectors, weights, pointers)
            oc = channels.first
            if not oc.isdigit() and oc != "g":
                text.line(f"const int32_t oc = {oc};")
                oc = "oc"
            self._finish(text, pixels, size, oc, channels.number)

    def _weights(self, text: CText, tiling: Tiling, at: str) -> str:
        """Where those of a block of channels are read, so many elements from the first."""
        copied = self.copied(tiling)
        source = "copied" if copied and not (at.isdigit() and int(at) >= copied) else "weights"
        if copied and not at.isdigit() and copied < self._ends(tiling)[-1]:
            text.line(f"const float *const from = {at} < {copied} ? copied : weights;")
            source = "from"
        return total(source, at)

    def _call(self, text: CText, tiling: Tiling, channels: int, weights: str, pointers: str) -> None:
        steps = product(times(self._rows.taps, self._cols.taps), self.staged)
        inputs = f"staged, {steps}" if self.staged else f"{pointers}, taps"

        def call(pixels: int) -> str:
            return f"{self.sums(pixels, channels).name}(sums[0], {weights}, {inputs});"

        if not tiling.few:
            text.line(call(tiling.pixels))
            return
        with text.block(f"if (now == {tiling.pixels})"):
            text.line(call(tiling.pixels))
        with text.block("else"):
            text.line(call(tiling.few))

    def _finish(self, text: CText, pixels: int, size: str | None, oc: str, number: int) -> None:
        """Sums to the tail."""
        rows, cols = self._rows, self._cols
        n = number_of(self.shape)
        several = size is not None and pixels > 1
        head = text.block(f"for (int32_t p = 0; p < {size} && p < left; p++)") if several else text.block()
        with head:
            p = "p" if several else "0"
            y, x = (
                f"{name}[{p}]" if axis.repeated else axis.out
                for name, axis in (("y_at", rows), ("x_at", cols))
            )
            for name, value in (("py", y), ("px", x)):
                if not value.isdigit():
                    text.line(f"const int32_t {name} = {value};")
            y, x = (v if v.isdigit() else name for v, name in ((y, "py"), (x, "px")))
            sample = self.tail.store("acc", (n, y, x, oc), 1)
            if number > 1 and len(sample) > _LONG:
                with text.loop("l", str(number)):
                    text.line(self.tail.store(f"sums[{p}][l]", (n, y, x, total(oc, "l")), 1))
            else:
                for v in range(number):
                    text.line(self.tail.store(f"sums[{p}][{v}]", (n, y, x, total(oc, str(v))), 1))


def _less(a: str, b: str) -> str:
    """a - b of two C expressions."""
    return str(int(a) - int(b)) if b.isdigit() else f"({a} - {b})"
