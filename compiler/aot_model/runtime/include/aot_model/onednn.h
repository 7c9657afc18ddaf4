/* Layers of a model computed by oneDNN (https://github.com/uxlfoundation/oneDNN), version 2, through its C interface.
 *
 *     struct aot_model_onednn context = { 0 };                      one for each thread that runs the model
 *     const net_devices devices = { .onednn = &context };
 *     status = net_run(&inputs, &outputs, &devices);                any number of times
 *     aot_model_onednn_release(&context);                           gives everything back
 *
 * A primitive is created when its layer runs for the first time, and kept in the context; constant weights are re-ordered
 * then, once, as the primitive wants them. Every status is checked. Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_ONEDNN_H
#define AOT_MODEL_ONEDNN_H

#include "aot_model/model.h"

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR != 2
#error "aot_model/onednn.h is written for oneDNN 2: version 3 creates primitives by other functions"
#endif

typedef enum {
    AOT_MODEL_ONEDNN_CONVOLUTION,
    AOT_MODEL_ONEDNN_MATMUL,
    AOT_MODEL_ONEDNN_POOLING,
    AOT_MODEL_ONEDNN_BINARY,
    AOT_MODEL_ONEDNN_ELTWISE,
    AOT_MODEL_ONEDNN_SOFTMAX
} aot_model_onednn_kind;

/* A float tensor: its logical dimensions as oneDNN orders them, and the distance in elements along each. rank 0: none. */
typedef struct {
    int32_t rank;
    dnnl_dims_t dims;
    dnnl_dims_t steps;
} aot_model_onednn_tensor;

/* What a layer computes. Generated code has one of them for each function, and it is the key of the primitive. */
typedef struct {
    aot_model_onednn_kind kind;
    dnnl_alg_kind_t algorithm;
    aot_model_onednn_tensor operands[3]; /* x; weights or the second operand; bias */
    aot_model_onednn_tensor y;
    dnnl_dims_t strides, dilations, begin, end, kernel; /* dilations: 0 for adjacent taps */
    float alpha, beta; /* of an element-wise function */
    int32_t axis;
    bool relu; /* the result is rectified */
} aot_model_onednn_layer;

typedef struct aot_model_onednn_entry {
    const aot_model_onednn_layer *layer;
    const void *weights; /* whose re-ordered copy is in memories[1] */
    dnnl_primitive_t primitive;
    dnnl_memory_t memories[4]; /* operands, y */
    struct aot_model_onednn_entry *next;
} aot_model_onednn_entry;

struct aot_model_onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    aot_model_onednn_entry *entries;
};

static inline int32_t aot_model_onednn_status(dnnl_status_t status)
{
    return status == dnnl_success ? AOT_MODEL_OK : status == dnnl_out_of_memory ? AOT_MODEL_ERROR_MEMORY : AOT_MODEL_ERROR_OPERATOR;
}

/* Called before the layers of each run: the engine and its stream, when they are not there yet. */
static inline int32_t aot_model_onednn_activate(struct aot_model_onednn *context)
{
    dnnl_status_t status = dnnl_success;
    if (context->engine == NULL) {
        status = dnnl_engine_create(&context->engine, dnnl_cpu, 0);
    }
    if (status == dnnl_success && context->stream == NULL) {
        status = dnnl_stream_create(&context->stream, context->engine, dnnl_stream_default_flags);
    }
    return aot_model_onednn_status(status);
}

AOT_MODEL_FUNCTION void aot_model_onednn_drop(aot_model_onednn_entry *entry)
{
    for (int32_t k = 0; k < 4; k++) {
        if (entry->memories[k] != NULL) {
            (void)dnnl_memory_destroy(entry->memories[k]);
        }
    }
    if (entry->primitive != NULL) {
        (void)dnnl_primitive_destroy(entry->primitive);
    }
    free(entry);
}

/* Gives back all that runs with this context have created; it can be used again afterwards. */
AOT_MODEL_FUNCTION void aot_model_onednn_release(struct aot_model_onednn *context)
{
    while (context->entries != NULL) {
        aot_model_onednn_entry *const entry = context->entries;
        context->entries = entry->next;
        aot_model_onednn_drop(entry);
    }
    if (context->stream != NULL) {
        (void)dnnl_stream_destroy(context->stream);
    }
    if (context->engine != NULL) {
        (void)dnnl_engine_destroy(context->engine);
    }
    memset(context, 0, sizeof *context);
}

/* --- creation ------------------------------------------------------------------------------------------------------ */

static inline dnnl_status_t aot_model_onednn_describe(const aot_model_onednn_tensor *tensor, dnnl_memory_desc_t *desc)
{
    memset(desc, 0, sizeof *desc);
    return tensor->rank == 0 ? dnnl_success : dnnl_memory_desc_init_by_strides(desc, tensor->rank, tensor->dims, dnnl_f32, tensor->steps);
}

