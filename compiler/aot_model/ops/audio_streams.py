"""Steps of audio processing that remember what they saw in earlier runs: frames from samples and back, stacks
of frames, the noise in a channel. Each takes what it keeps as an input and gives the new one as an output;
who uses it keeps that in a state.

Each is an operator of TensorFlow Lite Micro, and gives the same numbers: its kernels are the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.audio_features import WORD, needs, shift_count
from aot_model.ops.registry import operator, required


def _arguments(site: Site, inputs: str, outputs: str) -> list[Argument]:
    return [
        *(Argument(n, site.input(k)) for k, n in enumerate(inputs.split())),
        *(written(n, site.node.outputs[k]) for k, n in enumerate(outputs.split())),
    ]


@operator("SpectralSubtraction", domain="aot", stores_itself=True)
class SpectralSubtraction(Operator):
    """Energies without the noise of their channel, which is an average of them over time; at least a part of
    them is left.

    Inputs: energies and noise, uint32. Outputs: what is left, the new noise. Factors have `bits` bits behind
    the point.
    """

    smoothing: tuple[int, int]
    """Weight of the newest energy in the noise, in channels with even and with odd numbers."""
    remaining: tuple[int, int]
    """Weight of the older noise."""
    least: int
    """The part that is left at least."""
    bits: int
    extra: int
    """Bits that the noise has behind the point."""
    clamping: bool = False
    """Whether noise falls to the energy when that is less."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, noise = required(inputs, 0), required(inputs, 1)
        needs(x.type, DType.UINT32)
        if noise.type != x.type:
            raise OperatorError(f"noise {noise.type} does not fit {x.type}")
        shift_count(self.bits, 63)
        shift_count(self.extra)
        return [x.type, x.type]

    def lower(self, site: Site) -> None:
        def by_channel(pair: tuple[int, int]) -> str:
            even, odd = (f"{v % WORD}u" for v in pair)
            return even if even == odd else f"((i & 1) == 0 ? {even} : {odd})"

        text = CText()
        with text.loop("i", str(site.input(0).type.elements)):
            text.line(f"const uint32_t signal = x[i] << {self.extra};")
            text.line(
                f"const uint64_t sum = (uint64_t)signal * {by_channel(self.smoothing)} + (uint64_t)noise[i] "
                f"* {by_channel(self.remaining)};"
            )
            text.line(f"const uint32_t estimate = (uint32_t)(sum >> {self.bits});")
            text.line("const uint32_t lower = (estimate > signal) ? signal : estimate;")
            text.line(
                f"const uint32_t least = (uint32_t)(((uint64_t)x[i] * {self.least % WORD}u) >> {self.bits});"
            )
            text.line(f"const uint32_t left = (signal - lower) >> {self.extra};")
            text.line("y[i] = (left > least) ? left : least;")
            text.line(f"level[i] = {'lower' if self.clamping else 'estimate'};")
        site.call("spectral_subtraction", block(text), _arguments(site, "x noise", "y level"))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        y, level = [], []
        for i, (x, noise) in enumerate(zip(*(np.asarray(a).tolist() for a in arrays), strict=True)):
            signal = (x << self.extra) % WORD
            new = (
                (signal * (self.smoothing[i % 2] % WORD) + noise * (self.remaining[i % 2] % WORD)) % 2**64
                >> self.bits
            ) % WORD
            y.append(
                max((signal - min(new, signal)) >> self.extra, (x * (self.least % WORD) >> self.bits) % WORD)
            )
            level.append(min(new, signal) if self.clamping else new)
        return [np.asarray(v, np.uint32) for v in (y, level)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(6)
        x = np.asarray(rng.integers(0, WORD, 12) >> rng.integers(0, 31, 12), np.uint32)
        noise = np.asarray(rng.integers(0, WORD, 12) >> rng.integers(0, 31, 12), np.uint32)
        x[:3], noise[:3] = (0, WORD - 1, WORD - 1), (WORD - 1, 0, WORD - 1)
        usual: dict[str, Any] = {
            "smoothing": (409, 983),
            "remaining": (15975, 15401),
            "least": 819,
            "bits": 14,
            "extra": 10,
        }
        others = [
            {**usual, "clamping": True},
            {**usual, "extra": 0},
            {**usual, "remaining": (-1, -1), "smoothing": (-1, -1), "bits": 3},
        ]
        return [Sample((x, noise), k, outputs=2) for k in (usual, *others)]


@operator("OverlapAdd", domain="aot", stores_itself=True)
class OverlapAdd(Operator):
    """Frames [..., frames, size] laid over each other, each `step` behind the one before; what overlaps is
    added, int16 saturated.

    Inputs: frames, and the sums that are not complete yet, [..., size]. Outputs: [..., frames * step]
    complete sums, the others.
    """

    step: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, kept = required(inputs, 0).type, required(inputs, 1).type
        if x.dtype not in (DType.INT16, DType.FLOAT32) or x.rank < 2:
            raise OperatorError(f"frames {x} are not supported", "E202")
        if not 1 <= self.step <= x.shape[-1] or kept != TensorType(x.dtype, (*x.shape[:-2], x.shape[-1])):
            raise OperatorError(f"frames {x}, {self.step} apart, and sums {kept} do not fit")
        return [TensorType(x.dtype, (*x.shape[:-2], x.shape[-2] * self.step)), kept]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        frames, size, t = x.shape[-2], x.shape[-1], x.dtype.c_type

        def total(place: str) -> str:
            plain = f"sums[{place}] + in[{place}]"
            if x.dtype.is_float:
                return plain
            return f"(int16_t)aot_model_min_int32(aot_model_max_int32({plain}, -32768), 32767)"

        text = CText()
        text.line(f"memcpy(rest, kept, {site.input(1).type.nbytes}u);")
        with text.loop("f", str(x.type.elements // size)):
            text.line(
                f"const {t} *const in = x + f * {size};\n{t} *const sums = rest + f / {frames} * "
                f"{size};\n{t} *const out = y + f * {self.step};"
            )
            with text.loop("i", str(self.step)):
                text.line(f"out[i] = {total('i')};")
            if self.step < size:
                with text.loop("i", str(size - self.step)):
                    text.line(f"sums[i] = {total(f'i + {self.step}')};")
            text.line(f"memset(sums + {size - self.step}, 0, {self.step * x.dtype.size}u);")
        site.call(
            "overlap_add",
            block(text),
            _arguments(site, "x kept", "y rest"),
            includes=["string.h", "aot_model/scalar.h"],
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, kept = (np.asarray(a) for a in arrays)
        outer, (frames, size) = x.shape[:-2], x.shape[-2:]
        limits = (-32768, 32767) if x.dtype.kind == "i" else (-np.inf, np.inf)
        sums = kept.reshape(-1, size).astype(np.float64)
        out = []
        for f in range(frames):
            sums = (
                np.clip(sums + x.reshape(-1, frames, size)[:, f], *limits).astype(x.dtype).astype(np.float64)
            )
            out.append(sums[:, : self.step])
            sums = np.concatenate([sums[:, self.step :], np.zeros((len(sums), self.step))], axis=1)
        return [
            np.concatenate(out, axis=1).reshape(*outer, -1).astype(x.dtype),
            sums.reshape(kept.shape).astype(x.dtype),
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(7)

        def loud(*shape: int) -> np.ndarray:
            return np.asarray(rng.integers(-32768, 32768, shape), np.int16)

        soft = np.asarray(rng.uniform(-1, 1, (2, 3, 6)), np.float32)
        return [
            Sample((loud(2, 3, 6), loud(2, 6)), {"step": 2}, outputs=2),
            Sample((loud(3, 5), loud(5)), {"step": 5}, outputs=2),
            Sample((loud(1, 4), loud(4)), {"step": 3}, outputs=2),
            Sample((soft, soft[:, 0]), {"step": 4}, outputs=2),
        ]


@operator("Framer", domain="aot", stores_itself=True)
class Framer(Operator):
    """Samples [..., n] as frames [..., n / step, size], each `step` behind the one before.

    Inputs: samples int16; those kept, [..., kept]; how many of them there are, int32[1]. Outputs: frames, 0
    where there are too few samples; whether there were enough for all; the samples to keep, and how many.
    """

    size: int
    step: int

    @property
    def kept(self) -> int:
        """The most samples that are kept."""
        return (self.size - 1) // self.step * self.step

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, kept, count = (required(inputs, k).type for k in range(3))
        if x.dtype is not DType.INT16 or not x.shape:
            raise OperatorError(f"{x} is no signal of int16")
        if min(self.size, self.step) < 1 or x.shape[-1] < self.step or x.shape[-1] % self.step:
            raise OperatorError(f"frames of {self.size}, {self.step} apart, of {x}")
        if kept != TensorType(DType.INT16, (*x.shape[:-1], max(self.kept, 1))) or count != TensorType(
            DType.INT32, (1,)
        ):
            raise OperatorError(f"{kept} and {count} are not kept between frames of {self.size}")
        return [
            TensorType(DType.INT16, (*x.shape[:-1], x.shape[-1] // self.step, self.size)),
            TensorType(DType.BOOL, ()),
            kept,
            count,
        ]

    def lower(self, site: Site) -> None:
        x, width = site.input(0), site.input(1).shape[-1]
        n = x.shape[-1]
        frames = n // self.step
        text = CText()
        text.line(f"const int32_t before = aot_model_min_int32(aot_model_max_int32(*count, 0), {self.kept});")
        text.line("int32_t first = 0;\n*valid = true;")
        with text.loop("row", str(x.type.elements // n)):
            text.line(
                f"const int16_t *const old = kept + row * {width};\nconst int16_t *const in = x + row * "
                f"{n};\nfirst = 0;"
            )
            with text.loop("f", str(frames)):
                text.line(f"int16_t *const frame = y + (row * {frames} + f) * {self.size};")
                text.line(f"const bool enough = before + (f + 1) * {self.step} - first >= {self.size};")
                with text.loop("i", str(self.size)):
                    text.line("const int32_t place = first + i;")
                    text.line("frame[i] = !enough ? 0 : (place < before) ? old[place] : in[place - before];")
                with text.block("if (enough)"):
                    text.line(f"first += {self.step};")
                with text.block("else"):
                    text.line("*valid = false;")
            with text.loop("i", str(width)):
                text.line("const int32_t place = first + i;")
                text.line(
                    f"rest[row * {width} + i] = (place < before) ? old[place] : (place - before < {n}) ? "
                    "in[place - before] : 0;"
                )
        text.line(f"*left = before + {n} - first;")
        site.call(
            "framer",
            block(text),
            _arguments(site, "x kept count", "y valid rest left"),
            includes=["aot_model/scalar.h"],
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, kept, count = (np.asarray(a) for a in arrays)
        n, width, held = x.shape[-1], kept.shape[-1], int(count[0])
        frames, rests, valid, left = [], [], True, 0
        for row, old in zip(x.reshape(-1, n).tolist(), kept.reshape(-1, width).tolist(), strict=True):
            stream = old[:held]
            for begin in range(0, n, self.step):
                stream = stream + row[begin : begin + self.step]
                enough = len(stream) >= self.size
                valid = valid and enough
                frames.append(stream[: self.size] if enough else [0] * self.size)
                stream = stream[self.step :] if enough else stream
            left = len(stream)
            rests.append((stream + [0] * width)[:width])
        shape = (*x.shape[:-1], n // self.step, self.size)
        return [
            np.asarray(frames, np.int16).reshape(shape),
            np.asarray(valid),
            np.asarray(rests, np.int16).reshape(kept.shape),
            np.asarray([left], np.int32),
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = []
        for size, step, n, rows, held in (
            (5, 2, 6, 2, 0),
            (5, 2, 6, 2, 3),
            (4, 4, 8, 1, 0),
            (3, 5, 10, 1, 0),
            (9, 2, 2, 3, 4),
            (6, 3, 9, 1, 3),
        ):
            width = max((size - 1) // step * step, 1)
            x, kept = (
                np.arange(rows * n, dtype=np.int16).reshape(rows, n) + 100,
                -np.arange(rows * width, dtype=np.int16).reshape(rows, width) - 1,
            )
            kept[:, held:] = 0
            cases.append(
                Sample((x, kept, np.asarray([held], np.int32)), {"size": size, "step": step}, outputs=4)
            )
        return cases


@operator("Stacker", domain="aot", stores_itself=True)
class Stacker(Operator):
    """Frames of int16 in a row: `frames` of them whenever there are as many, and then `step` go. Before the
    first frame, it is repeated `before` times.

    Inputs: a frame; those kept, [frames - 1, channels]; how many of them there are, int32[1], -1 before the
    first. Outputs: the row, 0 where there are too few frames; whether there were enough; the frames to keep,
    and how many.
    """

    frames: int
    before: int
    step: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, kept, count = (required(inputs, k).type for k in range(3))
        needs(x, DType.INT16)
        if not (1 <= self.step <= self.frames and 0 <= self.before < self.frames):
            raise OperatorError(
                f"{self.frames} frames of which {self.before} come before, {self.step} apart", "E202"
            )
        if kept != TensorType(DType.INT16, (max(self.frames - 1, 1), *x.shape)) or count != TensorType(
            DType.INT32, (1,)
        ):
            raise OperatorError(f"{kept} and {count} are not kept between stacks of {self.frames}")
        return [TensorType(DType.INT16, (self.frames * x.shape[0],)), TensorType(DType.BOOL, ()), kept, count]

    def lower(self, site: Site) -> None:
        channels, width = site.input(0).shape[0], site.input(1).shape[0]
        text = CText()
        text.line("const bool first = *count < 0;")
        text.line(
            f"const int32_t before = first ? {self.before} : aot_model_min_int32(*count, {self.frames - 1});"
        )
        text.line(
            f"const bool enough = before + 1 >= {self.frames};\nconst int32_t gone = enough ? {self.step} : "
            "0;"
        )
        with text.loop("f", str(self.frames)), text.loop("c", str(channels)):
            text.line(
                f"y[f * {channels} + c] = !enough ? 0 : (first || f >= before) ? x[c] : kept[f * {channels} "
                "+ c];"
            )
        with text.loop("f", str(width)):
            text.line("const int32_t frame = f + gone;")
            with text.loop("c", str(channels)):
                text.line(
                    f"rest[f * {channels} + c] = (frame > before) ? 0 : (first || frame == before) ? x[c] : "
                    f"kept[frame * {channels} + c];"
                )
        text.line("*valid = enough;\n*left = before + 1 - gone;")
        site.call(
            "stacker",
            block(text),
            _arguments(site, "x kept count", "y valid rest left"),
            includes=["aot_model/scalar.h"],
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, kept, count = (np.asarray(a) for a in arrays)
        held = int(count[0])
        rows = [x] * self.before if held < 0 else list(kept[:held])
        rows.append(x)
        enough = len(rows) >= self.frames
        y = np.concatenate(rows) if enough else np.zeros(self.frames * len(x), np.int16)
        rows = rows[self.step :] if enough else rows
        rest = np.zeros_like(kept)
        for k, row in enumerate(rows[: len(kept)]):
            rest[k] = row
        return [y, np.asarray(enough), rest, np.asarray([len(rows)], np.int32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = []
        for frames, before, step, held in (
            (4, 2, 1, -1),
            (4, 2, 1, 3),
            (4, 3, 4, -1),
            (3, 0, 2, 1),
            (1, 0, 1, -1),
            (1, 0, 1, 0),
            (5, 1, 3, 2),
        ):
            kept = np.arange(max(frames - 1, 1) * 3, dtype=np.int16).reshape(-1, 3) + 50
            kept[max(held, 0) :] = 0
            x = np.asarray([7, -8, 9], np.int16)
            cases.append(
                Sample(
                    (x, kept, np.asarray([held], np.int32)),
                    {"frames": frames, "before": before, "step": step},
                    outputs=4,
                )
            )
        return cases
