/* The operators of serialised regions (region.h) on float32 tensors, channels last.
 *
 * Each checks that its operands fit each other, and computes unless the result has no memory. Shapes have been checked to
 * have at most 2^26 elements, attributes to be at most 2^15. Elements are read and written by memcpy, because neither
 * alignment nor type of the memory is known. Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_REGION_OPS_H
#define AOT_MODEL_REGION_OPS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"

#define AOT_MODEL_REGION_RANK 6
#define AOT_MODEL_REGION_OPERANDS 16

/* A tensor while it is worked on. */
typedef struct {
    const int32_t *dims;
    int32_t rank;
    int32_t elements;
    const uint8_t *data; /* NULL: an optional operand that is absent, or (with to == NULL) only shapes are known */
    uint8_t *to;
} aot_model_region_view;

/* A node: operands, attributes with their defaults. */
typedef struct {
    aot_model_region_view x[AOT_MODEL_REGION_OPERANDS];
    aot_model_region_view y;
    int32_t count; /* of operands */
    int32_t strides[2], dilations[2], kernel[2];
    int32_t pads[4]; /* top, left, bottom, right */
    int32_t groups;
    int32_t axis;
    int32_t include_pad;
    int32_t axes[AOT_MODEL_REGION_RANK]; /* of a mean; the permutation of a transpose */
    int32_t axes_count;
} aot_model_region_node;

static inline float aot_model_region_get(const aot_model_region_view *x, int32_t index)
{
    float value;
    memcpy(&value, x->data + (size_t)index * sizeof value, sizeof value);
    return value;
}

static inline void aot_model_region_set(const aot_model_region_view *y, int32_t index, float value)
{
    memcpy(y->to + (size_t)index * sizeof value, &value, sizeof value);
}

