/* Classifies ten handwritten digits. */
#include <zephyr/sys/printk.h>

#include "digits.h"
#include "images.h"

int main(void)
{
    int right = 0;
    for (int i = 0; i < DIGITS_IMAGES; i++) {
        static float image[64];
        float probabilities[10];
        for (int pixel = 0; pixel < 64; pixel++) {
            image[pixel] = (float)digits_images[i][pixel] / 16.0f;
        }
        const int32_t status = digits_run(&(digits_inputs){.image = image}, &(digits_outputs){.probabilities = probabilities});
        if (status != 0) {
            printk("digits_run() returned %d\n", (int)status);
            return 1;
        }
        int best = 0;
        for (int digit = 1; digit < 10; digit++) {
            best = probabilities[digit] > probabilities[best] ? digit : best;
        }
        printk("a handwritten %u: classified as %d\n", (unsigned int)digits_labels[i], best);
        right += best == digits_labels[i];
    }
    printk("%d of %d digits are right\n", right, DIGITS_IMAGES);
    return 0;
}
