"""The target that a C compiler's flags are for: read off the macros that it predefines, never off the text of
the flags.

Build systems compile runtime/probe.c as they will compile the library and hand over its object; by hand, the
output of `$CC $CFLAGS -dM -E -x c /dev/null` does as well. So flags count wherever they come from: toolchain
files, options of a directory or of a library that is linked, wrappers, defaults of the compiler itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from aot_model.errors import fail

AUTO = "auto"
"""Stands for the processor that the compiler's flags are for, in what --target takes."""

_MARK = b"aot-model probe:"
_DEFINE = re.compile(r"^#define (\w+)(?: (.*))?$", re.MULTILINE)

Macros = Mapping[str, str]

_VECTORS_OF_FOUR = frozenset(
    ("__SSE2__", "__ARM_NEON", "__ALTIVEC__", "__VX__", "__mips_msa", "__loongarch_sx", "__wasm_simd128__")
)
"""Machines that have vectors of four floats; elsewhere GCC makes four numbers of each, slower than one by
one.
"""


def read_probe(path: Path) -> Macros:
    """Predefined macros from the object of runtime/probe.c, or from the text of `-dM -E`. CompileError E101,
    E503.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise fail("E101", f"cannot be read: {error.strerror or error}", where=str(path)) from None
    _, mark, rest = data.partition(_MARK)
    if mark:
        pairs = (
            pair.split("=", 1)
            for pair in rest.partition(b"\0")[0].decode("latin-1").split(";")
            if "=" in pair
        )
        return {name: value for name, value in pairs if name != value}
    if found := parse_macros(data.decode("latin-1")):
        return found
    raise fail(
        "E503",
        "this is neither the object of the probe nor a list of predefined macros",
        where=str(path),
        hint="compile runtime/probe.c without link-time optimisation (-fno-lto), "
        "or pass what `$CC $CFLAGS -dM -E -x c /dev/null` prints",
    )


def parse_macros(text: str) -> Macros:
    """The macros that `-dM -E` prints, by name."""
    return dict(_DEFINE.findall(text))


def target_for(macros: Macros) -> str:
    """The target for what a compiler with these macros compiles for. CompileError E503 where it was told no
    core.
    """
    if "__ARM_BIG_ENDIAN" in macros:
        return "c"  # the code for cores of Arm is for little-endian (kernels/target.py)
    if macros.get("__ARM_ARCH_PROFILE") in ("77", "'M'"):
        return _cortex_m(macros)
    hosted = any(system in macros for system in ("__linux__", "__APPLE__"))
    if int(macros.get("__ARM_ARCH", "8"), 0) < 5 and not hosted:
        raise fail(
            "E503",
            f"the C compiler compiles for Armv{macros['__ARM_ARCH']}, which it takes when no flag names a "
            "core",
            hint="give the library the flags of the firmware (-mcpu=...; in CMake: FLAGS_FROM <target that "
            "carries them>), "
            "or name the target: TARGET cortex-m4, or TARGET c for plain C on exactly this processor",
        )
    if "__aarch64__" in macros or "__x86_64__" in macros:
        return ",".join(["host", *_options(macros)])
    return "c"


def _cortex_m(macros: Macros) -> str:
    vectors, architecture = (
        int(macros.get("__ARM_FEATURE_MVE", "0"), 0),
        int(macros.get("__ARM_ARCH", "7"), 0),
    )
    if vectors & 3 == 3:
        return "cortex-m55"
    if "__ARM_FEATURE_DSP" not in macros:
        is_baseline = architecture < 7 or "__ARM_ARCH_8M_BASE__" in macros
        return "cortex-m0" if is_baseline else "cortex-m3"
    if architecture >= 8:
        return "cortex-m33"
    has_double = int(macros.get("__ARM_FP", "0"), 0) & 8
    return "cortex-m7" if has_double else "cortex-m4"


def vector_for(macros: Macros) -> str:
    """The widest float vectors of the target `host` that the flags allow: its option `vector`."""
    if "__GNUC__" not in macros:
        return "scalar"  # the vector code is written in GNU C
    if "__AVX2__" in macros and "__FMA__" in macros:
        return "v8"
    if "__aarch64__" in macros:
        return "neon" if "__ARM_NEON" in macros else "scalar"
    return "v4" if _VECTORS_OF_FOUR.intersection(macros) else "scalar"


def dot_for(macros: Macros) -> str:
    """The instruction for products of 8-bit integers that the flags allow: the option `dot` of the target
    `host`.
    """
    if vector_for(macros) == "v8" and all(
        f"__AVX512{part}__" in macros for part in ("F", "VL", "BW", "VNNI")
    ):
        return "vnni"
    return "sdot" if vector_for(macros) == "neon" and "__ARM_FEATURE_DOTPROD" in macros else "none"


def _options(macros: Macros) -> list[str]:
    """Of the target `host`, as they follow its name; those that are not the default."""
    return [
        f"vector={vector_for(macros)}",
        *([f"dot={dot_for(macros)}"] if dot_for(macros) != "none" else []),
    ]


def resolve(specification: str, probe: Path | None) -> str:
    """A target as --target takes it, with `auto` replaced, and `host` given its vectors, by what the probe
    says.

    CompileError E101, E503; E503 for `auto` without a probe.
    """
    words = specification.split(",")
    names = [i for i, word in enumerate(words) if "=" not in word]
    if not names:
        return specification
    last = names[-1]
    if words[last] == AUTO:
        if probe is None:
            raise fail(
                "E503",
                "--target auto needs --target-probe",
                hint="pass what `$CC $CFLAGS -dM -E -x c /dev/null` prints",
            )
        name, *given = target_for(read_probe(probe)).split(",")
    elif words[last] == "host" and probe is not None:
        name, *given = "host", *_options(read_probe(probe))
    else:
        return specification
    said = {word.partition("=")[0] for word in words[last + 1 :]}
    return ",".join(
        [*words[:last], name, *(g for g in given if g.partition("=")[0] not in said), *words[last + 1 :]]
    )
