/* What a model needs to be a function of a module of tvm-ffi (package apache-tvm-ffi): the parts of its stable C ABI
 * that a call uses. Part of aot-model. C99. */
#ifndef AOT_MODEL_TVM_FFI_H
#define AOT_MODEL_TVM_FFI_H

#include "aot_model/tensor.h"

#if defined(_WIN32)
#define AOT_MODEL_EXPORT __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define AOT_MODEL_EXPORT __attribute__((visibility("default")))
#else
#define AOT_MODEL_EXPORT
#endif

/* TVMFFIAny: an argument or result, by value or a pointer. */
typedef struct {
    int32_t type_index;
    uint32_t padding;
    union {
        int64_t integer;
        void *pointer;
    } value;
} aot_model_ffi_any;

/* TVMFFIObject, which lies before the DLTensor of a tensor object. */
typedef struct {
    uint64_t references;
    int32_t type_index;
    uint32_t padding;
    int64_t deleter;
} aot_model_ffi_object;

enum { AOT_MODEL_FFI_DL_TENSOR = 7, AOT_MODEL_FFI_TENSOR = 70 };

/* Of libtvm_ffi, which is loaded before any module. */
extern void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count);

/* Raise an error in the caller; -1, which the function must return. */
static inline int aot_model_ffi_raise(const char *kind, const char *model, const char *what, const char *name, const char *why)
{
    const char *parts[5];
    parts[0] = model;
    parts[1] = ": ";
    parts[2] = what;
    parts[3] = name;
    parts[4] = why;
    TVMFFIErrorSetRaisedFromCStrParts(kind, parts, 5);
    return -1;
}

/* The address of the data of an argument that must be a tensor as `want` says; raises in the caller otherwise. */
static inline int aot_model_ffi_tensor(const aot_model_ffi_any *argument, const aot_model_tensor *want, const char *model, void **data)
{
    const aot_model_dl_tensor *tensor;
    if (argument->type_index == AOT_MODEL_FFI_DL_TENSOR) {
        tensor = (const aot_model_dl_tensor *)argument->value.pointer;
    } else if (argument->type_index == AOT_MODEL_FFI_TENSOR) {
        tensor = (const aot_model_dl_tensor *)(const void *)((const uint8_t *)argument->value.pointer + sizeof(aot_model_ffi_object));
    } else {
        return aot_model_ffi_raise("TypeError", model, "not a tensor: ", want->name, "");
    }
    switch (aot_model_check_tensor(tensor, want, data)) {
    case AOT_MODEL_OK:
        return 0;
    case AOT_MODEL_ERROR_DEVICE:
        return aot_model_ffi_raise("ValueError", model, "tensor '", want->name, "' is not in the memory of the CPU");
    case AOT_MODEL_ERROR_DTYPE:
        return aot_model_ffi_raise("TypeError", model, "tensor '", want->name, "' has another element type than the model's");
    case AOT_MODEL_ERROR_SHAPE:
        return aot_model_ffi_raise("ValueError", model, "tensor '", want->name, "' has another shape than the model's");
    case AOT_MODEL_ERROR_STRIDES:
        return aot_model_ffi_raise("ValueError", model, "tensor '", want->name, "' is not compact in row-major order");
    case AOT_MODEL_ERROR_ALIGNMENT:
        return aot_model_ffi_raise("ValueError", model, "tensor '", want->name, "' is not aligned to its elements");
    default:
        return aot_model_ffi_raise("ValueError", model, "tensor '", want->name, "' has no data");
    }
}

#endif
