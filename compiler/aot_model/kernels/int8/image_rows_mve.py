"""Rows of an image as Helium's depthwise kernels read them: where they lie, or through a ring of padded rows,
which also lets the output overwrite the input; and the loops over rows of outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.requantise_mve import HEADER, Ends
from aot_model.kernels.overlap import by_pixels, by_rows
from aot_model.kernels.row_tail import tail_helpers, tail_loop

_COPY = {1: "aot_mve_copy({to}, {source}, {count})", 2: "aot_model_take_int16({to}, {source}, 0, {count})"}
_FILL = {1: "aot_mve_fill", 2: "aot_model_fill_int16"}
"""By the bytes of an element."""


@dataclass(frozen=True)
class Ring:
    """Rows of an image on their way."""

    scratch: Scratch
    clear: str
    """C that fills all of it with the input's zero point."""
    fill: str
    """Statements for input row `line`, which may lie outside of the image."""
    table: str
    """C that finds the offsets or weights for the place of the ring's oldest row."""


def ring_of(s: ConvShape, size: int, needed: bool = False) -> tuple[int, int]:
    """(slots, row) of `PaddedRows`; needed: there are some even where no window reaches beyond the image."""
    if s.inside and not needed:
        return 0, s.in_w * s.in_c * size
    return s.tall, ((s.out_w - 1) * s.stride_w + s.wide) * s.in_c * size


@dataclass(frozen=True)
class PaddedRows:
    """Rows that lie as those of the image do, channels last."""

    shape: ConvShape
    slots: int
    """Rows in the ring, those of a window; 0: the image is read where it lies."""
    row: int
    """Bytes from a row to the next."""
    size: int
    """Bytes of an element."""

    @property
    def first(self) -> str:
        """C of the first element of the windows of row `oy` of outputs, where there is no ring."""
        s, row = self.shape, self.row // self.size
        return f"image + oy * {s.stride_h * row} + {-s.pad_top * row - s.pad_left * s.in_c}"

    def ring(self, fill: int, table: str, turn: str = "") -> Ring | None:
        """fill: what padding is. turn: statements for the elements `{count}` that were copied `to` a row."""
        if not self.slots:
            return None
        s, ctype, clear = self.shape, f"int{8 * self.size}_t", _FILL[self.size]
        row = self.row // self.size
        used = max(min(s.in_w, row // s.in_c - s.pad_left), 0) * s.in_c
        copy = _COPY[self.size].format(to="to", source=f"image + line * {s.in_w * s.in_c}", count=used)
        lines = f"""\
{ctype} *to = ring + filled % {self.slots} * {row} + {s.pad_left * s.in_c};
if (line >= 0 && line < {s.in_h}) {{
    {copy};
{turn.format(count=used)}}} else {{
    {clear}(to, {fill}, {used});
}}"""
        whole = f"{clear}(ring, {fill}, {self.slots * row});"
        return Ring(Scratch("ring", self.slots * self.row, 4, ctype), whole, lines, table)


def image_loops(s: ConvShape, image: str, ring: Ring | None, row: str) -> str:
    """C around `row`, that of the row of outputs `oy`. image: declares a pointer to the first one."""
    before = ""
    if ring:
        before = f"int32_t filled = 0;\n{ring.clear}\n"
        row = f"""\
/* The ring holds the rows up to the last one of this window. */
for (; filled < oy * {s.stride_h} + {s.tall}; filled++) {{
    const int32_t line = filled - {s.pad_top};
    {ring.fill}
}}
{ring.table}{row}"""
    return f"""\
for (int32_t n = 0; n < {s.batch}; n++) {{
    {image} + n * {s.in_h * s.in_w * s.in_c};
    {before}for (int32_t oy = 0; oy < {s.out_h}; oy++) {{
{row}}}
}}
"""


def slack_of_rows(s: ConvShape, ring: Ring | None, sizes: tuple[int, int] = (1, 1)) -> int | None:
    """Slack of such loops; sizes: as of `by_pixels`."""
    if ring is None:
        return by_pixels(s, s.out_w, reread=True, sizes=sizes)
    unread = [(oy - 1) * s.stride_h + s.tall - s.pad_top if oy else 0 for oy in range(s.out_h)]
    row, out_row = sizes[0] * s.in_w * s.in_c, sizes[1] * s.out_w * s.out_c
    return by_rows(s.batch, s.in_h, row, s.out_h, out_row, 1, unread)


def rows_to_tail(s: ConvShape, rows: str, tail: Tail, index: tuple[str, str, str]) -> str:
    """Hands a row of outputs at `rows` to the tail; index: (n, y, x) of output `ox` in it."""
    each = tail_loop(s.out_c, f"{rows} + ox * {s.out_c}", index, tail)
    return f"for (int32_t ox = 0; ox < {s.out_w}; ox++) {{\n{each}}}\n"


def layer_code(
    s: ConvShape,
    ends: Ends,
    helper: str,
    row: str,
    constants: list[Packed],
    ring: Ring | None,
    tail: Tail | None,
    note: str,
    begin: str = "",
    header: str = HEADER,
) -> KernelCode:
    """The kernel of bytes around C that makes the row of outputs `oy`, and hands it to the tail. helper: text
    of the function that it calls. begin: C before all. header: of the functions that the ring is filled with.
    """
    scratch = [ring.scratch] if ring else []
    scratch += [ends.results(s.out_w * s.out_c)] if tail is not None else []
    body = begin + image_loops(s, f"const int8_t *image = {ends.x}", ring, row)
    return KernelCode(body, tuple(constants), tuple(scratch), frozenset({header}),
                      (helper, *tail_helpers(tail)), slack_of_rows(s, ring), note=note)  # fmt: skip
