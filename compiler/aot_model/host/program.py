"""Build a compiled model with a C compiler of this machine and run it on arrays, in a process of its own."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.emit.view import ModelView
from aot_model.errors import fail
from aot_model.host.compiler import HostCompiler, complaint
from aot_model.ir.program import Buffer

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1")
"""-g1: reports name functions and lines. Following variables as well (-g) takes GCC three times as long."""

_MAIN = """#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"

/* Reads all inputs of a run from standard input, runs, writes all outputs to standard output, until the end. */
{statics}
int main(void)
{{{listen}
    const {name}_inputs inputs = {{ {inputs} }};
    const {name}_outputs outputs = {{ {outputs} }};
    for (;;) {{
        const int next = getchar();
        if (next == EOF) {{
            return 0;
        }}
{reads}
        {{
            const int32_t status = {name}_run(&inputs, &outputs{devices});
            if (status != 0) {{
                fprintf(stderr, "{name}_run returned %d\\n", (int)status);
                return 1;
            }}
        }}
{writes}
    }}
}}
"""  # noqa: E501


_LISTENER = """
static void tell(uint32_t number, const char *tensor, const void *data, uint32_t bytes)
{
    (void)number;
    (void)tensor;
    if (fwrite(data, 1, bytes, stdout) != bytes) {
        exit(4);
    }
}"""


@dataclass(frozen=True)
class HostProgram:
    """A built model. `run` takes and returns arrays in the order of the model's inputs and outputs.

    Of a library with Options.trace what it tells comes before the outputs.
    """

    view: ModelView
    executable: Path
    runner: tuple[str, ...] = ()
    """The command that the executable is the last argument of, such as an emulator."""
    big_endian: bool = False
    """Of the machine that it is for."""

    def run(self, vectors: Sequence[Sequence[np.ndarray]], timeout: float = 600) -> list[list[np.ndarray]]:
        """Outputs for each vector of inputs, one after the other in one process (state carries over).

        CompileError E104 when shapes do not fit, E602 when the program fails.
        """
        given = [self._bytes(vector) for vector in vectors]
        data = self._data(given, timeout)
        expected_bytes = len(vectors) * sum(b.nbytes for b in self._written)
        if len(data) != expected_bytes:
            raise fail(
                "E602",
                f"the program wrote {len(data)} bytes of outputs, not {expected_bytes}",
                where=self.view.source_name,
            )
        return self._split(data, len(vectors))

    def _bytes(self, vector: Sequence[np.ndarray]) -> bytes:
        """The inputs of a run as the program reads them."""
        stream = bytearray()
        for port, array in zip(self.view.inputs, vector, strict=True):
            expected = port.buffer.type
            if array.size != expected.elements:
                raise fail(
                    "E104", f"input '{port.buffer.name}' is {expected}, not {array.dtype}{list(array.shape)}"
                )
            stream += self._ordered(np.ascontiguousarray(array, dtype=expected.dtype.numpy)).tobytes()
        return bytes(stream)

    def _data(self, vectors: Sequence[bytes], timeout: float) -> bytes:
        """What the program writes for inputs. CompileError E602 when it fails."""
        stream = b"".join(b"\x01" + vector for vector in vectors)
        try:
            done = subprocess.run(
                [*self.runner, str(self.executable)],
                input=stream,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except OSError as error:
            raise fail(
                "E602",
                f"the program cannot be executed here: {error.strerror}",
                where=self.view.source_name,
                hint="--runner names an emulator",
            ) from None
        if done.returncode:
            text = done.stderr.decode(errors="replace")[-4000:]
            raise fail(
                "E602",
                f"the program failed with status {done.returncode}\n{text}",
                where=self.view.source_name,
            )
        return done.stdout

    @property
    def _written(self) -> list[Buffer]:
        """What a run writes, in order."""
        told = [t.buffer for t in self.view.traced] if self.view.options.trace else []
        return [*told, *(p.buffer for p in self.view.outputs)]

    def _split(self, data: bytes, count: int) -> list[list[np.ndarray]]:
        result, at = [], 0
        for _ in range(count):
            row = []
            for t in (b.type for b in self._written):
                row.append(
                    self._ordered(np.frombuffer(data, dtype=t.dtype.numpy, count=t.elements, offset=at))
                    .reshape(t.shape)
                    .copy()
                )
                at += t.nbytes
            result.append(row)
        return result

    def _ordered(self, array: np.ndarray) -> np.ndarray:
        """The array with its bytes in the order of the program's machine; or back."""
        swap = (
            array.dtype.kind != "S"
            and array.dtype.itemsize > 1
            and self.big_endian != (sys.byteorder == "big")
        )
        return array.view(f"u{array.dtype.itemsize}").byteswap().view(array.dtype) if swap else array


