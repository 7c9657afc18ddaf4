"""Depthwise kernels of any size for cores with the DSP extension: four or five outputs of a line share what
they load.

Weights of a line are pairs of int16, twice: from the first on (w0 w1, w2 w3, ...) for outputs that begin at
an even place of the block, and shifted by one (0 w0, w1 w2, ...) for those between them. So at stride 1 the
outputs of a block read the same words X:

    y0 += E[t] * X[t]    y1 += O[t] * X[t]    y2 += E[t] * X[t + 1]    y3 += O[t] * X[t + 1]

which is 7 instructions for 8 products. At stride 2 all begin at even places. A channel's weights are widened
to pairs once for all of its outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.kernels.int8.finish import finish_c, requantise_words
from aot_model.kernels.int8.plane import PlaneLoops
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.kernels.int8.spec import Int64

OUTPUTS = (4, 5)
"""Of a line at a time, whichever leaves fewer to be computed twice."""
WRITTEN_OUT = 12
"""Lines of up to so many pairs are written out."""


def packed_lines(grid: Int64, dilation: int, zero: int = 0) -> npt.NDArray[np.int32]:
    """One channel's weights [lines, taps] as bytes, each line in whole words, the weights' zero point between
    dilated taps.
    """
    lines, taps = grid.shape
    reach = (taps - 1) * dilation + 1
    wide = np.full((lines, -(-reach // 4) * 4), zero, np.int64)
    wide[:, :reach:dilation] = grid
    return wide.astype(np.int8).reshape(-1).view("<i4").astype(np.int32)


@dataclass(frozen=True)
class Lines:
    """The text of one channel's outputs. words: of a channel's constants, the first of which is the bias."""

    loops: PlaneLoops
    rq: RequantisePlan
    words: int

    @property
    def block(self) -> int:
        count = self.loops.plane.v.size_out
        return min(count, min(OUTPUTS, key=lambda n: (-(-count // n) * n, -n)))

    @property
    def shifted(self) -> bool:
        """Whether some outputs take the shifted pairs."""
        return self.loops.plane.v.stride == 1 and self.block > 1

    @property
    def pairs(self) -> int:
        """Of a line."""
        reach = self.loops.plane.v.reach
        return reach // 2 + 1 if self.shifted else -(-reach // 2)

    @property
    def sets(self) -> int:
        return 2 if self.shifted else 1

    @property
    def quads(self) -> int:
        """Words of a line's weights as they are stored."""
        return -(-self.loops.plane.v.reach // 4)

    @property
    def tap_words(self) -> int:
        """Words of a channel's pairs, in scratch memory."""
        return self.loops.plane.u.kernel * self.pairs * self.sets

    def text(self) -> list[str]:
        plane, rq, cast = self.loops.plane, self.rq, self.loops.stored[0]
        u, v, block = plane.u, plane.v, self.block
        y_u, y_v = self.loops.steps
        last = v.size_out - block
        # the last block begins earlier, so that all are of one size
        column = "j" if v.size_out % block == 0 else f"j < {last} ? j : {last}"
        constants = [f"const int32_t *constants = weights + {self.words} * {self.loops.channel};"]
        finish: list[str] = []
        if rq.form != "raw":
            start = self.words - len(requantise_words(rq, 0))
            constants.append(f"const int32_t *finish = constants + {start};")
            finish = finish_c(rq, self.loops.quant.out_dtype, "finish")
        return [
            *constants,
            *self._widen(),
            f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
            f"const int16_t *from = plane + u * {u.stride * plane.length};",
            f"{cast} *line = {self.loops.target} + u * {y_u};",
            f"for (int32_t j = 0; j < {v.size_out}; j += {block}) {{",
            f"const int32_t column = {column};",
            f"const int16_t *at = from + column{f' * {v.stride}' if v.stride > 1 else ''};",
            f"{cast} *to = line + column{f' * {y_v}' if y_v > 1 else ''};",
            "const int32_t *tap = taps;",
            *(f"int32_t sum{i} = constants[0];" for i in range(block)),
            f"for (int32_t k = 0; k < {u.kernel}; k++) {{",
            *(self._line() if self.pairs <= WRITTEN_OUT else self._long_line()), "}",
            *(line for i in range(block)
              for line in ("{", f"int32_t v = sum{i};", *finish, f"to[{i * y_v}] = ({cast})v;", "}")),
            "}", "}",
        ]  # fmt: skip

    def _widen(self) -> list[str]:
        """Bytes b0 b1 b2 b3 to the pairs (b0 b1) (b2 b3), and the shifted (b-1 b0) (b1 b2)."""
        body: list[str] = ["int32_t before = 0;"] if self.shifted else []
        for quad in range(-(-self.pairs // 2)):
            stored = quad < self.quads
            q = [f"dsp_sxtb16{form}(bytes[{quad}])" if stored else "0" for form in ("", "_ror8")]
            zero = self.loops.quant.weight_zero_point
            if zero and stored:  # 9 bits and a sign, of which nothing is stored
                pair = f"{(zero & 0xFFFF) << 16 | (zero & 0xFFFF):#010x}u"
                q = [f"(int32_t)dsp_ssub16((uint32_t){v}, {pair})" for v in q]
            body += [f"const int32_t even{quad} = {q[0]}, odd{quad} = {q[1]};"]
            halves = ((f"even{quad}", f"odd{quad}", "before", f"even{quad}"),
                      (f"even{quad} >> 16", f"odd{quad} >> 16", f"odd{quad}", f"even{quad} >> 16"))
            for half, (a, b, c, d) in enumerate(halves):
                t = 2 * quad + half
                if t < self.pairs:
                    body.append(f"to_taps[{self.sets * t}] = dsp_pair({a}, {b});")
                    body += [f"to_taps[{2 * t + 1}] = dsp_pair({c}, {d});"] if self.shifted else []
            if self.shifted and quad + 1 < -(-self.pairs // 2):
                body.append(f"before = odd{quad} >> 16;")
        step = self.pairs * self.sets
        return [
            "{", "const int32_t *bytes = constants + 1;",
            f"for (int32_t *to_taps = taps; to_taps != taps + {self.tap_words}; to_taps += {step}) {{",
            *body, f"bytes += {self.quads};", "}", "}"
        ]

    def _line(self) -> list[str]:
        """The products of one line of the kernel, each word of the plane loaded once."""
        plane = self.loops.plane
        stride, block, used = plane.v.stride, self.block, -(-plane.v.reach // 2)
        known: set[int] = set()
        lines: list[str] = []
        for t in range(self.pairs):
            for i in range(block):
                shifted = self.shifted and i % 2 == 1
                if not shifted and t >= used:
                    continue
                place = i * stride - shifted + 2 * t
                if place not in known:
                    known.add(place)
                    lines.append(f"const int32_t x{place} = dsp_pair_at(at + {place});")
                lines.append(f"sum{i} = dsp_smlad(x{place}, tap[{self.sets * t + shifted}], sum{i});")
        return [*lines, f"at += {plane.u.dilation * plane.length};", f"tap += {self.pairs * self.sets};"]

    def _long_line(self) -> list[str]:
        plane = self.loops.plane
        products = [
            f"sum{i} = dsp_smlad_at(at + {i * plane.v.stride - (self.shifted and i % 2)}, "
            f"tap[{int(self.shifted and i % 2)}], sum{i});" for i in range(self.block)
        ]
        left = plane.u.dilation * plane.length - 2 * self.pairs
        return [
            f"for (int32_t t = 0; t < {self.pairs}; t++, at += 2, tap += {self.sets}) {{",
            *products, "}", f"at += {left};"
        ]
