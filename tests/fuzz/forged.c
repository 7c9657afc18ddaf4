/* Forges files of parameters: see forged.py. A process for each model, so that one that dies is told apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/asan_interface.h>
#include <sys/wait.h>
#include <unistd.h>
#include "aot_model/parameters.h"

typedef struct { uint32_t offset, count, size, real; } array;
typedef struct {
    const char *name, *file;
    uint32_t total, data;
    const array *arrays;
    uint32_t array_count;
    const aot_model_parameter_check *rows;
    uint32_t row_count;
    int32_t (*set_params)(const void *base, uint32_t size);
    int32_t (*run)(uint8_t *const *in, uint8_t *const *out);
    const uint32_t *in;
    uint32_t in_count;
    const uint32_t *out;
    uint32_t out_count;
    const uint8_t *given;
    uint32_t given_bytes;
} victim;

/* victims */

static uint64_t state;

static uint64_t next(void)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t below(uint32_t n)
{
    return n == 0u ? 0u : (uint32_t)(next() % n);
}

static void put(uint8_t *at, uint32_t size, uint64_t bits)
{
    memcpy(at, &bits, size); /* little-endian, as the file is */
}

/* An element that somebody would choose. */
static uint64_t nasty(uint32_t size, bool real)
{
    const uint32_t bits = 8u * size;
    if (real && size == 4u) {
        static const uint32_t floats[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f7fffffu, 0xff7fffffu, 0u, 0x80000000u, 1u, 0x4f000000u, 0xcf000000u, 0x3f800000u };
        return floats[below(sizeof floats / sizeof floats[0])];
    }
    switch (below(8)) {
    case 0: return 0u;
    case 1: return ~UINT64_C(0);
    case 2: return UINT64_C(1) << (bits - 1u);
    case 3: return (UINT64_C(1) << (bits - 1u)) - 1u;
    case 4: return below(300);
    case 5: return (uint64_t)0 - below(300);
    case 6: return UINT64_C(1) << below(bits);
    default: return next();
    }
}

static void change(uint8_t *data, const array *a)
{
    uint8_t *const begin = data + a->offset;
    const uint32_t how = below(5), times = how == 0u ? a->count : 1u + below(3);
    const uint64_t same = nasty(a->size, a->real != 0u);
    for (uint32_t k = 0; k < times; ++k) {
        const uint32_t place = how == 0u ? k : below(a->count);
        put(begin + place * a->size, a->size, below(2) != 0u && how == 0u ? same : nasty(a->size, a->real != 0u));
    }
    if (how == 1u) {
        for (uint32_t k = 0; k < a->count * a->size; ++k) {
            begin[k] = (uint8_t)next();
        }
    } else if (how == 2u) {
        for (uint32_t k = 0; k < a->count; ++k) {
            put(begin + k * a->size, a->size, same);
        }
    } else if (how == 3u && a->count > 1u) { /* another order */
        uint8_t *const x = begin + below(a->count) * a->size;
        uint8_t *const y = begin + below(a->count) * a->size;
        uint64_t u = 0, v = 0;
        memcpy(&u, x, a->size);
        memcpy(&v, y, a->size);
        put(x, a->size, v);
        put(y, a->size, u);
    }
}

static int64_t element(const uint8_t *at, uint32_t kind)
{
    uint64_t bits = 0;
    const uint32_t width = 8u << (kind / 2u);
    memcpy(&bits, at, width / 8u);
    if (kind == 7u) {
        return (int64_t)(bits ^ (UINT64_C(1) << 63));
    }
    if (kind % 2u == 0u && width < 64u && (bits >> (width - 1u)) != 0u) {
        bits |= ~UINT64_C(0) << width;
    }
    return (int64_t)bits;
}

