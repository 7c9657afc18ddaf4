/* Classifies ten handwritten digits and says over semihosting what they are. */
#include <stdint.h>

#include "digits.h"
#include "images.h"
#include "semihosting.h"

int main(void)
{
    int wrong = 0;
    for (int i = 0; i < DIGITS_IMAGES; i++) {
        float image[64];
        float probabilities[10];
        for (int pixel = 0; pixel < 64; pixel++) {
            image[pixel] = (float)digits_images[i][pixel] / 16.0f;
        }
        if (digits_run(&(digits_inputs){.image = image}, &(digits_outputs){.probabilities = probabilities}) != 0) {
            semihosting_write("digits_run failed\n");
            return 1;
        }
        int best = 0;
        for (int digit = 1; digit < 10; digit++) {
            best = probabilities[digit] > probabilities[best] ? digit : best;
        }
        char line[] = "a handwritten ?: classified as ?\n";
        line[14] = (char)('0' + digits_labels[i]);
        line[31] = (char)('0' + best);
        semihosting_write(line);
        wrong += best != digits_labels[i];
    }
    semihosting_write(wrong == 0 ? "all right\n" : "some are wrong\n");
    return wrong;
}
