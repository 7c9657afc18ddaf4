/* Check of a file of parameters that a model was given: see docs/parameters.md for the format.
 * Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_PARAMETERS_H
#define AOT_MODEL_PARAMETERS_H

#include "aot_model/model.h"

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
    for (uint32_t i = 0; i < bytes; ++i) {
        crc ^= data[i];
        crc = (crc >> 4) ^ table[crc & 15u];
        crc = (crc >> 4) ^ table[crc & 15u];
    }
    return ~crc;
}

/* Whether `size` bytes at `base`, a multiple of `align`, begin with the parameters of the model with this structure:
 * `total` bytes, the data from `offset` on. AOT_MODEL_OK, or AOT_MODEL_ERROR_NULL, _ALIGNMENT or _PARAMETERS. */
static inline int32_t aot_model_check_parameters(const void *base, uint32_t size, uint32_t align, const uint8_t *structure, uint32_t offset,
                                                 uint32_t total)
{
    const uint8_t *const file = (const uint8_t *)base;
    uint32_t fields[3]; /* version, bytes of the header, bytes of the data */
    uint32_t crc;

    if (base == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    if (((uintptr_t)base & (align - 1u)) != 0u) {
        return AOT_MODEL_ERROR_ALIGNMENT;
    }
    if (size < total || memcmp(file, "AOTPARAM", 8) != 0) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    memcpy(fields, file + 8, sizeof fields); /* in the order of this machine, as the data must be */
    memcpy(&crc, file + 60, sizeof crc);
    if (fields[0] != 1u || fields[1] != offset || fields[2] != total - offset || memcmp(file + 24, structure, 16) != 0) {
        return AOT_MODEL_ERROR_PARAMETERS;
    }
    return aot_model_crc32(aot_model_crc32(0u, file, 60u), file + 64, total - 64u) == crc ? AOT_MODEL_OK : AOT_MODEL_ERROR_PARAMETERS;
}

#endif
