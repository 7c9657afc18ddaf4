/* The device of the programs that aot_model_test() makes. */
#include "digits.h"

static tiny_npu npu;

const digits_devices digits_test_devices = { .npu = &npu };
