"""Random operators. The generator is MT19937, and the numbers are those of the reference evaluator for the
same seed.

Each operator has a generator of its own: 624 words of state and a position, which last between runs, so that
every run draws new numbers, and the first run after start-up always the same. Without the attribute `seed`
the generator is seeded by the CRC-32 of the node's name. An element is one number of 53 bits; normal ones
come from Marsaglia's polar method, a pair at a time. Sources: M. Matsumoto, T. Nishimura, Mersenne Twister,
ACM TOMACS 8, 1998; ONNX operator specification; numpy.random.RandomState for the way from words to numbers.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import written
from aot_model.kernels.site import Site
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Where, op
from aot_model.ops.movement import Expand
from aot_model.ops.ordering import CumSum
from aot_model.ops.registry import OPERATORS, Build, operator, required
from aot_model.ops.views import ReshapeTo

_WORDS = 624
_GENERATOR = """\
/* MT19937: the next 32 bits. mt: 624 words of state, then the position of the next one; 0 when it is not seeded. */
AOT_MODEL_OPAQUE static uint32_t mt19937_next(uint32_t *mt, uint32_t seed)
{
    if (mt[624] == 0u) {
        for (uint32_t i = 0; i < 624u; i++) {
            mt[i] = seed;
            seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1u;
        }
        mt[624] = 625u;
    }
    if (mt[624] == 625u) {
        for (uint32_t i = 0; i < 624u; i++) {
            const uint32_t y = (mt[i] & 0x80000000u) | (mt[(i + 1u) % 624u] & 0x7fffffffu);
            mt[i] = mt[(i + 397u) % 624u] ^ (y >> 1) ^ ((y & 1u) != 0u ? 0x9908b0dfu : 0u);
        }
        mt[624] = 1u;
    }
    uint32_t y = mt[mt[624] - 1u];
    ++mt[624];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}
