# GNU Arm Embedded for cortex-m33: Armv8-M Mainline with DSP extension and FPU.
set(AOT_MODEL_TARGET cortex-m33)
set(AOT_MODEL_FLAGS "-mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard")
set(AOT_MODEL_BOARD mps2-an505)
set(AOT_MODEL_BOARD_LD mps2-an505.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
