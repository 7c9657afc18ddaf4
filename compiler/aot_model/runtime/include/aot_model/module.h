/* One interface for all models that were compiled with --interface module: see docs/module.md.
 * Tensors by index or name, copied or used where they are. No heap: the caller gives the storage of a session.
 * Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_MODULE_H
#define AOT_MODEL_MODULE_H

#include "aot_model/tensor.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled model: the generated <name>_module, in flash. The functions take the addresses of inputs and outputs,
 * inputs first, and of the pools when they are the caller's. */
#define AOT_MODEL_MODULE_VERSION 2u
typedef struct {
    uint32_t version; /* of this struct */
    uint32_t caller_pools; /* 1: run and reset need the pools of the metadata */
    const aot_model_metadata *metadata;
    int32_t (*run)(void *const *tensors, void *const *pools);
    void (*reset)(void *const *pools);                           /* NULL: the model has no state */
    int32_t (*set_params)(const void *base, uint32_t size);      /* NULL: the parameters are in the code */
    uint32_t *profile;          /* by layer of the metadata: ticks of all runs; NULL without --profile */
    uint32_t (**ticks)(void);   /* the place of the clock; NULL without --profile */
} aot_model_module;

/* A model in use. Sessions of a model with caller_pools are independent of each other; else there should be one. */
typedef struct {
    const aot_model_module *module;
    void **tensors; /* in use, inputs first; NULL: not set */
    void **pools;
    uint8_t *copies; /* NULL: the session has no memory for tensors */
} aot_model_session;

static inline const aot_model_tensor *aot_model_port(const aot_model_module *module, uint32_t slot)
{
    const aot_model_metadata *const m = module->metadata;
    return slot < m->num_inputs ? &m->inputs[slot] : &m->outputs[slot - m->num_inputs];
}

static inline uint32_t aot_model_num_inputs(const aot_model_module *module)
{
    return module->metadata->num_inputs;
}

static inline uint32_t aot_model_num_outputs(const aot_model_module *module)
{
    return module->metadata->num_outputs;
}

/* The model of that name among several; NULL: there is none. */
AOT_MODEL_FUNCTION const aot_model_module *aot_model_find(const aot_model_module *const *modules, uint32_t count, const char *name)
{
    for (uint32_t k = 0; name != NULL && k < count; k++) {
        if (strcmp(modules[k]->metadata->name, name) == 0) {
            return modules[k];
        }
    }
    return NULL;
}

AOT_MODEL_FUNCTION int32_t aot_model_index(const aot_model_tensor *tensors, uint32_t count, const char *name)
{
    for (uint32_t k = 0; name != NULL && k < count; k++) {
        if (strcmp(tensors[k].name, name) == 0) {
            return (int32_t)k;
        }
    }
    for (uint32_t k = 0; name != NULL && k < count; k++) {
        if (strcmp(tensors[k].c_name, name) == 0) {
            return (int32_t)k;
        }
    }
    return AOT_MODEL_ERROR_INDEX;
}

/* Index of an input or output by its name in the model, or else in C; AOT_MODEL_ERROR_INDEX: there is none. */
static inline int32_t aot_model_get_input_index(const aot_model_module *module, const char *name)
{
    return aot_model_index(module->metadata->inputs, module->metadata->num_inputs, name);
}

static inline int32_t aot_model_get_output_index(const aot_model_module *module, const char *name)
{
    return aot_model_index(module->metadata->outputs, module->metadata->num_outputs, name);
}

/* Alignment that the storage of a session needs, bytes. */
AOT_MODEL_FUNCTION uint32_t aot_model_storage_align(const aot_model_module *module)
{
    uint32_t align = 16;
    for (uint32_t k = 0; module->caller_pools != 0u && k < module->metadata->num_pools; k++) {
        align = module->metadata->pools[k].align > align ? module->metadata->pools[k].align : align;
    }
    return align;
}

