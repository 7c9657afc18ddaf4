/* Transforms of F(4x4, 3x3), Winograd's convolution, in whole numbers. Part of aot-model.
 *
 * A word is a pair of int16. Where it is called a sum it is high * 2^16 + low as one number modulo 2^32, so that one
 * addition adds both; winograd_pair() makes the pair of it, whose low half lends the high one nothing. */
#ifndef AOT_MODEL_INT8_WINOGRAD_H
#define AOT_MODEL_INT8_WINOGRAD_H

#include "aot_model/int8_dsp.h"

AOT_MODEL_INLINE uint32_t winograd_pair(uint32_t sum)
{
#if AOT_MODEL_DSP
    uint32_t high = sum + 0x8000u;
    __asm__("pkhbt %0, %1, %0" : "+r"(high) : "r"(sum));
    return high;
#else
    return (sum & 0xffffu) | ((sum + 0x8000u) & 0xffff0000u);
#endif
}

/* Six sums times the rows of
 * 4 0 -5 0 1 0;  0 -4 -4 1 1 0;  0 4 -4 -1 1 0;  0 -2 -1 2 1 0;  0 2 -1 -2 1 0;  0 4 0 -5 0 1.
 * The sum of a row is 0, but for the second: -6. */
AOT_MODEL_INLINE void winograd_six(uint32_t d0, uint32_t d1, uint32_t d2, uint32_t d3, uint32_t d4, uint32_t d5,
                                   uint32_t centre, uint32_t *r)
{
    const uint32_t a = d4 - d2, b = d3 - d1, c = d4 - 4u * d2, e = d3 - 4u * d1;
    r[0] = 4u * (d0 - d2) + a;
    r[1] = c + e + 6u * centre;
    r[2] = c - e;
    r[3] = a + 2u * b;
    r[4] = a - 2u * b;
    r[5] = (d5 - d3) - 4u * b;
}

AOT_MODEL_INLINE uint32_t winograd_word(const uint8_t *at, uint32_t flip)
{
    uint32_t four;
    memcpy(&four, at, 4);
    return four ^ flip;
}

/* Bytes 0 and 2 of a word, or 1 and 3, as a sum. */
AOT_MODEL_INLINE uint32_t winograd_even(uint32_t four) { return (uint32_t)dsp_uxtb16((int32_t)four); }
AOT_MODEL_INLINE uint32_t winograd_odd(uint32_t four) { return (uint32_t)dsp_uxtb16_ror8((int32_t)four); }

/* 6 x 6 pixels from (top, left) of an image on, less the zero point, in all their channels: for each position of the
 * transform `lanes` words, of which this tile has one, `unroll` pairs of channels one behind the other.
 * down, across: bytes to the next row and pixel; flip: makes unsigned bytes; outside: a word of zero points; v: 72 words. */
