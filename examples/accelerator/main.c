/* Classifies ten handwritten digits with TinyNPU: on this machine, or as firmware that says it over semihosting. */
#include <stdint.h>

#include "console.h"
#include "digits.h"
#include "images.h"

int main(void)
{
    static tiny_npu npu;
    const digits_devices devices = { .npu = &npu };
    int wrong = 0;

    for (int i = 0; i < DIGITS_IMAGES; i++) {
        float image[64];
        float probabilities[10];
        for (int pixel = 0; pixel < 64; pixel++) {
            image[pixel] = (float)digits_images[i][pixel] / 16.0f;
        }
        if (digits_run(&(digits_inputs){.image = image}, &(digits_outputs){.probabilities = probabilities}, &devices) != 0) {
            console_write("digits_run failed\n");
            return 1;
        }
        int best = 0;
        for (int digit = 1; digit < 10; digit++) {
            best = probabilities[digit] > probabilities[best] ? digit : best;
        }
        char line[] = "a handwritten ?: classified as ?\n";
        line[14] = (char)('0' + digits_labels[i]);
        line[31] = (char)('0' + best);
        console_write(line);
        wrong += best != digits_labels[i];
    }
    /* One activation a run, and the layers of it that the device computes. */
    if (npu.active || npu.opened || npu.activations != DIGITS_IMAGES || npu.commands != 5u * DIGITS_IMAGES) {
        console_write("the device was not used as it should\n");
        return 1;
    }
    console_write(wrong == 0 ? "all right\n" : "some are wrong\n");
    return wrong;
}
