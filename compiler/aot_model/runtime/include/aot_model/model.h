/* What the code of every compiled model and the programs that use it share: errors, types, metadata.
 * Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_MODEL_H
#define AOT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aot_model/attributes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Generated code is compiled against the runtime headers of the compiler that made it. */
#define AOT_MODEL_ABI 1

/* Returned by the functions of a model. */
#define AOT_MODEL_OK 0
#define AOT_MODEL_ERROR_NULL (-1)       /* a pointer that must be given is NULL */
#define AOT_MODEL_ERROR_ALIGNMENT (-2)  /* a pointer is not aligned as its header says */
#define AOT_MODEL_ERROR_PARAMETERS (-3) /* the parameters are not those of this model */
#define AOT_MODEL_ERROR_OPERATOR (-4)   /* an operator of an external library failed */
#define AOT_MODEL_ERROR_INDEX (-5)      /* there is no input, output or model of that index or name */
#define AOT_MODEL_ERROR_DTYPE (-6)      /* a tensor has another element type */
#define AOT_MODEL_ERROR_SHAPE (-7)      /* a tensor has another shape */
#define AOT_MODEL_ERROR_STRIDES (-8)    /* a tensor is not compact in row-major order */
#define AOT_MODEL_ERROR_DEVICE (-9)     /* a tensor is not in the memory of the CPU */
#define AOT_MODEL_ERROR_MEMORY (-10)    /* the memory given is too small */
#define AOT_MODEL_ERROR_VERSION (-11)   /* a descriptor of another version of these headers */
#define AOT_MODEL_ERROR_STRING (-12)    /* a string is longer than an element of the model's tensors of strings */
#define AOT_MODEL_ERROR_CATEGORY (-13)  /* an element is none of the categories that the model knows */

/* Element types, as in aot_model_tensor.dtype. */
typedef enum {
    AOT_MODEL_FLOAT32 = 1,
    AOT_MODEL_FLOAT64,
    AOT_MODEL_FLOAT16,
    AOT_MODEL_BFLOAT16,
    AOT_MODEL_INT8,
    AOT_MODEL_INT16,
    AOT_MODEL_INT32,
    AOT_MODEL_INT64,
    AOT_MODEL_UINT8,
    AOT_MODEL_UINT16,
    AOT_MODEL_UINT32,
    AOT_MODEL_UINT64,
    AOT_MODEL_BOOL,
    AOT_MODEL_FLOAT8E4M3FN,
    AOT_MODEL_FLOAT8E4M3FNUZ,
    AOT_MODEL_FLOAT8E5M2,
    AOT_MODEL_FLOAT8E5M2FNUZ,
    AOT_MODEL_FLOAT8E8M0,
    AOT_MODEL_FLOAT6E2M3,
    AOT_MODEL_FLOAT6E3M2,
    AOT_MODEL_FLOAT4E2M1,
    AOT_MODEL_INT4, /* types of less than 8 bits: one element in a byte */
    AOT_MODEL_INT2,
    AOT_MODEL_UINT4,
    AOT_MODEL_UINT2,
    AOT_MODEL_STRING16, /* aot_model_string16 … */
    AOT_MODEL_STRING32,
    AOT_MODEL_STRING64,
    AOT_MODEL_STRING128,
    AOT_MODEL_STRING256,
    AOT_MODEL_STRING512,
    AOT_MODEL_STRING1024
} aot_model_dtype;

/* An element of a tensor of strings: UTF-8 and a NUL. What is behind the NUL does not matter; the last byte counts as
 * NUL whatever it is. All strings of a model have the size of its option --string-bytes. */
typedef struct { char text[16]; } aot_model_string16;
typedef struct { char text[32]; } aot_model_string32;
typedef struct { char text[64]; } aot_model_string64;
typedef struct { char text[128]; } aot_model_string128;
typedef struct { char text[256]; } aot_model_string256;
typedef struct { char text[512]; } aot_model_string512;
typedef struct { char text[1024]; } aot_model_string1024;

/* An input or output. Affine quantisation: real = scales[i] * (value - zero_points[i]); quantised == 0: none. */
typedef struct {
    const char *name;   /* as in the model */
    const char *c_name; /* the field in the generated struct */
    const int32_t *shape;
    const float *scales;
    const int32_t *zero_points;
    uint32_t bytes;
    uint16_t quantised; /* number of scales and zero points */
    int8_t axis;        /* of per-channel quantisation, -1: per tensor */
    uint8_t rank;
    uint8_t dtype; /* aot_model_dtype */
} aot_model_tensor;

/* Memory that a model needs while it runs. */
typedef struct {
    const char *name;
    const char *c_name;
    uint32_t bytes;
    uint32_t align;
} aot_model_pool;

/* A call of the generated code; an operator of the model may be part of another one's. */
typedef struct {
    const char *name;
    const char *op;
    uint64_t macs;
    uint32_t workspace_bytes; /* in use in all pools while it runs */
    uint32_t constant_bytes;
} aot_model_layer;

#define AOT_MODEL_METADATA_VERSION 2u
#define AOT_MODEL_FLAG_CALLER_WORKSPACE 1u
#define AOT_MODEL_FLAG_IO_IN_WORKSPACE 2u

/* All that is known of a model, in flash. `aot-model inspect` finds it in linked files by its first bytes and its own
 * address. With --metadata size there are no inputs, outputs and layers, only their numbers. */
typedef struct aot_model_metadata {
    char magic[8]; /* AOTMODEL, without a zero */
    uint32_t version;
    uint16_t flags;
    uint16_t pointer_bytes;
    const struct aot_model_metadata *self;
    const char *name;
    const char *compiler; /* version of aot-model */
    const char *target;
    const char *model_file;
    const char *model_sha256;
    const aot_model_tensor *inputs;
    const aot_model_tensor *outputs;
    const aot_model_pool *pools;
    const aot_model_layer *layers;
    const uint8_t *structure; /* 16 bytes, as in the file of external parameters; NULL: the parameters are in the code */
    uint16_t num_inputs;
    uint16_t num_outputs;
    uint16_t num_pools;
    uint16_t reserved;
    uint32_t num_layers;
    uint32_t constant_bytes;
    uint32_t state_bytes; /* of the workspace: kept from run to run */
    uint32_t lower_bound; /* no plan of the memory needs less */
    uint32_t params_size;
    uint32_t params_align;
    uint64_t macs;
} aot_model_metadata;

#ifdef __cplusplus
}
#endif

#endif