static inline bool aot_model_region_same(const aot_model_region_view *a, const aot_model_region_view *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* --- element by element -------------------------------------------------------------------------------------------- */

/* Element distances of x along the axes of y, 0 where x is repeated. False when x cannot be broadcast to y. */
AOT_MODEL_FUNCTION bool aot_model_region_broadcast(const aot_model_region_view *x, const aot_model_region_view *y, int32_t *steps)
{
    int32_t step = 1;
    if (x->rank > y->rank) {
        return false;
    }
    for (int32_t k = 1; k <= y->rank; k++) {
        const int32_t extent = k <= x->rank ? x->dims[x->rank - k] : 1;
        if (extent != 1 && extent != y->dims[y->rank - k]) {
            return false;
        }
        steps[y->rank - k] = extent == 1 ? 0 : step;
        step *= extent;
    }
    return true;
}

/* The next index in row-major order, and the place in each of up to three operands. */
AOT_MODEL_FUNCTION void aot_model_region_next(const aot_model_region_view *y, int32_t *index, int32_t count, int32_t (*steps)[AOT_MODEL_REGION_RANK],
                                         int32_t *places)
{
    for (int32_t k = y->rank - 1; k >= 0; --k) {
        for (int32_t i = 0; i < count; i++) {
            places[i] += steps[i][k];
        }
        if (++index[k] < y->dims[k]) {
            return;
        }
        for (int32_t i = 0; i < count; i++) {
            places[i] -= steps[i][k] * y->dims[k];
        }
        index[k] = 0;
    }
}

typedef float aot_model_region_function(float a, float b, float c);

/* y = f(a, b, c) with broadcasting; f does not look at operands that are absent. */
AOT_MODEL_FUNCTION bool aot_model_region_map(const aot_model_region_node *n, int32_t least, int32_t most, aot_model_region_function *f)
{
    int32_t steps[3][AOT_MODEL_REGION_RANK] = { { 0 } };
    int32_t index[AOT_MODEL_REGION_RANK] = { 0 };
    int32_t places[3] = { 0, 0, 0 };

    if (n->count < least || n->count > most) {
        return false;
    }
    for (int32_t i = 0; i < n->count; i++) {
        if (n->x[i].dims == NULL ? i < least : !aot_model_region_broadcast(&n->x[i], &n->y, steps[i])) {
            return false;
        }
    }
    for (int32_t k = 0; n->y.to != NULL && k < n->y.elements; k++) {
        float v[3] = { 0.0f, -INFINITY, INFINITY };
        for (int32_t i = 0; i < n->count; i++) {
            v[i] = n->x[i].dims != NULL ? aot_model_region_get(&n->x[i], places[i]) : v[i];
        }
        aot_model_region_set(&n->y, k, f(v[0], v[1], v[2]));
        aot_model_region_next(&n->y, index, n->count, steps, places);
    }
    return true;
}

#define AOT_MODEL_REGION_UNARY(name, text)                                                                                               \
    static inline float aot_model_region_##name##_of(float a, float b, float c) { (void)b; (void)c; return text; }                      \
    static inline bool aot_model_region_##name(const aot_model_region_node *n) { return aot_model_region_map(n, 1, 1, aot_model_region_##name##_of); }
#define AOT_MODEL_REGION_BINARY(name, text)                                                                                              \
    static inline float aot_model_region_##name##_of(float a, float b, float c) { (void)c; return text; }                               \
    static inline bool aot_model_region_##name(const aot_model_region_node *n) { return aot_model_region_map(n, 2, 2, aot_model_region_##name##_of); }

AOT_MODEL_REGION_UNARY(relu, a < 0.0f ? 0.0f : a)
AOT_MODEL_REGION_UNARY(sigmoid, 1.0f / (1.0f + expf(-a)))
AOT_MODEL_REGION_UNARY(tanh, tanhf(a))
AOT_MODEL_REGION_UNARY(exp, expf(a))
AOT_MODEL_REGION_UNARY(sqrt, sqrtf(a))
AOT_MODEL_REGION_UNARY(negate, -a)
AOT_MODEL_REGION_UNARY(abs, fabsf(a))
AOT_MODEL_REGION_BINARY(add, a + b)
AOT_MODEL_REGION_BINARY(subtract, a - b)
AOT_MODEL_REGION_BINARY(multiply, a *b)
AOT_MODEL_REGION_BINARY(divide, a / b)
AOT_MODEL_REGION_BINARY(maximum, b > a || isnan(b) ? b : a)
AOT_MODEL_REGION_BINARY(minimum, b < a || isnan(b) ? b : a)
AOT_MODEL_REGION_BINARY(prelu, a < 0.0f ? a * b : a)

static inline float aot_model_region_clip_of(float a, float low, float high)
{
    a = a < low ? low : a;
    return a > high ? high : a;
}

/* x, low or null, high or null */
static inline bool aot_model_region_clip(const aot_model_region_node *n)
{
    return aot_model_region_map(n, 1, 3, aot_model_region_clip_of);
}

/* --- layers -------------------------------------------------------------------------------------------------------- */

/* Whether `out` positions of a window fit an extent with padding. */
static inline bool aot_model_region_window(int32_t extent, int32_t kernel, int32_t stride, int32_t dilation, int32_t begin, int32_t end,
                                           int32_t out)
{
    int64_t span;
    if (kernel < 1 || stride < 1 || dilation < 1 || begin < 0 || end < 0) {
        return false;
    }
    span = (int64_t)extent + begin + end - (int64_t)dilation * (kernel - 1) - 1;
    return span >= 0 && span / stride + 1 == out;
}

static inline bool aot_model_region_windows(const aot_model_region_node *n, int32_t kernel_h, int32_t kernel_w)
{
    const int32_t *const x = n->x[0].dims;
    const int32_t *const y = n->y.dims;
    return aot_model_region_window(x[1], kernel_h, n->strides[0], n->dilations[0], n->pads[0], n->pads[2], y[1]) &&
           aot_model_region_window(x[2], kernel_w, n->strides[1], n->dilations[1], n->pads[1], n->pads[3], y[2]);
}

/* x (N, H, W, C), w (O, KH, KW, C / groups), bias (O) or absent */
AOT_MODEL_FUNCTION bool aot_model_region_conv2d(const aot_model_region_node *n)
{
    const aot_model_region_view *const x = &n->x[0], *const w = &n->x[1], *const bias = &n->x[2], *const y = &n->y;
    int32_t per_group, at = 0;

    if (n->count < 2 || n->count > 3 || x->rank != 4 || w->rank != 4 || y->rank != 4 || n->groups < 1) {
        return false;
    }
    if (x->dims[3] % n->groups != 0 || w->dims[3] != x->dims[3] / n->groups || w->dims[0] % n->groups != 0 || y->dims[3] != w->dims[0] ||
        y->dims[0] != x->dims[0] || (n->count == 3 && bias->dims != NULL && bias->elements != w->dims[0]) ||
        !aot_model_region_windows(n, w->dims[1], w->dims[2])) {
        return false;
    }
    per_group = w->dims[0] / n->groups;
    for (int32_t b = 0; y->to != NULL && b < y->dims[0]; b++) {
        for (int32_t p = 0; p < y->dims[1] * y->dims[2]; p++) {
            const int32_t oy = p / y->dims[2], ox = p % y->dims[2];
            for (int32_t o = 0; o < w->dims[0]; o++) {
                float sum = n->count == 3 && bias->dims != NULL ? aot_model_region_get(bias, o) : 0.0f;
                for (int32_t tap = 0; tap < w->dims[1] * w->dims[2]; tap++) {
                    const int32_t iy = oy * n->strides[0] - n->pads[0] + tap / w->dims[2] * n->dilations[0];
                    const int32_t ix = ox * n->strides[1] - n->pads[1] + tap % w->dims[2] * n->dilations[1];
                    if (iy >= 0 && iy < x->dims[1] && ix >= 0 && ix < x->dims[2]) {
                        const int32_t from = ((b * x->dims[1] + iy) * x->dims[2] + ix) * x->dims[3] + o / per_group * w->dims[3];
                        const int32_t weight = (o * w->dims[1] * w->dims[2] + tap) * w->dims[3];
                        for (int32_t c = 0; c < w->dims[3]; c++) {
                            sum += aot_model_region_get(x, from + c) * aot_model_region_get(w, weight + c);
                        }
                    }
                }
                aot_model_region_set(y, at++, sum);
            }
        }
    }
    return true;
}

/* x (…, K), w (K, N), bias (N) or absent */
AOT_MODEL_FUNCTION bool aot_model_region_dense(const aot_model_region_node *n)
{
    const aot_model_region_view *const x = &n->x[0], *const w = &n->x[1], *const bias = &n->x[2], *const y = &n->y;
    int32_t rows;

    if (n->count < 2 || n->count > 3 || x->rank < 1 || w->rank != 2 || y->rank < 1 || x->dims[x->rank - 1] != w->dims[0] ||
        y->dims[y->rank - 1] != w->dims[1] || (n->count == 3 && bias->dims != NULL && bias->elements != w->dims[1])) {
        return false;
    }
    rows = x->elements / w->dims[0];
    if ((int64_t)rows * w->dims[1] != y->elements) {
        return false;
    }
    for (int32_t row = 0; y->to != NULL && row < rows; row++) {
        for (int32_t o = 0; o < w->dims[1]; o++) {
            float sum = n->count == 3 && bias->dims != NULL ? aot_model_region_get(bias, o) : 0.0f;
            for (int32_t k = 0; k < w->dims[0]; k++) {
                sum += aot_model_region_get(x, row * w->dims[0] + k) * aot_model_region_get(w, k * w->dims[1] + o);
            }
            aot_model_region_set(y, row * w->dims[1] + o, sum);
        }
    }
    return true;
}

AOT_MODEL_FUNCTION bool aot_model_region_pool(const aot_model_region_node *n, bool maximum)
{
    const aot_model_region_view *const x = &n->x[0], *const y = &n->y;
    int32_t at = 0;

    if (n->count != 1 || x->rank != 4 || y->rank != 4 || y->dims[0] != x->dims[0] || y->dims[3] != x->dims[3] ||
        !aot_model_region_windows(n, n->kernel[0], n->kernel[1])) {
        return false;
    }
    for (int32_t b = 0; y->to != NULL && b < y->dims[0]; b++) {
        for (int32_t p = 0; p < y->dims[1] * y->dims[2]; p++) {
            for (int32_t c = 0; c < y->dims[3]; c++) {
                float sum = 0.0f, most = -INFINITY;
                int32_t inside = 0;
                for (int32_t ky = 0; ky < n->kernel[0]; ky++) {
                    const int32_t iy = p / y->dims[2] * n->strides[0] - n->pads[0] + ky * n->dilations[0];
                    for (int32_t kx = 0; kx < n->kernel[1] && iy >= 0 && iy < x->dims[1]; kx++) {
                        const int32_t ix = p % y->dims[2] * n->strides[1] - n->pads[1] + kx * n->dilations[1];
                        if (ix >= 0 && ix < x->dims[2]) {
                            const float v = aot_model_region_get(x, ((b * x->dims[1] + iy) * x->dims[2] + ix) * x->dims[3] + c);
                            sum += v;
                            most = v > most || isnan(v) ? v : most;
                            ++inside;
                        }
                    }
                }
                inside = n->include_pad != 0 ? n->kernel[0] * n->kernel[1] : inside;
                aot_model_region_set(y, at++, maximum ? most : sum / (float)inside);
            }
        }
    }
    return true;
}

static inline bool aot_model_region_max_pool2d(const aot_model_region_node *n)
{
    return aot_model_region_pool(n, true);
}

static inline bool aot_model_region_avg_pool2d(const aot_model_region_node *n)
{
    return aot_model_region_pool(n, false);
}

/* exp(x - max) / sum along an axis */
AOT_MODEL_FUNCTION bool aot_model_region_softmax(const aot_model_region_node *n)
{
    const aot_model_region_view *const x = &n->x[0], *const y = &n->y;
    int32_t inner = 1, extent;

    if (n->count != 1 || !aot_model_region_same(x, y) || n->axis < 0 || n->axis >= x->rank) {
        return false;
    }
    extent = x->dims[n->axis];
    for (int32_t k = n->axis + 1; k < x->rank; k++) {
        inner *= x->dims[k];
    }
    for (int32_t row = 0; y->to != NULL && row < x->elements / extent; row++) {
        const int32_t base = row / inner * inner * extent + row % inner;
        float most = -INFINITY, sum = 0.0f;
        for (int32_t k = 0; k < extent; k++) {
            most = fmaxf(most, aot_model_region_get(x, base + k * inner));
        }
        for (int32_t k = 0; k < extent; k++) {
            const float e = expf(aot_model_region_get(x, base + k * inner) - most);
            sum += e;
            aot_model_region_set(y, base + k * inner, e);
        }
        for (int32_t k = 0; k < extent; k++) {
            float e;
            memcpy(&e, y->to + (size_t)(base + k * inner) * sizeof e, sizeof e);
            aot_model_region_set(y, base + k * inner, e / sum);
        }
    }
    return true;
}

/* The mean over some axes, which are gone or of extent 1 in y. */
AOT_MODEL_FUNCTION bool aot_model_region_mean(const aot_model_region_node *n)
{
    const aot_model_region_view *const x = &n->x[0], *const y = &n->y;
    int32_t index[AOT_MODEL_REGION_RANK] = { 0 }, steps[1][AOT_MODEL_REGION_RANK] = { { 0 } };
    int32_t place = 0, step = 1, over = 1, kept = 1;
    bool reduced[AOT_MODEL_REGION_RANK] = { false };

    if (n->count != 1 || x->rank == 0) {
        return false;
    }
    for (int32_t k = 0; k < n->axes_count; k++) {
        if (n->axes[k] < 0 || n->axes[k] >= x->rank || reduced[n->axes[k]]) {
            return false;
        }
        reduced[n->axes[k]] = true;
        over *= x->dims[n->axes[k]];
    }
    for (int32_t k = x->rank - 1; k >= 0; --k) {
        steps[0][k] = reduced[k] ? 0 : step;
        step *= reduced[k] ? 1 : x->dims[k];
        kept *= reduced[k] ? 1 : x->dims[k];
    }
    if (kept != y->elements) {
        return false;
    }
    for (int32_t k = 0; y->to != NULL && k < y->elements; k++) {
        aot_model_region_set(y, k, 0.0f);
    }
    for (int32_t k = 0; y->to != NULL && k < x->elements; k++) {
        float sum;
        memcpy(&sum, y->to + (size_t)place * sizeof sum, sizeof sum);
        aot_model_region_set(y, place, sum + aot_model_region_get(x, k));
        aot_model_region_next(x, index, 1, steps, &place);
    }
    for (int32_t k = 0; y->to != NULL && k < y->elements; k++) {
        float sum;
        memcpy(&sum, y->to + (size_t)k * sizeof sum, sizeof sum);
        aot_model_region_set(y, k, sum / (float)over);
    }
    return true;
}

/* --- movement ------------------------------------------------------------------------------------------------------ */

static inline bool aot_model_region_reshape(const aot_model_region_node *n)
{
    if (n->count != 1 || n->x[0].elements != n->y.elements) {
        return false;
    }
    if (n->y.to != NULL) {
        memmove(n->y.to, n->x[0].data, (size_t)n->y.elements * sizeof(float));
    }
    return true;
}

/* y.dims[k] = x.dims[axes[k]] */
AOT_MODEL_FUNCTION bool aot_model_region_transpose(const aot_model_region_node *n)
{
    const aot_model_region_view *const x = &n->x[0], *const y = &n->y;
    int32_t index[AOT_MODEL_REGION_RANK] = { 0 }, steps[1][AOT_MODEL_REGION_RANK] = { { 0 } };
    int32_t place = 0;
    bool seen[AOT_MODEL_REGION_RANK] = { false };

    if (n->count != 1 || x->rank != y->rank || n->axes_count != x->rank) {
        return false;
    }
    for (int32_t k = 0; k < x->rank; k++) {
        const int32_t axis = n->axes[k];
        if (axis < 0 || axis >= x->rank || seen[axis] || x->dims[axis] != y->dims[k]) {
            return false;
        }
        seen[axis] = true;
        steps[0][k] = 1;
        for (int32_t i = axis + 1; i < x->rank; i++) {
            steps[0][k] *= x->dims[i];
        }
    }
    for (int32_t k = 0; y->to != NULL && k < y->elements; k++) {
        aot_model_region_set(y, k, aot_model_region_get(x, place));
        aot_model_region_next(y, index, 1, steps, &place);
    }
    return true;
}

/* Operands one after the other along an axis. */
AOT_MODEL_FUNCTION bool aot_model_region_concatenate(const aot_model_region_node *n)
{
    const aot_model_region_view *const y = &n->y;
    int32_t outer = 1, inner = 1, total = 0, offset = 0;

    if (n->count < 1 || n->axis < 0 || n->axis >= y->rank) {
        return false;
    }
    for (int32_t i = 0; i < n->count; i++) {
        const aot_model_region_view *const x = &n->x[i];
        if (x->dims == NULL || x->rank != y->rank) {
            return false;
        }
        for (int32_t k = 0; k < y->rank; k++) {
            if (k != n->axis && x->dims[k] != y->dims[k]) {
                return false;
            }
        }
        total += x->dims[n->axis];
    }
    for (int32_t k = 0; k < y->rank; k++) {
        outer *= k < n->axis ? y->dims[k] : 1;
        inner *= k > n->axis ? y->dims[k] : 1;
    }
    if (total != y->dims[n->axis]) {
        return false;
    }
    for (int32_t i = 0; y->to != NULL && i < n->count; i++) {
        const size_t piece = (size_t)(n->x[i].dims[n->axis] * inner) * sizeof(float), row = (size_t)(total * inner) * sizeof(float);
        for (int32_t k = 0; k < outer; k++) {
            memmove(y->to + (size_t)k * row + (size_t)offset, n->x[i].data + (size_t)k * piece, piece);
        }
        offset += (int32_t)piece;
    }
    return true;
}

/* --- by name ------------------------------------------------------------------------------------------------------- */

typedef bool aot_model_region_operator(const aot_model_region_node *node);

typedef struct {
    const char *name;
    aot_model_region_operator *compute;
} aot_model_region_entry;

static const aot_model_region_entry aot_model_region_operators[] = {
    { "conv2d", aot_model_region_conv2d },
    { "dense", aot_model_region_dense },
    { "max_pool2d", aot_model_region_max_pool2d },
    { "avg_pool2d", aot_model_region_avg_pool2d },
    { "softmax", aot_model_region_softmax },
    { "mean", aot_model_region_mean },
    { "add", aot_model_region_add },
    { "subtract", aot_model_region_subtract },
    { "multiply", aot_model_region_multiply },
    { "divide", aot_model_region_divide },
    { "maximum", aot_model_region_maximum },
    { "minimum", aot_model_region_minimum },
    { "relu", aot_model_region_relu },
    { "prelu", aot_model_region_prelu },
    { "clip", aot_model_region_clip },
    { "sigmoid", aot_model_region_sigmoid },
    { "tanh", aot_model_region_tanh },
    { "exp", aot_model_region_exp },
    { "sqrt", aot_model_region_sqrt },
    { "negate", aot_model_region_negate },
    { "abs", aot_model_region_abs },
    { "reshape", aot_model_region_reshape },
    { "transpose", aot_model_region_transpose },
    { "concatenate", aot_model_region_concatenate },
};

#endif
