"""Every instruction of the tables against its meaning, where it exists: on this machine, or emulated."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aot_model.emit.render import KEEP_VNNI, NO_MIXED_DOT
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.kernels.int8.dsp import DSP
from aot_model.kernels.int8.instructions import Instruction, InstructionSet, Operand
from aot_model.kernels.int8.mve import TABLE, asm_lines, clobbers
from aot_model.kernels.int8.vectors import AVX2, SDOT, VNNI
from compilers.columns import NEWER
from machines import MACHINES, Machine
from qemu import BOARDS, available, build_and_run

SETS = {s.name: s for s in (AVX2, VNNI, SDOT)}
MACHINE_OF = {"AVX2": "avx2", "AVX-512 VNNI": "vnni", "SDOT": "sdot"}
TRIALS = 200


def values(rng: np.random.Generator, o: Operand) -> np.ndarray:
    """Elements of an operand: the ends of its range, and what is near to 0 or a power of two, more often
    than chance would have it.
    """
    limits = np.iinfo(o.element)
    low, high = limits.min if o.low is None else o.low, limits.max if o.high is None else o.high
    drawn = rng.integers(low, high + 1, o.lanes)
    ends = rng.choice([low, high, max(low, min(0, high))], o.lanes)
    power = 1 << rng.integers(0, limits.bits, o.lanes, dtype=np.int64)
    near = rng.choice([-1, 0, 1], o.lanes) * power + rng.integers(-1, 2, o.lanes)
    kind = rng.random(o.lanes)
    return np.where(kind < 0.3, ends, np.where(kind < 0.6, np.clip(near, low, high), drawn))


def statement(s: InstructionSet, i: Instruction) -> list[str]:
    """C that fetches the operands from `in`, executes, and puts the result into `out`."""
    lines, at, names = [], 0, []
    for k, o in enumerate(i.operands):
        size, name = o.lanes * np.dtype(o.element).itemsize, f"v{k}"
        if o.memory:
            names.append(f"({s.named(o.c_type)})(const void *)(in + {at})")
        else:
            lines += [f"{s.named(o.c_type)} {name};", f"memcpy(&{name}, in + {at}, {size});"]
            names.append(name)
        at += -(-size // 64) * 64
    if i.result.memory:
        names.append(f"({s.named(i.result.c_type)})(void *)out")
        return [*lines, f"{s.named(i.text).format(*names)};"]
    size = i.result.lanes * np.dtype(i.result.element).itemsize
    return [
        *lines,
        f"const {s.named(i.result.c_type)} r = {s.named(i.text).format(*names)};",
        f"memcpy(out, &r, {size});",
    ]


def trial(rng: np.random.Generator, i: Instruction) -> tuple[bytes, bytes]:
    """(operands as the program reads them, result as the meaning says)."""
    given, arrays = b"", []
    for o in i.operands:
        v = values(rng, o)
        raw = v.astype(np.int64).astype(o.element).tobytes()
        given += raw + bytes(-len(raw) % 64)
        arrays.append(v.astype(np.int64))
    wanted = np.asarray(i.meaning(*arrays), np.int64)
    return given, wanted.astype(i.result.element).tobytes()


@cache
def failures(name: str, folder: Path) -> dict[str, int]:
    """How many trials of each instruction differ."""
    s, machine, rng = SETS[name], MACHINES[MACHINE_OF[name]], np.random.default_rng(1)
    trials = {k: [trial(rng, i) for _ in range(TRIALS)] for k, i in s.instructions.items()}
    text = [
        KEEP_VNNI + NO_MIXED_DOT,
        f'#include "{s.header}"',
        "#include <stdio.h>",
        "#include <string.h>",
        "static uint8_t in[1024], out[1024];",
        "int main(void)",
        "{",
    ]
    for k, i in s.instructions.items():
        given, wanted = trials[k][0]
        text += [
            f"    for (int n = 0; n < {TRIALS}; n++) {{ /* {k} */",
            f"        if (fread(in, 1, {len(given)}, stdin) != {len(given)}) {{ return 1; }}",
        ]
        text += [
            *("        " + line for line in statement(s, i)),
            f"        fwrite(out, 1, {len(wanted)}, stdout);",
            "    }",
        ]
    (folder / "main.c").write_text("\n".join([*text, "    return 0;", "}\n"]))
    run(machine, folder)
    got = subprocess.run(
        [*machine.runner, str(folder / "main")],
        input=b"".join(g for t in trials.values() for g, _ in t),
        capture_output=True,
        check=True,
    ).stdout
    found, at = {}, 0
    for k, many in trials.items():
        size = len(many[0][1])
        found[k] = sum(got[at + n * size : at + (n + 1) * size] != w for n, (_, w) in enumerate(many))
        at += size * len(many)
    assert at == len(got)
    return found


def run(machine: Machine, folder: Path) -> None:
    subprocess.run(
        [machine.compiler, *STRICT, "-O1", *machine.flags, f"-I{include_dir()}", "main.c", "-o", "main"],
        cwd=folder,
        check=True,
    )


ROWS = [(s.name, k) for s in SETS.values() for k in s.instructions]


@pytest.mark.parametrize(("name", "instruction"), ROWS, ids=[f"{n}-{k}" for n, k in ROWS])
def test_instruction(name: str, instruction: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    machine = MACHINES[MACHINE_OF[name]]
    if machine.missing():
        pytest.skip(machine.missing())
    folder = tmp_path_factory.getbasetemp() / f"instructions-{machine.name}"
    folder.mkdir(exist_ok=True)
    assert failures(name, folder)[instruction] == 0


def core_program() -> str:
    """C that executes the DSP extension's instructions on the operands of trials, in core registers, and
    prints what differs.
    """
    rng = np.random.default_rng(3)
    text = [f'#include "{DSP.header}"', "#include <stdio.h>", "int main(void)", "{"]
    for k, i in DSP.instructions.items():
        rows = [[values(rng, o) for o in i.operands] for _ in range(TRIALS)]
        wanted = [int(np.asarray(i.meaning(*row), np.int64).astype(i.result.element)[0]) for row in rows]
        numbers = [
            "{" + ", ".join(f"(int32_t){int(v) & 0xFFFFFFFF}u" for v in (*(int(v[0]) for v in row), w)) + "}"
            for row, w in zip(rows, wanted, strict=True)
        ]
        call = i.text.format(*(f"({i.operands[n].c_type})t[n][{n}]" for n in range(len(rows[0]))))
        text += [
            f"    static const int32_t {k}_trials[{TRIALS}][{len(rows[0]) + 1}] = {{{', '.join(numbers)}}};",
            "    {",
            f"        const int32_t (*t)[{len(rows[0]) + 1}] = {k}_trials;",
            "        int bad = 0;",
            f"        for (int n = 0; n < {TRIALS}; n++) {{ bad += (int32_t)({call}) != "
            f"t[n][{len(rows[0])}]; }}",
            f'        printf("{k} %d\\n", bad);',
            "    }",
        ]
    return "\n".join([*text, "    return 0;", "}\n"])


@pytest.mark.parametrize("place", ["the twins", "m4"])
def test_in_core_registers(place: str, tmp_path: Path) -> None:
    """On a Cortex-M4, and what compilers without the extension get, under sanitizers."""
    (tmp_path / "main.c").write_text(core_program())
    if place == "m4":
        if not available():
            pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
        out = build_and_run(BOARDS["m4"], ["main.c"], tmp_path, ["-O2", f"-I{include_dir()}"])
    else:
        run(Machine("", flags=SANITIZE), tmp_path)
        out = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout
    found = dict(line.split() for line in out.splitlines())
    assert found == dict.fromkeys(DSP.instructions, "0")


PAIRS = """#include "aot_model/int8_dsp.h"
#include <stdio.h>