AOT_MODEL_INLINE void winograd_input(uint32_t *to, const uint8_t *image, int32_t top, int32_t left, int32_t height, int32_t width,
                                     int32_t down, int32_t across, int32_t channels, uint32_t flip, uint32_t outside, uint32_t *v,
                                     uint32_t unroll, uint32_t lanes)
{
    const uint32_t centre = (outside ^ flip) & 0xff00ffu;
    for (int32_t channel = 0; channel < channels; channel += 4) {
        uint32_t *r = v;
        for (int32_t row = top; row < top + 6; row++, r += 12) {
            uint32_t edge[6];
            const uint8_t *from = (const uint8_t *)edge;
            int32_t step = 4;
            if (row < 0 || row >= height) {
                memset(r, 0, 48);
                continue;
            }
            if (left >= 0 && left + 6 <= width && channel + 4 <= channels) {
                from = image + row * down + left * across + channel;
                step = across;
            } else {
                const uint8_t *line = image + row * down + channel;
                for (int32_t k = 0; k < 6; k++) {
                    edge[k] = outside;
                    if (left + k >= 0 && left + k < width) {
                        if (channel + 4 <= channels) {
                            memcpy(&edge[k], line + (left + k) * across, 4);
                        } else {
                            memcpy(&edge[k], line + (left + k) * across, (size_t)(channels - channel));
                        }
                    }
                }
            }
            const uint32_t w0 = winograd_word(from, flip), w1 = winograd_word(from + step, flip);
            const uint32_t w2 = winograd_word(from + 2 * step, flip), w3 = winograd_word(from + 3 * step, flip);
            const uint32_t w4 = winograd_word(from + 4 * step, flip), w5 = winograd_word(from + 5 * step, flip);
            winograd_six(winograd_even(w0), winograd_even(w1), winograd_even(w2), winograd_even(w3), winograd_even(w4), winograd_even(w5), centre, r);
            winograd_six(winograd_odd(w0), winograd_odd(w1), winograd_odd(w2), winograd_odd(w3), winograd_odd(w4), winograd_odd(w5), centre, r + 6);
        }
        for (uint32_t half = 0; half < 2u; half++) {
            const uint32_t pair = (uint32_t)channel / 2u + half;
            uint32_t *out = to + (pair / unroll * 36u * unroll + pair % unroll) * lanes;
            const uint32_t *d = v + 6 * half;
            for (const uint32_t *end = d + 6; d != end; d++, out += unroll * lanes) {
                uint32_t s[6];
                winograd_six(d[0], d[12], d[24], d[36], d[48], d[60], 0, s);
                out[0] = winograd_pair(s[0]);
                out[6u * unroll * lanes] = winograd_pair(s[1]);
                out[12u * unroll * lanes] = winograd_pair(s[2]);
                out[18u * unroll * lanes] = winograd_pair(s[3]);
                out[24u * unroll * lanes] = winograd_pair(s[4]);
                out[30u * unroll * lanes] = winograd_pair(s[5]);
            }
        }
    }
}

/* Three pairs, times the rows of 1 0 0;  1 1 1;  1 -1 1;  1 2 4;  1 -2 4;  0 0 1. At most 7 times as large: lanes hold. */
AOT_MODEL_INLINE void winograd_filter(uint32_t g0, uint32_t g1, uint32_t g2, uint32_t *r, uint32_t step)
{
    const uint32_t a = dsp_sadd16(g0, g2), twice = dsp_sadd16(g1, g1);
    r[0] = g0;
    r[step] = dsp_sadd16(a, g1);
    r[2u * step] = dsp_ssub16(a, g1);
    r[5u * step] = g2;
    g2 = dsp_sadd16(g2, g2);
    g0 = dsp_sadd16(dsp_sadd16(g0, g2), g2);
    r[3u * step] = dsp_sadd16(g0, twice);
    r[4u * step] = dsp_ssub16(g0, twice);
}

/* Bytes 0 and 2 of a word of a tap, or 1 and 3 where shift is 8. */
AOT_MODEL_INLINE uint32_t winograd_tap(const int8_t *w, uint32_t shift)
{
    uint32_t four;
    memcpy(&four, w, 4);
    return (uint32_t)dsp_sxtb16((int32_t)(four >> shift));
}

/* Pairs first to last - 1 of the filter of one output channel, 3 x 3 taps of `tap` bytes, in the order of winograd_input.
 * Rows of the result in an order in which the fewest values are alive; the barriers keep it. */
