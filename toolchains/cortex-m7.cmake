# GNU Arm Embedded for cortex-m7: Armv7E-M, dual issue, with FPU.
set(AOT_MODEL_TARGET cortex-m7)
set(AOT_MODEL_FLAGS "-mcpu=cortex-m7 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard")
set(AOT_MODEL_BOARD mps2-an500)
set(AOT_MODEL_BOARD_LD mps2.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
