# What all the cortex-m*.cmake toolchain files share, which are written from targets/cores.py. They set, and include this:
#
#   AOT_MODEL_TARGET    what aot-model generates code for
#   AOT_MODEL_FLAGS     of the C compiler
#   AOT_MODEL_BOARD     QEMU's machine for tests; AOT_MODEL_BOARD_LD: its linker script in qemu/
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR "${AOT_MODEL_TARGET}")

set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # a program would need start-up code and a linker script

set(CMAKE_C_FLAGS_INIT "${AOT_MODEL_FLAGS} -ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -fno-exceptions -fno-rtti")
set(CMAKE_ASM_FLAGS_INIT "${AOT_MODEL_FLAGS}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--gc-sections")

# Programs are the build machine's. Libraries and headers are the target's. Packages may be either: AotModel itself is
# one of the build machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

# aot_model_test() and aot_model_benchmark(): programs for one of QEMU's boards, which talk to the host by semihosting.
set(AOT_MODEL_TEST_SOURCES "${CMAKE_CURRENT_LIST_DIR}/qemu/startup.c")
set(AOT_MODEL_TEST_LINK_OPTIONS
    --specs=rdimon.specs -nostartfiles
    "-T${CMAKE_CURRENT_LIST_DIR}/qemu/${AOT_MODEL_BOARD_LD}"
    "-L${CMAKE_CURRENT_LIST_DIR}/qemu"
    -Wl,--no-warn-rwx-segments
)
find_program(AotModel_QEMU qemu-system-arm DOC "Emulator that runs the tests of a project that crosses to Cortex-M")
mark_as_advanced(AotModel_QEMU)
if (AotModel_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${AotModel_QEMU}" -machine ${AOT_MODEL_BOARD}
        -nographic -monitor none -serial none -semihosting-config enable=on,target=native -kernel)
endif ()