AOT_MODEL_INLINE void winograd_weights(uint32_t *to, const int8_t *w, uint32_t tap, uint32_t first, uint32_t last, uint32_t unroll,
                                       uint32_t lanes)
{
    const uint32_t step = unroll * lanes, row = 6u * step;
    for (uint32_t pair = first; pair < last; pair++) {
        const int8_t *one = w + pair / 2u * 4u, *two = one + 3u * tap, *three = two + 3u * tap;
        const uint32_t shift = pair % 2u * 8u;
        uint32_t a0 = winograd_tap(one, shift), a1 = winograd_tap(one + tap, shift), a2 = winograd_tap(one + 2u * tap, shift);
        winograd_filter(a0, a1, a2, to, step);
        AOT_MODEL_BARRIER;
        uint32_t c0 = winograd_tap(three, shift), c1 = winograd_tap(three + tap, shift), c2 = winograd_tap(three + 2u * tap, shift);
        winograd_filter(c0, c1, c2, to + 5u * row, step);
        AOT_MODEL_BARRIER;
        uint32_t b0 = winograd_tap(two, shift), b1 = winograd_tap(two + tap, shift), b2 = winograd_tap(two + 2u * tap, shift);
        uint32_t z0 = dsp_sadd16(dsp_sadd16(a0, c0), b0), z1 = dsp_sadd16(dsp_sadd16(a1, c1), b1);
        uint32_t z2 = dsp_sadd16(dsp_sadd16(a2, c2), b2);
        winograd_filter(z0, z1, z2, to + row, step);
        AOT_MODEL_BARRIER;
        b0 = dsp_sadd16(b0, b0);
        b1 = dsp_sadd16(b1, b1);
        b2 = dsp_sadd16(b2, b2);
        winograd_filter(dsp_ssub16(z0, b0), dsp_ssub16(z1, b1), dsp_ssub16(z2, b2), to + 2u * row, step);
        AOT_MODEL_BARRIER;
        c0 = dsp_sadd16(c0, c0);
        c1 = dsp_sadd16(c1, c1);
        c2 = dsp_sadd16(c2, c2);
        a0 = dsp_sadd16(dsp_sadd16(a0, c0), c0);
        a1 = dsp_sadd16(dsp_sadd16(a1, c1), c1);
        a2 = dsp_sadd16(dsp_sadd16(a2, c2), c2);
        winograd_filter(dsp_sadd16(a0, b0), dsp_sadd16(a1, b1), dsp_sadd16(a2, b2), to + 3u * row, step);
        AOT_MODEL_BARRIER;
        winograd_filter(dsp_ssub16(a0, b0), dsp_ssub16(a1, b1), dsp_ssub16(a2, b2), to + 4u * row, step);
        AOT_MODEL_BARRIER;
        to += (pair + 1u) % unroll == 0u ? (35u * unroll + 1u) * lanes : lanes;
    }
}

/* Both for `pairs` pairs of channels of a turn and so many tiles or filters at each position. */
#define WINOGRAD_FORM(pairs, lanes)                                                                                                \
    AOT_MODEL_FUNCTION void winograd_inputs_##pairs##_##lanes(uint32_t *to, const void *image, int32_t top, int32_t left,          \
                                                          int32_t height, int32_t width, int32_t down, int32_t across,             \
                                                          int32_t channels, uint32_t flip, uint32_t outside, void *v)              \
    {                                                                                                                              \
        winograd_input(to, (const uint8_t *)image, top, left, height, width, down, across, channels, flip, outside,                \
                       (uint32_t *)v, pairs##u, lanes##u);                                                                         \
    }                                                                                                                              \
    AOT_MODEL_FUNCTION void winograd_filters_##pairs##_##lanes(uint32_t *to, const int8_t *weights, uint32_t tap, uint32_t first,  \
                                                           uint32_t last)                                                          \
    {                                                                                                                              \
        winograd_weights(to, weights, tap, first, last, pairs##u, lanes##u);                                                       \
    }
WINOGRAD_FORM(2, 2)
WINOGRAD_FORM(2, 4)
WINOGRAD_FORM(4, 2)
WINOGRAD_FORM(4, 4)
WINOGRAD_FORM(8, 2)
WINOGRAD_FORM(8, 4)

/* Six sums to four: 24, 12, 6 and 6 times what they stand for, modulo 2^32. */
AOT_MODEL_INLINE void winograd_four(uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3, uint32_t m4, uint32_t m5, uint32_t *r,
                                    int32_t step)
{
    const uint32_t p = m1 + m2, s = m1 - m2, q = m3 + m4, u = m3 - m4;
    r[0] = (q - 4u * p) + 2u * (m0 + 2u * m0);
    r[step] = u - 2u * s;
    r[2 * step] = q - p;
    r[3 * step] = (2u * u - s) + 2u * (m5 + 2u * m5);
}

#endif
