/* A simulator of TinyNPU: the driver's functions, computed by the processor. */
#include "tiny_npu.h"

#include <stddef.h>
#include <string.h>

int32_t tiny_npu_activate(tiny_npu *npu)
{
    if (npu->active) {
        return TINY_NPU_ERROR_STATE;
    }
    npu->active = 1;
    npu->activations++;
    return TINY_NPU_OK;
}

int32_t tiny_npu_deactivate(tiny_npu *npu)
{
    if (!npu->active || npu->opened) {
        return TINY_NPU_ERROR_STATE;
    }
    npu->active = 0;
    return TINY_NPU_OK;
}

int32_t tiny_npu_open(tiny_npu *npu)
{
    if (!npu->active || npu->opened) {
        return TINY_NPU_ERROR_STATE;
    }
    npu->opened = 1;
    return TINY_NPU_OK;
}

int32_t tiny_npu_close(tiny_npu *npu)
{
    if (!npu->opened) {
        return TINY_NPU_ERROR_STATE;
    }
    npu->opened = 0;
    return TINY_NPU_OK;
}

/* y = x * weights + bias for one pixel: x has `inputs` numbers, y has `outputs`. */
static void multiply(const float *x, int32_t inputs, const float *weights, const float *bias, float *y, int32_t outputs,
                     int32_t rectify)
{
    for (int32_t o = 0; o < outputs; o++) {
        float sum = bias[o];
        for (int32_t i = 0; i < inputs; i++) {
            sum += x[i] * weights[i * outputs + o];
        }
        y[o] = rectify && sum < 0.0f ? 0.0f : sum;
    }
}

/* The pixels of a window in a line, zeros where it is beyond the image. */
static void gather(const tiny_npu_command *c, const float *x, int32_t row, int32_t column, float *line)
{
    for (int32_t i = 0; i < c->window_height; i++) {
        for (int32_t j = 0; j < c->window_width; j++) {
            const int32_t from_row = row + i, from_column = column + j;
            float *const pixel = line + (size_t)((i * c->window_width + j) * c->in_channels);
            const size_t bytes = (size_t)c->in_channels * sizeof(float);

            if (from_row < 0 || from_row >= c->in_height || from_column < 0 || from_column >= c->in_width) {
                memset(pixel, 0, bytes);
            } else {
                memcpy(pixel, x + (size_t)((from_row * c->in_width + from_column) * c->in_channels), bytes);
            }
        }
    }
}

static void maximum(const tiny_npu_command *c, const float *x, int32_t row, int32_t column, float *y)
{
    for (int32_t channel = 0; channel < c->in_channels; channel++) {
        float largest = x[(row * c->in_width + column) * c->in_channels + channel];
        for (int32_t i = 0; i < c->window_height; i++) {
            for (int32_t j = 0; j < c->window_width; j++) {
                const float here = x[((row + i) * c->in_width + column + j) * c->in_channels + channel];
                largest = here > largest ? here : largest;
            }
        }
        y[channel] = largest;
    }
}

int32_t tiny_npu_execute(tiny_npu *npu, const tiny_npu_command *command, const float *x, const float *weights,
                         const float *bias, float *y, float *line)
{
    const tiny_npu_command *const c = command;

    if (!npu->opened) {
        return TINY_NPU_ERROR_STATE;
    }
    npu->commands++;
    for (int32_t p = 0; p < c->out_height; p++) {
        for (int32_t q = 0; q < c->out_width; q++) {
            float *const pixel = y + (size_t)((p * c->out_width + q) * c->out_channels);
            const int32_t row = p * c->stride_height - c->top, column = q * c->stride_width - c->left;

            switch (c->operation) {
            case TINY_NPU_CONVOLUTION:
                gather(c, x, row, column, line);
                multiply(line, c->window_height * c->window_width * c->in_channels, weights, bias, pixel, c->out_channels, c->rectify);
                break;
            case TINY_NPU_DENSE:
                multiply(x, c->in_channels, weights, bias, pixel, c->out_channels, c->rectify);
                break;
            case TINY_NPU_MAXIMUM:
                maximum(c, x, row, column, pixel);
                break;
            default:
                return TINY_NPU_ERROR_COMMAND;
            }
        }
    }
    return TINY_NPU_OK;
}
