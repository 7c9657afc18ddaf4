# GNU Arm Embedded for Cortex-M0 (ARMv6-M, no FPU). QEMU has no such board with room: tests run on a Cortex-M3.
set(AOT_MODEL_TARGET cortex-m0)
set(AOT_MODEL_CPU cortex-m0)
set(AOT_MODEL_FLOAT_ABI soft)
set(AOT_MODEL_BOARD mps2-an385)
set(AOT_MODEL_BOARD_LD mps2.ld)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
