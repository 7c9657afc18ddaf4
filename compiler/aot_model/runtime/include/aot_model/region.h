/* Regions of a network as data: a blob of JSON text and constants, interpreted. docs/backends.md has the format.
 *
 *     aot_model_region region;
 *     if (aot_model_region_open(&region, blob, size) == AOT_MODEL_OK &&                      checks header and CRC
 *         aot_model_region_prepare(&region, memory, aot_model_region_memory(&region)) == AOT_MODEL_OK) {   checks the rest
 *         status = aot_model_region_run(&region, inputs, outputs);                            any number of times
 *     }
 *
 * Whatever a blob contains, nothing outside of it, of the memory handed in and of the tensors of the sizes that
 * aot_model_region_count() and _elements() say is touched. Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_REGION_H
#define AOT_MODEL_REGION_H

#include "aot_model/json_reader.h"
#include "aot_model/model.h"
#include "aot_model/parameters.h"
#include "aot_model/region_ops.h"

#define AOT_MODEL_REGION_VERSION 1u
#define AOT_MODEL_REGION_HEADER 32u
#define AOT_MODEL_REGION_ELEMENTS (1 << 26) /* the largest tensor */
#define AOT_MODEL_REGION_LIMIT (1 << 15)    /* the largest attribute, and number of tensors */

typedef enum {
    AOT_MODEL_REGION_TEMPORARY = 1,
    AOT_MODEL_REGION_CONSTANT,
    AOT_MODEL_REGION_INPUT,
    AOT_MODEL_REGION_OUTPUT
} aot_model_region_kind;

/* An entry of the table of tensors, which is at the beginning of the memory. */
typedef struct {
    int32_t dims[AOT_MODEL_REGION_RANK];
    int32_t rank;
    int32_t elements;
    int32_t kind;    /* aot_model_region_kind, 0: no entry yet */
    int32_t place;   /* temporary, constant: offset in bytes; input, output: number */
    int32_t written; /* its elements can be read */
} aot_model_region_tensor;

typedef struct {
    const char *text;
    const uint8_t *constants;
    uint8_t *memory;
    uint32_t text_bytes;
    uint32_t constant_bytes;
    uint32_t tensors;
    uint32_t temporary_bytes;
} aot_model_region;

/* Bytes of memory that a region needs. No alignment is needed. */
static inline uint32_t aot_model_region_memory(const aot_model_region *region)
{
    return region->tensors * (uint32_t)sizeof(aot_model_region_tensor) + region->temporary_bytes;
}

static inline aot_model_region_tensor aot_model_region_entry_at(const aot_model_region *region, uint32_t index)
{
    aot_model_region_tensor entry;
    memcpy(&entry, region->memory + (size_t)index * sizeof entry, sizeof entry);
    return entry;
}

static inline void aot_model_region_put(const aot_model_region *region, uint32_t index, const aot_model_region_tensor *entry)
{
    memcpy(region->memory + (size_t)index * sizeof *entry, entry, sizeof *entry);
}

