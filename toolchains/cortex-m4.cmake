# GNU Arm Embedded for cortex-m4: Armv7E-M with DSP extension and single-precision FPU.
set(AOT_MODEL_TARGET cortex-m4)
set(AOT_MODEL_FLAGS "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard")
set(AOT_MODEL_BOARD mps2-an386)
set(AOT_MODEL_BOARD_LD mps2.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
