/* Shows ten handwritten digits and what the network takes them for. */
#include <stdint.h>
#include <stdio.h>

#include "digits.h"
#include "images.h"

static void show(const uint8_t *pixels)
{
    static const char shades[] = " .:-=+*#%@";
    for (int y = 0; y < 8; y++) {
        for (int x = 0; x < 8; x++) {
            int shade = pixels[8 * y + x] * 9 / 16;
            printf("%c%c", shades[shade], shades[shade]);
        }
        printf("\n");
    }
}

int main(void)
{
    int right = 0;
    for (int i = 0; i < DIGITS_IMAGES; i++) {
        float image[64];
        float probabilities[10];
        for (int pixel = 0; pixel < 64; pixel++) {
            image[pixel] = (float)digits_images[i][pixel] / 16.0f;
        }
        int32_t status = digits_run(&(digits_inputs){.image = image}, &(digits_outputs){.probabilities = probabilities});
        if (status != 0) {
            fprintf(stderr, "digits_run: error %ld\n", (long)status);
            return 1;
        }
        int best = 0;
        for (int digit = 1; digit < 10; digit++) {
            best = probabilities[digit] > probabilities[best] ? digit : best;
        }
        show(digits_images[i]);
        printf("is a %d: I say %d (%.0f %%)\n\n", digits_labels[i], best, 100.0 * (double)probabilities[best]);
        right += best == digits_labels[i];
    }
    printf("%d of %d digits are right\n", right, DIGITS_IMAGES);
    return 0;
}
