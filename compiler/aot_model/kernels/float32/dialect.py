"""What a float32 kernel must know of an instruction set: its vector type, the C of a few operations, its
costs. dialects.py has a row for each set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aot_model.arithmetic import rational
from aot_model.kernels.float32.sums_fpv4 import FPV4


@dataclass(frozen=True)
class Costs:
    """Cost of one step of an inner loop, from which the shape of the register block is chosen.

    An in-order core issues everything one after another; a superscalar one is bound by its busiest unit, or
    by the latency of a chain of dependent FMAs. Units are cycles; `in_order` cores count one per instruction.
    """

    in_order: bool
    fma: float = 1.0
    """Cycles of an FMA where it is not one, in order."""
    fma_per_cycle: float = 1.0
    loads_per_cycle: float = 1.0
    latency: float = 1.0
    """Of a step whose FMAs depend on those of the step before."""
    loop: float = 3.0
    """Counter, branch and pointer updates of one iteration of an inner loop."""
    call: float = 12.0
    """Set-up of one inner loop: pointers, bounds."""
    pixel: float = 8.0
    """Finding the next pixel."""
    unroll: int = 2
    """Steps in the body of an inner loop."""
    pixels: int = 6
    """Most pixels of a block: each needs a core register for its pointer."""
    near: int | None = None
    """Bytes of weights that stay in the nearest cache; None: all memory is equally far."""
    far_bytes: float = 1.0
    """Bytes per cycle of weights that do not."""
    cache: int | None = None
    """Bytes of weights that may be read again for every block of pixels; None: any number."""

    def step(self, pixels: int, vectors: int, unroll: int, far: float) -> float:
        """Cycles of one input element times `vectors` vectors of output channels for `pixels` pixels.

        far: bytes of weights that come from beyond the nearest cache.
        """
        fmas, loads = pixels * vectors, pixels + vectors
        if self.in_order:
            return self.fma * fmas + loads + self.loop / unroll
        return max(
            fmas / self.fma_per_cycle, loads / self.loads_per_cycle, self.latency, far / self.far_bytes
        )


@dataclass(frozen=True)
class VectorDialect:
    """C of vector operations. The format strings take expressions: {p} pointer, {a} {b} {acc} vectors, {s}
    scalar.
    """

    name: str
    lanes: int
    ctype: str
    registers: int
    """Vector registers; the accumulators, the operands that are held and one that streams must fit in."""
    costs: Costs
    load_text: str = "{p}[0]"
    store_text: str = "{p}[0] = {a}"
    splat_text: str = "{s}"
    fma_text: str = "f32_fma({a}, {b}, {acc})"
    fma_scalar_text: str | None = None
    """FMA of a vector with a scalar; None where the scalar must be broadcast to a vector first."""
    add_text: str = "{a} + {b}"
    sub_text: str = "{a} - {b}"
    mul_text: str = "{a} * {b}"
    div_text: str | None = None
    """None where vectors cannot be divided, and where a product and a sum are rounded twice: what is to be
    right to the last bit is computed without vectors then."""
    max_text: str = "f32_max({a}, {b})"
    min_text: str = "f32_min({a}, {b})"
    at_least_text: str | None = None
    """max_text where `a` is a constant from 0 on; None where that is the same."""
    window_text: str | None = None
    """The larger of an element of a window and those before it where that is not max_text."""
    sum_text: str = "{a}"
    """Sum of the lanes."""
    first_text: str = "{a}"
    """The first lane."""
    load_some_text: str | None = None
    """Load of the first {n} lanes, the others being 0; None where vectors are loaded and stored whole."""
    store_some_text: str | None = None
    """Store of the first {n} lanes."""
    used: int | None = None
    """Lanes that are loaded and stored; None: all."""
    packed_text: str | None = None
    """Load of a whole vector where load_text is of some lanes: of what is packed in whole vectors."""
    hold_text: str | None = None
    """Keeps a loaded vector in its register. gcc tuned for AMD's Zen otherwise repeats the load as memory
    operand of every use, and loads, not FMAs, become the limit."""
    early_text: str = "{a}"
    """A loaded scalar, of several that are to be loaded one behind the other, before any is used."""
    includes: frozenset[str] = frozenset()
    check: tuple[str, str] | None = None
    """(preprocessor condition for these intrinsics, what to do where it does not hold)."""
    scalar_in_vector: bool = True
    """A streamed input element occupies a vector register (not so where FMA takes a core register)."""

    sums_fpv4: bool = False
    """Blocks of sums are the functions of sums_fpv4.py."""

    halves: bool = False
    """Whether halves of words in the FPU become floats (aot_model/few_bits.h)."""

    gathers: bool = False
    """Whether a vector of elements that are apart from each other is loaded at once (`gather`)."""

    rounds_apart: bool = False
    """Whether products and sums are rounded one by one, and functions of them, too (lowering/sums.py)."""

    divides_together: bool = False
    """Whether gates are quotients that are divided together (aot_model/gates.h)."""

    written: int = 0
    """Most products of windows that stand one behind the other in place of a loop over rows of taps, which
    takes as long as a sixth of a row of three.
    """

    sliding: tuple[tuple[float, float], ...] = ()
    """(most input channels, most loads for each product of a row of taps) of convolutions that are faster as
    depthwise ones (pool.sliding), since neighbouring windows share much of what they read.
    """

    functions: bool = False
    """Whether there are functions of vectors (aot_model/float_vectors.h)."""

    quantises: bool = False
    """Whether floats that become integers are stored as vectors (aot_model/float_vectors.h)."""

    def slides(self, channels: int) -> float:
        """Most loads for each product with which a convolution of so many channels is faster as a depthwise
        one; 0: it never is.
        """
        return next((loads for most, loads in self.sliding if channels <= most), 0.0)

    @property
    def loads_some(self) -> bool:
        """Whether there are loads and stores of the first lanes of a vector."""
        return self.load_some_text is not None

    def some(self, lanes: int) -> VectorDialect:
        """The dialect for vectors of which memory has the first lanes alone, more than one."""
        if lanes == self.lanes:
            return self
        assert self.load_some_text and self.store_some_text and 1 < lanes < self.lanes
        load, store = (
            text.replace("{n}", str(lanes)) for text in (self.load_some_text, self.store_some_text)
        )
        return replace(self, load_text=load, store_text=store, used=lanes, packed_text=self.load_text)

    def load(self, p: str) -> str:
        return self.load_text.format(p=p)

    def load_at(self, base: str, offset: int) -> str:
        """Load from `offset` elements after the pointer `base`."""
        if self.lanes == 1:
            return f"{base}[{offset}]"
        return self.load(f"{base} + {offset}" if offset else base)

    def load_packed(self, base: str, offset: int) -> str:
        """As `load_at`, of what is packed in whole vectors."""
        whole = self if self.packed_text is None else replace(self, load_text=self.packed_text)
        return whole.load_at(base, offset)

    def load_held(self, base: str, offset: int) -> str:
        """As `load_at`, for a vector that several operations use."""
        load = self.load_at(base, offset)
        return self.hold_text.format(a=load) if self.hold_text else load

    def places(self, apart: int) -> str:
        """C that declares the places of a vector's elements, `apart` elements from each other."""
        return f"const uint32x4_t places = vmulq_n_u32(aot_model_lanes_u32(), {apart});"

    def gather(self, base: str, offset: int) -> str:
        """As `load_at`, of elements at `places`."""
        return f"{self.name}_gather({f'{base} + {offset}' if offset else base}, places)"

    @property
    def overlaps_loads(self) -> bool:
        """Whether loads take less time one behind the other."""
        return self.early_text != "{a}"

    def load_early(self, base: str, offset: int) -> str:
        """As `load_at`, of a scalar: before what follows, whatever the compiler thinks of it."""
        return self.early_text.format(a=f"{base}[{offset}]")

    def store(self, p: str, a: str) -> str:
        return self.store_text.format(p=p, a=a) + ";"

    def splat(self, s: str) -> str:
        return self.splat_text.format(s=s)

    def fma(self, a: str, b: str, acc: str) -> str:
        """a * b + acc, all vectors."""
        return self.fma_text.format(a=a, b=b, acc=acc)

    def add(self, a: str, b: str) -> str:
        return self.add_text.format(a=a, b=b)

    def sub(self, a: str, b: str) -> str:
        return self.sub_text.format(a=a, b=b)

    def mul(self, a: str, b: str) -> str:
        return self.mul_text.format(a=a, b=b)

    def maximum(self, a: str, b: str) -> str:
        return self.max_text.format(a=a, b=b)

    def at_least(self, low: str, a: str) -> str:
        """The larger of a constant from 0 on and a number."""
        return (self.at_least_text or self.max_text).format(a=low, b=a)

    def window_maximum(self, element: str, most: str) -> str:
        """What is no number is left out: of NaN and a number instructions return the second."""
        return (self.window_text or self.max_text).format(a=element, b=most)

    def minimum(self, a: str, b: str) -> str:
        return self.min_text.format(a=a, b=b)

    def first(self, a: str) -> str:
        """The first lane, a scalar."""
        return self.first_text.format(a=a)

    def sum(self, a: str) -> str:
        """The sum of all lanes, a scalar."""
        return self.sum_text.format(a=a)

    @property
    def element_type(self) -> str:
        """C type of an input element that is held for several FMAs."""
        return self.ctype if self.fma_scalar_text is None else "float"

    def element(self, s: str) -> str:
        """A scalar in the form in which `fma_element` takes it."""
        return self.splat(s) if self.fma_scalar_text is None else s

    def fma_element(self, a: str, s: str, acc: str) -> str:
        """a * s + acc; a, acc vectors, s an `element`."""
        return (self.fma_scalar_text or self.fma_text).format(a=a, b=s, s=s, acc=acc)

    def helpers(self, text: str) -> tuple[str, ...]:
        """The static inline functions of this file that `text` calls (one unused would be a warning)."""
        functions = [self._rational(kind) for kind in _RATIONAL if f"{self.function(kind)}(" in text]
        text = "\n".join((text, *functions))
        used = [name for name in HELPERS if f"{name}(" in text or (name == "f32x4" and "f32x4" in text)]
        return (*(HELPERS[name] for name in used), *functions)

    def function(self, op: str) -> str:
        """The name of a function of one vector, of those in _RATIONAL."""
        return f"{op}_{self.name}"

    def _rational(self, op: str) -> str:
        """A function of runtime/include/aot_model/rational.h on vectors."""
        odd, even, limit = _RATIONAL[op]

        def number(value: float) -> str:
            return self.splat(f"{value!r}f")

        def horner(name: str, coefficients: tuple[float, ...]) -> str:
            steps = [f"{name} = {self.fma(name, 'square', number(c))};" for c in coefficients[1:]]
            return "".join(
                f"    {line}\n" for line in (f"{self.ctype} {name} = {number(coefficients[0])};", *steps)
            )

        assert self.div_text is not None
        quotient = self.div_text.format(a=self.mul("odd", "x"), b="even")
        if op == "rational_logistic":
            quotient = self.maximum(number(0.0), self.add(quotient, number(0.5)))
        # Of a pair with a NaN the second operand is the result: a NaN stays one.
        clamped = self.minimum(number(limit), self.maximum(number(-limit), "x"))
        return (
            f"static inline {self.ctype} {self.function(op)}({self.ctype} x)\n{{\n    x = {clamped};\n    "
            f"const {self.ctype} square = {self.mul('x', 'x')};\n"
            f"{horner('odd', odd)}{horner('even', even)}    return {quotient};\n}}\n"
        )


