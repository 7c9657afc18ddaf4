/* movement: movement.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * input  x: float32[1,2,4]
 * output y: float32[1,2]
 * 0 multiply-accumulates, 0 bytes of constants, 40 bytes of workspace
 */
#ifndef MOVEMENT_H
#define MOVEMENT_H

#include "aot_model/model.h"

#if AOT_MODEL_ABI != 1
#error "movement.h was made by another version of aot-model than the headers that it includes; use those of `aot-model --include-dir`"
#endif

#define MOVEMENT_BUILD 0x0000000000000000u /* movement.c must be of the same build */

#ifdef __cplusplus
extern "C" {
#endif

#define MOVEMENT_WORKSPACE_SIZE 40u
#define MOVEMENT_WORKSPACE_ALIGN 16u
#define MOVEMENT_X_SIZE 32u /* bytes */
#define MOVEMENT_Y_SIZE 8u /* bytes */

/* Inputs and outputs lie inside the workspace: write the inputs, call movement_run, read the outputs. The inputs
 * are overwritten by a run. */
#define MOVEMENT_X_OFFSET 0u
#define MOVEMENT_Y_OFFSET 32u

typedef struct {
    float *x; /* x: float32[1,2,4] */
} movement_inputs;

typedef struct {
    float *y; /* y: float32[1,2] */
} movement_outputs;

/* Addresses of the inputs and outputs inside the workspace. */
movement_inputs movement_map_inputs(void *workspace);
movement_outputs movement_map_outputs(void *workspace);
/* Run the model once. Returns 0, or a negative AOT_MODEL_ERROR_… of aot_model/model.h.
 * workspace: MOVEMENT_WORKSPACE_SIZE bytes at a multiple of MOVEMENT_WORKSPACE_ALIGN; calls with different
 * workspaces may run at the same time. */
int32_t movement_run(void *workspace);

/* What is known of the model, in flash. */
const aot_model_metadata *movement_metadata(void);

#ifdef __cplusplus
}
#endif

#endif