static inline uint64_t aot_model_round_up(uint64_t bytes, uint32_t align)
{
    return (bytes + align - 1u) & ~((uint64_t)align - 1u);
}

/* Bytes of storage for a session; copies: with memory for all inputs and outputs, which set_input() and outputs that
 * are not set need. */
AOT_MODEL_FUNCTION uint64_t aot_model_storage_bytes(const aot_model_module *module, bool copies)
{
    const aot_model_metadata *const m = module->metadata;
    const uint32_t ports = (uint32_t)m->num_inputs + m->num_outputs;
    uint64_t bytes = ((uint64_t)ports + m->num_pools) * sizeof(void *);

    for (uint32_t k = 0; module->caller_pools != 0u && k < m->num_pools; k++) {
        bytes = aot_model_round_up(bytes, m->pools[k].align) + m->pools[k].bytes;
    }
    bytes = aot_model_round_up(bytes, 16);
    for (uint32_t k = 0; copies && k < ports; k++) {
        bytes += aot_model_round_up(aot_model_port(module, k)->bytes, 16);
    }
    return bytes;
}

/* Begin to use a model, with state as before the first run. The storage belongs to the session until it is given up.
 * AOT_MODEL_ERROR_NULL, _ALIGNMENT, _MEMORY (storage too small), or _VERSION (headers and model do not fit). */
