"""The cores that there are platforms for: the same as in the CMake toolchain files."""

# Flags of the C compiler, QEMU's machine, its linker script in toolchains/qemu/.
CORES = {
    "cortex-m0": struct(flags = "-mcpu=cortex-m0 -mthumb -mfloat-abi=soft", machine = "mps2-an385", script = "mps2.ld"),
    "cortex-m3": struct(flags = "-mcpu=cortex-m3 -mthumb -mfloat-abi=soft", machine = "mps2-an385", script = "mps2.ld"),
    "cortex-m33": struct(flags = "-mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard", machine = "mps2-an505", script = "mps2-an505.ld"),
    "cortex-m4": struct(flags = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard", machine = "mps2-an386", script = "mps2.ld"),
    "cortex-m55": struct(flags = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard", machine = "mps3-an547", script = "mps3-an547.ld"),
    "cortex-m7": struct(flags = "-mcpu=cortex-m7 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard", machine = "mps2-an500", script = "mps2.ld"),
}

def qemu(core):
    """The command that runs a program of the core, which is put behind it."""
    return [
        "qemu-system-arm",
        "-machine",
        core.machine,
        "-nographic",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-semihosting-config",
        "enable=on,target=native",
        "-kernel",
    ]

def qemu_libraries():
    """For select(): what test programs link, by platform."""
    libraries = {str(Label("//toolchains/bazel:is_" + name)): [str(Label("//toolchains/qemu:" + core.machine))] for name, core in CORES.items()}
    return dict(libraries, **{"//conditions:default": []})