/* How many elements are not what the checks say; with `mend` they are brought to what is allowed. */
static uint32_t outside(const victim *v, uint8_t *data, bool mend)
{
    uint32_t found = 0;
    for (uint32_t r = 0; r < v->row_count; ++r) {
        const aot_model_parameter_check *const c = v->rows + r;
        const uint32_t size = 1u << (c->kind / 2u);
        for (uint32_t k = 0; k < c->count; ++k) {
            uint8_t *const at = data + c->offset + k * c->step * size;
            const int64_t low = c->low + (int64_t)k * c->rise, value = element(at, c->kind);
            if (value < low || value > c->high) {
                const uint64_t span = (uint64_t)c->high - (uint64_t)low + 1u;
                const uint64_t in = (uint64_t)low + (span == 0u ? next() : next() % span);
                const uint64_t chosen = below(4) == 0u ? (uint64_t)low : below(3) == 0u ? (uint64_t)c->high : in;
                ++found;
                if (mend) {
                    put(at, size, c->kind == 7u ? chosen ^ (UINT64_C(1) << 63) : chosen);
                }
            }
        }
    }
    return found;
}

static void feed(const victim *v, uint8_t *const *in)
{
    const uint8_t *from = v->given;
    for (uint32_t k = 0; k < v->in_count; from += v->in[k], ++k) {
        memcpy(in[k], from, v->in[k]);
    }
}

static int attack(const victim *v, uint32_t blobs, FILE *told)
{
    uint8_t *in[64], *out[64];
    uint8_t *const right = malloc(v->total), *const forged = aligned_alloc(64, (v->total + 127u) / 64u * 64u);
    uint32_t accepted = 0;
    FILE *const f = fopen(v->file, "rb");
    if (f == NULL || fread(right, 1, v->total, f) != v->total || v->in_count > 64u || v->out_count > 64u) { return 9; }
    fclose(f);
    ASAN_POISON_MEMORY_REGION(forged + v->total, (v->total + 127u) / 64u * 64u - v->total);
    for (uint32_t k = 0; k < v->in_count; ++k) { in[k] = malloc(v->in[k] + (v->in[k] == 0u)); }
    for (uint32_t k = 0; k < v->out_count; ++k) { out[k] = malloc(v->out[k] + (v->out[k] == 0u)); }
    for (uint32_t n = 0; n < blobs; ++n) {
        const uint32_t changes = n == 0u ? 0u : 1u + below(3), mend = below(8);
        uint32_t crc, bad;
        int32_t status;
        memcpy(forged, right, v->total);
        for (uint32_t k = 0; k < changes; ++k) {
            change(forged + v->data, v->arrays + below(v->array_count));
        }
        if (n != 0u && mend != 0u) {
            for (int again = 0; again < 3 && outside(v, forged + v->data, true) != 0u; ++again) { } /* ranges of one element that both hold */
        }
        bad = outside(v, forged + v->data, false);
        crc = aot_model_crc32(aot_model_crc32(0u, forged, 60u), forged + 64, v->total - 64u);
        memcpy(forged + 60, &crc, sizeof crc);
        status = v->set_params(forged, v->total);
        if ((status == 0) != (bad == 0u)) {
            fprintf(stderr, "file %u has %u elements outside, status %d\n", n, bad, (int)status);
            return 8;
        }
        feed(v, in);
        alarm(2);
        if (status == 0) {
            ++accepted;
            (void)v->run(in, out);
        }
        fseek(told, 0, SEEK_SET);
        fprintf(told, "%u %u\n", n + 1u, accepted);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const uint32_t blobs = argc > 1 ? (uint32_t)atoi(argv[1]) : 100u, seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1u;
    for (size_t k = 0; k < sizeof victims / sizeof victims[0]; ++k) {
        const victim *const v = victims[k];
        FILE *const told = tmpfile();
        char name[64];
        int status = 0;
        unsigned forged = 0, accepted = 0;
        pid_t child;
        snprintf(name, sizeof name, "%s.err", v->name);
        fflush(stdout);
        child = fork();
        if (child == 0) {
            if (freopen(name, "w", stderr) == NULL) { _exit(7); }
            state = seed;
            for (const char *c = v->name; *c != '\0'; ++c) { state = state * 31u + (uint64_t)*c; }
            status = attack(v, blobs, told);
            fflush(told);
            fflush(stderr);
            _exit(status);
        }
        waitpid(child, &status, 0);
        rewind(told);
        if (fscanf(told, "%u %u", &forged, &accepted) != 2) { forged = 0; }
        fclose(told);
        printf("%s %d %u %u\n", v->name, status, forged, accepted);
    }
    return 0;
}