def main_text(view: ModelView) -> str:
    """The C program around a model with inputs and outputs given by the caller."""

    def static(kind: str, k: int, port_bytes: int, c_type: str) -> str:
        return f"static union {{ {c_type} t; unsigned char b[{max(port_bytes, 1)}]; }} {kind}{k};"

    statics = [
        static("in", k, p.buffer.nbytes, p.buffer.type.dtype.c_type) for k, p in enumerate(view.inputs)
    ]
    statics += [
        static("out", k, p.buffer.nbytes, p.buffer.type.dtype.c_type) for k, p in enumerate(view.outputs)
    ]
    reads = [
        f"        if (fread(in{k}.b, 1, {p.buffer.nbytes}u, stdin) != {p.buffer.nbytes}u) {{\n            "
        f"return 2;\n        }}"
        for k, p in enumerate(view.inputs)
        if p.buffer.nbytes
    ]
    writes = [
        f"        if (fwrite(out{k}.b, 1, {p.buffer.nbytes}u, stdout) != {p.buffer.nbytes}u) {{\n            "
        f"return 3;\n        }}"
        for k, p in enumerate(view.outputs)
        if p.buffer.nbytes
    ]
    if view.contexts:
        statics.append(
            f"extern const {view.name}_devices {view.name}_test_devices; /* of whoever knows the drivers */"
        )
    if view.options.trace:
        statics.append(_LISTENER)
    return _MAIN.format(
        listen=f"\n    {view.name}_trace = tell;" if view.options.trace else "",
        name=view.name,
        devices=f", &{view.name}_test_devices" if view.contexts else "",
        statics="\n".join(statics),
        reads="\n".join(reads),
        writes="\n".join(writes),
        inputs=", ".join(f"&in{k}.t" for k in range(len(view.inputs))) or "NULL",
        outputs=", ".join(f"&out{k}.t" for k in range(len(view.outputs))) or "NULL",
    )


def build(
    view: ModelView,
    texts: Mapping[str, str],
    folder: Path,
    flags: Sequence[str] = (),
    compiler: HostCompiler | None = None,
    level: str = "-O2",
) -> HostProgram:
    """Compile the generated files in a folder, by default with $CC or cc. CompileError E601 when that fails.

    flags: more than those of the compiler's user, or else of the processor and the level of optimisation.
    """
    from aot_model.installation import include_dir

    compiler = compiler or HostCompiler.find()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "main.c").write_text(main_text(view))
    executable = folder.absolute() / view.name
    sources = [str(executable.with_name(name)) for name in ("main.c", f"{view.name}.c")]
    options = [
        *STRICT,
        *compiler.flags(view.target, level),
        *flags,
        f"-I{executable.parent}",
        f"-I{include_dir()}",
    ]
    # In the folder of the user: the flags may have relative paths.
    command = [
        *compiler.command,
        *options,
        *sources,
        *view.target.all_libraries,
        "-lm",
        "-o",
        str(executable),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise fail("E601", f"the C compiler failed: {shlex.join(command)}\n{complaint(done.stderr)}")
    return HostProgram(view, executable, compiler.runner, compiler.big_endian)


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes when it is closed."""
    return tempfile.TemporaryDirectory(prefix="aot-model-")