/* Reads the header. AOT_MODEL_OK, or AOT_MODEL_ERROR_NULL, _VERSION, _PARAMETERS. */
static inline int32_t aot_model_region_header(aot_model_region *region, const void *blob, uint32_t size)
{
    const uint8_t *const bytes = (const uint8_t *)blob;
    uint32_t fields[7]; /* version, bytes of text, offset and bytes of constants, tensors, bytes of temporaries, CRC */

    if (blob == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (size < AOT_MODEL_REGION_HEADER || memcmp(bytes, "AOTR", 4) != 0) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    memcpy(fields, bytes + 4, sizeof fields);
    if (fields[0] != AOT_MODEL_REGION_VERSION) {
        return AOT_MODEL_ERROR_VERSION; /* also where the order of bytes is another one */
    }
    if (fields[1] > size - AOT_MODEL_REGION_HEADER || fields[2] < AOT_MODEL_REGION_HEADER + fields[1] || fields[2] > size ||
        fields[3] > size - fields[2] || fields[4] > AOT_MODEL_REGION_LIMIT || fields[5] > 4u * AOT_MODEL_REGION_ELEMENTS) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    region->text = (const char *)bytes + AOT_MODEL_REGION_HEADER;
    region->text_bytes = fields[1];
    region->constants = bytes + fields[2];
    region->constant_bytes = fields[3];
    region->tensors = fields[4];
    region->temporary_bytes = fields[5];
    region->memory = NULL;
    return AOT_MODEL_OK;
}

/* Reads and checks the header of a blob, and the CRC of all of it. */
static inline int32_t aot_model_region_open(aot_model_region *region, const void *blob, uint32_t size)
{
    const int32_t status = aot_model_region_header(region, blob, size);
    uint32_t crc;
    if (status != AOT_MODEL_OK) {
        return status;
    }
    memcpy(&crc, (const uint8_t *)blob + AOT_MODEL_REGION_HEADER - 4u, sizeof crc);
    crc ^= aot_model_crc32(aot_model_crc32(0u, (const uint8_t *)blob, AOT_MODEL_REGION_HEADER - 4u),
                           (const uint8_t *)blob + AOT_MODEL_REGION_HEADER, size - AOT_MODEL_REGION_HEADER);
    return crc == 0u ? AOT_MODEL_OK : AOT_MODEL_ERROR_PARAMETERS;
}

/* --- tensors ------------------------------------------------------------------------------------------------------- */

/* Whether `elements` floats from an offset on lie in `bytes`. */
static inline bool aot_model_region_inside(int32_t offset, int32_t elements, uint32_t bytes)
{
    return offset >= 0 && (uint32_t)offset % 4u == 0u && (uint32_t)elements * 4u <= bytes && (uint32_t)offset <= bytes - (uint32_t)elements * 4u;
}

/* {"name": …, "shape": [1, 8], and one of "temporary", "constant": offset, "input", "output": number} */
AOT_MODEL_FUNCTION bool aot_model_region_read_tensor(const aot_model_region *region, aot_model_json *json, aot_model_region_tensor *tensor)
{
    static const char *const kinds[] = { "temporary", "constant", "input", "output" };
    aot_model_json_text key;
    bool first = true;
    int64_t elements = 1;

    memset(tensor, 0, sizeof *tensor);
    tensor->rank = -1;
    if (!aot_model_json_expect(json, '{')) {
        return false;
    }
    while (aot_model_json_member(json, &first, &key)) {
        int32_t kind = 0;
        for (int32_t k = 0; k < 4; k++) {
            kind = aot_model_json_same(key, kinds[k]) ? k + 1 : kind;
        }
        if (kind != 0 && tensor->kind == 0) {
            tensor->kind = kind;
            (void)aot_model_json_integer(json, &tensor->place);
        } else if (aot_model_json_same(key, "shape")) {
            (void)aot_model_json_integers(json, tensor->dims, AOT_MODEL_REGION_RANK, &tensor->rank);
        } else {
            (void)aot_model_json_skip(json);
        }
    }
    if (json->failed || tensor->rank < 0) {
        return false;
    }
    for (int32_t k = 0; k < tensor->rank; k++) {
        if (tensor->dims[k] < 1 || (elements *= tensor->dims[k]) > AOT_MODEL_REGION_ELEMENTS) {
            return false;
        }
    }
    tensor->elements = (int32_t)elements;
    tensor->written = tensor->kind == AOT_MODEL_REGION_CONSTANT || tensor->kind == AOT_MODEL_REGION_INPUT;
    switch (tensor->kind) {
    case AOT_MODEL_REGION_TEMPORARY:
        return aot_model_region_inside(tensor->place, tensor->elements, region->temporary_bytes);
    case AOT_MODEL_REGION_CONSTANT:
        return aot_model_region_inside(tensor->place, tensor->elements, region->constant_bytes);
    case AOT_MODEL_REGION_INPUT:
    case AOT_MODEL_REGION_OUTPUT:
        return tensor->place >= 0 && tensor->place < AOT_MODEL_REGION_LIMIT;
    default:
        return false;
    }
}

AOT_MODEL_FUNCTION bool aot_model_region_read_tensors(const aot_model_region *region, aot_model_json *json)
{
    bool first = true;
    uint32_t count = 0;

    if (!aot_model_json_expect(json, '[')) {
        return false;
    }
    while (aot_model_json_more(json, &first, ']')) {
        aot_model_region_tensor tensor;
        if (count == region->tensors || !aot_model_region_read_tensor(region, json, &tensor)) {
            return aot_model_json_fail(json);
        }
        aot_model_region_put(region, count++, &tensor);
    }
    return !json->failed && count == region->tensors;
}

/* --- nodes --------------------------------------------------------------------------------------------------------- */

/* Where the caller's tensors are; both NULL: the nodes are only checked. */
typedef struct {
    const void *const *inputs;
    void *const *outputs;
} aot_model_region_tensors;

/* The view of a tensor; its shape lies in the table. */
static inline aot_model_region_view aot_model_region_look(const aot_model_region *region, const aot_model_region_tensors *given,
                                                          const aot_model_region_tensor *tensor)
{
    uint8_t *const temporaries = region->memory + region->tensors * sizeof *tensor;
    aot_model_region_view view = { tensor->dims, tensor->rank, tensor->elements, NULL, NULL };

    if (given->outputs == NULL) {
        return view;
    }
    switch (tensor->kind) {
    case AOT_MODEL_REGION_TEMPORARY:
        view.to = temporaries + tensor->place;
        view.data = view.to;
        break;
    case AOT_MODEL_REGION_OUTPUT:
        view.to = (uint8_t *)given->outputs[tensor->place];
        view.data = view.to;
        break;
    case AOT_MODEL_REGION_INPUT:
        view.data = (const uint8_t *)given->inputs[tensor->place];
        break;
    default:
        view.data = region->constants + tensor->place;
        break;
    }
    return view;
}

typedef struct {
    aot_model_region_operator *compute;
    int32_t operands[AOT_MODEL_REGION_OPERANDS];
    int32_t result;
} aot_model_region_wiring;

/* An attribute of a node by its name; unknown ones are passed over. */
AOT_MODEL_FUNCTION void aot_model_region_read_attribute(aot_model_json *json, aot_model_json_text key, aot_model_region_node *node)
{
    struct {
        const char *name;
        int32_t *values;
        int32_t count;
    } const lists[] = {
        { "strides", node->strides, 2 }, { "dilations", node->dilations, 2 }, { "kernel", node->kernel, 2 },
        { "pads", node->pads, 4 },       { "groups", &node->groups, 0 },      { "axis", &node->axis, 0 },
        { "include_pad", &node->include_pad, 0 },
    };
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        int32_t count = lists[k].count;
        if (!aot_model_json_same(key, lists[k].name)) {
            continue;
        }
        if (lists[k].count == 0) {
            (void)aot_model_json_integer(json, lists[k].values);
        } else {
            (void)aot_model_json_integers(json, lists[k].values, lists[k].count, &count);
        }
        for (int32_t i = 0; i < (count > 0 ? count : 1); i++) {
            if (count != lists[k].count || lists[k].values[i] < 0 || lists[k].values[i] > AOT_MODEL_REGION_LIMIT) {
                (void)aot_model_json_fail(json);
                return;
            }
        }
        return;
    }
    if (aot_model_json_same(key, "axes")) {
        (void)aot_model_json_integers(json, node->axes, AOT_MODEL_REGION_RANK, &node->axes_count);
    } else {
        (void)aot_model_json_skip(json);
    }
}