__attribute__((noinline)) static void sums(const uint32_t *x, const int32_t *w, int32_t *to, uint32_t n)
{
    SUM p = 0, q = 0, r = 0, s = 0;
    for (uint32_t k = 0; k < n; k++, x += 4) {
        const int32_t v = *w++;
        p = MAC((int32_t)x[0], v, p);
        q = MAC((int32_t)x[1], v, q);
        r = MAC((int32_t)x[2], v, r);
        s = MAC((int32_t)x[3], v, s);
    }
    to[0] = (int32_t)p, to[1] = (int32_t)q, to[2] = (int32_t)r, to[3] = (int32_t)s;
}

int main(void)
{
    static uint32_t x[4 * TURNS];
    static int32_t w[TURNS];
    int32_t y[4];
    if (fread(x, 4, 4 * TURNS, stdin) != 4 * TURNS || fread(w, 4, TURNS, stdin) != TURNS) { return 1; }
    sums(x, w, y, TURNS);
    printf("%ld %ld %ld %ld\\n", (long)y[0], (long)y[1], (long)y[2], (long)y[3]);
    return 0;
}
"""


@pytest.mark.parametrize(("mac", "kind"), [("dsp_smlad", "int32_t"), ("dsp_smlald", "int64_t")])
@pytest.mark.parametrize("compiler", ["gcc", *(c for c in NEWER if shutil.which(c))])
def test_sums_of_pairs(compiler: str, mac: str, kind: str, tmp_path: Path) -> None:
    """The twins in a loop that compilers make vectors of: GCC 16 makes wrong ones (docs/compilers.md)."""
    turns, rng = 30, np.random.default_rng(6)
    x, w = (rng.integers(-(2**15), 2**15, (n, 2)).astype(np.int16) for n in (4 * turns, turns))
    wanted = (x.reshape(turns, 4, 2).astype(np.int64) * w[:, None]).sum(axis=(0, 2)).astype(np.int32)
    (tmp_path / "main.c").write_text(PAIRS)
    for level in ("-O2", "-O3"):
        given = [f"-DTURNS={turns}", f"-DMAC={mac}", f"-DSUM={kind}", f"-I{include_dir()}"]
        subprocess.run([compiler, *STRICT, level, *given, "main.c", "-o", "main"], cwd=tmp_path, check=True)
        numbers = x.tobytes() + w.tobytes()
        found = subprocess.run([tmp_path / "main"], input=numbers, capture_output=True, check=True).stdout
        assert [int(v) for v in found.split()] == wanted.tolist()


def helium_program() -> str:
    """C that executes every instruction of Helium's table on trials: the result before in q0 or r4, operands
    in q1, q2, r5.
    """
    rng = np.random.default_rng(4)
    text = ["#include <stdint.h>", "#include <stdio.h>", "#include <string.h>"]
    calls = []
    for number, (name, i) in enumerate(TABLE.items()):
        rows = []
        for _ in range(40):
            arrays = [values(rng, o).astype(np.int64) for o in i.operands]
            wanted = np.asarray(i.meaning(*arrays), np.int64).astype(i.result.element).tobytes()
            image = bytearray(64)
            places = iter((16, 32))
            reads_result = "{0}" not in i.text
            for k, (o, a) in enumerate(zip(i.operands, arrays, strict=True)):
                at = (
                    (48 if o.c_type == "r" else 0)
                    if reads_result and k == 0
                    else 52
                    if o.c_type == "r"
                    else next(places)
                )
                raw = a.astype(o.element).tobytes()
                image[at : at + len(raw)] = raw
            rows.append("{" + ",".join(map(str, bytes(image) + wanted.ljust(16, b"\0"))) + "}")
        registers = iter(("q1", "q2"))
        shown = [
            "r5" if o.c_type == "r" else "q0" if "{0}" not in i.text and k == 0 else next(registers)
            for k, o in enumerate(i.operands)
        ]
        if "{0}" not in i.text and i.operands[0].c_type == "r":
            shown[0] = "r4"
        code = i.text.format(*shown, d="r4" if i.result.c_type == "r" else "q0")
        size, at = (4, 16) if i.result.c_type == "r" else (16, 0)
        text += [
            f"static const uint8_t t{number}[40][80] = {{{','.join(rows)}}};",
            f"static int f{number}(void)",
            "{",
            "    int bad = 0;",
            "    for (int n = 0; n < 40; n++) {",
            f"        uint8_t out[20] = {{0}}; const uint8_t *in = t{number}[n];",
            '        __asm__ volatile("vldrb.8 q0, [%0]\\n vldrb.8 q1, [%0, #16]\\n vldrb.8 q2, [%0, #32]\\n '
            'ldr r4, [%0, #48]\\n ldr r5, [%0, #52]\\n"',
            f'            "{code}\\n vstrb.8 q0, [%1]\\n str r4, [%1, #16]\\n" : : "l"(in), "l"(out) : "r4", '
            '"r5", "q0", "q1", "q2", "memory");',
            f"        bad += memcmp(out + {at}, in + 64, {size}) != 0;",
            "    }",
            "    return bad;",
            "}",
        ]
        calls.append(f'    printf("%s=%d\\n", "{name}", f{number}());')
    return "\n".join([*text, "int main(void)", "{", *calls, "    return 0;", "}\n"])


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_in_helium(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(helium_program())
    out = build_and_run(BOARDS["m55"], ["main.c"], tmp_path, ["-O2"])
    assert dict(line.split("=") for line in out.splitlines()) == dict.fromkeys(TABLE, "0")


def test_what_is_not_in_the_table_is_no_assembly() -> None:
    lines = ["vldrb.8 q3, [r1, q5]", "vqrdmulh.s32 q0, q0, r8", "mov lr, #2"]
    assert (
        asm_lines(lines).count("\n") == 2
        and clobbers(lines, ["r1"]) == '"lr", "r8", "q0", "q3", "q5", "cc", "memory"'
    )
    with pytest.raises(AssertionError, match=r"vqrdmladh\.s32"):
        asm_lines(["vqrdmladh.s32 q0, q1, q2"])


def test_a_wrong_meaning_is_noticed(tmp_path: Path) -> None:
    """Ties that go up in place of away from zero."""
    i = SETS["AVX2"].instructions["round"]
    rng = np.random.default_rng(2)
    a, m, offset, shift = (values(rng, o).astype(np.int64) for o in i.operands)
    assert (i.meaning(a, m, offset, shift) != (((2 * a * m + (1 << 31)) >> 32) + offset) >> shift).any()


@pytest.mark.parametrize("name", SETS)
def test_without_its_instructions_the_header_says_what_to_do(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text(f'#include "{SETS[name].header}"\n')
    done = subprocess.run(
        ["gcc", "-mno-avx2", f"-I{include_dir()}", "-fsyntax-only", "m.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "or pass --target host," in done.stderr
