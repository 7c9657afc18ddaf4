"""A compiled model as firmware for a Cortex-M, run in QEMU or by whatever runs programs on a board.

The vectors are part of the program, and it prints what it computes as lines of hexadecimal digits: so
semihosting, a serial line and RTT do alike. A clock of the core gives the ticks of each layer.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aot_model.emit.view import ModelView
from aot_model.errors import fail
from aot_model.host.compiler import HostCompiler, complaint, words
from aot_model.host.program import STRICT, HostProgram
from aot_model.installation import include_dir, rules_dir
from aot_model.kernels.target import Target
from aot_model.targets.cores import CORES, Core

QEMU = "qemu"
COMPILER = "arm-none-eabi-gcc"
_LINE = re.compile(rb"aot-model (data|ticks|end) ?([0-9a-f ]*)\s*$")

_MAIN = """#include <stdio.h>
#include <string.h>
#include "{name}.h"

/* Runs the vectors in vectors.bin; prints outputs, the ticks of every layer, and the end. */
__asm__(".section .rodata.vectors,\\"a\\"\\n.balign 16\\n.global aot_model_vectors\\naot_model_vectors:\\n.incbin \\"vectors.bin\\"\\n.byte 0\\n.text");
extern const uint8_t aot_model_vectors[];

#define REGISTER(address) (*(volatile uint32_t *)(address))
static int has_cycle_counter;

static void start_clock(void)
{{
#if __ARM_ARCH > 6
    REGISTER(0xE000EDFCu) |= 1u << 24; /* DEMCR.TRCENA */
    REGISTER(0xE0001004u) = 0u;
    REGISTER(0xE0001000u) |= 1u; /* DWT: CYCCNT, where there is one */
    {{
        const uint32_t before = REGISTER(0xE0001004u);
        for (volatile int i = 0; i < 100; i++) {{
        }}
        has_cycle_counter = REGISTER(0xE0001004u) != before;
    }}
#endif
    if (!has_cycle_counter) {{
        REGISTER(0xE000E014u) = 0xFFFFFFu; /* SysTick: counts down */
        REGISTER(0xE000E018u) = 0u;
        REGISTER(0xE000E010u) = 5u;
    }}
}}

static uint32_t ticks(void)
{{
    static uint32_t last, sum;
    uint32_t now;
    if (has_cycle_counter) {{
        return REGISTER(0xE0001004u);
    }}
    now = 0xFFFFFFu - REGISTER(0xE000E018u);
    sum += (now - last) & 0xFFFFFFu;
    last = now;
    return sum;
}}

