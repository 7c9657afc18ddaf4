# GNU Arm Embedded for Cortex-M55 (ARMv8.1-M: MVE, the vector extension, integer and float).
set(AOT_MODEL_TARGET cortex-m55)
set(AOT_MODEL_CPU cortex-m55)
set(AOT_MODEL_FLOAT_ABI hard)
set(AOT_MODEL_BOARD mps3-an547)
set(AOT_MODEL_BOARD_LD mps3-an547.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
