"""Mutated models, as many as there is time for: each compiles or is refused with an error of ours, within
limits.

    python tests/fuzz/campaign.py --cases 10000 --seed 7
    python tests/fuzz/campaign.py --seconds 300 --seed "$(git rev-list --count HEAD)"     # goes on with every
        commit
    python tests/fuzz/campaign.py --files tests/fuzz/corpus/*                      # again, what failed once
    python tests/fuzz/campaign.py --seconds 600 --engine atheris                   # guided by coverage:
        guided.py

A process is forked for a batch of cases, with limits of memory and of time for each case; when it dies, the
case that it was at has failed and another goes on with the rest. What compiles is checked by the C compiler
under strict flags, a batch at a time; one case in twenty is built with sanitizers and run on hostile inputs.
What fails is made smaller and written to --keep.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from mutations import mutated_onnx, mutated_tflite
from seeds import seeds

from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT, build
from aot_model.installation import include_dir
from aot_model.pipeline import Compiled, Request, compile_model
from qemu import BOARDS
from qemu import COMPILER as CROSS_COMPILER

SECONDS, BYTES = 15, 2 << 30
"""For each case: of the processor (ten times as many on the clock, for machines that do other things too),
and of memory.
"""
TARGETS = ("c", "host", "cortex-m4", "cortex-m55")
"""For half of the cases the first, for the others one of the rest."""
FLAGS = {"host": ("-march=native",)}
RUN = ("c", "host")
BATCH, RUN_EVERY = 50, 20
MAX_RUN_BYTES = 1 << 22
"""Of inputs and outputs together, of a case that is run."""
MAX_MESSAGE = 100_000


@dataclass
class Case:
    """A model, and what is wrong with it: empty when it is fine. status: ok, refused, failed."""

    name: str
    data: bytes
    target: str = "c"
    why: str = ""
    status: str = ""


@dataclass
class Tally:
    cases: int = 0
    compiled: int = 0
    ran: int = 0
    failed: list[Case] = field(default_factory=list)


def case_of(seed: str, number: int) -> Case:
    """The case of that number; always the same one."""
    rng = random.Random(f"{seed}:{number}")
    name, data = rng.choice(seeds())
    target = rng.choice(TARGETS[1:]) if rng.random() < 0.5 else TARGETS[0]
    if name.endswith(".tflite"):
        return Case(f"{number}-{name}", mutated_tflite(data, rng), target)
    proto = onnx.ModelProto()
    proto.ParseFromString(data)
    return Case(f"{number}-{name}", mutated_onnx(proto, rng), target)


def of_files(paths: Sequence[Path]) -> list[Case]:
    """These models, each for all targets."""
    return [Case(p.name, p.read_bytes(), target) for p in paths for target in TARGETS]


# --- in the child -------------------------------------------------------------------------------------------


def _compile(case: Case, folder: Path, name: str) -> Compiled | None:
    """None when the model is refused. Raises what else goes wrong."""
    path = folder / ("case.tflite" if case.name.endswith(".tflite") else "case.onnx")
    path.write_bytes(case.data)
    try:
        compiled = compile_model(Request(path, name, case.target, library=Options(metadata="none")))
    except CompileError as error:
        text = str(error)
        assert len(text) < MAX_MESSAGE and all(c.isprintable() or c == "\n" for c in text), (
            "what is said cannot be shown"
        )
        assert all(p.code != "E901" for p in error.problems), text
        return None
    return compiled


def _hostile(compiled: Compiled, rng: random.Random) -> list[list[np.ndarray]]:
    """Inputs that no sensor gives: NaN, infinities, indices and counts beyond everything."""
    vectors = []
    for kind in range(3):
        row = []
        for port in compiled.view.inputs:
            t = port.buffer.type
            noise = np.random.default_rng(rng.randrange(2**32)).integers(0, 256, t.nbytes, dtype=np.uint8)
            fill = noise if kind == 0 else np.full(t.nbytes, 255 if kind == 1 else 0x7F, np.uint8)
            if t.dtype.label == "bool":
                fill = fill & 1
            row.append(fill.view(t.dtype.numpy).reshape(t.shape))
        vectors.append(row)
    return vectors


def _limits() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)


def _child(cases: Sequence[Case], first: int, folder: Path, report: int) -> None:
    """Compile one case after the other; a line for each goes to the parent."""
    _limits()
    for k in range(first, len(cases)):
        os.write(report, f"begin {k}\n".encode())
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(SECONDS * 10)
        try:
            compiled = _compile(cases[k], folder, f"m{k}")
        except BaseException:
            (folder / f"m{k}.log").write_text(traceback.format_exc()[-6000:])
            os.write(report, f"failed {k}\n".encode())
            continue
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if compiled is not None:
            for name, text in compiled.texts.items():
                (folder / name).write_text(text)
            if k % RUN_EVERY == 0 and _is_small(compiled):
                (folder / f"run{k}").mkdir()
        os.write(report, f"{'refused' if compiled is None else 'ok'} {k}\n".encode())


def _is_small(compiled: Compiled) -> bool:
    view = compiled.view
    return (
        sum(p.buffer.nbytes for p in (*view.inputs, *view.outputs)) + view.workspace_size <= MAX_RUN_BYTES
        and not view.contexts
    )


# --- in the parent ------------------------------------------------------------------------------------------


def run_batch(cases: list[Case], folder: Path) -> tuple[int, int]:
    """Sets what became of each case; how many compiled, and how many ran."""
    first = 0
    while first < len(cases):
        first = _fork(cases, first, folder)
    good = [k for k, c in enumerate(cases) if c.status == "ok"]
    _check_syntax(cases, good, folder)
    ran = 0
    for k in good:
        if cases[k].status == "ok" and cases[k].target in RUN and (folder / f"run{k}").exists():
            ran += _sanitized(cases[k], folder / f"run{k}", k)
    return len(good), ran


def _fork(cases: list[Case], first: int, folder: Path) -> int:
    """Runs cases from `first` on in a child; where the next child has to go on."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            _child(cases, first, folder, write)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        at = first
        for line in lines:
            word, number = line.split()
            at = int(number)
            cases[at].status = word
    _, status = os.waitpid(child, 0)
    for k, case in enumerate(cases):
        if case.status == "failed" and not case.why:
            case.why = (folder / f"m{k}.log").read_text()
    if cases[at].status == "begin":
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        cases[at].status = "failed"
        cases[at].why = (
            f"took more than {SECONDS} s"
            if number in (signal.SIGALRM, signal.SIGPROF)
            else f"died of {signal.Signals(number).name if number else status}"
        )
    return at + 1