AOT_MODEL_FUNCTION int32_t aot_model_open(aot_model_session *session, const aot_model_module *module, void *storage, uint64_t bytes, bool copies)
{
    uint32_t ports;
    uint64_t at;

    if (session == NULL || module == NULL || storage == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (module->version != AOT_MODEL_MODULE_VERSION || module->metadata->version != AOT_MODEL_METADATA_VERSION) {
        return AOT_MODEL_ERROR_VERSION;
    }
    if (((uintptr_t)storage & (aot_model_storage_align(module) - 1u)) != 0u) {
        return AOT_MODEL_ERROR_ALIGNMENT;
    }
    if (bytes < aot_model_storage_bytes(module, copies)) {
        return AOT_MODEL_ERROR_MEMORY;
    }
    ports = (uint32_t)module->metadata->num_inputs + module->metadata->num_outputs;
    at = ((uint64_t)ports + module->metadata->num_pools) * sizeof(void *);
    session->module = module;
    session->tensors = (void **)storage;
    session->pools = session->tensors + ports;
    for (uint32_t k = 0; k < module->metadata->num_pools; k++) {
        session->pools[k] = NULL;
        if (module->caller_pools != 0u) {
            at = aot_model_round_up(at, module->metadata->pools[k].align);
            session->pools[k] = (uint8_t *)storage + at;
            at += module->metadata->pools[k].bytes;
        }
    }
    at = aot_model_round_up(at, 16);
    session->copies = copies ? (uint8_t *)storage + at : NULL;
    for (uint32_t k = 0; k < ports; k++) {
        const uint32_t size = aot_model_port(module, k)->bytes;
        /* An input must be set before it is read; an output may be written here. Something without bytes has an address too. */
        session->tensors[k] = size == 0u ? (void *)storage : copies && k >= module->metadata->num_inputs ? (void *)((uint8_t *)storage + at) : NULL;
        at += copies ? aot_model_round_up(size, 16) : 0u;
    }
    if (module->reset != NULL) {
        module->reset(session->pools);
    }
    return AOT_MODEL_OK;
}

/* Address of the session's own memory for a tensor. */
AOT_MODEL_FUNCTION uint8_t *aot_model_own(const aot_model_session *session, uint32_t slot)
{
    uint8_t *at = session->copies;
    for (uint32_t k = 0; k < slot; k++) {
        at += aot_model_round_up(aot_model_port(session->module, k)->bytes, 16);
    }
    return at;
}

/* Copy an input. AOT_MODEL_ERROR_INDEX, _MEMORY (the session has none for copies), or what is wrong with the tensor. */
static inline int32_t aot_model_set_input(aot_model_session *session, int32_t index, const aot_model_dl_tensor *tensor)
{
    const aot_model_metadata *const m = session->module->metadata;
    void *data = NULL;
    int32_t status;

    if (index < 0 || index >= (int32_t)m->num_inputs) {
        return AOT_MODEL_ERROR_INDEX;
    }
    if (session->copies == NULL) {
        return AOT_MODEL_ERROR_MEMORY;
    }
    status = aot_model_check_tensor(tensor, &m->inputs[index], &data);
    if (status == AOT_MODEL_OK && m->inputs[index].bytes != 0u) {
        session->tensors[index] = aot_model_own(session, (uint32_t)index);
        memmove(session->tensors[index], data, m->inputs[index].bytes);
    }
    return status;
}

/* Use an input where it is: it must stay there until it is set anew. */
static inline int32_t aot_model_set_input_zero_copy(aot_model_session *session, int32_t index, const aot_model_dl_tensor *tensor)
{
    const aot_model_metadata *const m = session->module->metadata;
    if (index < 0 || index >= (int32_t)m->num_inputs) {
        return AOT_MODEL_ERROR_INDEX;
    }
    return aot_model_check_tensor(tensor, &m->inputs[index], &session->tensors[index]);
}

/* Have an output written to the caller's tensor, which must not overlap an input or another output. */
static inline int32_t aot_model_set_output_zero_copy(aot_model_session *session, int32_t index, const aot_model_dl_tensor *tensor)
{
    const aot_model_metadata *const m = session->module->metadata;
    if (index < 0 || index >= (int32_t)m->num_outputs) {
        return AOT_MODEL_ERROR_INDEX;
    }
    return aot_model_check_tensor(tensor, &m->outputs[index], &session->tensors[m->num_inputs + index]);
}

/* Run once. AOT_MODEL_ERROR_NULL: an input or output is not set; else what the model returns. */
AOT_MODEL_FUNCTION int32_t aot_model_run(const aot_model_session *session)
{
    const aot_model_module *const module = session->module;
    const uint32_t ports = (uint32_t)module->metadata->num_inputs + module->metadata->num_outputs;
    for (uint32_t k = 0; k < ports; k++) {
        if (session->tensors[k] == NULL) {
            return AOT_MODEL_ERROR_NULL;
        }
    }
    return module->run(session->tensors, session->pools);
}

/* A view of an output; `shape` has room for `capacity` extents. AOT_MODEL_ERROR_INDEX, _NULL (not set), _SHAPE (no room). */
AOT_MODEL_FUNCTION int32_t aot_model_get_output(const aot_model_session *session, int32_t index, aot_model_dl_tensor *tensor, int64_t *shape, int32_t capacity)
{
    const aot_model_metadata *const m = session->module->metadata;
    const aot_model_tensor *port;

    if (index < 0 || index >= (int32_t)m->num_outputs) {
        return AOT_MODEL_ERROR_INDEX;
    }
    port = &m->outputs[index];
    if (tensor == NULL || session->tensors[m->num_inputs + index] == NULL || (shape == NULL && port->rank != 0u)) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (capacity < (int32_t)port->rank) {
        return AOT_MODEL_ERROR_SHAPE;
    }
    for (uint32_t k = 0; k < port->rank; k++) {
        shape[k] = port->shape[k];
    }
    tensor->data = session->tensors[m->num_inputs + index];
    tensor->device.type = 1;
    tensor->device.id = 0;
    tensor->ndim = (int32_t)port->rank;
    tensor->dtype = aot_model_dl_dtype_of(port->dtype);
    tensor->shape = shape;
    tensor->strides = NULL;
    tensor->byte_offset = 0;
    return AOT_MODEL_OK;
}

#ifdef __cplusplus
}
#endif

#endif
