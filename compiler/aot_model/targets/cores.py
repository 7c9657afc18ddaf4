"""The Cortex-M cores: one row each, from which the targets, the toolchain files of CMake, Bazel and SCons,
and the tests' emulated boards are made. A new core of a known family is a row here, and `pytest
tests/build/test_cores.py --update-golden`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """A core as GNU Arm Embedded and QEMU know it."""

    name: str
    """Of the target, and of -mcpu."""
    description: str
    parent: str
    """The target whose kernels and checks it has."""
    floats: tuple[str, ...]
    """Flags of the compiler for floating point."""
    machine: str
    """QEMU's board on which tests run."""
    script: str
    """Linker script of the board in toolchains/qemu/."""
    vector: str
    """How it multiplies and adds floats: a dialect of kernels/float32. `apart` where VMUL and VADD take less
    time than VFMA."""
    unrolls: bool = False
    """Whether a branch costs more than the rest of a short loop."""
    mhz: int = 25
    """Clock of the board's core."""
    note: str = ""
    """Behind the description, in the toolchain file."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the compiler."""
        return (f"-mcpu={self.name}", "-mthumb", *self.floats)


_SOFT, _HARD = ("-mfloat-abi=soft",), ("-mfloat-abi=hard",)

CORES = (
    Core(
        "cortex-m0",
        "Armv6-M, no FPU",
        "c",
        _SOFT,
        "mps2-an385",
        "mps2.ld",
        "scalar",
        note="QEMU has no such board with room: programs run on a Cortex-M3's.",
    ),
    Core("cortex-m3", "Armv7-M, no FPU", "c", _SOFT, "mps2-an385", "mps2.ld", "scalar"),
    Core(
        "cortex-m4",
        "Armv7E-M with DSP extension and single-precision FPU",
        "cortex-m3",
        ("-mfpu=fpv4-sp-d16", *_HARD),
        "mps2-an386",
        "mps2.ld",
        "apart",
        True,
    ),
    Core(
        "cortex-m7",
        "Armv7E-M, dual issue, with FPU",
        "cortex-m4",
        ("-mfpu=fpv5-sp-d16", *_HARD),
        "mps2-an500",
        "mps2.ld",
        "fpv5",
        True,
    ),
    Core(
        "cortex-m33",
        "Armv8-M Mainline with DSP extension and FPU",
        "cortex-m4",
        ("-mfpu=fpv5-sp-d16", *_HARD),
        "mps2-an505",
        "mps2-an505.ld",
        "fpv5",
        True,
        20,
    ),
    Core(
        "cortex-m55",
        "Armv8.1-M with Helium vectors",
        "cortex-m33",
        _HARD,
        "mps3-an547",
        "mps3-an547.ld",
        "mve",
        mhz=32,
    ),
)