/* A number in [0, 1) of 53 bits. */
static inline double mt19937_uniform(uint32_t *mt, uint32_t seed)
{
    const uint32_t high = mt19937_next(mt, seed) >> 5;
    const uint32_t low = mt19937_next(mt, seed) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}"""  # noqa: E501


@operator("RandomNumbers", domain="aot", draws=True, stores_itself=True)
class RandomNumbers(Operator):
    """Numbers in [0, 1), or of the standard normal distribution, in double precision. Input: the generator's
    state.
    """

    shape: tuple[int, ...]
    normal: bool
    seed: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if not required(inputs).state:
            raise OperatorError("the generator is not a state")
        return [TensorType(DType.FLOAT64, self.shape)]

    def lower(self, site: Site) -> None:
        y = site.node.outputs[0]
        seed, n = f"{self.seed}u", y.type.elements
        text = CText()
        if not self.normal:
            with text.loop("i", str(n)):
                text.line(f"y[i] = mt19937_uniform(mt, {seed});")
        else:
            with text.block(f"for (int32_t i = 0; i < {n}; i += 2)"):
                text.line("double a;")
                text.line("double b;")
                text.line("double square;")
                text.line("do {")
                text.line(f"    a = 2.0 * mt19937_uniform(mt, {seed}) - 1.0;")
                text.line(f"    b = 2.0 * mt19937_uniform(mt, {seed}) - 1.0;")
                text.line("    square = a * a + b * b;")
                text.line("} while (square >= 1.0 || square <= 0.0);")
                text.line("const double f = sqrt(-2.0 * log(square) / square);")
                text.line("y[i] = f * b;")
                with text.block(f"if (i + 1 < {n})"):
                    text.line("y[i + 1] = f * a;")
        name = "random_normal" if self.normal else "random_uniform"
        site.call(
            name,
            block(text),
            [written("mt", site.input(0)), written("y", y)],
            helpers=(_GENERATOR,),
            includes={"math.h"} if self.normal else (),
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        generator = np.zeros(_WORDS + 1, np.uint32)
        return [
            Sample((generator,), {"shape": s, "normal": n, "seed": k}, states=frozenset({0}))
            for k, (s, n) in enumerate([((7,), False), ((2, 400), False), ((5,), True), ((3, 2), True)])
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        draw = np.random.RandomState(self.seed)
        # A pair of normal numbers is made at once; the second of an odd count is dropped.
        count = int(np.prod(self.shape))
        numbers = [
            draw.randn(count + count % 2)[:count] if self.normal else draw.random_sample(count)
            for _ in range(2)
        ]
        return [numbers[1].reshape(self.shape)]  # the second run


def numbers(build: Build, shape: tuple[int, ...], seed: float | None, normal: bool = False) -> Value:
    """Random doubles of a shape, from a generator of their own."""
    state = Value(f"{build.prefix}.generator", TensorType(DType.UINT32, (_WORDS + 1,)), state=True)
    if seed is not None and not math.isfinite(seed):
        raise OperatorError(f"a seed of {seed}")
    number = zlib.crc32(build.prefix.encode()) if seed is None else int(seed) & 0xFFFFFFFF
    return build(RandomNumbers(shape, normal, number), state)


def _scaled(build: Build, kind: TensorType, source: Value, factor: float, shift: float) -> list[Value]:
    """source * factor + shift in the type of the result."""
    if not kind.dtype.is_float:
        raise OperatorError(f"random numbers are floats, not {kind}: say which in dtype")
    x = build(op("Mul"), build(Cast(kind.dtype), source), build.constant(factor, kind.dtype))
    return [build(op("Add"), x, build.constant(shift, kind.dtype))]


_SHAPES = ((3, 4), (1,), (701,))
_LIKE = (np.zeros((3, 5), np.float32),)


@operator("RandomUniform", draws=True)
class RandomUniform(Operator):
    """Numbers in [low, high)."""

    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32
    high: float = 1.0
    low: float = 0.0
    seed: float | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.dtype, self.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return _scaled(
            build,
            self.infer(inputs)[0],
            numbers(build, self.shape, self.seed),
            self.high - self.low,
            self.low,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((), {"shape": s, "seed": float(k), "low": -2.0, "dtype": d})
            for k, s in enumerate(_SHAPES)
            for d in (DType.FLOAT32, DType.FLOAT64)
        ]


@operator("RandomNormal", draws=True)
class RandomNormal(Operator):
    """Normally distributed numbers."""

    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32
    mean: float = 0.0
    scale: float = 1.0
    seed: float | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.dtype, self.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return _scaled(
            build,
            self.infer(inputs)[0],
            numbers(build, self.shape, self.seed, normal=True),
            self.scale,
            self.mean,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((), {"shape": s, "seed": float(k), "mean": 2.0, "scale": 0.5})
            for k, s in enumerate(_SHAPES)
        ]


@operator("RandomUniformLike", draws=True)
class RandomUniformLike(Operator):
    """Numbers in [low, high) in the shape of the input, and in its type where `dtype` is absent."""

    dtype: DType | None = None
    high: float = 1.0
    low: float = 0.0
    seed: float | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.dtype or required(inputs).dtype, required(inputs).shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        kind = self.infer(inputs)[0]
        return _scaled(build, kind, numbers(build, kind.shape, self.seed), self.high - self.low, self.low)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample(_LIKE, {"seed": 5.0}),
            Sample((np.zeros(7, np.int32),), {"seed": 1.0, "dtype": DType.FLOAT32}),
        ]


@operator("RandomNormalLike", draws=True)
class RandomNormalLike(Operator):
    """Normally distributed numbers in the shape of the input, and in its type where `dtype` is absent."""

    dtype: DType | None = None
    mean: float = 0.0
    scale: float = 1.0
    seed: float | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.dtype or required(inputs).dtype, required(inputs).shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        kind = self.infer(inputs)[0]
        return _scaled(build, kind, numbers(build, kind.shape, self.seed, normal=True), self.scale, self.mean)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample(_LIKE, {"seed": 5.0}),
            Sample((np.zeros(7, np.int32),), {"seed": 1.0, "dtype": DType.FLOAT32}),
        ]


@operator("Bernoulli", draws=True)
class Bernoulli(Operator):
    """1 with the probability that the input says, else 0."""

    dtype: DType | None = None
    seed: float | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.dtype or required(inputs).dtype, required(inputs).shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        p = build(Cast(DType.FLOAT64), required(inputs))
        u = numbers(build, p.shape, self.seed)
        # As the reference draws: of the rarer result, by inversion.
        rare = build(op("Greater"), u, build(op("Sub"), build.constant(1.0, DType.FLOAT64), p))
        often = build(op("LessOrEqual"), u, p)
        hit = build(Where(), build(op("LessOrEqual"), p, build.constant(0.5, DType.FLOAT64)), rare, often)
        return [build(Cast(self.infer(inputs)[0].dtype), hit)]

    @classmethod
    def samples(cls) -> list[Sample]:
        p = np.linspace(0.01, 1, 60, dtype=np.float32).reshape(4, 15)
        return [Sample((p,), {"seed": 3.0}), Sample((p[0],), {"seed": 4.0, "dtype": DType.BOOL})]


@operator("Multinomial", draws=True)
class Multinomial(Operator):
    """Classes drawn with the probabilities whose logarithms, up to a constant, are in the rows of the
    input.
    """

    dtype: DType = DType.INT32
    sample_size: int = 1
    seed: float | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.type.rank != 2 or not x.shape[1] or self.sample_size < 1:
            raise OperatorError(f"cannot draw {self.sample_size} classes of {x.type}")
        return [TensorType(self.dtype, (x.shape[0], self.sample_size))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = build(Cast(DType.FLOAT64), required(inputs))
        rows, classes = x.shape
        p = build(OPERATORS["", "Softmax"](), x)
        total = build(CumSum(), p, build.constant(1, DType.INT64))
        u = build(ReshapeTo((rows, self.sample_size, 1)), numbers(build, (rows, self.sample_size), self.seed))
        above = build(op("LessOrEqual"), build(ReshapeTo((rows, 1, classes)), total), u)
        count = build(
            OPERATORS["", "ReduceSum"](keepdims=0),  # type: ignore[call-arg]
            build(Cast(DType.INT32), above),
            build.constant([2], DType.INT64),
        )
        # The sum of all may be a little less than 1.
        return [build(Cast(self.dtype), build(op("Min"), count, build.constant(classes - 1, DType.INT32)))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0], np.float64)
        p = np.exp(x - x.max(axis=1, keepdims=True))
        share = p.cumsum(axis=1) / p.sum(axis=1, keepdims=True)
        u = np.random.RandomState(int(self.seed or 0)).random_sample((x.shape[0], self.sample_size))
        drawn = [np.searchsorted(row[:-1], draws, side="right") for row, draws in zip(share, u, strict=True)]
        return [np.asarray(drawn, self.dtype.numpy).reshape(u.shape)]

    @classmethod
    def samples(cls) -> list[Sample]:
        certain = np.full((3, 5), -1e9, np.float32)
        certain[[0, 1, 2], [4, 0, 2]] = 0
        fair = np.log(np.asarray([[1, 2, 3, 4], [4, 4, 1, 1]], np.float32))
        return [
            Sample((certain,), {"sample_size": 6, "seed": 1.0}),
            Sample((certain,), {"seed": 2.0, "dtype": DType.INT64}),
            Sample((fair,), {"sample_size": 30, "seed": 7.0}),
        ]


@operator("Dropout", draws=True)
class Dropout(Operator):
    """x / (1 - ratio) where a random number is at least `ratio`, else 0, and that mask. The identity at
    inference.
    """

    seed: int | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        return [x.type, TensorType(DType.BOOL, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, ratio, training = (inputs[k] if k < len(inputs) else None for k in range(3))
        assert x is not None
        if training is None or (training.data is not None and not training.data.any()):
            every = build(Expand(), build.constant(True, DType.BOOL), build.constant(x.shape, DType.INT64))
            return [build(op("Identity"), x), every]
        ratio = build.constant(0.5, x.dtype) if ratio is None else ratio
        mask = build(
            op("GreaterOrEqual"), numbers(build, x.shape, self.seed), build(Cast(DType.FLOAT64), ratio)
        )
        scale = build(op("Reciprocal"), build(op("Sub"), build.constant(1.0, ratio.dtype), ratio))
        mask = build(op("Or"), mask, build(op("Not"), training))
        scale = build(Where(), training, scale, build.constant(1.0, ratio.dtype))
        kept = build(op("Mul"), build(op("Mul"), build(Cast(x.dtype), mask), x), build(Cast(x.dtype), scale))
        return [kept, mask]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
        ratio, on, off = np.asarray(0.25, np.float32), np.asarray(True), np.asarray(False)
        attributes = {"seed": 2}
        fixed = frozenset({1, 2})
        return [
            Sample((x,), outputs=2),
            Sample((x, ratio, on), attributes, fixed, 2),
            Sample((x, ratio, on), attributes, outputs=2),
            Sample((x, ratio, off), attributes, outputs=2),
            Sample((x, np.asarray(0, np.float32), on), attributes, fixed),
        ]
