# GNU Arm Embedded for Cortex-M7F (ARMv7E-M: DSP instructions, double precision FPU).
set(AOT_MODEL_TARGET cortex-m7)
set(AOT_MODEL_CPU cortex-m7)
set(AOT_MODEL_FLOAT_ABI hard)
set(AOT_MODEL_BOARD mps2-an500)
set(AOT_MODEL_BOARD_LD mps2.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
