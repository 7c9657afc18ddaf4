"""Convolution of integers with constant weights, x as int16: any type of 8 or 16 bits, any tail.

Two pixels x two channels share their loads. A pixel's patch is read where it lies where that is one run of
int16 (1x1), else gathered into `patch`, less what makes int16 of it; outside of the image is the zero point.
Of groups of channels, each has its own patches, one group behind the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.c.text import loop_of, total
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.requantise_mve import HEADER as MVE
from aot_model.kernels.int8.spec import Int64
from aot_model.kernels.int16 import block_mve, dot_dsp, dot_mve, quads_dsp
from aot_model.kernels.int16.blocks import Blocks, Index
from aot_model.kernels.int16.dots import INT32, Dots
from aot_model.kernels.int16.elements import Elements
from aot_model.kernels.int16.finish import Finish
from aot_model.kernels.int16.finish_mve import Ending, where_stored
from aot_model.kernels.int16.patches import gather
from aot_model.kernels.overlap import by_pixels, residual
from aot_model.kernels.row_tail import VectorTail

LEAST_MACS = 10_000
"""Of a layer that is worth the code of a kernel in assembly, some 500 bytes."""
LEAST_PAIRED = 2_000
"""... of one that finishes its sums itself, which layers share whatever their sizes are."""
MANY_TAPS = 64
"""From so many on four channels at a time take less than two whose sums stay in registers."""


@dataclass(frozen=True)
class Conv:
    """What is computed; also where its results go."""

    shape: ConvShape
    weights: npt.NDArray[np.integer]
    """[out_c, taps of a group], without their zero point."""
    x: Elements
    dots: Dots
    finish: Finish | None
    start: Int64 | None
    """Added to the sums where there is no finish."""
    tail: Tail | None
    sum_type: str
    """C type of the tail's accumulator."""
    result: tuple[str, int]
    """C type and bytes of y's elements."""

    @property
    def taps(self) -> int:
        return int(self.weights.shape[1])

    @property
    def start_type(self) -> type[np.integer]:
        """int64 where what is added, or the sum of it with one of 32 bits, has more."""
        assert self.start is not None
        most = self.taps * self.dots.most if self.dots.sum_type == "int32_t" else 0
        return np.int32 if int(np.abs(self.start).max()) + most <= INT32 else np.int64

    @property
    def count(self) -> int:
        """Pixels."""
        return self.shape.batch * self.shape.out_h * self.shape.out_w

    @property
    def direct(self) -> bool:
        """Whether x is read where it lies."""
        return self.shape.in_place and self.x.dtype == "int16"

    @property
    def pitch(self) -> int:
        """Elements from a patch to the next one: words at even places are read at once."""
        even = self.dots.dsp and self.shape.groups == 1
        return self.taps + self.taps % 2 if even else self.taps

    def index(self, row: int) -> Index:
        return ("0", "0", total("pixel", str(row)), "c")

    def place(self, row: int) -> str | None:
        return f"{self.pixel(row)} + c" if self.tail is None else None

    def pixel(self, row: int) -> str:
        """C of where the results of a pixel begin."""
        return f"y + ({total('pixel', str(row))}) * {self.shape.out_c}"

    def store(self, row: int, column: str) -> list[str]:
        pixel = total("pixel", str(row))
        if self.tail is not None:
            return self.tail.store("v", ("0", "0", pixel, column), 1).splitlines()
        return [f"y[({pixel}) * {self.shape.out_c} + {column}] = v;"]


def conv(c: Conv) -> KernelCode:
    """The kernel of a layer."""
    s, method = c.shape, _method(c)
    pixels, scratch, gathers = method.pixels, method.scratch(), []
    if not c.direct:
        scratch.append(Scratch("patch", 2 * pixels * c.pitch * s.groups, 4, "int16_t"))
        gathers = [gather(s, c.x, c.dots.mve, pixels * c.pitch)]

    def some(p: int) -> list[str]:
        """The next p pixels."""
        return [*(line for name, _ in gathers for line in _patches(c, name, p)), *method.channels(p)]

    whole = c.count - c.count % pixels
    lines = [
        *method.declared(),
        f"for (int32_t pixel = 0; pixel < {whole}; pixel += {pixels}) {{",
        *some(pixels),
        "}",
    ]
    if c.count % pixels:
        lines += ["{", f"const int32_t pixel = {whole};", *some(1), "}"]
    return KernelCode(
        "\n".join(lines) + "\n",
        tuple(method.constants()),
        tuple(scratch),
        method.includes,
        (*(text for _, text in gathers), *method.helpers),
        by_pixels(s, pixels, reread=c.direct, through_images=True, sizes=(c.x.size, c.result[1])),
        sizes=(c.x.size, c.result[1]),
        residual=residual(pixels, s, c.result[1]),
        note=f"{pixels} pixels x {method.columns} channels, {'rows' if c.dots.mve else 'pairs'} of int16",
    )


