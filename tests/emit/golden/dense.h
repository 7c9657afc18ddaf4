/* dense: dense.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * input  features: float32[1,4]
 * output scores: float32[1,3]
 * 12 multiply-accumulates, 60 bytes of constants, 0 bytes of workspace
 */
#ifndef DENSE_H
#define DENSE_H

#include "aot_model/model.h"

#if AOT_MODEL_ABI != 1
#error "dense.h was made by another version of aot-model than the headers that it includes; use those of `aot-model --include-dir`"
#endif

#define DENSE_BUILD 0x0000000000000000u /* dense.c must be of the same build */

#ifdef __cplusplus
extern "C" {
#endif

#define DENSE_WORKSPACE_SIZE 0u
#define DENSE_WORKSPACE_ALIGN 16u
#define DENSE_FEATURES_SIZE 16u /* bytes */
#define DENSE_SCORES_SIZE 12u /* bytes */

typedef struct {
    const float *features; /* features: float32[1,4] */
} dense_inputs;

typedef struct {
    float *scores; /* scores: float32[1,3] */
} dense_outputs;

/* Run the model once. Returns 0, or a negative AOT_MODEL_ERROR_… of aot_model/model.h.
 * Not re-entrant: the library has one workspace. */
int32_t dense_run(const dense_inputs *inputs, const dense_outputs *outputs);

/* What is known of the model, in flash. */
const aot_model_metadata *dense_metadata(void);

#ifdef __cplusplus
}
#endif

#endif