_RATIONAL = {
    "rational_tanh": (rational.TANH_ODD, rational.TANH_EVEN, rational.TANH_RANGE),
    "rational_logistic": (rational.LOGISTIC_ODD, rational.LOGISTIC_EVEN, rational.LOGISTIC_RANGE),
}
"""Scalar operations that are such quotients: coefficients and range."""

HELPERS: dict[str, str] = {
    "f32_product": f"""\
static inline float f32_product(float a, float b)
{{
{FPV4}
    float product; /* that no compiler makes part of a multiply-add */
    __asm__("vmul.f32 %0, %1, %2" : "=t"(product) : "t"(a), "t"(b));
    return product;
#else
    return a * b;
#endif
}}
""",
    "f32_early": f"""\
static inline float f32_early(float a)
{{
{FPV4}
    __asm__ volatile("" : "+t"(a)); /* loads one behind the other overlap */
#endif
    return a;
}}
""",
    "f32_fma": """\
static inline float f32_fma(float a, float b, float acc)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA))
    return __builtin_fmaf(a, b, acc);
#else
    return acc + a * b; /* fmaf() would be a library call */
#endif
}
""",
    "f32_max": """\
static inline float f32_max(float a, float b)
{
    return a > b ? a : b;
}
""",
    "f32_min": """\
static inline float f32_min(float a, float b)
{
    return a < b ? a : b;
}
""",
    "f32x4": """\
#pragma GCC diagnostic ignored "-Wpsabi" /* how vectors are passed where there are none: these functions are of this file */
typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t s32x4 __attribute__((vector_size(16)));
""",  # noqa: E501
    "f32x4_load": """\
static inline f32x4 f32x4_load(const float *p)
{
    f32x4 v;
    memcpy(&v, p, sizeof v);
    return v;
}
""",
    "f32x4_store": """\
static inline void f32x4_store(float *p, f32x4 v)
{
    memcpy(p, &v, sizeof v);
}
""",
    "f32x4_splat": """\
static inline f32x4 f32x4_splat(float s)
{
    return (f32x4){s, s, s, s};
}
""",
    "f32x4_sum": """\
static inline float f32x4_sum(f32x4 a)
{
    return (a[0] + a[1]) + (a[2] + a[3]);
}
""",
    "f32x8_sum": """\
static inline float f32x8_sum(__m256 a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
""",
    "f32x8_hold": """\
static inline __m256 f32x8_hold(__m256 a)
{
#ifdef __GNUC__
    __asm__("" : "+x"(a)); /* in a register: not loaded again for every use */
#endif
    return a;
}
""",
    "f32x16_hold": """\
static inline __m512 f32x16_hold(__m512 a)
{
#ifdef __GNUC__
    __asm__("" : "+v"(a)); /* in a register: not loaded again for every use */
#endif
    return a;
}
""",
    "mve_sum": """\
static inline float mve_sum(float32x4_t a)
{
    return (vgetq_lane_f32(a, 0) + vgetq_lane_f32(a, 1)) + (vgetq_lane_f32(a, 2) + vgetq_lane_f32(a, 3));
}
""",
    "mve_max": """\
/* Of NaN and a number the second, as other vectors have it: vmaxnmq knows no NaN. */
static inline float32x4_t mve_max(float32x4_t a, float32x4_t b)
{
    return vpselq_f32(a, b, vcmpgtq_f32(a, b));
}
""",
    "mve_at_least": """\
/* Bits of numbers from 0 on have their order, those of a NaN, which is positive on Helium, are above. */
static inline float32x4_t mve_at_least(float32x4_t low, float32x4_t x)
{
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(low), vreinterpretq_s32_f32(x)));
}
""",
    "mve_min": """\
static inline float32x4_t mve_min(float32x4_t a, float32x4_t b)
{
    return vpselq_f32(a, b, vcmpgtq_f32(b, a)); /* which is false where one is no number; vcmpltq is true */
}
""",
    "mve_gather": """\
static inline float32x4_t mve_gather(const float *p, uint32x4_t places)
{
    return vldrwq_gather_shifted_offset_f32(aot_model_read_float(p), places);
}
""",
    "f32x4_max": """\
static inline f32x4 f32x4_max(f32x4 a, f32x4 b)
{
    const s32x4 m = a > b;
    return (f32x4)((m & (s32x4)a) | (~m & (s32x4)b));
}
""",
    "f32x4_min": """\
static inline f32x4 f32x4_min(f32x4 a, f32x4 b)
{
    const s32x4 m = a < b;
    return (f32x4)((m & (s32x4)a) | (~m & (s32x4)b));
}
""",
}
