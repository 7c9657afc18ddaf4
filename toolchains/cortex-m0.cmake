# GNU Arm Embedded for cortex-m0: Armv6-M, no FPU. QEMU has no such board with room: programs run on a Cortex-M3's.
set(AOT_MODEL_TARGET cortex-m0)
set(AOT_MODEL_FLAGS "-mcpu=cortex-m0 -mthumb -mfloat-abi=soft")
set(AOT_MODEL_BOARD mps2-an385)
set(AOT_MODEL_BOARD_LD mps2.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