/* Whether the second operand is constant weights, whose order the primitive chooses. */
static inline bool aot_model_onednn_weighted(const aot_model_onednn_layer *layer)
{
    return layer->kind == AOT_MODEL_ONEDNN_CONVOLUTION || layer->kind == AOT_MODEL_ONEDNN_MATMUL;
}

/* The primitive descriptor of a layer. descs: of the operands and y; attributes may be NULL. */
static inline dnnl_status_t aot_model_onednn_primitive_desc(const aot_model_onednn_layer *layer, const dnnl_memory_desc_t *descs,
                                                            dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                                                            dnnl_primitive_desc_t *result)
{
    union {
        dnnl_convolution_desc_t convolution;
        dnnl_matmul_desc_t matmul;
        dnnl_pooling_v2_desc_t pooling;
        dnnl_binary_desc_t binary;
        dnnl_eltwise_desc_t eltwise;
        dnnl_softmax_desc_t softmax;
    } op;
    const dnnl_memory_desc_t *const bias = layer->operands[2].rank != 0 ? &descs[2] : NULL;
    dnnl_memory_desc_t weights = descs[1];
    dnnl_status_t status = dnnl_success;

    if (aot_model_onednn_weighted(layer)) {
        status = dnnl_memory_desc_init_by_tag(&weights, layer->operands[1].rank, layer->operands[1].dims, dnnl_f32, dnnl_format_tag_any);
    }
    if (status != dnnl_success) {
        return status;
    }
    switch (layer->kind) {
    case AOT_MODEL_ONEDNN_CONVOLUTION:
        status = dnnl_dilated_convolution_forward_desc_init(&op.convolution, dnnl_forward_inference, layer->algorithm, &descs[0], &weights, bias,
                                                            &descs[3], layer->strides, layer->dilations, layer->begin, layer->end);
        break;
    case AOT_MODEL_ONEDNN_MATMUL:
        status = dnnl_matmul_desc_init(&op.matmul, &descs[0], &weights, bias, &descs[3]);
        break;
    case AOT_MODEL_ONEDNN_POOLING:
        status = dnnl_pooling_v2_forward_desc_init(&op.pooling, dnnl_forward_inference, layer->algorithm, &descs[0], &descs[3], layer->strides,
                                                   layer->kernel, layer->dilations, layer->begin, layer->end);
        break;
    case AOT_MODEL_ONEDNN_BINARY:
        status = dnnl_binary_desc_init(&op.binary, layer->algorithm, &descs[0], &descs[1], &descs[3]);
        break;
    case AOT_MODEL_ONEDNN_ELTWISE:
        status = dnnl_eltwise_forward_desc_init(&op.eltwise, dnnl_forward_inference, layer->algorithm, &descs[0], layer->alpha, layer->beta);
        break;
    default:
        status = dnnl_softmax_forward_desc_init(&op.softmax, dnnl_forward_inference, &descs[0], layer->axis);
        break;
    }
    return status != dnnl_success ? status : dnnl_primitive_desc_create(result, &op, attributes, engine, NULL);
}

/* Attributes with a rectifier behind the layer; NULL without one. */
static inline dnnl_status_t aot_model_onednn_attributes(const aot_model_onednn_layer *layer, dnnl_primitive_attr_t *attributes)
{
    dnnl_post_ops_t operations = NULL;
    dnnl_status_t status;

    *attributes = NULL;
    if (!layer->relu) {
        return dnnl_success;
    }
    status = dnnl_primitive_attr_create(attributes);
    if (status == dnnl_success) {
        status = dnnl_post_ops_create(&operations);
    }
    if (status == dnnl_success) {
        status = dnnl_post_ops_append_eltwise(operations, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_post_ops(*attributes, operations);
    }
    if (operations != NULL) {
        (void)dnnl_post_ops_destroy(operations);
    }
    return status;
}

/* memories[1] becomes a copy of the weights in the order that the primitive wants. */
static inline dnnl_status_t aot_model_onednn_reorder(const struct aot_model_onednn *context, const dnnl_memory_desc_t *given,
                                                     const dnnl_memory_desc_t *wanted, const void *weights, aot_model_onednn_entry *entry)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t source = NULL;
    dnnl_status_t status = dnnl_memory_create(&source, given, context->engine, (void *)(uintptr_t)weights);

    if (status == dnnl_success) {
        status = dnnl_memory_create(&entry->memories[1], wanted, context->engine, DNNL_MEMORY_ALLOCATE);
    }
    if (status == dnnl_success) {
        status = dnnl_reorder_primitive_desc_create(&desc, given, context->engine, wanted, context->engine, NULL);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_create(&reorder, desc);
    }
    if (status == dnnl_success) {
        const dnnl_exec_arg_t arguments[2] = { { DNNL_ARG_FROM, source }, { DNNL_ARG_TO, entry->memories[1] } };
        status = dnnl_primitive_execute(reorder, context->stream, 2, arguments);
    }
    if (status == dnnl_success) {
        status = dnnl_stream_wait(context->stream);
    }
    if (reorder != NULL) {
        (void)dnnl_primitive_destroy(reorder);
    }
    if (desc != NULL) {
        (void)dnnl_primitive_desc_destroy(desc);
    }
    if (source != NULL) {
        (void)dnnl_memory_destroy(source);
    }
    return status;
}