def _method(c: Conv) -> Method:
    pixels = min(2, c.count)
    ending = Ending.of(c.finish) if c.dots.mve else None
    if c.finish is not None and ending is not None:
        return VectorRows(c, c.finish, pixels, ending)
    fours = _by_fours(c)
    if not (fours and c.taps >= MANY_TAPS) and c.count * c.weights.size >= LEAST_PAIRED:
        rows = dot_dsp.rows_of(c.dots, c.weights, c.finish, pixels, c.tail is not None, c.shape.groups)
        if c.finish is not None and rows is not None:
            return PairedRows(c, c.finish, pixels, rows)
    if fours:
        return Fours(c, 1 if c.taps > quads_dsp.LONGEST else pixels)
    return Channels(c, pixels, min(c.dots.width, c.shape.group_out))


def _by_fours(c: Conv) -> bool:
    """Whether four channels of bytes at a time are possible, and worth their code."""
    types = c.dots.dsp and c.dots.chunk > 0 and c.dots.w_type == "int8_t"
    fits = c.shape.groups == 1 and c.taps % 2 == 0 and c.taps >= 8 and c.shape.out_c % quads_dsp.CHANNELS == 0
    return types and fits and c.count * c.shape.out_c * c.taps >= LEAST_MACS


def _patches(c: Conv, name: str, p: int) -> list[str]:
    """The taps of p pixels, by the function of that name."""
    s, image = c.shape, c.shape.out_h * c.shape.out_w
    n = "" if s.batch == 1 else f" + place / {image} * {s.strides[0]}"
    within = "place" if s.batch == 1 else f"place % {image}"
    row, column = ("0", within) if s.out_h == 1 else (f"{within} / {s.out_w}", f"{within} % {s.out_w}")
    taps = [
        f"int16_t *const to = patch + i * {c.pitch} + ky * {s.kernel_w * c.shape.group_in};",
        f"{name}(x{n}, top + ky * {s.dilation_h}, left, to);",
    ]
    return loop_of(
        "i",
        p,
        "const int32_t place = pixel + i;",
        f"const int32_t top = {row} * {s.stride_h} - {s.pad_top};",
        f"const int32_t left = {column} * {s.stride_w} - {s.pad_left};",
        *loop_of("ky", s.kernel_h, *taps),
    )


class Method(ABC):
    """How the sums of some pixels come about, and what becomes of them."""

    includes = frozenset({HEADER})

    def __init__(self, c: Conv, pixels: int, columns: int) -> None:
        self.c = c
        self.pixels, self.columns = pixels, columns
        self.helpers: list[str] = []

    @abstractmethod
    def constants(self) -> list[Packed]:
        """What it reads besides x."""

    def scratch(self) -> list[Scratch]:
        return []

    def declared(self) -> list[str]:
        """Statements before all."""
        return []

    @abstractmethod
    def channels(self, p: int) -> list[str]:
        """All channels of p pixels."""

    def sources(self, p: int) -> list[str]:
        """Pointers to where the taps of a group begin, for each pixel."""
        c, direct = self.c, self.c.direct
        group = c.shape.group_in if direct else self.pixels * c.pitch
        own = "" if c.shape.groups == 1 else f" + g * {group}"
        at = [f"x + (pixel + {i}) * {c.shape.in_c}" if direct else f"patch + {i * c.pitch}" for i in range(p)]
        return [f"const int16_t *const from{i} = {place}{own};" for i, place in enumerate(at)]

    def each_group(self, lines: list[str]) -> list[str]:
        groups = self.c.shape.groups
        return lines if groups == 1 else loop_of("g", groups, *lines)


class Channels(Method):
    """Blocks of channels whose sums C finishes."""

    def __init__(self, c: Conv, pixels: int, columns: int) -> None:
        super().__init__(c, pixels, columns)
        self.blocks = Blocks(c.dots, c.finish, c.sum_type, c, "c", start=c.start is not None)
        if c.dots.mve:
            self.includes = frozenset({HEADER, block_mve.HEADER})

    def packed(self) -> npt.NDArray[np.integer]:
        groups = np.split(self.c.weights, self.c.shape.groups)
        return np.concatenate([self.c.dots.packed(part, self.columns) for part in groups])

    def constants(self) -> list[Packed]:
        c, found = self.c, [Packed("weights", self.packed(), admissible=ANYTHING)]
        if c.finish is not None:
            found += c.finish.table()
        elif c.start is not None:
            found.append(Packed("start", c.start.astype(c.start_type), admissible=ANYTHING))
        return found

    def declared(self) -> list[str]:
        return block_mve.declared(self.c.finish) if self.c.dots.mve else []

    def block(self, p: int, columns: int) -> list[str]:
        """p pixels by the channels from c on."""
        return [*(f"const int16_t *r{i} = from{i};" for i in range(p)), *self.blocks.lines(p, columns)]

    def channels(self, p: int) -> list[str]:
        own, columns, grouped = self.c.shape.group_out, self.columns, self.c.shape.groups > 1
        rest = own % columns
        first = f"g * {own}" if grouped else "0"
        last = f"{first} + {own - rest}" if grouped else str(own - rest)
        lines = self.sources(p)
        lines += [f"for (int32_t c = {first}; c < {last}; c += {columns}) {{", *self.block(p, columns), "}"]
        if rest:
            lines += ["{", f"const int32_t c = {last};", *self.block(p, rest), "}"]
        return [f"const {self.c.dots.w_type} *w = weights;", *self.each_group(lines)]