def _compiler(target: str) -> list[str] | None:
    """The command that compiles for it; None where the machine has none."""
    core = target.removeprefix("cortex-")
    if core not in BOARDS:
        return ["gcc", *FLAGS.get(target, ())]
    return [CROSS_COMPILER, *BOARDS[core].flags] if shutil.which(CROSS_COMPILER) else None


def _check_syntax(cases: list[Case], good: list[int], folder: Path) -> None:
    def said(command: list[str], numbers: list[int]) -> str:
        done = subprocess.run(
            [*command, *STRICT, "-fsyntax-only", f"-I{include_dir()}", *(f"m{k}.c" for k in numbers)],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return done.stderr[:3000] or "the compiler failed" if done.returncode else ""

    for target in TARGETS:
        command, those = _compiler(target), [k for k in good if cases[k].target == target]
        if command is None or not those or not said(command, those):
            continue
        for k in those:
            if why := said(command, [k]):
                cases[k].status, cases[k].why = "failed", why


def _sanitized(case: Case, folder: Path, k: int) -> bool:
    """Build with sanitizers and run on hostile inputs; whether it was run."""
    try:
        compiled = _compile(case, folder, f"m{k}")
        if compiled is None:
            return False
        flags = ("-O1", *SANITIZE, *FLAGS.get(case.target, ()))
        program = build(compiled.view, compiled.texts, folder, flags)
        program.run(_hostile(compiled, random.Random(k)), timeout=120)
    except subprocess.TimeoutExpired:
        return True  # loops whose count is data may take long
    except CompileError as error:
        if "returned" not in str(error) or "runtime error" in str(error) or "Sanitizer" in str(error):
            case.status, case.why = "failed", str(error)[-3000:]
    return True


def smaller(case: Case, folder: Path) -> bytes:
    """Nodes, attributes, constants and outputs left out as long as the case fails."""
    if case.name.endswith(".tflite"):
        return case.data
    best = onnx.ModelProto()
    try:
        best.ParseFromString(case.data)
    except Exception:
        return case.data

    def fails(proto: onnx.ModelProto) -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        again = Case(case.name, proto.SerializeToString(), case.target)
        run_batch([again], folder)
        return again.status == "failed"

    if not fails(best):
        return case.data
    deadline = time.monotonic() + 60
    for where in ("node", "output", "initializer", "input", "value_info"):
        for at in reversed(range(len(getattr(best.graph, where)))):
            trial = onnx.ModelProto()
            trial.CopyFrom(best)
            del getattr(trial.graph, where)[at]
            if time.monotonic() < deadline and fails(trial):
                best = trial
    return best.SerializeToString()


def campaign(cases: list[Case] | None, seed: str, most: int, seconds: float, keep: Path | None) -> Tally:
    tally = Tally()
    began, number = time.monotonic(), 0
    seeds()
    while tally.cases < most and time.monotonic() - began < seconds:
        batch = (
            [case_of(seed, n) for n in range(number, min(number + BATCH, most))]
            if cases is None
            else cases[number : number + BATCH]
        )
        number += BATCH
        if not batch:
            break
        with tempfile.TemporaryDirectory(prefix="aot-model-fuzz-") as name:
            compiled, ran = run_batch(batch, Path(name))
            tally.cases, tally.compiled, tally.ran = (
                tally.cases + len(batch),
                tally.compiled + compiled,
                tally.ran + ran,
            )
            for case in (c for c in batch if c.status == "failed"):
                tally.failed.append(case)
                print(f"FAILED {case.name} ({case.target}): {case.why[-1500:]}", flush=True)
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed[:12]}-{case.name}".replace("/", "_")).write_bytes(
                        smaller(case, Path(name) / "small")
                    )
        if number % (20 * BATCH) == 0:
            print(
                f"{tally.cases:,} cases, {tally.compiled:,} compiled, {tally.ran:,} run, {len(tally.failed)} "
                f"failed, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--seed", default="0", help="any text")
    parser.add_argument("--keep", type=Path, help="folder for what fails, made smaller")
    parser.add_argument(
        "--engine",
        choices=("random", "atheris"),
        default="random",
        help="atheris: guided by coverage of the frontends, in one process (guided.py)",
    )
    parser.add_argument("--files", type=Path, nargs="+", help="models to try instead of mutated ones")
    arguments = parser.parse_args()
    if arguments.cases == 10**9 and arguments.seconds == 10**9 and not arguments.files:
        parser.error("--cases, --seconds or --files")
    if arguments.engine == "atheris":
        if importlib.util.find_spec("atheris") is None:
            parser.error("--engine atheris: pip install atheris")
        os.execv(sys.executable, [sys.executable, str(Path(__file__).with_name("guided.py")), *sys.argv[1:]])
    cases = of_files(arguments.files) if arguments.files else None
    tally = campaign(cases, arguments.seed, arguments.cases, arguments.seconds, arguments.keep)
    print(
        f"seed {arguments.seed}: {tally.cases:,} cases, {tally.compiled:,} compiled, {tally.ran:,} run under "
        f"sanitizers, {len(tally.failed)} failed"
    )
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
