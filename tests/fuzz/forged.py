"""Files of parameters that somebody forged, with a right CRC: nothing that they hold may lead the code
astray.

    python tests/fuzz/forged.py [--blobs 200] [--seed 1] [--target c] [NAME...]     rows of the registry and
        kinds of models whose name contains one of these

The forging happens in C, in the program under sanitizers: a process for each model, which changes the file
again and again, compares what <name>_set_params() says of it with the checks in the model's metadata, and
runs what was accepted.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "operators"), str(TESTS / "tflite_operators")]

from aot_model.emit.parameters import data_offset, file_size, offsets  # noqa: E402
from aot_model.emit.parameters_file import checks  # noqa: E402
from aot_model.emit.view import Options  # noqa: E402
from aot_model.errors import CompileError  # noqa: E402
from aot_model.frontends.model import Model  # noqa: E402
from aot_model.host.program import SANITIZE, STRICT  # noqa: E402
from aot_model.installation import include_dir  # noqa: E402
from aot_model.pipeline import Compiled, Request, compile_graph, compile_model  # noqa: E402
from aot_model.targets.registry import parse_target  # noqa: E402
from batch import Case  # noqa: E402
from translation_unit import given_bytes  # noqa: E402

FORGE = Path(__file__).with_suffix(".c").read_text() if Path(__file__).with_suffix(".c").exists() else ""
PER_PROGRAM = 40


@dataclass(frozen=True)
class Victim:
    """A model with external parameters: its texts, its file, and a C function that forges."""

    label: str
    name: str
    source: str
    header: str
    parameters: bytes
    driver: str
    flags: tuple[str, ...] = ()
    """Of the compiler, for what the target has of this machine's processor."""


@dataclass(frozen=True)
class Verdict:
    """What came of a model: how many files were forged and how many of them were accepted; report: what went
    wrong.
    """

    label: str
    forged: int
    accepted: int
    report: str = ""


def compiled(case: Case, path: Path, name: str, target: str) -> Compiled:
    """A case with its constants outside of the code."""
    request = Request(
        path,
        name,
        target,
        case.options,
        case.dims,
        Options(metadata="none", params="external"),
        constants=case.constants,
        bounds=case.bounds,
    )
    if callable(case.model):
        return compile_graph(request, Model(case.model(), (), ""), parse_target(target, case.options))
    path.write_bytes(case.model if isinstance(case.model, bytes) else case.model.SerializeToString())
    return compile_model(request)


def victim(case: Case, folder: Path, number: int, target: str) -> Victim | None:
    """None where the model has no constants, or is refused."""
    name = f"m{number}"
    try:
        made = compiled(case, folder / f"{name}.model", name, target)
    except CompileError:
        return None
    view = made.view
    if not any(b.nbytes for b in view.parameters):
        return None
    kinds = [f"{s}int{b}" for b in (8, 16, 32, 64) for s in ("", "u")]
    # texts are bytes
    sizes = {b: b.type.dtype.size if b.type.dtype.size <= 8 else 1 for b in view.parameters}
    arrays = [
        f"{{{at}u, {b.nbytes // sizes[b]}u, {sizes[b]}u, {int(b.type.dtype.is_float)}u}}"
        for b, at in offsets(view.parameters).items()
        if b.nbytes
    ]
    rows = [
        f"{{{c.offset}u, {c.count}u, {c.step}u, {kinds.index(c.kind)}u, {_number(c.low, c.kind)}, "
        f"{_number(c.high, c.kind)}, {c.rise}}}"
        for c in checks(view)
    ]
    lines = [
        f"static const array arrays_{name}[] = {{ {', '.join(arrays)} }};",
        f"static const aot_model_parameter_check rows_{name}[] = {{ "
        f"{', '.join(rows) or '{0, 0, 0, 0, 0, 0, 0}'} }};",
    ]
    lines += [
        f"static int32_t run_{name}(uint8_t *const *in, uint8_t *const *out)",
        "{",
        "    (void)in; (void)out;",
    ]
    for side, ports in (("in", view.inputs), ("out", view.outputs)):
        fields = ", ".join(f"(void *){side}[{k}]" for k in range(len(ports))) or "NULL"
        lines.append(f"    const {name}_{side}puts {side}puts = {{ {fields} }};")
    lines += [f"    return {name}_run(&inputs, &outputs);", "}"]
    for side, ports in (("in", view.inputs), ("out", view.outputs)):
        lines.append(
            f"static const uint32_t {side}_{name}[] = {{ "
            f"{', '.join(f'{p.buffer.nbytes}u' for p in ports) or '0u'} }};"
        )
    given = b"".join(given_bytes(a) for a in case.inputs)
    lines.append(f"static const uint8_t given_{name}[] = {{ {', '.join(map(str, given)) or '0'} }};")
    lines.append(
        f'static const victim {name} = {{ "{name}", "{name}.params", {file_size(view.parameters)}u, '
        f"{data_offset(view.parameters)}u, arrays_{name}, {len(arrays)}u, rows_{name}, {len(rows)}u, "
        f"{name}_set_params, run_{name}, in_{name}, {len(view.inputs)}u, out_{name}, {len(view.outputs)}u, "
        f"given_{name}, {len(given)}u }};"
    )
    assert sum(p.buffer.nbytes for p in view.inputs) == len(given) or not given, (case.name, len(given))
    source, flags = made.texts[f"{name}.c"], tuple(view.target.c_flags)
    if target.startswith("cortex-"):  # its portable twins: without the check that it is compiled for the core
        if "arm_mve.h" in source:  # vectors of floats have no twin
            return None
        source, flags = re.sub(r'(?m)^#error ".*was made for.*"$', "", source), ()
    return Victim(
        case.name,
        name,
        source,
        made.texts[f"{name}.h"],
        made.binaries[f"{name}.params"],
        "\n".join(lines),
        flags,
    )