/* {"op": …, "inputs": [1, -1], "output": 2, attributes}; -1: an operand that is absent */
AOT_MODEL_FUNCTION bool aot_model_region_read_node(aot_model_json *json, aot_model_region_node *node, aot_model_region_wiring *wiring)
{
    aot_model_json_text key, name = { "", 0 };
    bool first = true;

    memset(node, 0, sizeof *node);
    node->strides[0] = node->strides[1] = node->dilations[0] = node->dilations[1] = node->kernel[0] = node->kernel[1] = node->groups = 1;
    wiring->compute = NULL;
    wiring->result = -1;
    if (!aot_model_json_expect(json, '{')) {
        return false;
    }
    while (aot_model_json_member(json, &first, &key)) {
        if (aot_model_json_same(key, "op")) {
            (void)aot_model_json_string(json, &name);
        } else if (aot_model_json_same(key, "inputs")) {
            (void)aot_model_json_integers(json, wiring->operands, AOT_MODEL_REGION_OPERANDS, &node->count);
        } else if (aot_model_json_same(key, "output")) {
            (void)aot_model_json_integer(json, &wiring->result);
        } else {
            aot_model_region_read_attribute(json, key, node);
        }
    }
    for (size_t k = 0; k < sizeof aot_model_region_operators / sizeof aot_model_region_operators[0]; k++) {
        if (aot_model_json_same(name, aot_model_region_operators[k].name)) {
            wiring->compute = aot_model_region_operators[k].compute;
        }
    }
    return !json->failed && wiring->compute != NULL;
}

/* Checks one node, and computes it when tensors are given. */
AOT_MODEL_FUNCTION bool aot_model_region_step(const aot_model_region *region, const aot_model_region_tensors *given, aot_model_region_node *node,
                                         const aot_model_region_wiring *wiring)
{
    aot_model_region_tensor x[AOT_MODEL_REGION_OPERANDS], y;

    if (wiring->result < 0 || (uint32_t)wiring->result >= region->tensors || node->count < 1 || wiring->operands[0] < 0) {
        return false;
    }
    for (int32_t k = 0; k < node->count; k++) {
        if (wiring->operands[k] == -1) {
            continue;
        }
        if (wiring->operands[k] < 0 || (uint32_t)wiring->operands[k] >= region->tensors) {
            return false;
        }
        x[k] = aot_model_region_entry_at(region, (uint32_t)wiring->operands[k]);
        if (x[k].written == 0) {
            return false;
        }
        node->x[k] = aot_model_region_look(region, given, &x[k]);
    }
    y = aot_model_region_entry_at(region, (uint32_t)wiring->result);
    if (y.kind != AOT_MODEL_REGION_TEMPORARY && y.kind != AOT_MODEL_REGION_OUTPUT) {
        return false;
    }
    node->y = aot_model_region_look(region, given, &y);
    if (!wiring->compute(node)) {
        return false;
    }
    y.written = 1;
    aot_model_region_put(region, (uint32_t)wiring->result, &y);
    return true;
}

