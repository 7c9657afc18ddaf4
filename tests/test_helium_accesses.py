"""Loads and stores of Helium whose size GCC 12 does not know (docs/compilers.md) get pointers of helium.h.

Every form of arm_mve.h that generated code may have stands beside accesses of elements, in an array of a
function, of its caller and in a loop, and is compared with what the same program does without optimisation.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import qemu
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model
from corpus import MODELS, REASON

ELEMENTS = {"b": 8, "h": 16, "w": 32}
ACCESS = re.compile(
    r"\bv(?P<way>ldr|str)(?P<letter>[bhw])q(?P<how>(?:_[a-z]+)*)_(?P<kind>[suf])(?P<bits>8|16|32)"
    r"\((?P<pointer>\w*)"
)


def unguarded(text: str) -> list[str]:
    """Accesses by intrinsics that GCC 12 takes for smaller or larger ones than they are, without a pointer of
    helium.h.
    """
    return [
        m[0]
        for m in ACCESS.finditer(text)
        if "_scatter" not in m["how"]
        and not m["pointer"].startswith("aot_model_read_" if m["way"] == "ldr" else "aot_model_written_")
        and (
            m["kind"] == "f"
            or ELEMENTS[m["letter"]] != int(m["bits"])
            or "_gather" in m["how"]
            or "_p" in m["how"]
        )
    ]


@dataclass(frozen=True)
class Form:
    """An intrinsic: element in memory, lanes in a register."""

    letter: str
    kind: str
    bits: int

    @property
    def element(self) -> str:
        memory = f"int{ELEMENTS[self.letter]}_t"
        return {"s": memory, "u": f"u{memory}", "f": "float"}[self.kind]

    @property
    def lanes(self) -> int:
        return 128 // self.bits

    @property
    def vector(self) -> str:
        return {"s": "int", "u": "uint", "f": "float"}[self.kind] + f"{self.bits}x{self.lanes}_t"

    @property
    def name(self) -> str:
        return f"{self.letter}q{{}}_{self.kind}{self.bits}"


FORMS = [
    Form(letter, kind, bits)
    for letter, size in ELEMENTS.items()
    for kind in "suf"
    for bits in (8, 16, 32)
    if bits >= size and (kind != "f" or size == 32)
]


def load(form: Form, pointer: str, how: str, own: bool) -> str:
    """C of a load: plain, masked, gathered. own: with what helium.h has for it."""
    if own and form.kind == "f" and how == "":
        return f"aot_model_load_f32({pointer})"
    p = f"aot_model_read_{form.element}({pointer})" if own else pointer
    shifted = "" if form.letter == "b" else "shifted_"
    return {
        "": f"vldr{form.name.format('')}({p})",
        "_z": f"vldr{form.name.format('_z')}({p}, inside)",
        "_gather": f"vldr{form.name.format(f'_gather_{shifted}offset')}({p}, places)",
    }[how]


def store(form: Form, pointer: str, value: str, how: str, own: bool) -> str:
    if own and form.kind == "f" and how == "":
        return f"aot_model_store_f32({pointer}, {value})"
    p = f"aot_model_written_{form.element}({pointer})" if own else pointer
    return f"vstr{form.name.format(how)}({p}, {value}{', inside' if how else ''})"


def function(number: int, form: Form, body: list[str], local: bool) -> list[str]:
    e = form.element
    places = ", ".join(str((3 * k + 1) % form.lanes) for k in range(form.lanes))
    return [
        f"static __attribute__((noinline)) uint8_t *f{number}(const {e} *x, {e} *given, uint8_t *out, int n)",
        "{",
        f"    const mve_pred16_t inside = vctp{form.bits}q((uint32_t)n);",
        f"    const uint{form.bits}x{form.lanes}_t places = {{{places}}};",
        f"    {e} {'own[COUNT]' if local else '*const own = given'};",
        f"    {form.vector} v, w;",
        "    memcpy(&v, x, 16);",
        "    memcpy(&w, x + 1, 16);",
        "    for (int i = 0; i < COUNT; i++) { own[i] = x[i]; }",
        *(f"    {line}" for line in body),
        f"    memcpy(out, own, sizeof({e}) * COUNT);",
        "    memcpy(out + 192, &v, 16);",
        "    memcpy(out + 208, &w, 16);",
        "    (void)inside; (void)places;",
        "    return out + 225;",
        "}",
    ]


def bodies(form: Form, own: bool) -> list[list[str]]:
    found = []
    for how in ("", "_z", *(("_gather",) if form.bits > 8 else ())):
        at = [load(form, f"own + {k}" if k else "own", how, own) for k in (0, 1)]
        found += [
            [
                "own[1] = x[5];",
                "own[2] = x[6];",
                f"v = {at[0]};",
                "own[1] = x[7];",
                "own[3] = x[8];",
                f"w = {at[0]};",
            ],
            [f"for (int i = 0; i < 2; i++) {{ own[1 + i] = x[4]; w = v; v = {at[0]}; own[2] = x[9]; }}"],
            [f"for (int i = 0; i < n; i++) {{ own[2] = x[2 * i]; w = v; v = {at[1]}; }}"],
        ]
    for how in ("", "_p"):
        v, w = store(form, "own", "v", how, own), store(form, "own + 1", "w", how, own)
        found += [
            [
                "own[1] = x[5];",
                "own[3] = x[6];",
                f"{v};",
                "x = own;",
                "out[224] = (uint8_t)own[1];",
                "own[0] = x[2];",
                f"{w};",
                "own[5] = x[3];",
            ],
            [f"{v};", "own[1] = x[7];", f"{w};", "own[2] = x[7];", "memcpy(&w, own + 1, 16);"],
            [f"for (int i = 0; i < 3; i++) {{ own[i + 2] = x[4]; {v}; own[i] = own[i + 1]; }}"],
            [f"for (int i = 0; i < n; i++) {{ own[3] = x[i]; {v}; own[1] = own[2]; {w}; }}"],
        ]
    return found


def program(own: bool) -> str:
    """C that prints what every function has left, in one line each."""
    text = [
        "#include <stdint.h>",
        "#include <stdio.h>",
        "#include <string.h>",
        '#include "aot_model/helium.h"',
        "enum { COUNT = 48 };",
    ]
    calls, number = [], 0
    for form in FORMS:
        for body in bodies(form, own):
            for local in (False, True):
                text += function(number, form, body, local)
                calls.append(
                    f"    x = numbers; print({number}, f{number}((const {form.element} *)x, "
                    f"({form.element} *)(void *)room, (uint8_t *)out, n));"
                )
                number += 1
    return "\n".join(
        [
            *text,
            "static float numbers[COUNT], room[COUNT], out[64];",
            "static void print(int k, const uint8_t *end)",
            "{",
            '    printf("%d ", k);',
            '    for (const uint8_t *p = (const uint8_t *)out; p < end; p++) { printf("%02x", *p); }',
            '    printf("\\n");',
            "    memset(out, 0, sizeof out);",
            "    memset(room, 0, sizeof room);",
            "}",
            "int main(void)",
            "{",
            "    volatile int three = 3;",
            "    const int n = three;",
            "    const void *x;",
            "    for (int i = 0; i < COUNT; i++) { numbers[i] = 1.0f / (float)(i + 3); }",
            *calls,
            "    return 0;",
            "}",
            "",
        ]
    )


def printed(own: bool, flags: list[str], folder: Path) -> list[str]:
    (folder / "main.c").write_text(program(own))
    return qemu.build_and_run(
        qemu.BOARDS["m55"], ["main.c"], folder, [*flags, f"-I{include_dir()}"]
    ).splitlines()


needs_arm = pytest.mark.skipif(
    not qemu.available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed"
)


@needs_arm
def test_beside_elements(tmp_path: Path) -> None:
    right = printed(False, ["-O0"], tmp_path)
    assert len(right) > 400
    assert len({line.split()[1] for line in right}) > 100
    for level in ("-O1", "-O2", "-O3", "-Os", "-O3 -fschedule-insns -funroll-loops", "-Ofast"):
        assert printed(True, level.split(), tmp_path) == right, level


@needs_arm
def test_they_show_the_bug(tmp_path: Path) -> None:
    """Without the pointers of helium.h GCC 12 gets some of them wrong: the test above can fail."""
    version = subprocess.run(
        ["arm-none-eabi-gcc", "-dumpversion"], capture_output=True, text=True, check=True
    ).stdout
    if not version.startswith("12."):
        pytest.skip(f"arm-none-eabi-gcc is {version.strip()}, not 12")
    right, found = printed(False, ["-O0"], tmp_path), printed(False, ["-O3"], tmp_path)
    assert sum(a != b for a, b in zip(right, found, strict=True)) > 10


def test_headers() -> None:
    headers = sorted(Path(include_dir(), "aot_model").glob("*.h"))
    assert not {h.name: found for h in headers if (found := unguarded(h.read_text()))}


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize(
    "model",
    [
        "digits_mbv3_qdq.onnx",
        "digits_vit_qdq.onnx",
        "k_attn_int8.tflite",
        "k_lstm_int8.tflite",
        "k_har2_i16x8.tflite",
        "k_mix_mixed.tflite",
        "gtcrn_simple.onnx",
        "digits_vit.onnx",
    ],
)
def test_models(model: str) -> None:
    assert MODELS is not None
    text = compile_model(Request(MODELS / model, "model", "cortex-m55")).texts["model.c"]
    assert "aot_model_read_" in text or "aot_model_load_f32" in text or "_int8" in model
    assert not unguarded(text)


def test_the_check_finds_them() -> None:
    wrong = [
        "vldrwq_f32(p)",
        "vstrbq_s32(p, v)",
        "vstrwq_p_s32(p, v, q)",
        "vldrwq_gather_shifted_offset_s32(p, at)",
        "vldrhq_z_u32(aot_model_written_uint16_t(p), q)",
    ]
    right = [
        "vldrwq_s32(p)",
        "vldrbq_z_s8(p, q)",
        "vstrwq_scatter_shifted_offset_f32(p, at, v)",
        "vstrbq_s32(aot_model_written_int8_t(p), v)",
        "vldrwq_z_f32(aot_model_read_float(p), q)",
    ]
    assert [bool(unguarded(text)) for text in wrong] == [True] * len(wrong)
    assert [bool(unguarded(text)) for text in right] == [False] * len(right)
