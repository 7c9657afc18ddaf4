"""Filter bank of audio in fixed point: energies in bands, their roots, gain control and logarithms.

Each is an operator of TensorFlow Lite Micro, and gives the same integers: its kernels are the source of all
formulas.
"""

from __future__ import annotations

import math

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed
from aot_model.kernels.site import Site
from aot_model.ops.audio_features import WORD, needs, shift_count
from aot_model.ops.registry import ints, operator, required, static

GAIN_TABLE = 125
"""Entries of the table of a piecewise quadratic function: 0, 1, 2, then three for each power of two, padded
to four.
"""


@operator("FilterBank", domain="aot", stores_itself=True)
class FilterBank(Operator):
    """Energies in bands that overlap: what a band gives away of its neighbour's weight, the next one gets.

    Inputs: x uint32, and of int16: weights, the rest of weights, and for the first band that only gives and
    each channel the place of its first energy, of its first weight, and its width. Sums are uint64.
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        needs(required(inputs).type, DType.UINT32)
        for k in range(1, 6):
            needs(required(inputs, k).type, DType.INT16)
        starts, firsts, widths = (ints(static(inputs, k, "a table of a filter bank")) for k in (3, 4, 5))
        if not 1 < len(starts) == len(firsts) == len(widths):
            raise OperatorError(
                f"{len(starts)} places, {len(firsts)} places of weights and {len(widths)} widths do not fit"
            )
        for extent, begins in (
            (required(inputs).shape[0], starts),
            *((required(inputs, k).shape[0], firsts) for k in (1, 2)),
        ):
            if any(w > 0 and (b < 0 or b + w > extent) for b, w in zip(begins, widths, strict=True)):
                raise OperatorError(f"a band reaches out of a vector of {extent}")
        return [TensorType(DType.UINT64, (len(starts) - 1,))]

    def lower(self, site: Site) -> None:
        values = [site.input(k) for k in range(6)]
        signed = any(v.data is None or int(v.data.min(initial=0)) < 0 for v in values[1:3])
        # a product of 32 bits by 32 is one instruction
        wide = "(uint64_t)(int64_t)" if signed else "(uint64_t)(uint32_t)"
        text = CText()
        text.line("uint64_t sum = 0;")
        with text.loop("c", str(values[3].shape[0])):
            text.line("uint64_t next = 0;")
            with text.loop("j", "widths[c]"):
                text.line("const uint32_t energy = x[starts[c] + j];")
                text.line(f"sum += {wide}weights[firsts[c] + j] * energy;")
                text.line(f"next += {wide}rest[firsts[c] + j] * energy;")
            with text.block("if (c > 0)"):
                text.line("y[c - 1] = sum;")
            text.line("sum = next;")
        arguments = [Argument(n, v) for n, v in zip(("x", "weights", "rest"), values, strict=False)]
        # what fits together is program: no file of parameters has it
        for name, value in zip(("starts", "firsts", "widths"), values[3:], strict=True):
            assert value.data is not None
            arguments.append(Argument(name, Packed(name, value.data, 2, code=True)))
        site.call("filter_bank", block(text), [*arguments, written("y", site.node.outputs[0])])

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, weights, rest, starts, firsts, widths = (np.asarray(a).tolist() for a in arrays)
        bands = [
            (x[s : s + n], weights[f : f + n], rest[f : f + n])
            for s, f, n in zip(starts, firsts, (max(n, 0) for n in widths), strict=True)
        ]
        given = [sum(e * r for e, r in zip(e_, r_, strict=True)) for e_, _, r_ in bands]
        own = [sum(e * w for e, w in zip(e_, w_, strict=True)) for e_, w_, _ in bands]
        return [np.asarray([(g + o) % 2**64 for g, o in zip(given[:-1], own[1:], strict=True)], np.uint64)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([2**32 - 1, 7, 2**31, 12345, 99999, 2**32 - 2, 0, 5], np.uint32)
        weights = np.asarray([4096, 3000, 2000, 1000, 500, 32767, 32767], np.int16)
        tables = [np.asarray(t, np.int16) for t in ([0, 1, 3, 5, 0], [0, 1, 3, 5, 0], [1, 2, 2, 2, 0])]
        return [
            Sample((x, w, r, *tables), constants=frozenset({1, 2, 3, 4, 5}))
            for w, r in ((weights, 32767 - weights), (-weights, weights - 1000))
        ]


@operator("FilterBankSquareRoot", domain="aot", stores_itself=True)
class FilterBankSquareRoot(Operator):
    """Rounded square roots of uint64, shifted right by a number of bits that is data.

    Of a number below 2^32 the root has 16 bits, even where the nearest one is 2^16.
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, bits = required(inputs, 0), required(inputs, 1)
        needs(x.type, DType.UINT64)
        if bits.dtype is not DType.INT32 or bits.type.elements != 1:
            raise OperatorError(f"a shift by {bits.type}")
        return [TensorType(DType.UINT32, x.shape)]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        text = CText()
        with text.loop("i", str(x.type.elements)):
            text.line(
                "const uint32_t root = (x[i] >> 32) == 0 ? rounded_root32((uint32_t)x[i]) : "
                "rounded_root64(x[i]);"
            )
            text.line("y[i] = ((uint32_t)*bits > 31) ? 0u : root >> *bits;")
        arguments = [Argument("x", x), Argument("bits", site.input(1)), written("y", site.node.outputs[0])]
        site.call("filter_bank_square_root", block(text), arguments, helpers=(_root(32), _root(64)))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int) -> int:
            root = math.isqrt(x)
            most = WORD - 1 if x >= WORD else 2**16 - 1
            return min(root + (x - root * root > root), most) >> bits

        bits = int(np.asarray(arrays[1]).reshape(()))
        return [np.asarray([one(x) for x in np.asarray(arrays[0]).tolist()], np.uint32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        edges = [
            0,
            1,
            2,
            3,
            6,
            7,
            65535**2,
            65535**2 + 65536,
            WORD - 1,
            WORD,
            WORD + 1,
            2**63,
            2**64 - 1,
            (WORD - 1) ** 2,
            12345678901234,
        ]
        return [Sample((np.asarray(edges, np.uint64), np.asarray(b, np.int32))) for b in (0, 5, 31)]


def _root(width: int) -> str:
    """A function: the nearest root, digit by digit."""
    t, most = f"uint{width}_t", f"0x{'F' * (width // 8)}u"
    return f"""/* The nearest integer to the square root, at most {width // 2} bits. */
AOT_MODEL_OPAQUE static uint32_t rounded_root{width}({t} x)
{{
    {t} root = 0;
    {t} bit = ({t})1 << {width - 2};

    while (bit > x) {{
        bit >>= 2;
    }}
    for (; bit != 0; bit >>= 2) {{
        const {t} least = root + bit;
        root >>= 1;
        if (x >= least) {{
            x -= least;
            root += bit;
        }}
    }}
    return (x > root && root != {most}) ? (uint32_t)(root + 1u) : (uint32_t)root;
}}"""


@operator("GainControl", domain="aot", stores_itself=True)
class GainControl(Operator):
    """Per-channel amplitude normalisation (PCAN): energies times a gain that is a function of the noise in
    the channel, then x^2 / 4 below 2 and x - 1 above. Inputs: energies and noise uint32, the gain's table
    int16."""

    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, noise, table = (required(inputs, k) for k in range(3))
        needs(x.type, DType.UINT32)
        needs(table.type, DType.INT16)
        shift_count(self.shift, 63)
        if noise.type != x.type or table.shape[0] < GAIN_TABLE:
            raise OperatorError(f"noise {noise.type} and a table {table.type} do not fit {x.type}")
        return [x.type]

    def lower(self, site: Site) -> None:
        text = CText()
        with text.loop("i", str(site.input(0).type.elements)):
            text.line("const uint32_t gain = (uint32_t)(int32_t)gain_of(table, noise[i]);")
            text.line(f"const uint32_t ratio = (uint32_t)(((uint64_t)x[i] * gain) >> {self.shift});")
            text.line("y[i] = (ratio < 8192u) ? (ratio * ratio) >> 20 : (ratio >> 6) - 64u;")
        arguments = [Argument(n, site.input(k)) for k, n in enumerate(("x", "noise", "table"))]
        site.call(
            "gain_control",
            block(text),
            [*arguments, written("y", site.node.outputs[0])],
            includes=["aot_model/scalar.h"],
            helpers=(_GAIN,),
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, noise, table = (np.asarray(a).tolist() for a in arrays)

        def one(energy: int, level: int) -> int:
            ratio = ((energy * (gain_of(level) % WORD)) % 2**64 >> self.shift) % WORD
            return ratio * ratio >> 20 if ratio < 2 << 12 else (ratio >> 6) - (1 << 6)

        def gain_of(level: int) -> int:
            if level <= 2:
                return int(table[level])
            power = level.bit_length()
            a, b, c = (int(v) for v in table[4 * power - 6 : 4 * power - 3])
            part = (level * 2**11 >> power) % 2**10
            curve = (part * ((c * part >> 5) + 32 * b) + 2**14 >> 15) + a
            return (curve + 2**15) % 2**16 - 2**15

        return [np.asarray([one(*pair) for pair in zip(x, noise, strict=True)], np.uint32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(5)
        noise = np.asarray(
            [0, 1, 2, 3, 4, 7, 1000, 1023, 1024, 2047, 2048, 2**20 + 7, 2**31 - 1, 2**31, 2**32 - 1, 77],
            np.uint32,
        )
        x = np.asarray(rng.integers(0, WORD, 16) >> rng.integers(0, 31, 16), np.uint32)
        tables = [
            np.asarray(np.linspace(32767, 10, GAIN_TABLE), np.int16),
            np.asarray(rng.integers(-32768, 32768, 128), np.int16),
        ]
        return [Sample((x, noise, t), {"shift": s}) for t in tables for s in (0, 6, 21)]


_GAIN = """/* A quadratic polynomial of the bits behind the highest one of x; three coefficients for each place of that. */
AOT_MODEL_OPAQUE static int16_t gain_of(const int16_t *table, uint32_t x)
{
    if (x <= 2u) {
        return table[x];
    }
    const int32_t power = 32 - aot_model_leading_zeros((int32_t)x);
    const int16_t *const piece = table + 4 * power - 6;
    const int32_t part = (int32_t)(((power < 11) ? x << (11 - power) : x >> (power - 11)) & 0x3FFu);
    const int32_t slope = ((piece[2] * part) >> 5) + piece[1] * 32;
    return (int16_t)(((slope * part + (1 << 14)) >> 15) + piece[0]);
}"""  # noqa: E501


@operator("FilterBankLog", domain="aot", stores_itself=True)
class FilterBankLog(Operator):
    """Natural logarithm of uint32 << shift, times scale, as int16; 0 of 0 and 1."""

    scale: int
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        needs(x.type, DType.UINT32)
        shift_count(self.shift)
        return [TensorType(DType.INT16, x.shape)]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        text = CText()
        with text.loop("i", str(x.type.elements)):
            text.line(
                f"const uint32_t scaled = (scaled_log(table, x[i] << {self.shift}) * {self.scale % WORD}u + "
                "32768u) >> 16;"
            )
            text.line("y[i] = (int16_t)((scaled < 32767u) ? scaled : 32767u);")
        arguments = [
            Argument("x", x),
            Argument("table", Packed("table", _logarithms(), 2)),
            written("y", site.node.outputs[0]),
        ]
        site.call("filter_bank_log", block(text), arguments, includes=["aot_model/scalar.h"], helpers=(_LOG,))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int) -> int:
            x = (x << self.shift) % WORD
            if x < 2:
                return 0
            whole = x.bit_length() - 1
            fraction: int = (x - 2**whole) * 2**16 >> whole
            piece, part = divmod(fraction, 512)
            here, there = (round(2**16 * (math.log2(1 + p / 128) - p / 128)) for p in (piece, piece + 1))
            binary = whole * 2**16 + fraction + here + ((there - here) * part >> 16)
            natural: int = binary * round(math.log(2) * 2**16) + 2**15 >> 16
            return min((natural * self.scale + 2**15) % WORD >> 16, 32767)

        return [np.asarray([one(x) for x in np.asarray(arrays[0]).tolist()], np.int16)]

    @classmethod
    def samples(cls) -> list[Sample]:
        edges = [
            0,
            1,
            2,
            3,
            4,
            255,
            256,
            65535,
            65536,
            65537,
            2**20 + 12345,
            2**29,
            2**31 - 1,
            2**31,
            WORD - 1,
        ]
        return [
            Sample((np.asarray(edges, np.uint32),), {"scale": c, "shift": s})
            for c, s in ((64, 3), (1600, 0), (65535, 31), (-5, 1), (2000, 5))
        ]


def _logarithms() -> np.ndarray:
    """log2(1 + x) - x of [0, 1] in 128 pieces, Q0.16."""
    x = np.arange(129) / 128
    return np.asarray(np.rint((np.log2(1 + x) - x) * 2**16), np.uint16)


_LOG = """/* The natural logarithm in Q16; 0 of 0 and 1. */
AOT_MODEL_OPAQUE static uint32_t scaled_log(const uint16_t *table, uint32_t x)
{
    if (x < 2u) {
        return 0u;
    }
    const int32_t whole = 31 - aot_model_leading_zeros((int32_t)x);
    const uint32_t rest = x - (1u << whole);
    const int32_t fraction = (int32_t)((whole < 16) ? rest << (16 - whole) : rest >> (whole - 16));
    const int32_t here = table[fraction >> 9];
    const int32_t there = table[(fraction >> 9) + 1];
    const int32_t binary = whole * 65536 + fraction + here + (((there - here) * (fraction & 511)) >> 16);
    return (uint32_t)(((uint64_t)(uint32_t)binary * 45426u + 32768u) >> 16);
}"""