def _number(value: int, kind: str) -> str:
    value -= 1 << 63 if kind == "uint64" else 0
    return "INT64_MIN" if value == -(1 << 63) else f"INT64_C({value})"


def attack(victims: Sequence[Victim], folder: Path, blobs: int, seed: int) -> list[Verdict]:
    """Build one program of several models and let it forge."""
    folder.mkdir(parents=True, exist_ok=True)
    for v in victims:
        (folder / f"{v.name}.c").write_text(v.source)
        (folder / f"{v.name}.h").write_text(v.header)
        (folder / f"{v.name}.params").write_bytes(v.parameters)
    table = f"static const victim *const victims[] = {{ {', '.join(f'&{v.name}' for v in victims)} }};"
    texts = [
        FORGE.replace(
            "/* victims */",
            "\n".join([*(f'#include "{v.name}.h"' for v in victims), *(v.driver for v in victims), table]),
        )
    ]
    (folder / "main.c").write_text("\n".join(texts))
    flags = [
        *STRICT[1:],
        *SANITIZE,
        "-std=gnu11",
        "-O1",
        "-Wno-overlength-strings",
        f"-I{include_dir()}",
        "-I.",
        *victims[0].flags,
    ]
    sources = ["main.c", *(f"{v.name}.c" for v in victims)]
    built = subprocess.run(
        ["gcc", *flags, *sources, "-lm", "-o", "forge"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert built.returncode == 0, built.stderr[:4000]
    done = subprocess.run(
        ["./forge", str(blobs), str(seed)],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=3600,
    )
    said = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith("m")}
    verdicts = []
    for v in victims:
        status, forged, accepted = map(int, said[v.name])
        report = (folder / f"{v.name}.err").read_text(errors="replace")[:2000] if status else ""
        verdicts.append(Verdict(v.label, forged, accepted, report or (f"status {status}" if status else "")))
    return verdicts


def forge(
    cases: Iterable[Case],
    blobs: int,
    seed: int = 1,
    target: str = "c",
    say: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """Forge files for all cases that have constants."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        victims = [v for k, c in enumerate(cases) if (v := victim(c, folder, k, target)) is not None]
        verdicts = []
        for first in range(0, len(victims), PER_PROGRAM):
            found = attack(victims[first : first + PER_PROGRAM], folder / f"program{first}", blobs, seed)
            for v in found:
                say(
                    f"{v.label}: {v.forged} forged, {v.accepted} accepted"
                    + (f"\n{v.report}" if v.report else "")
                )
            verdicts += found
    return verdicts


def registry_cases() -> list[Case]:
    """Every sample of every operator."""
    from rows import registry_rows

    return [row.case for row in registry_rows()]


def tflite_cases() -> list[Case]:
    """Layers of TFLite, of all kinds of arithmetic."""
    from layers import CASES

    return [Case(c.name, c.model, tuple(c.inputs)) for c in CASES]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="c")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    cases = [
        c
        for c in (*registry_cases(), *tflite_cases())
        if not arguments.names or any(n in c.name for n in arguments.names)
    ]
    verdicts = forge(
        cases, arguments.blobs, arguments.seed, arguments.target, lambda text: print(text, flush=True)
    )
    bad = [v for v in verdicts if v.report]
    print(
        f"{len(verdicts)} models, {sum(v.forged for v in verdicts)} forged, "
        f"{sum(v.accepted for v in verdicts)} accepted, {len(bad)} bad"
    )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
