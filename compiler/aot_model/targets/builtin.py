"""The targets of this package: portable C, the host, and the Cortex-M cores."""

from __future__ import annotations

from aot_model.kernels.target import Attribute, Kernel, Target
from aot_model.targets.cmsis_nn import CMSIS_NN
from aot_model.targets.float32 import KERNELS as FLOAT32
from aot_model.targets.int8 import ARMV6M, DSP, HELIUM, PLAIN
from aot_model.targets.int8 import HOST as HOST_INT8
from aot_model.targets.int8 import kernels as int8
from aot_model.targets.json_region import JSON, JSON_WEIGHTLESS
from aot_model.targets.onednn import ONEDNN

_OPTIMISE = Attribute("balanced", "what to prefer where speed and size differ", ("speed", "size", "balanced"))
_ARITHMETIC = Attribute("tflm", "rounding of integer TFLite models: TensorFlow Lite Micro's or LiteRT's reference kernels'", ("tflm", "litert-ref"))

C = Target("c", "portable C99, any processor", attributes={"optimize": _OPTIMISE, "arithmetic": _ARITHMETIC}, kernels=(*FLOAT32, *int8(PLAIN)), vector="scalar")

HOST = Target(
    "host", "the machine that builds, with vector code for x86-64 and AArch64", C,
    attributes={"vector": Attribute("auto", "widest float vector to write code for; auto: what the compiler has, where it is known (build rules, run, verify), else v8", ("auto", "scalar", "v4", "v8", "v16", "neon"))},
    kernels=int8(HOST_INT8), vector="v8", c_flags=("-march=native",),
)  # fmt: skip


_ORDER = (("!defined(__ARM_BIG_ENDIAN)", "compile for little-endian, or pass --target c"),)


def _core(number: str, description: str, parent: Target, flags: tuple[str, ...], checks: tuple[tuple[str, str], ...] = (),
          kernels: tuple[Kernel, ...] = (), vector: str | None = None) -> Target:  # fmt: skip
    cpu = f"cortex-{number}"
    return Target(cpu, description, parent, kernels=kernels, c_flags=(f"-mcpu={cpu}", "-mthumb", *flags), c_checks=(*_ORDER, *checks), vector=vector)


_DSP = (("defined(__ARM_FEATURE_DSP)", "compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"),)
_MVE = (("defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3", "compile with -mcpu=cortex-m55 -mfloat-abi=hard, or pass --target cortex-m33"),)

CORTEX_M0 = _core("m0", "Armv6-M, no FPU", C, ("-mfloat-abi=soft",), kernels=int8(ARMV6M))
CORTEX_M3 = _core("m3", "Armv7-M, no FPU", C, ("-mfloat-abi=soft",))
CORTEX_M4 = _core("m4", "Armv7E-M with DSP extension and single-precision FPU", CORTEX_M3, ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"), _DSP, int8(DSP))
CORTEX_M7 = _core("m7", "Armv7E-M, dual issue, with FPU", CORTEX_M4, ("-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"), _DSP)
CORTEX_M33 = _core("m33", "Armv8-M Mainline with DSP extension and FPU", CORTEX_M4, ("-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"), _DSP)
CORTEX_M55 = _core("m55", "Armv8.1-M with Helium vectors", CORTEX_M33, ("-mfloat-abi=hard",), _MVE, int8(HELIUM), vector="mve")

BUILTIN = (C, HOST, CORTEX_M0, CORTEX_M3, CORTEX_M4, CORTEX_M7, CORTEX_M33, CORTEX_M55, CMSIS_NN, JSON, JSON_WEIGHTLESS, ONEDNN)
