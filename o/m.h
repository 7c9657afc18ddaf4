/* m: har_tcn.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * input  input: float32[1,3,64]
 * output output: float32[1,6]
 * 350,352 multiply-accumulates, 22,968 bytes of constants, 12,288 bytes of workspace
 */
#ifndef M_H
#define M_H

#include "aot_model/model.h"

#if AOT_MODEL_ABI != 1
#error "m.h was made by another version of aot-model than the headers that it includes; use those of `aot-model --include-dir`"
#endif

#define M_BUILD 0x3cb6d44b60c546cfu /* m.c must be of the same build */

#ifdef __cplusplus
extern "C" {
#endif

#define M_WORKSPACE_SIZE 12288u
#define M_WORKSPACE_ALIGN 16u
#define M_INPUT_SIZE 768u /* bytes */
#define M_OUTPUT_SIZE 24u /* bytes */

/* Inputs and outputs lie inside the workspace: write the inputs, call m_run, read the outputs. The inputs
 * are overwritten by a run. */
#define M_INPUT_OFFSET 6936u
#define M_OUTPUT_OFFSET 0u

typedef struct {
    float *input; /* input: float32[1,3,64] */
} m_inputs;

typedef struct {
    float *output; /* output: float32[1,6] */
} m_outputs;

/* Addresses of the inputs and outputs inside the workspace. */
m_inputs m_map_inputs(void);
m_outputs m_map_outputs(void);
/* Run the model once. Returns 0, or a negative AOT_MODEL_ERROR_… of aot_model/model.h.
 * Not re-entrant: the library has one workspace. */
int32_t m_run(void);

/* What is known of the model, in flash. */
const aot_model_metadata *m_metadata(void);

#ifdef __cplusplus
}
#endif

#endif
