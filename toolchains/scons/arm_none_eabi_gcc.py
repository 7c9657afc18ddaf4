"""SCons tool: GNU Arm Embedded for a Cortex-M core; AotModelTest() runs in QEMU.

    env = Environment(tools=["default", "arm_none_eabi_gcc", "aot_model"], toolpath=[...],
    AOT_MODEL_CPU="cortex-m4")

toolpath: `<aot-model --toolchains-dir>/scons` and
`<aot-model --scons-dir>`. AOT_MODEL_CPU may also be given in the process' environment.
"""

import os
import shutil
from pathlib import Path

from SCons.Errors import UserError
from SCons.Util import CLVar

# fmt: off
CORES = {
    "cortex-m0": ("-mcpu=cortex-m0 -mthumb -mfloat-abi=soft",
        "mps2-an385", "mps2.ld"),
    "cortex-m3": ("-mcpu=cortex-m3 -mthumb -mfloat-abi=soft",
        "mps2-an385", "mps2.ld"),
    "cortex-m4": ("-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard",
        "mps2-an386", "mps2.ld"),
    "cortex-m7": ("-mcpu=cortex-m7 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard",
        "mps2-an500", "mps2.ld"),
    "cortex-m33": ("-mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard",
        "mps2-an505", "mps2-an505.ld"),
    "cortex-m55": ("-mcpu=cortex-m55 -mthumb -mfloat-abi=hard",
        "mps3-an547", "mps3-an547.ld"),
}
# fmt: on
"""Core: flags, QEMU's machine, its linker script in toolchains/qemu/. Written from targets/cores.py."""

QEMU = Path(__file__).resolve().parents[1] / "qemu"


def generate(env):
    """Set the compiler, its flags and the emulator. UserError for a core that is not known."""
    core = env.get("AOT_MODEL_CPU") or os.environ.get("AOT_MODEL_CPU", "")
    if core not in CORES:
        raise UserError(f"arm_none_eabi_gcc: AOT_MODEL_CPU is '{core}', should be one of: {', '.join(CORES)}")
    flags, machine, script = CORES[core]
    prefix = "arm-none-eabi-"
    env["ENV"]["PATH"] = os.environ.get("PATH", env["ENV"]["PATH"])
    env.Replace(
        CC=f"{prefix}gcc",
        CXX=f"{prefix}g++",
        AS=f"{prefix}gcc",
        AR=f"{prefix}ar",
        RANLIB=f"{prefix}ranlib",
        LINK="$CC",
        PROGSUFFIX=".elf",
        ARFLAGS=CLVar("rcD"),
        RANLIBFLAGS=CLVar("-D"),
    )
    env.Append(
        CCFLAGS=[*CLVar(flags), "-ffunction-sections", "-fdata-sections"],
        ASFLAGS=CLVar(flags),
        LINKFLAGS=[*CLVar(flags), "-Wl,--gc-sections"],
    )
    env["AOT_MODEL_TARGET"] = core
    env["AOT_MODEL_BOARD"] = machine
    env["AOT_MODEL_TEST_SOURCES"] = [str(QEMU / "startup.c")]
    env["AOT_MODEL_TEST_LINKFLAGS"] = [
        "--specs=rdimon.specs",
        "-nostartfiles",
        f"-T{QEMU / script}",
        f"-L{QEMU}",
        "-Wl,--no-warn-rwx-segments",
    ]
    if emulator := shutil.which("qemu-system-arm"):
        env["AOT_MODEL_EMULATOR"] = [
            emulator, "-machine", machine, "-nographic", "-monitor", "none", "-serial", "none",
            "-semihosting-config", "enable=on,target=native", "-kernel",
        ]  # fmt: skip


def exists(env):
    """Whether the compiler is there."""
    return shutil.which("arm-none-eabi-gcc") is not None
