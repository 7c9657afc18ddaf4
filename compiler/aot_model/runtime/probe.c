/* Compiled as a library of a model will be, with the same compiler and flags, and never linked: its object tells the
 * compiler of models, which looks for the text in it, what processor the flags are for (targets/detect.py).
 * A macro that is not defined stands for itself. */
#define AOT_MODEL_TEXT_(...) #__VA_ARGS__
#define AOT_MODEL_TEXT(...) AOT_MODEL_TEXT_(__VA_ARGS__)
#define AOT_MODEL_SAY(macro) #macro "=" AOT_MODEL_TEXT(macro) ";"

extern const char aot_model_probe[];
const char aot_model_probe[] =
    "aot-model" " probe:"
    AOT_MODEL_SAY(__ARM_ARCH)
    AOT_MODEL_SAY(__ARM_ARCH_PROFILE)
    AOT_MODEL_SAY(__ARM_ARCH_8M_BASE__)
    AOT_MODEL_SAY(__ARM_FEATURE_DSP)
    AOT_MODEL_SAY(__ARM_FEATURE_MVE)
    AOT_MODEL_SAY(__ARM_FEATURE_DOTPROD)
    AOT_MODEL_SAY(__ARM_FP)
    AOT_MODEL_SAY(__ARM_NEON)
    AOT_MODEL_SAY(__ARM_BIG_ENDIAN)
    AOT_MODEL_SAY(__aarch64__)
    AOT_MODEL_SAY(__x86_64__)
    AOT_MODEL_SAY(__SSE2__)
    AOT_MODEL_SAY(__AVX2__)
    AOT_MODEL_SAY(__FMA__)
    AOT_MODEL_SAY(__AVX512F__)
    AOT_MODEL_SAY(__AVX512VNNI__)
    AOT_MODEL_SAY(__ALTIVEC__)
    AOT_MODEL_SAY(__VX__)
    AOT_MODEL_SAY(__mips_msa)
    AOT_MODEL_SAY(__loongarch_sx)
    AOT_MODEL_SAY(__wasm_simd128__)
    AOT_MODEL_SAY(__riscv)
    AOT_MODEL_SAY(__riscv_xlen)
    AOT_MODEL_SAY(__riscv_vector)
    AOT_MODEL_SAY(__GNUC__)
    AOT_MODEL_SAY(__linux__)
    AOT_MODEL_SAY(__APPLE__);