/* Fills an entry that is all zeros but for its key. */
AOT_MODEL_FUNCTION dnnl_status_t aot_model_onednn_create(const struct aot_model_onednn *context, aot_model_onednn_entry *entry)
{
    const aot_model_onednn_layer *const layer = entry->layer;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_memory_desc_t descs[4];
    dnnl_status_t status = dnnl_success;

    for (int32_t k = 0; k < 4 && status == dnnl_success; k++) {
        status = aot_model_onednn_describe(k < 3 ? &layer->operands[k] : &layer->y, &descs[k]);
    }
    if (status == dnnl_success) {
        status = aot_model_onednn_attributes(layer, &attributes);
    }
    if (status == dnnl_success) {
        status = aot_model_onednn_primitive_desc(layer, descs, context->engine, attributes, &desc);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_create(&entry->primitive, desc);
    }
    for (int32_t k = 0; k < 4 && status == dnnl_success; k++) {
        if (k == 1 && aot_model_onednn_weighted(layer)) {
            status = aot_model_onednn_reorder(context, &descs[1], dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0), entry->weights, entry);
        } else if ((k < 3 ? layer->operands[k].rank : layer->y.rank) != 0) {
            status = dnnl_memory_create(&entry->memories[k], &descs[k], context->engine, DNNL_MEMORY_NONE);
        }
    }
    if (desc != NULL) {
        (void)dnnl_primitive_desc_destroy(desc);
    }
    if (attributes != NULL) {
        (void)dnnl_primitive_attr_destroy(attributes);
    }
    return status;
}

/* The entry of a layer with these weights, created when it is asked for first. NULL and a status when that fails. */
AOT_MODEL_FUNCTION aot_model_onednn_entry *aot_model_onednn_find(struct aot_model_onednn *context, const aot_model_onednn_layer *layer,
                                                            const void *weights, dnnl_status_t *status)
{
    aot_model_onednn_entry *entry = context->entries;
    const void *const key = aot_model_onednn_weighted(layer) ? weights : NULL;

    while (entry != NULL && (entry->layer != layer || entry->weights != key)) {
        entry = entry->next;
    }
    if (entry != NULL) {
        return entry;
    }
    entry = (aot_model_onednn_entry *)calloc(1, sizeof *entry);
    if (entry == NULL) {
        *status = dnnl_out_of_memory;
        return NULL;
    }
    entry->layer = layer;
    entry->weights = key;
    *status = aot_model_onednn_create(context, entry);
    if (*status != dnnl_success) {
        aot_model_onednn_drop(entry);
        return NULL;
    }
    entry->next = context->entries;
    context->entries = entry;
    return entry;
}

/* --- what generated code calls ------------------------------------------------------------------------------------- */

/* Runs a layer. w, bias: NULL when it has none. AOT_MODEL_OK, or AOT_MODEL_ERROR_MEMORY, _OPERATOR. */
AOT_MODEL_FUNCTION int32_t aot_model_onednn_run(struct aot_model_onednn *context, const aot_model_onednn_layer *layer, const float *x, const float *w,
                                           const float *bias, float *y)
{
    static const int names[2][4] = { { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST },
                                     { DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_BIAS, DNNL_ARG_DST } };
    const void *const data[4] = { x, w, bias, y };
    dnnl_exec_arg_t arguments[4];
    dnnl_status_t status = dnnl_success;
    aot_model_onednn_entry *const entry = aot_model_onednn_find(context, layer, w, &status);
    int count = 0;

    for (int32_t k = 0; k < 4 && status == dnnl_success; k++) {
        if (entry->memories[k] == NULL) {
            continue;
        }
        if (k != 1 || !aot_model_onednn_weighted(layer)) {
            status = dnnl_memory_set_data_handle(entry->memories[k], (void *)(uintptr_t)data[k]);
        }
        arguments[count].arg = names[layer->kind == AOT_MODEL_ONEDNN_BINARY ? 1 : 0][k];
        arguments[count++].memory = entry->memories[k];
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_execute(entry->primitive, context->stream, count, arguments);
    }
    if (status == dnnl_success) {
        status = dnnl_stream_wait(context->stream);
    }
    return aot_model_onednn_status(status);
}

#endif
