/* What the code of models with tensors of strings uses. Bounded by the size of a slot, whatever is in memory; no libc.
 * Part of aot-model. C99. */
#ifndef AOT_MODEL_STRINGS_H
#define AOT_MODEL_STRINGS_H

#include "aot_model/model.h"

/* Bytes of the text in a slot of `size` bytes. */
static inline int32_t aot_model_string_length(const char *text, int32_t size)
{
    int32_t n = 0;

    while (n < size - 1 && text[n] != '\0') {
        ++n;
    }
    return n;
}

/* Order of two texts by their bytes: negative, 0 where they are equal, positive. Each is in a slot of `size` bytes, or
 * ends with a NUL before. */
static inline int32_t aot_model_string_order(const char *a, const char *b, int32_t size)
{
    for (int32_t k = 0; k < size - 1; ++k) {
        const int32_t order = (int32_t)(unsigned char)a[k] - (int32_t)(unsigned char)b[k];
        if (order != 0 || a[k] == '\0') {
            return order;
        }
    }
    return 0;
}

/* Fill a slot of `size` bytes with the `count` bytes at `from`, and zeros behind them; count < size. */
static inline void aot_model_string_put(char *slot, const char *from, int32_t count, int32_t size)
{
    for (int32_t k = 0; k < size; ++k) {
        slot[k] = k < count ? from[k] : '\0';
    }
}

#endif
