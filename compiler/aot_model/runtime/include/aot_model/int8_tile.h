/* Filling the tile of kernels/int8/host_tile.py. Part of aot-model. */
#ifndef AOT_MODEL_INT8_TILE_H
#define AOT_MODEL_INT8_TILE_H

#include <stdint.h>

#include "aot_model/attributes.h"

/* The rows of a tile: `inside` elements each, which the statement `store` moves from `from` to `to`. */
#define AOT_MODEL_TILE_ROWS(set, dtype, inside, store)                                                                             \
    for (int32_t row = first; row < first + rows; row++) {                                                                         \
        if (row >= 0 && row < height) {                                                                                            \
            const dtype##_t *from = x + row * pitch;                                                                               \
            to = set##_fill(to, zero, left);                                                                                       \
            store                                                                                                                  \
            to = set##_fill(to, zero, right);                                                                                      \
        } else {                                                                                                                   \
            to = set##_fill(to, zero, left + (inside) + right);                                                                    \
        }                                                                                                                          \
    }

/* What a set of instructions has for inputs of `dtype`, by its functions fill and widen: input rows first .. first + rows - 1 go
 * to the tile, outside of the image the zero point. A row is `left` elements of padding, what lies inside, and `right` elements of
 * padding. Inside are `runs` runs of `run` elements, or of `width` pixels all channels, each `repeat` times. flip: what is added
 * to make an element of the tile. */
#define AOT_MODEL_TILE(set, dtype, element, flip)                                                                                  \
    AOT_MODEL_FUNCTION void set##_tile_##dtype(element *to, const dtype##_t *x, int32_t first, int32_t rows, int32_t height,       \
                                               int32_t pitch, int32_t left, int32_t run, int32_t runs, int32_t step,               \
                                               int32_t right, element zero)                                                        \
    {                                                                                                                              \
        AOT_MODEL_TILE_ROWS(set, dtype, run * runs, for (int32_t i = 0; i < runs; i++, from += step, to += run) {                  \
            set##_widen_##dtype(to, from, run);                                                                                    \
        })                                                                                                                         \
    }                                                                                                                              \
    AOT_MODEL_FUNCTION void set##_tile_strided_##dtype(element *to, const dtype##_t *x, int32_t first, int32_t rows,               \
                                                       int32_t height, int32_t pitch, int32_t left, int32_t width, int32_t step,   \
                                                       int32_t channels, int32_t apart, int32_t repeat, int32_t right,             \
                                                       element zero)                                                               \
    {                                                                                                                              \
        AOT_MODEL_TILE_ROWS(set, dtype, width * channels * repeat, for (int32_t i = 0; i < width; i++, from += step) {             \
            for (int32_t c = 0; c < channels; c++) {                                                                               \
                to = set##_fill(to, (element)(from[c * apart] + (flip)), repeat);                                                  \
            }                                                                                                                      \
        })                                                                                                                         \
    }

#endif
