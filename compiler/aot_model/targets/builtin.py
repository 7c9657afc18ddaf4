"""The targets of this package: portable C, the host, and the Cortex-M cores."""

from __future__ import annotations

from typing import Any

from aot_model.cycles.rules import MEMORIES
from aot_model.kernels.target import LITTLE_ENDIAN, Attribute, Target
from aot_model.targets.cmsis_nn import CMSIS_NN
from aot_model.targets.cores import CORES
from aot_model.targets.float32 import KERNELS as FLOAT32
from aot_model.targets.int8 import kernels as int8
from aot_model.targets.int8_families import ARMV6M, AVX512_VNNI, DSP, HELIUM, NEON_SDOT, PLAIN
from aot_model.targets.int8_families import HOST as HOST_INT8
from aot_model.targets.int16 import DSP as PAIRS
from aot_model.targets.int16 import HELIUM as ROWS
from aot_model.targets.int16 import PLAIN as PLAIN_PAIRS
from aot_model.targets.int16 import kernels as pairs
from aot_model.targets.json_region import JSON, JSON_WEIGHTLESS
from aot_model.targets.onednn import ONEDNN

_OPTIMISE = Attribute("balanced", "what to prefer where speed and size differ", ("speed", "size", "balanced"))
_ARITHMETIC = Attribute(
    "tflm",
    "rounding of integer TFLite models: TensorFlow Lite Micro's or LiteRT's reference kernels'",
    ("tflm", "litert-ref"),
)

_MEMORY = Attribute(
    "",
    "what code and constants are in, for which the code is written: `aot-model time --memory`",
    ("", *(memory.name for memory in MEMORIES)),
)

_HAS_DSP = "defined(__ARM_FEATURE_DSP)"
_HAS_MVE = "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3"
_HAS_AVX2 = "defined(__AVX2__) && defined(__FMA__)"
_HAS_NEON = "defined(__aarch64__) && defined(__ARM_NEON)"
_M_PROFILE = "defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'"
_LITTLE, _ = LITTLE_ENDIAN
_USE_MVE = (f"{_HAS_MVE} && {_LITTLE}", "MVE vectors", "cortex-m55")
_USE_DSP = (f"{_HAS_DSP} && {_LITTLE} && {_M_PROFILE}", "DSP instructions", "cortex-m4")
_USE_VECTORS = ((_HAS_AVX2, "AVX2 vectors", "host"), (_HAS_NEON, "NEON vectors", "host"))

C = Target(
    "c",
    "portable C99, any processor",
    attributes={"optimize": _OPTIMISE, "arithmetic": _ARITHMETIC},
    kernels=(*FLOAT32, *int8(PLAIN), *pairs(PLAIN_PAIRS)),
    vector="scalar",
    c_advice=(_USE_MVE, _USE_DSP, *_USE_VECTORS),
)

HOST = Target(
    "host",
    "the machine that builds, with vector code for x86-64 and AArch64",
    C,
    attributes={
        "vector": Attribute(
            "auto",
            "widest float vector to write code for; auto: what the compiler has, where it is known (build "
            "rules, run, verify), else v8",
            ("auto", "scalar", "v4", "v8", "v16", "neon"),
        ),
        "dot": Attribute(
            "none",
            "instruction for products of 8-bit integers: VPDPBUSD of AVX-512 VNNI with vectors v8, SDOT with "
            "neon; set where the compiler's flags are known",
            ("none", "vnni", "sdot"),
        ),
    },
    kernels=(*int8(AVX512_VNNI)[:3], *int8(NEON_SDOT)[:3], *int8(HOST_INT8)),
    vector="v8",
    c_flags=("-march=native",),
)

_DSP = ((_HAS_DSP, "compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"),)
_MVE = ((_HAS_MVE, "compile with -mcpu=cortex-m55 -mfloat-abi=hard, or pass --target cortex-m33"),)

# What a core has that its parent has not: the first of its family.
_EXTENSIONS: dict[str, dict[str, Any]] = {
    "cortex-m0": {"kernels": int8(ARMV6M), "attributes": {"memory": _MEMORY}},
    "cortex-m3": {"attributes": {"memory": _MEMORY}},
    "cortex-m4": {"kernels": (*int8(DSP), *pairs(PAIRS)), "c_checks": _DSP},
    "cortex-m55": {"kernels": (*int8(HELIUM), *pairs(ROWS)), "c_checks": _MVE},
}


def _faster_than(core: str) -> tuple[tuple[str, str, str], ...]:
    """What a compiler's flags may allow that the code for a core does not use."""
    return {"cortex-m0": (_USE_MVE, _USE_DSP), "cortex-m3": (_USE_MVE, _USE_DSP), "cortex-m55": ()}.get(
        core, (_USE_MVE,)
    )


def _targets_of_cores() -> tuple[Target, ...]:
    made = {"c": C}
    for core in CORES:
        own = {"c_checks": (), "c_advice": _faster_than(core.name), **_EXTENSIONS.get(core.name, {})}
        own["c_checks"] = (LITTLE_ENDIAN, *own["c_checks"])
        made[core.name] = Target(
            core.name,
            core.description,
            made[core.parent],
            c_flags=core.flags,
            vector=core.vector,
            unrolls=core.unrolls,
            **own,
        )
    return tuple(made.values())[1:]


BUILTIN = (C, HOST, *_targets_of_cores(), CMSIS_NN, JSON, JSON_WEIGHTLESS, ONEDNN)
