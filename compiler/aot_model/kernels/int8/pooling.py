"""Average and maximum pooling of int8, uint8 and int16, channels last, as TensorFlow Lite computes them.

average: the sum of what lies inside of the image, divided by how many they are, ties away from zero; no zero
points. With the DSP extension four channels share a word: SXTAB16 adds two of them at a time in 16-bit lanes,
which hold sums of up to 255 values; the maximum of four is SSUB8 and SEL. Of int16 a word has two channels.

For AVX2 and Helium the runtime has a function for all channels of a window: `Windows`. With the DSP extension
sums that are requantised (averages of QDQ networks: depthwise convolutions with ones) have the same loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from aot_model.c.text import CText, loop_of, product, total
from aot_model.c.words import counted
from aot_model.kernels.base import ConvShape, KernelCode, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rows
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.overlap import by_pixels
from aot_model.kernels.row_tail import tail_helpers, tail_loop

_LANES = 255
_WRITTEN_OUT = 9
"""Elements of a window that are no loop with the DSP extension: a turn takes longer than the element."""


Kind = Literal["average", "max"]


def pool(
    kind: Kind,
    shape: ConvShape,
    dtype: str = "int8",
    dsp: bool = False,
    tail: Tail | None = None,
    compact: bool = False,
) -> KernelCode:
    """Pooling; every window holds at least one element of the image. No dilation, out_c = in_c. compact: less
    code rather than less time.
    """
    return _Window(kind, shape, dtype, dsp, tail, compact).kernel()


@dataclass(frozen=True)
class _Window:
    """What is done for a window: `from` is its first element of the channels from c on."""

    kind: Kind
    shape: ConvShape
    dtype: str
    dsp: bool
    tail: Tail | None
    compact: bool

    @property
    def element(self) -> str:
        """C type."""
        return f"{self.dtype}_t"

    @property
    def result(self) -> str:
        """C type of what is stored."""
        return self.element

    @property
    def bytes(self) -> int:
        return 2 if self.dtype == "int16" else 1

    @property
    def size(self) -> int:
        """Elements of a channel."""
        return self.shape.kernel_h * self.shape.kernel_w

    @property
    def step(self) -> int:
        """Channels at a time: those of a word."""
        several = 4 // self.bytes
        fits = self.dsp and self.shape.in_c % several == 0
        overflows = several == 4 and self.kind == "average" and self.size > _LANES
        return several if fits and not overflows else 1

    def kernel(self) -> KernelCode:
        s, step = self.shape, self.step
        row, column = ("top", "left") if s.inside else ("first_row", "first_column")
        out = f"{self.result} *out = y + ((n * {s.out_h} + row) * {s.out_w} + column) * {s.in_c};"
        at = f"x + n * {s.strides[0]} + ({row} * {s.in_w} + {column}) * {s.in_c} + c"
        channels = loop_of("c", s.in_c, f"const {self.element} *from = {at};", *self._results(), step=step)
        pixel = [*self._place(), *([] if self.tail is not None else [out]), *channels]
        lines = loop_of("n", s.batch, *loop_of("row", s.out_h, *loop_of("column", s.out_w, *pixel)))
        return KernelCode(
            body="\n".join(lines) + "\n",
            includes=frozenset({HEADER}) if step > 1 else frozenset(),
            slack=by_pixels(s, 1, by_channel=True, sizes=(self.bytes, self.bytes)),
            note=f"{self.kind} of {s.kernel_h}x{s.kernel_w}, {counted(step, 'channel')} at a time",
        )

    def _place(self) -> list[str]:
        """Where it lies: in the image, or what of it does."""
        s = self.shape
        begin = f"top = row * {s.stride_h} - {s.pad_top}, left = column * {s.stride_w} - {s.pad_left}"
        if s.inside:
            return [f"const int32_t {begin};"]
        return [
            f"const int32_t {begin};",
            "const int32_t first_row = top > 0 ? top : 0, first_column = left > 0 ? left : 0;",
            f"const int32_t last_row = top + {s.kernel_h} < {s.in_h} ? top + {s.kernel_h} : {s.in_h};",
            f"const int32_t last_column = left + {s.kernel_w} < {s.in_w} ? left + {s.kernel_w} : {s.in_w};",
            "const int32_t height = last_row - first_row, width = last_column - first_column;",
            *(["const int32_t count = height * width;"] if self.kind == "average" else []),
        ]

    def _results(self) -> list[str]:
        """The results of the channels from c on."""
        if self.kind == "average":
            return {1: self._sum, 2: self._sums_of_two, 4: self._sums_of_four}[self.step]()
        return self._largest_of_word() if self.step > 1 else self._largest()

    def _sum(self) -> list[str]:
        return ["int32_t sum = 0;", *self._walk(lambda at: f"sum += *({at});"), *self._finish("sum", "c")]

    def _sums_of_two(self) -> list[str]:
        add = "low += (int16_t)(pair & 0xffffu);\nhigh += (int16_t)(pair >> 16);"
        loops = self._walk(lambda at: f"{{\nconst uint32_t pair = dsp_bytes_at({at});\n{add}\n}}")
        return ["int32_t low = 0, high = 0;", *loops, *self._finish_each("low", "high")]

    def _sums_of_four(self) -> list[str]:
        add, half = ("dsp_sxtab16", "int16_t") if self.dtype == "int8" else ("dsp_uxtab16", "uint16_t")
        loops = self._walk(
            lambda at: (
                f"even = {add}(even, dsp_bytes_at({at}));\n"
                f"odd = {add}(odd, dsp_bytes_at({at}) >> 8 | dsp_bytes_at({at}) << 24);"
            )
        )
        lanes = [f"({half})({pair}{shift})" for shift in (" & 0xffffu", " >> 16") for pair in ("even", "odd")]
        finished = self._finish_each(*lanes)
        if self.compact or self.tail is not None:
            turns = loop_of("k", 4, *self._finish("sum[k]", "c + k"))
            finished = [f"const int32_t sum[4] = {{{', '.join(lanes)}}};", *turns]
        return ["uint32_t even = 0, odd = 0;", *loops, *finished]

    def _largest(self) -> list[str]:
        loops = self._walk(lambda at: f"most = *({at}) > most ? *({at}) : most;", begun=1)
        return ["int32_t most = *from;", *loops, *self._finish("most", "c")]

    def _largest_of_word(self) -> list[str]:
        put, bits = ["memcpy(out + c, &most, sizeof most);"], 8 * self.bytes
        if self.tail is not None:
            each = self._finish(f"({self.element})(most & {2**bits - 1:#x}u)", "c + k")
            put = loop_of("k", self.step, *each, more=f"most >>= {bits}")
        loops = self._walk(lambda at: f"most = dsp_max_{self.dtype}(most, dsp_bytes_at({at}));", begun=1)
        return ["uint32_t most = dsp_bytes_at(from);", *loops, *put]

    def _walk(self, body: Callable[[str], str], begun: int = 0) -> list[str]:
        """Over the elements of a window: body is the C for the element at a place; the first `begun` need not
        be seen.
        """
        s, inside = self.shape, self.shape.inside
        height, width = (str(s.kernel_h), str(s.kernel_w)) if inside else ("height", "width")
        row = loop_of("j", width, body("at"), more=f"at += {s.in_c}")
        down = f"from += {s.in_w * s.in_c}"
        loops = loop_of("i", height, f"const {self.element} *at = from;", *row, more=down)
        many = self.size > _WRITTEN_OUT
        if not self.dsp or self.compact or s.kernel_w > _WRITTEN_OUT or (many and not inside):
            return loops
        if many:
            row = [body(f"from + {j * s.in_c}") for j in range(s.kernel_w)]
            return loop_of("i", height, *row, more=down)
        places = [f"from + {(i * s.in_w + j) * s.in_c}" for i in range(s.kernel_h) for j in range(s.kernel_w)]
        whole = [body(place) for place in places[begun:]]
        if inside:
            return whole
        return [f"if (height == {s.kernel_h} && width == {s.kernel_w}) {{", *whole, "} else {", *loops, "}"]

    def _finish(self, value: str, channel: str) -> list[str]:
        """The result of a channel from its sum, or its largest element."""
        lines, size = [f"int32_t v = {value};"], self.size
        if self.kind == "average":
            half, count = (str(size // 2), str(size)) if self.shape.inside else ("count / 2", "count")
            if self.shape.inside and size > 1 and size.bit_count() == 1:
                lines.append(f"v = (v + {half} + (v >> 31)) >> {size.bit_length() - 1};")
            elif size > 1:
                lines.append(f"v = (v > 0 ? v + {half} : v - {half}) / {count};")
        if self.tail is None:
            return [*lines, f"out[{channel}] = ({self.element})v;"]
        stored = self.tail.store("pooled", ("n", "row", "column", channel), 1).rstrip()
        return [*lines, f"const {self.element} pooled = ({self.element})v;", stored]

    def _finish_each(self, *values: str) -> list[str]:
        return [line for k, v in enumerate(values) for line in ("{", *self._finish(v, f"c + {k}"), "}")]


@dataclass(frozen=True)
class _Sums(_Window):
    """Sums of windows, requantised."""

    rows: Rows
    """The tables of the layer: one row for all channels, or one of each."""

    @property
    def result(self) -> str:
        return f"{self.rows.quant.out_dtype}_t"

    def kernel(self) -> KernelCode:
        code, rows = super().kernel(), self.rows
        return replace(
            code,
            constants=(rows.packed(),),
            helpers=rows.helpers(),
            note=f"{code.note}; requantisation: {rows.rq.form}",
        )

    def _finish(self, value: str, channel: str) -> list[str]:
        row = f"({channel}) * {self.rows.width}" if len(self.rows.table) > 1 else "0"
        at = total("requantisation", row)
        lines = [f"int32_t v = (int32_t)((uint32_t)*({at}) + (uint32_t)({value}));"]
        lines += self.rows.finish(total(at, "1"))
        if self.tail is None:
            return [*lines, f"out[{channel}] = ({self.result})v;"]
        return [*lines, self.tail.store("v", ("n", "row", "column", channel), 1).rstrip()]


def are_sums(shape: ConvShape, weights: Weights, quant: QuantSpec) -> bool:
    """Whether a depthwise convolution is a sum of windows for four channels at a time: ones as weights, no
    padding.
    """
    s = shape
    plain = s.inside and s.groups == s.in_c == s.out_c and s.in_c % 4 == 0
    fits = (s.dilation_h, s.dilation_w) == (1, 1) and 1 < s.kernel_h * s.kernel_w <= _LANES
    return plain and fits and quant.weight_zero_point == 0 and bool((weights == 1).all())


def sums(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    compact: bool = False,
) -> KernelCode:
    """`are_sums`; weights [kernel_h, kernel_w, channels], bias one per channel or None. A tail gets the
    value.
    """
    w, b = fold_zero_point(weights.reshape(-1, shape.out_c).T, bias, quant)
    rows = Rows.of(weights.dtype, w, b, quant)
    if (rows.table == rows.table[0]).all():
        rows = replace(rows, table=rows.table[:1])
    return _Sums("average", shape, quant.x_dtype, True, tail, compact, rows).kernel()


def _area(s: ConvShape) -> int:
    """Most elements of a window."""
    return min(s.kernel_h, s.in_h) * min(s.kernel_w, s.in_w)


@dataclass(frozen=True)
class Windows:
    """An instruction set's functions name(x, rows, columns, elements of a row, channels, low, high, y)."""

    header: str
    name: Callable[[Kind, ConvShape, str], str]
    """By the type of the elements."""
    takes: Callable[[ConvShape, str], bool]
    """Whether their sums hold those of a window, by the type of the elements."""

    def pool(
        self, kind: Kind, shape: ConvShape, low: int, high: int, dtype: str = "int8", tail: Tail | None = None
    ) -> KernelCode:
        """`takes()`; results in [low, high]."""
        s, c, size = shape, CText(), 2 if dtype == "int16" else 1
        with c.turns("n", str(s.batch)) as n, c.turns("row", str(s.out_h)) as row:
            top, height = _span(c, row, "row", s.out_h, s.kernel_h, s.stride_h, s.pad_top, s.in_h)
            with c.turns("column", str(s.out_w)) as column:
                left, width = _span(c, column, "column", s.out_w, s.kernel_w, s.stride_w, s.pad_left, s.in_w)
                x = _pixel("x", (n, top, left), s.in_h, s.in_w, s.in_c)
                y = _pixel("y", (n, row, column), s.out_h, s.out_w, s.in_c)
                to = "results" if tail is not None else y
                c.line(
                    f"{self.name(kind, s, dtype)}({x}, {height}, {width}, {s.in_w * s.in_c}, {s.in_c}, "
                    f"{low}, {high}, {to});"
                )
                if tail is not None:
                    c.line(tail_loop(s.in_c, "results", (n, row, column), tail))
        return KernelCode(
            body=str(c),
            scratch=(Scratch("results", size * s.in_c, 4, f"{dtype}_t"),) if tail is not None else (),
            includes=frozenset({self.header}),
            helpers=tail_helpers(tail),
            slack=by_pixels(s, 1, by_channel=tail is None, sizes=(size, size)),
            note=f"{kind} of {s.kernel_h}x{s.kernel_w}, channels in lanes",
        )


