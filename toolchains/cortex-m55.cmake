# GNU Arm Embedded for cortex-m55: Armv8.1-M with Helium vectors.
set(AOT_MODEL_TARGET cortex-m55)
set(AOT_MODEL_FLAGS "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard")
set(AOT_MODEL_BOARD mps3-an547)
set(AOT_MODEL_BOARD_LD mps3-an547.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
