"""The table of instruction sets for float32 kernels; dialect.py says what a row is.

`v4` needs nothing but GCC's vector extension (GCC and Clang, any CPU), the others use the intrinsics of their
instruction set, because the vector extension alone does not contract a multiplication and an addition under
-std=c99. Loads and stores need the alignment of one element only.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from aot_model.kernels.float32.dialect import Costs, VectorDialect


def _x86(
    name: str, lanes: int, bits: int, registers: int, sum_text: str, condition: str, flags: str
) -> VectorDialect:
    """AVX: the same intrinsics for 256 and 512 bits."""
    mm = f"_mm{bits}"
    return VectorDialect(
        name=name,
        lanes=lanes,
        ctype=f"__m{bits}",
        registers=registers,
        costs=_SUPERSCALAR,
        load_text=mm + "_loadu_ps({p})",
        store_text=mm + "_storeu_ps({p}, {a})",
        splat_text=mm + "_set1_ps({s})",
        fma_text=mm + "_fmadd_ps({a}, {b}, {acc})",
        add_text=mm + "_add_ps({a}, {b})",
        sub_text=mm + "_sub_ps({a}, {b})",
        mul_text=mm + "_mul_ps({a}, {b})",
        div_text=mm + "_div_ps({a}, {b})",
        max_text=mm + "_max_ps({a}, {b})",
        min_text=mm + "_min_ps({a}, {b})",
        sum_text=sum_text,
        hold_text=f"f32x{lanes}_hold({{a}})",
        includes=frozenset({"immintrin.h"}),
        check=(
            condition,
            f"compile with {flags}, or -march=native on a processor that has it; or pass --target "
            "host,vector=v4 (any processor), host,vector=neon (AArch64)",
        ),
    )


_SUPERSCALAR = Costs(
    in_order=False,
    fma_per_cycle=2,
    loads_per_cycle=2,
    latency=5.5,
    pixel=2,
    pixels=8,
    near=24 * 1024,
    far_bytes=22,
    cache=256 * 1024,
)

# 28 of the 32 single-precision registers: where loads are scheduled early (gcc for the M33) more of them
# would spill
SCALAR = VectorDialect(
    "scalar", 1, "float", 28, Costs(in_order=True), fma_scalar_text="f32_fma({a}, {s}, {acc})"
)

FPV5 = replace(
    SCALAR, name="fpv5", halves=True, divides_together=True, written=48, sliding=((8, 0.62), (inf, 0.45))
)

# Products and sums rounded one by one; on a Cortex-M4 VMUL and VADD take two cycles, VFMA three.
APART = VectorDialect(
    "apart",
    1,
    "float",
    26,
    Costs(in_order=True, fma=2.0),
    fma_text="{acc} + f32_product({a}, {b})",
    fma_scalar_text="{acc} + f32_product({a}, {s})",
    early_text="f32_early({a})",
    sums_fpv4=True,
    halves=True,
    rounds_apart=True,
    divides_together=True,
    written=48,
    sliding=((4, 0.62), (inf, 0.42)),
)

V4 = VectorDialect(
    name="v4",
    lanes=4,
    ctype="f32x4",
    registers=16,
    costs=_SUPERSCALAR,
    load_text="f32x4_load({p})",
    store_text="f32x4_store({p}, {a})",
    splat_text="f32x4_splat({s})",
    fma_text="{acc} + {a} * {b}",
    max_text="f32x4_max({a}, {b})",
    min_text="f32x4_min({a}, {b})",
    sum_text="f32x4_sum({a})",
    includes=frozenset({"string.h"}),
)

NEON = VectorDialect(
    name="neon",
    lanes=4,
    ctype="float32x4_t",
    registers=32,
    costs=_SUPERSCALAR,
    load_text="vld1q_f32({p})",
    store_text="vst1q_f32({p}, {a})",
    splat_text="vdupq_n_f32({s})",
    fma_text="vfmaq_f32({acc}, {a}, {b})",
    fma_scalar_text="vfmaq_n_f32({acc}, {a}, {s})",
    add_text="vaddq_f32({a}, {b})",
    sub_text="vsubq_f32({a}, {b})",
    mul_text="vmulq_f32({a}, {b})",
    div_text="vdivq_f32({a}, {b})",
    max_text="vmaxq_f32({a}, {b})",
    min_text="vminq_f32({a}, {b})",
    sum_text="vaddvq_f32({a})",
    includes=frozenset({"arm_neon.h"}),
    check=(
        "defined(__aarch64__) && defined(__ARM_NEON)",
        "compile for AArch64, or pass --target host,vector=v4 (any processor)",
    ),
)

MVE = VectorDialect(
    name="mve",
    lanes=4,
    ctype="float32x4_t",
    registers=8,
    costs=Costs(in_order=True, loop=1.0, unroll=1),
    load_text="aot_model_load_f32({p})",
    store_text="aot_model_store_f32({p}, {a})",
    splat_text="vdupq_n_f32({s})",
    fma_text="vfmaq_f32({acc}, {a}, {b})",
    fma_scalar_text="vfmaq_n_f32({acc}, {a}, {s})",
    add_text="vaddq_f32({a}, {b})",
    sub_text="vsubq_f32({a}, {b})",
    mul_text="vmulq_f32({a}, {b})",
    div_text=None,
    max_text="mve_max({a}, {b})",
    min_text="mve_min({a}, {b})",
    at_least_text="mve_at_least({a}, {b})",
    window_text="vmaxnmq_f32({a}, {b})",
    sum_text="mve_sum({a})",
    first_text="vgetq_lane_f32({a}, 0)",
    load_some_text="aot_model_load_some_f32({p}, {n})",
    store_some_text="aot_model_store_some_f32({p}, {a}, {n})",
    includes=frozenset({"aot_model/helium.h"}),
    scalar_in_vector=False,
    gathers=True,
    functions=True,
    quantises=True,
    # scalars are in core registers; rows of five taps and more hold the weights for several outputs
    sliding=((4, 1.6), (16, 0.7)),
)

# one register less than there are: with the last one in use gcc spills as soon as it moves a load forward
V8 = _x86("v8", 8, 256, 15, "f32x8_sum({a})", "defined(__AVX2__) && defined(__FMA__)", "-mavx2 -mfma")
V16 = _x86("v16", 16, 512, 31, "_mm512_reduce_add_ps({a})", "defined(__AVX512F__)", "-mavx512f")

DIALECTS: dict[str, VectorDialect] = {d.name: d for d in (SCALAR, FPV5, APART, V4, NEON, V8, V16, MVE)}
