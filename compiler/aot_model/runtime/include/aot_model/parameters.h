/* Check of a file of parameters that a model was given: see docs/parameters.md for the format.
 * Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_PARAMETERS_H
#define AOT_MODEL_PARAMETERS_H

#include "aot_model/model.h"

#include <stdbool.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files of parameters are little-endian: for this machine compile the model with --params linked"
#endif

/* CRC-32 of IEEE 802.3, half a byte at a time: a table of 64 bytes instead of 1024. */
AOT_MODEL_FUNCTION uint32_t aot_model_crc32(uint32_t crc, const uint8_t *data, uint32_t bytes)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
        0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu
    };
    crc = ~crc;
    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ table[crc & 15u];
        crc = (crc >> 4) ^ table[crc & 15u];
    }
    return ~crc;
}

/* Elements of the data, `count` of them, `step` apart from each other, the first `offset` bytes from the beginning: the k-th
 * is between low + k * rise and high. kind: 0 int8, 1 uint8, 2 int16 … 7 uint64, whose limits are less by 2^63. */
typedef struct {
    uint32_t offset;
    uint32_t count;
    uint32_t step;
    uint32_t kind;
    int64_t low;
    int64_t high;
    int64_t rise;
} aot_model_parameter_check;

/* Element `k` of a type, see above. */
AOT_MODEL_INLINE int64_t aot_model_parameter(const void *data, uint32_t kind, uint32_t k)
{
    switch (kind) {
    case 0: return ((const int8_t *)data)[k];
    case 1: return ((const uint8_t *)data)[k];
    case 2: return ((const int16_t *)data)[k];
    case 3: return ((const uint16_t *)data)[k];
    case 4: return ((const int32_t *)data)[k];
    case 5: return ((const uint32_t *)data)[k];
    case 6: return ((const int64_t *)data)[k];
    default: return (int64_t)(((const uint64_t *)data)[k] ^ UINT64_C(0x8000000000000000));
    }
}

AOT_MODEL_FUNCTION bool aot_model_parameters_pass(const uint8_t *data, const aot_model_parameter_check *checks, uint32_t count)
{
    for (const aot_model_parameter_check *c = checks; c != checks + count; c++) {
        const void *const elements = data + c->offset;
        int64_t low = c->low;
        for (uint32_t k = 0; k < c->count; ++k, low += c->rise) {
            const int64_t v = aot_model_parameter(elements, c->kind, k * c->step);
            if (v < low || v > c->high) {
                return false;
            }
        }
    }
    return true;
}

/* The caller's judgement of a file of parameters; anything but 0 refuses it. */
typedef int32_t (*aot_model_verify_parameters)(const void *parameters, uint32_t bytes, void *context);

/* What the parameters of a model must be: their alignment in memory, where the data begin, the size of all, the hash of the
 * structure, and what is checked of the data. */
typedef struct {
    uint32_t align;
    uint32_t offset;
    uint32_t total;
    const uint8_t *structure;
    const aot_model_parameter_check *checks;
    uint32_t count;
} aot_model_parameters_format;

/* Whether `size` bytes at `base` begin with parameters of this format that the caller, if it wants to be asked, accepts.
 * AOT_MODEL_OK, or AOT_MODEL_ERROR_NULL, _ALIGNMENT or _PARAMETERS. */
static inline int32_t aot_model_check_parameters(const void *base, uint32_t size, const aot_model_parameters_format *format,
                                                 aot_model_verify_parameters verify, void *context)
{
    const uint8_t *const file = (const uint8_t *)base;
    const uint32_t total = format->total;
    uint32_t fields[3]; /* version, bytes of the header, bytes of the data */
    uint32_t crc;

    if (base == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (((uintptr_t)base & (format->align - 1u)) != 0u) {
        return AOT_MODEL_ERROR_ALIGNMENT;
    }
    if (size < total || (verify != NULL && verify(base, total, context) != 0) || memcmp(file, "AOTPARAM", 8) != 0) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    memcpy(fields, file + 8, sizeof fields); /* in the order of this machine, as the data must be */
    memcpy(&crc, file + 60, sizeof crc);
    if (fields[0] != 1u || fields[1] != format->offset || fields[2] != total - format->offset || memcmp(file + 24, format->structure, 16) != 0) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    if (aot_model_crc32(aot_model_crc32(0u, file, 60u), file + 64, total - 64u) != crc) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    return aot_model_parameters_pass(file + format->offset, format->checks, format->count) ? AOT_MODEL_OK : AOT_MODEL_ERROR_PARAMETERS;
}

#endif
