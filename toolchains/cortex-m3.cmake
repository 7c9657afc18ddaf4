# GNU Arm Embedded for cortex-m3: Armv7-M, no FPU.
set(AOT_MODEL_TARGET cortex-m3)
set(AOT_MODEL_FLAGS "-mcpu=cortex-m3 -mthumb -mfloat-abi=soft")
set(AOT_MODEL_BOARD mps2-an385)
set(AOT_MODEL_BOARD_LD mps2.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
