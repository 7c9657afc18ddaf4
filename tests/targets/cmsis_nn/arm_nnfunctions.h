/* A stand-in for CMSIS-NN in tests: the part of its published C interface that generated code calls.
 *
 * Names, types and signatures are those of the library (Arm, https://github.com/ARM-software/CMSIS-NN), so that the
 * same generated code compiles against both; the text and the implementation in cmsis_nn.c are this project's own.
 */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stdint.h>

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP == 1 && !defined(ARM_MATH_DSP)
#define ARM_MATH_DSP 1
#endif
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && !defined(ARM_MATH_MVEI)
#define ARM_MATH_MVEI 1
#endif

typedef enum {
    ARM_CMSIS_NN_SUCCESS = 0,
    ARM_CMSIS_NN_ARG_ERROR = -1,
    ARM_CMSIS_NN_NO_IMPL_ERROR = -2,
    ARM_CMSIS_NN_FAILURE = -3
} arm_cmsis_nn_status;

typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
typedef struct { int32_t multiplier, shift; } cmsis_nn_per_tensor_quant_params;
typedef struct { int32_t min, max; } cmsis_nn_activation;

typedef struct {
    int32_t input_offset, output_offset;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;

typedef struct {
    int32_t input_offset, output_offset, ch_mult;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;

typedef struct {
    cmsis_nn_tile stride, padding;
    cmsis_nn_activation activation;
} cmsis_nn_pool_params;

typedef struct {
    int32_t input_offset, filter_offset, output_offset;
    cmsis_nn_activation activation;
} cmsis_nn_fc_params;

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *params,
                                            const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x_dims, const int8_t *x,
                                            const cmsis_nn_dims *w_dims, const int8_t *w, const cmsis_nn_dims *bias_dims,
                                            const int32_t *bias, const cmsis_nn_dims *y_dims, int8_t *y);
int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, const cmsis_nn_dims *x_dims,
                                                const cmsis_nn_dims *w_dims, const cmsis_nn_dims *y_dims);

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *params,
                                                  const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x_dims,
                                                  const int8_t *x, const cmsis_nn_dims *w_dims, const int8_t *w,
                                                  const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *y_dims,
                                                  int8_t *y);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *params, const cmsis_nn_dims *x_dims,
                                                      const cmsis_nn_dims *w_dims, const cmsis_nn_dims *y_dims);

arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params,
                                           const cmsis_nn_per_tensor_quant_params *quant, const cmsis_nn_dims *x_dims, const int8_t *x,
                                           const cmsis_nn_dims *w_dims, const int8_t *w, const cmsis_nn_dims *bias_dims,
                                           const int32_t *bias, const cmsis_nn_dims *y_dims, int8_t *y);
arm_cmsis_nn_status arm_fully_connected_per_channel_s8(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params,
                                                       const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x_dims,
                                                       const int8_t *x, const cmsis_nn_dims *w_dims, const int8_t *w,
                                                       const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *y_dims,
                                                       int8_t *y);
int32_t arm_fully_connected_s8_get_buffer_size(const cmsis_nn_dims *w_dims);

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, const cmsis_nn_dims *x_dims,
                                   const int8_t *x, const cmsis_nn_dims *window, const cmsis_nn_dims *y_dims, int8_t *y);
int32_t arm_avgpool_s8_get_buffer_size(const int y_width, const int channels);
arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, const cmsis_nn_dims *x_dims,
                                    const int8_t *x, const cmsis_nn_dims *window, const cmsis_nn_dims *y_dims, int8_t *y);

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t *a, const int8_t *b, const int32_t a_offset, const int32_t a_multiplier,
                                           const int32_t a_shift, const int32_t b_offset, const int32_t b_multiplier,
                                           const int32_t b_shift, const int32_t left_shift, int8_t *y, const int32_t y_offset,
                                           const int32_t y_multiplier, const int32_t y_shift, const int32_t low, const int32_t high,
                                           const int32_t count);
arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t *a, const int8_t *b, const int32_t a_offset, const int32_t b_offset, int8_t *y,
                                           const int32_t y_offset, const int32_t y_multiplier, const int32_t y_shift,
                                           const int32_t low, const int32_t high, const int32_t count);
void arm_softmax_s8(const int8_t *x, const int32_t rows, const int32_t row_size, const int32_t multiplier, const int32_t shift,
                    const int32_t least, int8_t *y);

#endif