/* The whole text: {…, "tensors": […], "nodes": […]}; tensors must come first. */
AOT_MODEL_FUNCTION int32_t aot_model_region_walk(const aot_model_region *region, const aot_model_region_tensors *given)
{
    aot_model_json json = aot_model_json_open(region->text, region->text_bytes);
    aot_model_json_text key;
    bool first = true, tensors = false, nodes = false;

    (void)aot_model_json_expect(&json, '{');
    while (aot_model_json_member(&json, &first, &key)) {
        if (aot_model_json_same(key, "tensors") && !tensors) {
            tensors = aot_model_region_read_tensors(region, &json);
            if (!tensors) {
                return AOT_MODEL_ERROR_PARAMETERS;
            }
        } else if (aot_model_json_same(key, "nodes") && tensors && !nodes) {
            bool begins = true;
            nodes = aot_model_json_expect(&json, '[');
            while (aot_model_json_more(&json, &begins, ']')) {
                aot_model_region_node node;
                aot_model_region_wiring wiring;
                if (!aot_model_region_read_node(&json, &node, &wiring) || !aot_model_region_step(region, given, &node, &wiring)) {
                    return AOT_MODEL_ERROR_PARAMETERS;
                }
            }
        } else {
            (void)aot_model_json_skip(&json);
        }
    }
    return json.failed || !nodes ? AOT_MODEL_ERROR_PARAMETERS : AOT_MODEL_OK;
}

/* --- what programs call -------------------------------------------------------------------------------------------- */

/* Reads the text of an opened region and checks every tensor and node. `memory` stays in use by the region. */
AOT_MODEL_FUNCTION int32_t aot_model_region_prepare(aot_model_region *region, void *memory, uint32_t bytes)
{
    const aot_model_region_tensors nothing = { NULL, NULL };
    int32_t status;
    if (memory == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (bytes < aot_model_region_memory(region)) {
        return AOT_MODEL_ERROR_MEMORY;
    }
    region->memory = (uint8_t *)memory;
    status = aot_model_region_walk(region, &nothing);
    for (uint32_t k = 0; k < region->tensors && status == AOT_MODEL_OK; k++) {
        const aot_model_region_tensor tensor = aot_model_region_entry_at(region, k);
        if (tensor.kind == AOT_MODEL_REGION_OUTPUT && tensor.written == 0) {
            status = AOT_MODEL_ERROR_PARAMETERS;
        }
    }
    return status;
}

/* How many inputs (kind AOT_MODEL_REGION_INPUT) or outputs a prepared region has: the lengths of the arrays for run(). */
AOT_MODEL_FUNCTION int32_t aot_model_region_count(const aot_model_region *region, aot_model_region_kind kind)
{
    int32_t count = 0;
    for (uint32_t k = 0; k < region->tensors; k++) {
        const aot_model_region_tensor tensor = aot_model_region_entry_at(region, k);
        count = tensor.kind == (int32_t)kind && tensor.place >= count ? tensor.place + 1 : count;
    }
    return count;
}

/* Elements of input (kind AOT_MODEL_REGION_INPUT) or output number `number` of a prepared region; 0 when there is none. */
AOT_MODEL_FUNCTION int32_t aot_model_region_elements(const aot_model_region *region, aot_model_region_kind kind, int32_t number)
{
    int32_t most = 0;
    for (uint32_t k = 0; k < region->tensors; k++) {
        const aot_model_region_tensor tensor = aot_model_region_entry_at(region, k);
        if (tensor.kind == (int32_t)kind && tensor.place == number && tensor.elements > most) {
            most = tensor.elements;
        }
    }
    return most;
}

/* Runs a prepared region on compact float tensors. AOT_MODEL_OK, or AOT_MODEL_ERROR_NULL, _PARAMETERS. */
static inline int32_t aot_model_region_run(const aot_model_region *region, const void *const *inputs, void *const *outputs)
{
    const aot_model_region_tensors given = { inputs, outputs };
    if (region->memory == NULL || inputs == NULL || outputs == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    return aot_model_region_walk(region, &given);
}

/* What generated code calls for a region of its own: the blob is as trustworthy as the code that it is compiled with, so
 * that the CRC is not computed for every run. `memory` has aot_model_region_memory() bytes. */
static inline int32_t aot_model_region_call(const uint8_t *blob, uint32_t size, const void *const *inputs, void *const *outputs, uint8_t *memory)
{
    aot_model_region region;
    const int32_t status = aot_model_region_header(&region, blob, size);
    if (status != AOT_MODEL_OK) {
        return status;
    }
    region.memory = memory;
    return aot_model_region_run(&region, inputs, outputs);
}

#endif
