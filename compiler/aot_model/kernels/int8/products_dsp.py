"""Which micro-kernel multiplies which channels of a convolution, and where it reads their weights.

Channels two at a time for four pixels (gemm_dsp) read each word of weights once for every four pixels. Four
at a time for two pixels (gemm_dsp, too) take fewer cycles on a Cortex-M4, as long as weights do not wait:
where constants are in memory without wait states, and where they were copied to RAM before the layer begins.
Of a layer that is larger than the room, the first channels are copied, the others are read where they are:
pixel by pixel all channels are computed, so the result may follow over the input as closely as without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from aot_model.kernels.base import Scratch
from aot_model.kernels.int8.gemm_dsp import PairStream, pair_kernel, single_kernel
from aot_model.kernels.int8.quads_dsp import can_be_quads, quad_kernel
from aot_model.kernels.int8.spec import Int32
from aot_model.kernels.reading import LEAST_SAVING, Reading

SINGLE_SAVING = 8
"""Instructions for a word of the stream that a kernel for one pixel takes less than that for four."""
LEAST_SINGLE, LEAST_SHARE = 20_000, 1 / 16
"""Instructions of a layer that are worth the code of that kernel, and their share of the fours of pixels."""


def worth_single(batch: int, pixels: int, stream: PairStream) -> bool:
    """Whether one of `pixels` of an image is left behind the last four, and a kernel for it is worth its
    code.
    """
    saved = batch * stream.nbytes // 4 * SINGLE_SAVING
    return pixels % 4 == 1 and saved >= LEAST_SINGLE and 4 / pixels >= LEAST_SHARE


@dataclass(frozen=True)
class Span:
    """Neighbouring channels of one micro-kernel, with their words of the stream."""

    kernel: str
    fours: bool
    source: str
    """Of the words: the name of an array."""
    first: int
    last: int
    channel: int
    single: str = ""
    """The kernel for one pixel alone."""

    def fewer(self, pixels: int) -> bool:
        """Whether so many pixels take less than four."""
        return (pixels == 1 and self.single != "") or (self.fours and pixels in (1, 2))

    def calls(self, y: str, second: str, step: str, half: int, pixels: int = 4) -> list[str]:
        """Of four pixels: y is where the first one is stored, `second` elements on the third; `step` bytes
        are between neighbours. pixels: that are wanted, 4 or fewer; others may be computed, too.
        """
        at = y if not self.channel else f"{y} + {self.channel}"
        stream = self.source if not self.first else f"{self.source} + {self.first}"
        ends = f"{half}u, {self.source} + {self.last});"
        if pixels == 1 and self.single:
            return [f"{self.single}(columns, {stream}, {at}, {ends}"]
        if not self.fours:
            return [f"{self.kernel}(columns, {stream}, {at}, {at} + {second}, {step}, {ends}"]
        two = [f"{self.kernel}(columns, {stream}, {at}, {step}, {ends}"]
        if not self.fewer(pixels):
            two.append(f"{self.kernel}(columns + 2, {stream}, {at} + {second}, {step}, {ends}")
        return two


@dataclass(frozen=True)
class Products:
    """All channels of four pixels."""

    words: Int32
    spans: tuple[Span, ...]
    helpers: tuple[str, ...]
    scratch: tuple[Scratch, ...]
    copy: tuple[str, ...]
    """Statements before all pixels."""
    layout: str
    unit: int | None
    """Bytes of the smallest part that is worth copying; None: nothing is."""


def products(
    stream: PairStream,
    channels: int,
    out_dtype: str,
    times: int,
    reading: Reading,
    taken: int,
    single: bool = False,
) -> Products:
    """times: how often the stream is read, taken: bytes of scratch memory without copies. A stream for
    `channels`, the last pair of which may begin one channel earlier where they are odd. single: one pixel is
    left behind the last four.
    """
    fours = reading.overlaps and can_be_quads(stream)
    pairs, size = len(stream.pairs), stream.pair_words
    together = 2 if fours else 1
    odd = channels % 2 and int(stream.pairs[-1, 0]) == channels - 2
    unit, units = 4 * together * size, (pairs - odd if fours else pairs) // together
    waits = reading.waits(stream.nbytes)
    pays = waits and units > 0 and reading.saving(stream.nbytes, times) >= LEAST_SAVING
    staged = min(max(reading.room - taken, 0) // unit, units) if pays else 0
    if staged * unit < stream.nbytes and reading.saving(staged * unit, times) < LEAST_SAVING:
        staged = 0
    by_fours = (staged if waits else units if reading.memory is not None else 0) if fours else 0
    parts = stream.part(0, 2 * by_fours).words(together=2), stream.part(2 * by_fours).words()
    words = np.concatenate(parts) if by_fours else stream.words()
    end = staged * unit // 4

    found: list[Span] = []
    helpers: list[str] = []
    if by_fours:
        kernel, text = quad_kernel(stream.requantise, out_dtype)
        helpers.append(text)
        found.append(Span(kernel, True, "staged" if staged else "weights", 0, 2 * by_fours * size, 0))
    if 2 * by_fours < pairs:
        kernel, text = pair_kernel(stream, out_dtype, reading.overlaps)
        helpers.append(text)
        alone = ""
        if single:
            alone, text = single_kernel(stream, out_dtype)
            helpers.append(text)
        cuts = sorted({2 * by_fours * size, end, (pairs - 1 if odd else pairs) * size, pairs * size})
        for first, last in pairwise(cuts):
            if first >= 2 * by_fours * size:
                source, channel = "staged" if last <= end else "weights", int(stream.pairs[first // size, 0])
                found.append(Span(kernel, False, source, first, last, channel, alone))
    layout = stream.layout
    if by_fours:
        layout = (
            f"for each four channels a, b, c, d of the first {4 * by_fours}: four start values of the "
            "sums; two taps of a, b in a word, of c, d in the next; numbers of the requantisation"
            + (f"; then {layout}" if 2 * by_fours < pairs else "")
        )
    scratch = (Scratch("staged", staged * unit, 4, "int32_t"),) if staged else ()
    copy = (f"memcpy(staged, weights, {staged * unit}); /* weights wait less in RAM */",) if staged else ()
    return Products(words, tuple(found), tuple(helpers), scratch, copy, layout, unit if pays else None)


def by_groups(
    stream: PairStream, groups: int, channels: int, out_dtype: str, reading: Reading, single: bool
) -> Products:
    """The channels of one group of `channels` in all, whose part of the stream is at `group`, where it
    lies.
    """
    one = stream.part(0, len(stream.pairs) // groups)
    made = products(one, channels // groups, out_dtype, 1, Reading(overlaps=reading.overlaps), 0, single)
    spans = tuple(replace(span, source="group") for span in made.spans)
    return replace(made, words=stream.words(), spans=spans)