static void say(const void *data, uint32_t bytes)
{{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *const from = data;
    for (uint32_t at = 0; at < bytes;) {{
        char line[65];
        uint32_t k = 0;
        while (k < 64u && at < bytes) {{
            line[k++] = digits[from[at] >> 4];
            line[k++] = digits[from[at++] & 15u];
        }}
        line[k] = '\\0';
        printf("aot-model data %s\\n", line);
    }}
}}
{statics}
int main(void)
{{
    const {name}_inputs inputs = {{ {inputs} }};
    const {name}_outputs outputs = {{ {outputs} }};
    const uint8_t *from = aot_model_vectors;
    uint32_t sum = 0;
    start_clock();
{listen}
    for (uint32_t vector = 0; vector < {count}u; vector++) {{
        uint32_t start;
        int32_t status;
{reads}
        start = ticks();
        status = {name}_run(&inputs, &outputs{devices});
        sum += ticks() - start;
        if (status != 0) {{
            printf("{name}_run() returned %ld\\n", (long)status);
            return 1;
        }}
{writes}
    }}
    (void)from;
    printf("aot-model ticks %lx\\n", (unsigned long)sum);
{profile}
    printf("aot-model end\\n");
    return 0;
}}
"""  # noqa: E501
_LISTENER = """
static void tell(uint32_t number, const char *tensor, const void *data, uint32_t bytes)
{
    (void)number;
    (void)tensor;
    say(data, bytes);
}
"""


@dataclass(frozen=True)
class Board:
    """What firmware runs on, and what it needs besides the model."""

    core: Core
    runner: tuple[str, ...]
    """A command; {elf} in it is the program."""
    sources: tuple[str, ...]
    """Start-up code."""
    link: tuple[str, ...]
    unit: str
    """Of what is shown in place of ticks."""
    emulated: bool

    def amount(self, ticks: int) -> int:
        """Ticks in `unit`: QEMU's clock goes by the instruction, one a nanosecond."""
        return ticks * 1000 // self.core.mhz if self.emulated else ticks

    @staticmethod
    def of(target: Target, on: str, files: Sequence[Path] = ()) -> Board:
        """For `--on`. files: of the user; start-up code (.c, .S) and a linker script (.ld) take the place of
        those for QEMU.

        CompileError E501 where the target is no core that there is firmware for.
        """
        core = next((core for t in target.lineage() for core in CORES if core.name == t.name), None)
        if core is None:
            raise fail(
                "E501",
                f"--on is for Cortex-M; target '{target.name}' is none",
                hint=f"--target {CORES[2].name}; others run with --cc and --runner",
            )
        return Board.for_core(core, on, files)

    @staticmethod
    def for_core(core: Core, on: str, files: Sequence[Path] = ()) -> Board:
        """As `of`, for a core."""
        folder = rules_dir("toolchains") / "qemu"
        scripts = [file for file in files if file.suffix in (".ld", ".lds")]
        script = [f"-T{file.resolve()}" for file in scripts] or [f"-T{folder / core.script}"]
        sources = () if scripts else (str(folder / "startup.c"),)
        link = (
            "--specs=rdimon.specs",
            *(() if scripts else ("-nostartfiles",)),
            *script,
            f"-L{folder}",
            "-Wl,--gc-sections",
        )
        emulated = on == QEMU
        runner = (
            words(on, "--on")
            if not emulated
            else (
                "qemu-system-arm",
                "-machine",
                core.machine,
                "-nographic",
                "-monitor",
                "none",
                "-serial",
                "none",
                "-icount",
                "shift=0",
                "-semihosting-config",
                "enable=on,target=native",
                "-kernel",
                "{elf}",
            )
        )
        if not any("{elf}" in word for word in runner):
            raise fail(
                "E501",
                "--on: the command does not say where the program goes",
                hint="--on qemu, or --on 'probe-rs run --chip … {elf}'",
            )
        return Board(core, runner, sources, link, "instructions" if emulated else "cycles", emulated)


@dataclass(frozen=True)
class FirmwareProgram(HostProgram):
    """Firmware, linked anew for the vectors of each run."""

    board: Board | None = None
    command: tuple[str, ...] = ()
    """Compiles and links main.c."""
    ticks: list[int] = field(default_factory=list)
    """Of the last run: of all calls of the model together, then of each layer with Options.profile."""

    def link(self, vectors: Sequence[Sequence[np.ndarray]]) -> None:
        """The program for these vectors, which is not run. CompileError E104, E601."""
        self._link([self._bytes(vector) for vector in vectors])

    def _link(self, vectors: Sequence[bytes]) -> None:
        folder = self.executable.parent
        (folder / "vectors.bin").write_bytes(b"".join(vectors))
        (folder / "main.c").write_text(main_text(self.view, len(vectors)))
        done = subprocess.run(
            self.command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            raise fail(
                "E601",
                f"the firmware cannot be built: {shlex.join(self.command)}\n{complaint(done.stderr)}",
                hint="take fewer vectors at once, or a smaller model" if "overflow" in done.stderr else "",
            )

    def _data(self, vectors: Sequence[bytes], timeout: float) -> bytes:
        assert self.board is not None
        self._link(vectors)
        lines = self._lines(timeout)
        said = [match for line in lines if (match := _LINE.search(line))]
        if not any(match[1] == b"end" for match in said):
            text = b"".join(lines)[-2000:].decode(errors="replace")
            raise fail("E602", f"the firmware did not come to its end\n{text}", where=self.view.source_name)
        self.ticks[:] = [int(match[2], 16) for match in said if match[1] == b"ticks"]
        return b"".join(bytes.fromhex(match[2].decode()) for match in said if match[1] == b"data")

    def _lines(self, timeout: float) -> list[bytes]:
        """What is printed until the program says that it is at its end: those who run boards may wait for
        ever.
        """
        assert self.board is not None
        command = [word.replace("{elf}", str(self.executable)) for word in self.board.runner]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.executable.parent,
            )
        except OSError as error:
            raise fail(
                "E602",
                f"'{command[0]}' cannot be executed: {error.strerror}",
                where=self.view.source_name,
                hint="install it, or name another command with --on",
            ) from None
        lines = []
        clock = threading.Timer(timeout, process.kill)
        clock.start()
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if (match := _LINE.search(line)) and match[1] == b"end":
                    break
            clock.cancel()
            process.kill()
        return lines


