/* The driver of TinyNPU, an accelerator that exists in this file's imagination only: tiny_npu.c computes what it would. */
#ifndef TINY_NPU_H
#define TINY_NPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function of the driver returns. */
#define TINY_NPU_OK 0
#define TINY_NPU_ERROR_STATE (-100)   /* not active, not open, or open already */
#define TINY_NPU_ERROR_COMMAND (-101) /* a command that the device does not have */

/* One device. Counters begin at 0. */
typedef struct {
    int32_t active;
    int32_t opened;
    uint32_t activations; /* how often it was switched on */
    uint32_t commands;    /* layers computed */
} tiny_npu;

typedef enum { TINY_NPU_CONVOLUTION = 1, TINY_NPU_DENSE, TINY_NPU_MAXIMUM } tiny_npu_operation;

/* A layer. Extents in elements; images are height x width x channels, channels last. */
typedef struct {
    tiny_npu_operation operation;
    int32_t in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t window_height, window_width;
    int32_t stride_height, stride_width;
    int32_t top, left; /* padding */
    int32_t rectify;   /* 1: negative results become 0 */
} tiny_npu_command;

/* Power on and off, around a run of a model. */
int32_t tiny_npu_activate(tiny_npu *npu);
int32_t tiny_npu_deactivate(tiny_npu *npu);
/* Take and give back the bus, around each layer. */
int32_t tiny_npu_open(tiny_npu *npu);
int32_t tiny_npu_close(tiny_npu *npu);

/* Compute a layer. weights: [tap][in channel][out channel], for dense layers [in][out]; bias: one for each output channel;
 * line: room for the pixels of a window, for convolutions. */
int32_t tiny_npu_execute(tiny_npu *npu, const tiny_npu_command *command, const float *x, const float *weights,
                         const float *bias, float *y, float *line);

#ifdef __cplusplus
}
#endif

#endif
