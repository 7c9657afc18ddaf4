/* dense: dense.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * model     SHA-256 0000000000000000000000000000000000000000000000000000000000000000
 * compiler  aot-model 0.1.0
 *
 * dense_run(), below the functions of the layers, calls them in order.
 * The values of the constants are at the end.
 *
 * Layers, in the order of the run; all numbers of steps in this file are those of this table:
 *
 *   step  function            MACs  layer
 *      1  00_matmul             12  dense
 */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif

#include "dense.h"

#if DENSE_BUILD != 0x0000000000000000u
#error "dense.c and dense.h are of different builds: make both again, or copy both"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "dense.c was made for c: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN) && defined(__ARM_ARCH_PROFILE) && \
    __ARM_ARCH_PROFILE == 'M'
#pragma message "dense.c was made for c: --target cortex-m4 would use the DSP instructions " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__AVX2__) && defined(__FMA__)
#pragma message "dense.c was made for c: --target host would use the AVX2 vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#pragma message "dense.c was made for c: --target host would use the NEON vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include "aot_model/scalar.h"

/* ---- constants: 60 bytes; their values are at the end of this file ---- */

/* dense_weights: float32[15]; for each block of channels: bias, if any; for each tap those of the block */
static const float dense_c_dense_weights[15];

static inline float f32_fma(float a, float b, float acc)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA))
    return __builtin_fmaf(a, b, acc);
#else
    return acc + a * b; /* fmaf() would be a library call */
#endif
}

/* ---- layers ---- */

/* 1 pixel x 3 channels in registers
 * step 1: dense (MatMul): float32[1,4] * float32[4,3] -> float32[1,3], 12 MACs
 *   reads x at inputs->features; writes y at outputs->scores */
AOT_MODEL_OPAQUE static void dense_00_matmul(const float *restrict x, const float *restrict weights,
    float *restrict y)
{
    const float *const x0 = x;
    {
        const float *w = weights;
        float acc0_0 = w[0];
        float acc0_1 = w[1];
        float acc0_2 = w[2];
        w += 3;
        const float *a0 = x0;
        {
            const float e0 = a0[0];
            const float w2 = w[2];
            acc0_2 = f32_fma(w2, e0, acc0_2);
            const float w1 = w[1];
            acc0_1 = f32_fma(w1, e0, acc0_1);
            const float w0 = w[0];
            acc0_0 = f32_fma(w0, e0, acc0_0);
        }
        {
            const float e0 = a0[1];
            const float w2 = w[5];
            acc0_2 = f32_fma(w2, e0, acc0_2);
            const float w1 = w[4];
            acc0_1 = f32_fma(w1, e0, acc0_1);
            const float w0 = w[3];
            acc0_0 = f32_fma(w0, e0, acc0_0);
        }
        {
            const float e0 = a0[2];
            const float w2 = w[8];
            acc0_2 = f32_fma(w2, e0, acc0_2);
            const float w1 = w[7];
            acc0_1 = f32_fma(w1, e0, acc0_1);
            const float w0 = w[6];
            acc0_0 = f32_fma(w0, e0, acc0_0);
        }
        {
            const float e0 = a0[3];
            const float w2 = w[11];
            acc0_2 = f32_fma(w2, e0, acc0_2);
            const float w1 = w[10];
            acc0_1 = f32_fma(w1, e0, acc0_1);
            const float w0 = w[9];
            acc0_0 = f32_fma(w0, e0, acc0_0);
        }
        a0 += 4;
        w += 12;
        y[0] = aot_model_max_float32(acc0_0, 0.0f);
        y[1] = aot_model_max_float32(acc0_1, 0.0f);
        y[2] = aot_model_max_float32(acc0_2, 0.0f);
    }
}

/* ---- the model ---- */

AOT_MODEL_OPAQUE int32_t dense_run(const dense_inputs *inputs, const dense_outputs *outputs)
{
    if (inputs == NULL || outputs == NULL || inputs->features == NULL || outputs->scores == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    /* step 1: dense */
    dense_00_matmul(inputs->features, dense_c_dense_weights, outputs->scores);
    return AOT_MODEL_OK;
}

/* ---- metadata ---- */

static const int32_t dense_input0_shape[] = { 1, 4 };

static const aot_model_tensor dense_input_info[] = {
    {
        .name = "features",
        .c_name = "features",
        .shape = dense_input0_shape,
        .bytes = 16u,
        .quantised = 0,
        .axis = -1,
        .rank = 2,
        .dtype = AOT_MODEL_FLOAT32,
    },
};

static const int32_t dense_output0_shape[] = { 1, 3 };

static const aot_model_tensor dense_output_info[] = {
    {
        .name = "scores",
        .c_name = "scores",
        .shape = dense_output0_shape,
        .bytes = 12u,
        .quantised = 0,
        .axis = -1,
        .rank = 2,
        .dtype = AOT_MODEL_FLOAT32,
    },
};

/* {name, operator, MACs, workspace in use, bytes of constants} */
static const aot_model_layer dense_metadata_layers[] = {
    { "dense", "MatMul", UINT64_C(12), 0u, 60u },
};

static const aot_model_pool dense_metadata_pools[] = {
    { .name = "workspace", .c_name = "workspace", .bytes = 0u, .align = 16u },
};

static const aot_model_metadata dense_metadata_facts = {
    .magic = { 'A', 'O', 'T', 'M', 'O', 'D', 'E', 'L' },
    .version = AOT_MODEL_METADATA_VERSION,
    .pointer_bytes = sizeof(void *),
    .self = &dense_metadata_facts,
    .name = "dense",
    .compiler = "0.1.0",
    .target = "c",
    .model_file = "dense.onnx",
    .model_sha256 = "0000000000000000000000000000000000000000000000000000000000000000",
    .inputs = dense_input_info,
    .outputs = dense_output_info,
    .pools = dense_metadata_pools,
    .layers = dense_metadata_layers,
    .structure = NULL,
    .num_inputs = 1,
    .num_outputs = 1,
    .num_pools = 1,
    .num_layers = 1u,
    .constant_bytes = 60u,
    .state_bytes = 0u,
    .lower_bound = 0u,
    .params_size = 0u,
    .params_align = 0u,
    .macs = UINT64_C(12),
};

const aot_model_metadata *dense_metadata(void)
{
    return &dense_metadata_facts;
}

/* ---- values of the constants ---- */

static const float dense_c_dense_weights[15] = {
    0.5f, 0.0f, -0.5f, -1.5f, -0.5f, 0.5f, -1.25f, -0.25f, 0.75f, -1.0f, 0.0f, 1.0f, -0.75f, 0.25f,
    1.25f
};
