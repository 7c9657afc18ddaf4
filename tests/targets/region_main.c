/* Reads blobs from standard input, each after its size in 4 bytes; opens, prepares and runs each with memory of just the
 * size that it asks for, and prints the status, or the bits of the outputs. Inputs are 1, 2, 3 … hundredths. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "aot_model/region.h"

static void *allocated(size_t bytes)
{
    void *const memory = malloc(bytes > 0u ? bytes : 1u);
    if (memory == NULL) {
        exit(3);
    }
    return memory;
}

static void **tensors(const aot_model_region *region, aot_model_region_kind kind, int32_t count)
{
    void **const list = (void **)allocated((size_t)count * sizeof(void *));
    for (int32_t k = 0; k < count; ++k) {
        const int32_t elements = aot_model_region_elements(region, kind, k);
        float *const data = (float *)allocated((size_t)elements * sizeof(float));
        for (int32_t i = 0; i < elements; ++i) {
            data[i] = (float)(i % 97 + 1) / 100.0f;
        }
        list[k] = data;
    }
    return list;
}

static int32_t work(const uint8_t *blob, uint32_t size)
{
    aot_model_region region;
    int32_t inputs, outputs, status = aot_model_region_open(&region, blob, size);
    uint8_t *memory;
    void **x, **y;

    if (status != AOT_MODEL_OK) {
        return status;
    }
    memory = (uint8_t *)allocated(aot_model_region_memory(&region));
    status = aot_model_region_prepare(&region, memory, aot_model_region_memory(&region));
    if (status == AOT_MODEL_OK) {
        inputs = aot_model_region_count(&region, AOT_MODEL_REGION_INPUT);
        outputs = aot_model_region_count(&region, AOT_MODEL_REGION_OUTPUT);
        x = tensors(&region, AOT_MODEL_REGION_INPUT, inputs);
        y = tensors(&region, AOT_MODEL_REGION_OUTPUT, outputs);
        for (int32_t turn = 0; turn < 2 && status == AOT_MODEL_OK; ++turn) {
            status = aot_model_region_run(&region, (const void *const *)x, y);
        }
        for (int32_t k = 0; k < outputs; ++k) {
            for (int32_t i = 0; status == AOT_MODEL_OK && i < aot_model_region_elements(&region, AOT_MODEL_REGION_OUTPUT, k); ++i) {
                uint32_t bits;
                memcpy(&bits, (const float *)y[k] + i, sizeof bits);
                printf("%08" PRIx32 " ", bits);
            }
            free(y[k]);
        }
        for (int32_t k = 0; k < inputs; ++k) {
            free(x[k]);
        }
        free(x);
        free(y);
    }
    free(memory);
    return status;
}

int main(void)
{
    uint32_t size;
    while (fread(&size, 1, sizeof size, stdin) == sizeof size) {
        uint8_t *const blob = (uint8_t *)allocated(size);
        if (fread(blob, 1, size, stdin) != size) {
            return 2;
        }
        printf("%" PRId32 "\n", work(blob, size));
        free(blob);
    }
    return 0;
}
