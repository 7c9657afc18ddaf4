/* What the code of models with tensors of strings uses. Bounded by the size of a slot, whatever is in memory; no libc.
 * Part of aot-model. C99. */
#ifndef AOT_MODEL_STRINGS_H
#define AOT_MODEL_STRINGS_H

#include "aot_model/model.h"

/* Bytes of the text in a slot of `size` bytes. */
AOT_MODEL_FUNCTION int32_t aot_model_string_length(const char *text, int32_t size)
{
    int32_t n = 0;

    while (n < size - 1 && text[n] != '\0') {
        ++n;
    }
    return n;
}

/* Order of two texts by their bytes: negative, 0 where they are equal, positive. Each is in a slot of `size` bytes, or
 * ends with a NUL before. */
AOT_MODEL_FUNCTION int32_t aot_model_string_order(const char *a, const char *b, int32_t size)
{
    for (int32_t k = 0; k < size - 1; k++) {
        const int32_t order = (int32_t)(unsigned char)a[k] - (int32_t)(unsigned char)b[k];
        if (order != 0 || a[k] == '\0') {
            return order;
        }
    }
    return 0;
}

/* Fill a slot of `size` bytes with the `count` bytes at `from`, and zeros behind them; count < size. */
AOT_MODEL_FUNCTION void aot_model_string_put(char *slot, const char *from, int32_t count, int32_t size)
{
    for (int32_t k = 0; k < size; k++) {
        slot[k] = k < count ? from[k] : '\0';
    }
}

/* Place of a text among `count` sorted words, -1 when it is none of them. Word k begins at words[begins[k]], with a NUL
 * behind it. */
AOT_MODEL_FUNCTION int32_t aot_model_string_find(const uint8_t *words, const int32_t *begins, int32_t count, const char *text, int32_t size)
{
    int32_t low = 0;
    int32_t high = count;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const int32_t order = aot_model_string_order(text, (const char *)(words + begins[middle]), size);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return -1;
}

static inline bool aot_model_string_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next substring of text[*at .. length): text[*begin .. *end); false when there is no more. `width` is the length of
 * the delimiter, 0: any number of white-space characters. `last`: the rest is one substring. */
AOT_MODEL_FUNCTION bool aot_model_string_next(const char *text, int32_t length, const char *delimiter, int32_t width, bool last, int32_t *at,
                                         int32_t *begin, int32_t *end)
{
    int32_t k = *at;

    while (width == 0 && k < length && aot_model_string_is_space(text[k])) {
        ++k;
    }
    if (width == 0 ? k >= length : k > length) {
        return false;
    }
    *begin = k;
    *end = length;
    *at = length + 1;
    if (last) {
        while (width == 0 && aot_model_string_is_space(text[*end - 1])) {
            --*end;
        }
        return true;
    }
    for (; k < length; k++) {
        int32_t same = 0;
        while (same < width && k + same < length && text[k + same] == delimiter[same]) {
            ++same;
        }
        if (width == 0 ? aot_model_string_is_space(text[k]) : same == width) {
            *end = k;
            *at = k + width;
            return true;
        }
    }
    return true;
}

#endif
