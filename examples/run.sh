#!/usr/bin/env bash
# Sets everything up (see .ci/setup.sh), then builds the examples and runs them: on this machine, and as firmware for
# the cores given as arguments (default: cortex-m4 cortex-m55) in QEMU.
#
#   examples/run.sh [cortex-m0 cortex-m3 cortex-m4 cortex-m7 cortex-m33 cortex-m55]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"

[ "$#" -gt 0 ] || set -- cortex-m4 cortex-m55
for core in "$@"; do
    if [ ! -f "$root/toolchains/$core.cmake" ]; then
        say "there is no toolchains/$core.cmake"
        exit 2
    fi
done
setup_tools
setup_python ''
build=$root/build/examples

say "the model as a library of a host program (examples/digits_host)"
cmake -S "$root/examples/digits_host" -B "$build/host" --toolchain "$root/toolchains/host.cmake" -DCMAKE_BUILD_TYPE=Release
cmake --build "$build/host"
"$build/host/digits_host"
say "its outputs against the test vectors (aot_model_test)"
ctest --test-dir "$build/host" --output-on-failure

say "the model on an accelerator with a target of its own, which is simulated (examples/accelerator)"
cmake -S "$root/examples/accelerator" -B "$build/accelerator" --toolchain "$root/toolchains/host.cmake" -DCMAKE_BUILD_TYPE=Release
cmake --build "$build/accelerator"
"$build/accelerator/digits_npu"

if ! command -v arm-none-eabi-gcc >/dev/null || ! command -v qemu-system-arm >/dev/null; then
    say "no arm-none-eabi-gcc or no qemu-system-arm: the firmware is skipped"
    exit 0
fi
for core in "$@"; do
    say "the same model as firmware for a $core (examples/digits_firmware)"
    cmake -S "$root/examples/digits_firmware" -B "$build/$core" --toolchain "$root/toolchains/$core.cmake" \
        -DCMAKE_BUILD_TYPE=MinSizeRel
    cmake --build "$build/$core"
    arm-none-eabi-size "$build/$core/digits_firmware.elf"
    cmake --build "$build/$core" --target run
done
say "done: the digits above were classified by the host program and, in the emulator, by firmware for: $*"
