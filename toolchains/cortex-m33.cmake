# GNU Arm Embedded for Cortex-M33F (ARMv8-M Mainline: DSP instructions, single precision FPU).
set(AOT_MODEL_TARGET cortex-m33)
set(AOT_MODEL_CPU cortex-m33)
set(AOT_MODEL_FLOAT_ABI hard)
set(AOT_MODEL_BOARD mps2-an505)
set(AOT_MODEL_BOARD_LD mps2-an505.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
