/* movement: movement.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * model     SHA-256 0000000000000000000000000000000000000000000000000000000000000000
 * compiler  aot-model 0.1.0
 *
 * movement_run(), below the functions of the layers, calls them in order.
 *
 * Layers, in the order of the run; all numbers of steps in this file are those of this table:
 *
 *   step  function                 MACs  layer
 *      1  00_reduce_mean                 mean
 *
 * Memory (workspace: 40 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *       first byte        bytes           steps  holds
 *
 *    workspace + 0           32          0 to 1  input x
 *   workspace + 32            8          1 to 2  output y
 */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif

#include "movement.h"

#if MOVEMENT_BUILD != 0x0000000000000000u
#error "movement.c and movement.h are of different builds: make both again, or copy both"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "movement.c was made for c: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN) && defined(__ARM_ARCH_PROFILE) && \
    __ARM_ARCH_PROFILE == 'M'
#pragma message "movement.c was made for c: --target cortex-m4 would use the DSP instructions " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__AVX2__) && defined(__FMA__)
#pragma message "movement.c was made for c: --target host would use the AVX2 vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#pragma message "movement.c was made for c: --target host would use the NEON vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <math.h>
#include "aot_model/rational.h"

/* ---- layers ---- */

/* step 1: mean (ReduceMean): float32[1,2,4] -> float32[1,2]
 *   reads x at workspace + 0; writes y at workspace + 32 */
AOT_MODEL_OPAQUE static void movement_00_reduce_mean(const float *restrict x, float *restrict y)
{
    for (int32_t i = 0; i < 2; i++) {
        float t0 = 0.0f;
        for (int32_t r0 = 0; r0 < 4; r0++) {
            t0 = t0 + (r0 < 2 ? aot_model_logistic_float32(x[i * 4 + r0 + 1]) *
                x[i * 4 + r0 + 1] : x[i * 4 + r0 - 1]);
        }
        y[i] = t0 / 4.0f;
    }
}

/* ---- the model ---- */

#define AT(type, offset) ((type *)(void *)((uint8_t *)workspace + (offset)))

AOT_MODEL_OPAQUE movement_inputs movement_map_inputs(void *workspace)
{
    movement_inputs result;
    result.x = AT(float, 0);
    return result;
}

AOT_MODEL_OPAQUE movement_outputs movement_map_outputs(void *workspace)
{
    movement_outputs result;
    result.y = AT(float, 32);
    return result;
}

AOT_MODEL_OPAQUE int32_t movement_run(void *workspace)
{
    if (workspace == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (((uintptr_t)workspace & (MOVEMENT_WORKSPACE_ALIGN - 1u)) != 0u) {
        return AOT_MODEL_ERROR_ALIGNMENT;
    }
    /* step 1: mean */
    movement_00_reduce_mean(AT(float, 0), AT(float, 32));
    return AOT_MODEL_OK;
}

/* ---- metadata ---- */

static const aot_model_pool movement_metadata_pools[] = {
    { .name = "workspace", .c_name = "workspace", .bytes = 40u, .align = 16u },
};

static const aot_model_metadata movement_metadata_facts = {
    .magic = { 'A', 'O', 'T', 'M', 'O', 'D', 'E', 'L' },
    .version = AOT_MODEL_METADATA_VERSION,
    .flags = AOT_MODEL_FLAG_CALLER_WORKSPACE | AOT_MODEL_FLAG_IO_IN_WORKSPACE,
    .pointer_bytes = sizeof(void *),
    .self = &movement_metadata_facts,
    .name = "movement",
    .compiler = "0.1.0",
    .target = "c",
    .model_file = "movement.onnx",
    .model_sha256 = "0000000000000000000000000000000000000000000000000000000000000000",
    .inputs = NULL,
    .outputs = NULL,
    .pools = movement_metadata_pools,
    .layers = NULL,
    .structure = NULL,
    .num_inputs = 1,
    .num_outputs = 1,
    .num_pools = 1,
    .num_layers = 1u,
    .constant_bytes = 0u,
    .state_bytes = 0u,
    .lower_bound = 40u,
    .params_size = 0u,
    .params_align = 0u,
    .macs = UINT64_C(0),
};

const aot_model_metadata *movement_metadata(void)
{
    return &movement_metadata_facts;
}