class Fours(Channels):
    """Four channels at a time by assembly; what is done with their sums is written once."""

    def __init__(self, c: Conv, pixels: int) -> None:
        super().__init__(c, pixels, quads_dsp.CHANNELS)
        rest = c.count % pixels
        self.kernels = {p: quads_dsp.sums(c.taps, c.dots.chunk, p) for p in (pixels, *([1] if rest else []))}
        self.helpers = list(dict.fromkeys(text for text, _ in self.kernels.values()))

    def packed(self) -> npt.NDArray[np.integer]:
        return quads_dsp.packed(self.c.weights)

    def sources(self, p: int) -> list[str]:
        return super().sources(1)

    def block(self, p: int, columns: int) -> list[str]:
        finish = self.c.finish
        one = finish.row("row0", "c + j") if finish is not None else []
        for i in range(p):
            one += self.blocks.stored(f"sums[{p} * j + {i}]" if p > 1 else "sums[j]", i, "c + j", "row0")
        return [*self.kernels[p][1], *loop_of("j", columns, *one)]


class Rows(Method):
    """All channels by a micro-kernel that finishes its sums itself; for a tail they lie in `row` first."""

    def __init__(self, c: Conv, finish: Finish, pixels: int) -> None:
        super().__init__(c, pixels, min(c.dots.width, c.shape.group_out))
        self.finish = finish

    @abstractmethod
    def calls(self, x: list[str], y: list[str], p: int) -> list[str]:
        """Statements for the taps at x and results at y, each of p pixels, the last ones repeated up to
        `pixels`.
        """

    def stored(self, place: str) -> str:
        """The pointer to results that `calls` take, from one of their type."""
        return place

    def scratch(self) -> list[Scratch]:
        c = self.c
        size = self.pixels * c.shape.out_c * self.finish.to.size
        # A tail reads them as what they are: as int16, uint16 from 32,768 on would be negative.
        return [Scratch("row", size, 4, self.finish.to.c_type)] if c.tail is not None else []

    def channels(self, p: int) -> list[str]:
        c, channels = self.c, self.c.shape.out_c
        rows = [total("row", str(i * channels)) for i in range(p)]
        to = rows if c.tail is not None else [c.pixel(i) for i in range(p)]
        to = [self.stored(place) for place in to]
        more = self.pixels - p
        at = [f"from{i}" for i in range(p)]
        lines = self.calls(at + at[-1:] * more, to + to[-1:] * more, p)
        return [*lines, *(line for i, row in enumerate(rows) for line in self._tailed(i, row))]

    def _tailed(self, i: int, row: str) -> list[str]:
        """What becomes of the results of a pixel at `row`."""
        c, channels = self.c, self.c.shape.out_c
        if c.tail is None:
            return []
        if isinstance(c.tail, VectorTail):
            return c.tail.store_row(row, (*c.index(i)[:3], "0"), channels).splitlines()
        value = f"const {self.finish.to.c_type} v = row[{total('c', str(i * channels))}];"
        return loop_of("c", channels, value, *c.store(i, "c"))


class VectorRows(Rows):
    """Helium's."""

    includes = frozenset({HEADER, block_mve.HEADER, MVE})

    def __init__(self, c: Conv, finish: Finish, pixels: int, ending: Ending) -> None:
        super().__init__(c, finish, pixels)
        self.ending = ending
        bits = 8 * c.weights.dtype.itemsize
        self.name, text = dot_mve.dot(c.taps, c.shape.out_c, bits, pixels, ending)
        self.helpers = [text]

    def constants(self) -> list[Packed]:
        words = dot_mve.pack(self.c.weights, self.ending)
        return [Packed("weights", words, admissible=ANYTHING, layout=dot_mve.LAYOUT)]

    def stored(self, place: str) -> str:
        return where_stored(place, self.finish.to)

    def calls(self, x: list[str], y: list[str], p: int) -> list[str]:
        arguments = ", ".join([*x, "weights", str(self.c.shape.out_c), *y])
        return [*self.sources(p), f"{self.name}({arguments});"]


class PairedRows(Rows):
    """With the DSP extension; of groups, one after the other."""

    def __init__(self, c: Conv, finish: Finish, pixels: int, rows: dot_dsp.Rows) -> None:
        super().__init__(c, finish, pixels)
        self.rows, self.helpers = rows, [rows.text]

    def constants(self) -> list[Packed]:
        return [Packed("weights", self.rows.words, admissible=ANYTHING, layout=dot_dsp.LAYOUT)]

    def calls(self, x: list[str], y: list[str], p: int) -> list[str]:
        groups = self.c.shape.groups
        if groups == 1:
            return [*self.sources(p), *self.rows.calls(x, y)]
        own = f"const int32_t *own = weights + g * {len(self.rows.words) // groups};"
        places = [f"{place} + g * {self.c.shape.group_out}" for place in y]
        return self.each_group([*self.sources(p), own, *self.rows.calls(x, places, "own")])
