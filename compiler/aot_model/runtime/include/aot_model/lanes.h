/* Choices of floats by their bits, in loops of which compilers make vectors: a choice between floats becomes branches again, of
 * which GCC makes none. Part of aot-model. */
#ifndef AOT_MODEL_LANES_H
#define AOT_MODEL_LANES_H

#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"

AOT_MODEL_INLINE uint32_t aot_model_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

AOT_MODEL_INLINE float aot_model_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* All bits where it is so. */
AOT_MODEL_INLINE uint32_t aot_model_mask_if(bool so) { return 0u - (uint32_t)so; }

AOT_MODEL_INLINE float aot_model_lanes_choose(uint32_t mask, float there, float elsewhere)
{
    return aot_model_float_of(
        (aot_model_bits_of(there) & mask) | (aot_model_bits_of(elsewhere) & ~mask));
}

#endif
