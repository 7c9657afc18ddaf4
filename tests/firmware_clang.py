"""Code for Cortex-M as clang for firmware sees it: what it warns of in samples of operators and in layers.

    python tests/firmware_clang.py [PATTERN] [--target cortex-m55] [--part 3/12]   all, or of some rows; long

Each is a file of its own, as a user's model is: what several models of one file share, one of them may leave
unused without a word. GCC says nothing of inline functions that nothing calls, and clang on the host never
sees what only a core's code has.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import batch
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from batch import JOBS, Case, Outcome, generate, run_cases, workers
from qemu import BOARDS, Board, build, run
from qemu import COMPILER as GCC
from translation_unit import Generated

TESTS = Path(__file__).resolve().parent
COMPILERS = ("clang-22", "clang-19", "clang-14", "clang")
WAY_OUT = {"clang-19": ("-fno-vectorize", "-DAOT_MODEL_UNVECTORIZED")}
"""What a compiler needs, or generated C refuses it for a Cortex-M55."""
TARGETS = {"c": "m0", "cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}
"""Code, and the core that it is compiled for: without extensions, with DSP, with Helium."""


@cache
def library() -> Path | None:
    """The folder of newlib's headers, from those that the GCC for firmware searches."""
    if shutil.which(GCC) is None:
        return None
    command = [GCC, "-xc", "-E", "-v", "-"]
    said = subprocess.run(command, input="", text=True, capture_output=True, check=False)
    folders = (Path(line.strip()) for line in said.stderr.splitlines() if line.startswith(" /"))
    return next((f for f in folders if (f / "newlib.h").exists() and (f / "stdio.h").exists()), None)


@cache
def compiler() -> str | None:
    return next((name for name in COMPILERS if shutil.which(name)), None)


def missing() -> str:
    """What this machine lacks; empty when nothing."""
    if compiler() is None:
        return "no clang"
    return "" if library() else "no newlib"


def rows(pattern: str = "*") -> list[Case]:
    """Samples of operators and layers of the kernels' table."""
    sys.path += [p for name in ("operators", "kernels") if (p := str(TESTS / name)) not in sys.path]
    from rows import registry_rows
    from table import GROUPS, case_of

    cases = [row.case for row in registry_rows() if fnmatch.fnmatch(row.label, pattern)]
    return cases + [
        case_of(group, layer, {})
        for group, layers in GROUPS.items()
        for layer in layers()
        if fnmatch.fnmatch(f"{group} {layer.name}", pattern)
    ]


def warned(target: str, cases: Sequence[Case]) -> tuple[list[str], int]:
    """What clang says of the C of these cases, and how many it read: a core's that is plain C is left out."""
    core, unlike = TARGETS[target], None if target == "c" else "c"
    with tempfile.TemporaryDirectory(prefix="aot-model-clang-") as name, workers(JOBS) as pool:
        folder = Path(name)
        count = len(cases)
        made = list(
            pool.map(
                generate,
                [folder] * count,
                range(count),
                cases,
                [target] * count,
                [unlike] * count,
                chunksize=8,
            )
        )
        ready = [(case, item) for case, item in zip(cases, made, strict=True) if isinstance(item, Generated)]
        broken = [
            f"{case.name} for {target}: {item.message}"
            for case, item in zip(cases, made, strict=True)
            if not isinstance(item, Generated) and item.status == "broken"
        ]
        with ThreadPoolExecutor(JOBS) as threads:
            said = threads.map(partial(_read, folder, core), (item for _, item in ready))
            found = [
                f"{case.name} for {target}: {text}"
                for (case, _), text in zip(ready, said, strict=True)
                if text
            ]
    return broken + found, len(ready)


def _read(folder: Path, core: str, item: Generated) -> str:
    """What clang says of one file, and its assembler of what is assembly."""
    source = folder / f"{item.name}.c"
    source.write_text(item.source)
    source.with_suffix(".h").write_text(item.header)
    done = _compiled(BOARDS[core], source, [f"-I{include_dir()}", *STRICT, "-O2"])
    return done.stderr[:3000] if done.returncode else ""


def _compiled(
    board: Board, source: Path, flags: Sequence[str], by: str = ""
) -> subprocess.CompletedProcess[str]:
    """by: another clang than compiler()."""
    target = ["--target=arm-none-eabi", "-mthumb", *board.flags, "-isystem", str(library())]
    clang = by or str(compiler())
    more = () if by else WAY_OUT.get(clang, ())
    command = [clang, *target, *more, *flags, "-c", source.name, "-o", f"{source.stem}.o"]
    return subprocess.run(
        command, cwd=source.parent, capture_output=True, text=True, errors="replace", check=False
    )


def numbers(
    cases: Sequence[Case], target: str, level: str, by: str = "", more: Sequence[str] = ()
) -> list[Outcome]:
    """What cases give on the core when clang has compiled their C, and GCC the program around them. by:
    another clang than compiler(). more: flags.
    """

    def by_clang(board: Board, sources: list[str], folder: Path, flags: list[str]) -> str:
        done = _compiled(board, folder / "unit.c", [*flags, *more, "-Wno-error"], by)
        done.check_returncode()
        return run(board, build(board, ["main.c", "unit.o"], folder, flags))

    with patch.object(batch, "build_and_run", by_clang):
        return run_cases(cases, target, sanitize=False, board=TARGETS[target], flags=(level,), jobs=1)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pattern", nargs="?", default="*", help="of samples (Conv-3) and layers")
    parser.add_argument("--target", choices=TARGETS, help="this one alone")
    parser.add_argument("--part", default="0/1", metavar="K/N", help="every N-th, from K")
    options = parser.parse_args()
    if missing():
        sys.exit(missing())
    first, _, step = options.part.partition("/")
    cases = rows(options.pattern)[int(first) :: int(step)]
    wrong = False
    for target in [options.target] if options.target else TARGETS:
        found, count = warned(target, cases)
        print(
            *found,
            f"{target}: {count} files of {len(cases)} rows, {len(found)} with warnings",
            sep="\n",
            flush=True,
        )
        wrong |= bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