def build(
    view: ModelView,
    texts: Mapping[str, str],
    folder: Path,
    board: Board,
    compiler: HostCompiler,
    flags: Sequence[str] = (),
    level: str = "-O2",
) -> FirmwareProgram:
    """The model as firmware in a folder, with debug information. CompileError E601 when it cannot be
    compiled.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    own = [*compiler.flags(view.target, level), f"-I{folder}", f"-I{include_dir()}"]
    model = [
        *compiler.command,
        *STRICT,
        *own,
        "-g",
        "-ffunction-sections",
        "-c",
        str(folder / f"{view.name}.c"),
        "-o",
        str(folder / "model.o"),
    ]
    done = subprocess.run(model, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise fail("E601", f"the C compiler failed: {shlex.join(model)}\n{complaint(done.stderr)}")
    elf = folder / f"{view.name}.elf"
    others = [flag if flag.startswith("-") else os.path.abspath(flag) for flag in flags]
    link = [
        *compiler.command,
        "-std=gnu99",
        *own,
        "main.c",
        "model.o",
        *board.sources,
        *others,
        *board.link,
        *view.target.all_libraries,
        "-lm",
        "-o",
        str(elf),
    ]
    return FirmwareProgram(view, elf, (), compiler.big_endian, board, tuple(link))


def find_compiler(cc: str | None, cflags: str | None) -> HostCompiler:
    """The compiler that is named, else GNU's for Arm. CompileError E601."""
    return HostCompiler.find(cc or COMPILER, cflags)


def main_text(view: ModelView, count: int) -> str:
    """The C of the program around a model."""
    name = view.name

    def static(kind: str, k: int, size: int, c_type: str) -> str:
        return f"static union {{ {c_type} t; unsigned char b[{max(size, 1)}]; }} {kind}{k};"

    ports = (("in", view.inputs), ("out", view.outputs))
    statics = [
        static(kind, k, p.buffer.nbytes, p.buffer.type.dtype.c_type)
        for kind, side in ports
        for k, p in enumerate(side)
    ]
    if view.contexts:
        statics.append(f"extern const {name}_devices {name}_test_devices; /* of whoever knows the drivers */")
    if view.options.trace:
        statics.append(_LISTENER)
    reads = [
        f"        memcpy(in{k}.b, from, {p.buffer.nbytes}u);\n        from += {p.buffer.nbytes}u;"
        for k, p in enumerate(view.inputs)
        if p.buffer.nbytes
    ]
    writes = [
        f"        say(out{k}.b, {p.buffer.nbytes}u);" for k, p in enumerate(view.outputs) if p.buffer.nbytes
    ]
    listen = [f"    {name}_trace = tell;"] * view.options.trace + [
        f"    {name}_ticks = ticks;"
    ] * view.options.profile
    profile = (
        f"    for (uint32_t k = 0; k < {view.upper}_PROFILE_SIZE; k++) {{\n"
        f'        printf("aot-model ticks %lx\\n", (unsigned long){name}_profile[k]);\n    }}'
        if view.options.profile
        else ""
    )
    return _MAIN.format(
        name=name,
        count=count,
        statics="\n".join(statics),
        reads="\n".join(reads),
        writes="\n".join(writes),
        listen="\n".join(listen),
        profile=profile,
        devices=f", &{name}_test_devices" if view.contexts else "",
        inputs=", ".join(f"&in{k}.t" for k in range(len(view.inputs))) or "NULL",
        outputs=", ".join(f"&out{k}.t" for k in range(len(view.outputs))) or "NULL",
    )
