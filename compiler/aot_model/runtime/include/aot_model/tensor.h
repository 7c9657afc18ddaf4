/* Tensors with the memory layout of DLPack's DLTensor, and the check of one against what a model wants.
 * Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_TENSOR_H
#define AOT_MODEL_TENSOR_H

#include "aot_model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLDataType: code 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 … 14 the float8 types. */
typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} aot_model_dl_dtype;

/* DLDevice: type 1 is the memory of the CPU. */
typedef struct {
    int32_t type;
    int32_t id;
} aot_model_dl_device;

/* DLTensor; strides count elements, NULL: compact, row-major. */
typedef struct {
    void *data;
    aot_model_dl_device device;
    int32_t ndim;
    aot_model_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} aot_model_dl_tensor;

/* The DLPack type of an aot_model_dtype. Types of less than 8 bits have an element in each byte: they are (u)int8.
 * Strings are uint8 with as many lanes as an element has bytes. */
static inline aot_model_dl_dtype aot_model_dl_dtype_of(uint8_t dtype)
{
    static const uint8_t table[AOT_MODEL_UINT2 + 1][2] = {
        { 0, 0 },  { 2, 32 }, { 2, 64 }, { 2, 16 }, { 4, 16 }, { 0, 8 },  { 0, 16 }, { 0, 32 }, { 0, 64 },
        { 1, 8 },  { 1, 16 }, { 1, 32 }, { 1, 64 }, { 6, 8 },  { 10, 8 }, { 11, 8 }, { 12, 8 }, { 13, 8 },
        { 14, 8 }, { 1, 8 },  { 1, 8 },  { 1, 8 },  { 0, 8 },  { 0, 8 },  { 1, 8 },  { 1, 8 }
    };
    aot_model_dl_dtype result;

    result.code = table[dtype <= AOT_MODEL_UINT2 ? dtype : 0][0];
    result.bits = table[dtype <= AOT_MODEL_UINT2 ? dtype : 0][1];
    result.lanes = 1;
    if (dtype >= AOT_MODEL_STRING16 && dtype <= AOT_MODEL_STRING1024) {
        result.code = 1;
        result.bits = 8;
        result.lanes = (uint16_t)(16u << (dtype - AOT_MODEL_STRING16));
    }
    return result;
}

/* Whether a tensor is what a model wants; *data is then the address of its first element. Checked in this order:
 * AOT_MODEL_ERROR_NULL, _DEVICE, _DTYPE, _SHAPE, _STRIDES, _ALIGNMENT. */
AOT_MODEL_FUNCTION int32_t aot_model_check_tensor(const aot_model_dl_tensor *tensor, const aot_model_tensor *want, void **data)
{
    const aot_model_dl_dtype dtype = aot_model_dl_dtype_of(want->dtype);
    int64_t compact = 1;
    uintptr_t address;

    if (tensor == NULL || (tensor->data == NULL && want->bytes != 0u) || (tensor->shape == NULL && tensor->ndim != 0)) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (tensor->device.type != 1) {
        return AOT_MODEL_ERROR_DEVICE;
    }
    if (tensor->dtype.code != dtype.code || tensor->dtype.bits != dtype.bits || tensor->dtype.lanes != dtype.lanes) {
        return AOT_MODEL_ERROR_DTYPE;
    }
    if (tensor->ndim != (int32_t)want->rank) {
        return AOT_MODEL_ERROR_SHAPE;
    }
    for (int32_t k = 0; k < tensor->ndim; k++) {
        if (tensor->shape[k] != want->shape[k]) {
            return AOT_MODEL_ERROR_SHAPE;
        }
    }
    if (tensor->strides != NULL && want->bytes != 0u) {
        for (int32_t k = tensor->ndim - 1; k >= 0; --k) {
            if (tensor->shape[k] != 1 && tensor->strides[k] != compact) {
                return AOT_MODEL_ERROR_STRIDES;
            }
            compact *= tensor->shape[k];
        }
    }
    address = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
    if ((address & (dtype.bits / 8u - 1u)) != 0u) {
        return AOT_MODEL_ERROR_ALIGNMENT;
    }
    *data = (uint8_t *)tensor->data + tensor->byte_offset;
    return AOT_MODEL_OK;
}

#ifdef __cplusplus
}
#endif

#endif