def _pixel(array: str, place: tuple[str, str, str], height: int, width: int, channels: int) -> str:
    """C of the address of pixel (image, row, column) of dense images."""
    sizes = (height * width * channels, width * channels, channels)
    return total(array, *(product(at, size) for at, size in zip(place, sizes, strict=True)))


def _span(
    c: CText, index: str, axis: str, outputs: int, kernel: int, stride: int, pad: int, size: int
) -> tuple[str, str]:
    """(first element, count) of window `index` along an axis; as variables where it can leave the image."""
    start = product(index, stride)
    if pad <= 0 and (outputs - 1) * stride + kernel - pad <= size:
        at = total(start, str(-pad))
        return at if at.isalnum() else f"({at})", str(kernel)
    c.line(f"const int32_t {axis}_at = {start} - {pad};")
    c.line(f"const int32_t {axis}_first = {axis}_at > 0 ? {axis}_at : 0;")
    c.line(f"const int32_t {axis}_end = {axis}_at < {size - kernel} ? {axis}_at + {kernel} : {size};")
    return f"{axis}_first", f"{axis}_end - {axis}_first"


def _helium(kind: Kind, s: ConvShape, dtype: str) -> str:
    """A sum of up to 255 elements of int8, of 128 of uint8, has 16-bit lanes."""
    of = "" if dtype == "int8" else f"_{dtype}"
    large = kind == "average" and _area(s) > {"int8": 255, "uint8": 128}.get(dtype, _area(s))
    return f"aot_mve_{'maximum' if kind == 'max' else 'average'}{of}{'_large' * large}"


AVX2 = Windows(
    "aot_model/int8_avx2_rows.h",
    lambda kind, s, dtype: f"avx2_{'maximum' if kind == 'max' else 'average'}_{dtype}",
    lambda s, dtype: min(s.kernel_w, s.in_w) <= 128 and _area(s) < 1 << 16,
)
"""Sums of a row of a window stay within int16, those of all are exact as floats."""
_MOST = {"int8": 5000, "uint8": 4000, "int16": (1 << 16) - 1}
HELIUM = Windows("aot_model/int8_mve_pool.h", _helium, lambda s, dtype: _area(s) <= _MOST[dtype])
