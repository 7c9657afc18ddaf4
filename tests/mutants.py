"""Mutants: one token of the compiler is changed at random, and the tests should notice.

    python tests/mutants.py --seed 1 --count 300 --results mutants.json   goes on where it was ended
    python tests/mutants.py --results mutants.json --list                 the survivors, with what changed
    python tests/mutants.py --results mutants.json --again                the survivors once more, all stages
    python tests/mutants.py --places some.json --results those.json       those of a file: mutation/places.py
    python tests/mutants.py --rooms frontends --count 50                  of another room than those below

What is mutated: operators, comparisons, constants, slices and min/max of Python, and of the C text inside of
strings; in ops/, kernels/, passes/, lowering/ and arithmetic/fixed_point.py, apart from docstrings,
annotations, messages, samples and references.

Stages, cheap ones first, the first failure ends it:
1. the rows of the conformance suite and of the kernels' table that execute its line. A row whose C is the
   same as before cannot tell; one that is refused, does not compile or gives other numbers than its oracles
   catches it;
2. test files that take seconds and are about the module (mutation/relevant.py), of passes/ before all else;
3. of kernels/: all layers that execute its line: other numbers, more instructions, memory beyond
   a buffer;
4. the test files for the module that take longer (pytest -x), unless --quick.

Caught is what a test of the suite fails on, by numbers, by an error, by what it costs.
mutation/equivalent.json lists mutants that no test can notice, each with the reason; they are not run.
Its test fails for an entry that fits nothing.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import json
import multiprocessing
import os
import pickle
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
COMPILER = TESTS.parent / "compiler"
sys.path[:0] = [
    str(TESTS / folder) for folder in (".", "mutation", "operators", "kernels", "tflite_operators")
]

import layers_of_mutant  # noqa: E402
import rows_of_mutant  # noqa: E402
from change import Mutant, mutants_of, token_count  # noqa: E402
from executed import LOAD, forget, functions, run_with, written  # noqa: E402
from patched import patch  # noqa: E402
from places import PACKAGE, Place, equivalents, place_of, read_places  # noqa: E402
from relevant import ROOMS, mutated_files, near_files, pytest_files  # noqa: E402

Rows = list[tuple[str, str]]
SLOWEST = 10
"""Times the limit of a stage, which is CPU time, by the clock: more is no judgement."""


@dataclass
class Record:
    """What became of a mutant: caught (by what), or survived."""

    file: str
    code: str
    """The token and what is around it."""
    after: str
    line: int
    """Of the sources as they were; it tells rows that execute it."""
    status: str = ""
    """caught, survived, equivalent, or open: the machine was too slow."""
    by: str = ""
    rows: int = 0
    changed: int = 0
    layers: int = 0
    """Layers whose C it changes."""
    seconds: float = 0.0
    reason: str = ""
    """Why nothing can notice it."""

    @property
    def key(self) -> str:
        return Place(self.file, self.code, self.after).key


def draw(count: int, seed: int, rooms: Iterable[str] = ROOMS) -> list[Mutant]:
    """Mutants of files of rooms, drawn by their number of tokens that can be changed."""
    rng = random.Random(seed)
    files = [PACKAGE / f for f in mutated_files(PACKAGE, rooms)]
    weights = [token_count(f) for f in files]
    found: dict[tuple[str, int, int, str], Mutant] = {}
    while len(found) < count:
        file = rng.choices(files, weights)[0]
        mutant = rng.choice(mutants_of(file))
        if not mutant.valid:
            continue
        found.setdefault((str(file), mutant.start, mutant.end, mutant.after), mutant)
    return list(found.values())


def overlay(folder: Path) -> Path:
    """A copy of the compiler in which one file at a time is changed."""
    target = folder / "compiler"
    shutil.copytree(COMPILER, target, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(target, quiet=1)
    return target


def in_child(task: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The result of a task in a forked process, of which nothing stays; caught when it computes on and on."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        with os.fdopen(write, "wb") as pipe:
            try:
                result = task()
            except BaseException as error:
                result = {
                    "status": "caught",
                    "by": f"{type(error).__name__} when it is loaded: {error}"[:300],
                }
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], SLOWEST * seconds)
        data = pipe.read() if ready else b""
    if not ready:
        os.killpg(pid, signal.SIGKILL)
    _, ended = os.waitpid(pid, 0)
    if not ready:
        return {"status": "open", "by": "the machine is too slow"}
    if not data:
        limit = os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGXCPU
        return {"status": "caught", "by": "time limit" if limit else "the process ended"}
    return dict(pickle.loads(data))


Stage = Callable[[dict[str, Any]], dict[str, Any]]
"""Of what a process has loaded: what it says of a mutant."""


def load(place: Path) -> dict[str, Any]:
    """The compiler in a folder, with all rows and layers."""
    sys.path.insert(0, str(place))
    sys.dont_write_bytecode = True
    for file in mutated_files(PACKAGE, (*ROOMS, "frontends")):  # some are loaded where they are needed first
        importlib.import_module("aot_model." + file.removesuffix(".py").replace("/", "."))
    return {"rows": rows_of_mutant.loaded(), "layers": layers_of_mutant.loaded()}


class Loaded:
    """A process that has loaded the compiler as it is, and forks for each mutant that can be put into it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._ours, theirs = multiprocessing.Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._ours.close()
            found = load(place)
            while True:
                try:
                    module, before, after, stage, seconds = theirs.recv()
                except EOFError:
                    os._exit(0)
                theirs.send(in_child(partial(_put_in, found, module, before, after, stage), seconds))
        theirs.close()

    def outcome(self, module: str, before: str, after: str, stage: Stage, seconds: float) -> dict[str, Any]:
        """What a stage says of a mutant, which lies in the folder; where it cannot be put in, all is loaded
        anew.
        """
        self._ours.send((module, before, after, stage, seconds))
        found: dict[str, Any] = self._ours.recv()
        return in_child(partial(_anew, self._place, stage), seconds) if "cold" in found else found

    def end(self) -> None:
        self._ours.close()
        os.waitpid(self._pid, 0)


def _put_in(found: dict[str, Any], module: str, before: str, after: str, stage: Stage) -> dict[str, Any]:
    if not patch(module, before, after):
        return {"cold": True}
    forget()  # what functions computed as they were
    return stage(found)


def _anew(place: Path, stage: Stage) -> dict[str, Any]:
    return stage(load(place))


def _judge_rows(rows: Rows, texts: dict[str, str], found: dict[str, Any]) -> dict[str, Any]:
    return rows_of_mutant.judged(found["rows"], rows, texts)


def _judge_layers(names: list[str], known: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    return layers_of_mutant.judged(found["layers"], names, known)


def failure(files: list[str], place: Path, seconds: float) -> dict[str, Any]:
    """The first test that fails of some arguments of pytest, or computes on and on: seconds of CPU time."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AOT_MODEL_TEST_JOBS": "1",
    }
    for file in files:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *file.split()]
        try:
            done = subprocess.run(
                command,
                cwd=TESTS.parent,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SLOWEST * seconds,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5)),
            )
        except subprocess.TimeoutExpired:
            return {"status": "open", "by": f"the machine is too slow for {file}"}
        if done.returncode == -signal.SIGXCPU:
            return {"status": "caught", "by": f"time limit: {file}"}
        if done.returncode not in (0, 5):  # 5: none was selected
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return {"status": "caught", "by": (failed or [file])[0][:200]}
    return {"status": "", "by": ""}


@dataclass
class Judge:
    """The stages, over a copy of the compiler in which one file at a time is changed."""

    place: Path
    known: dict[str, Any]
    """Rows by line, hashes of their C, layers with theirs and their instructions."""
    seconds: float
    quick: bool

    def __post_init__(self) -> None:
        self.loaded = Loaded(self.place)

    def judge(self, record: Record, mutant: Mutant) -> None:
        """Fill in what becomes of a mutant."""
        started = time.time()
        changed = self.place / "aot_model" / record.file
        original, times = changed.read_text(), changed.stat()
        changed.write_text(mutant.apply(original))
        stages = [self._near, self._rows] if record.file.startswith("passes") else [self._rows, self._near]
        stages += [self._layers] if record.file.startswith("kernels") else []
        try:
            for stage in [*stages, *([] if self.quick else [self._tests])]:
                result = stage(record, original, mutant)
                record.status, record.by = str(result["status"]), str(result["by"])
                if record.status:
                    break
            record.status = record.status or "survived"
        finally:
            changed.write_text(original)
            os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))  # its byte code is valid again
            record.seconds = round(time.time() - started, 1)

    def _near(self, record: Record, original: str, mutant: Mutant) -> dict[str, Any]:
        return failure(near_files(record.file), self.place, self.seconds)

    def _loaded(
        self, record: Record, original: str, mutant: Mutant, stage: Stage, seconds: float
    ) -> dict[str, Any]:
        module = "aot_model." + record.file.removesuffix(".py").replace("/", ".")
        return self.loaded.outcome(module, original, mutant.apply(original), stage, seconds)

    def _keys(self, record: Record, original: str, lines: dict[str, Any]) -> list[str]:
        """The lines that run with that of a mutant; all of the module for one that runs when it is loaded."""
        prefix = f"{record.file}:"
        known = {int(k.removeprefix(prefix)) for k in lines if k.startswith(prefix)}
        inside = any(a < record.line <= b for a, b in functions(original))
        return [f"{prefix}{k}" for k in (run_with(original, record.line, known) if inside else sorted(known))]

    def _rows(self, record: Record, original: str, mutant: Mutant) -> dict[str, Any]:
        lines = self.known["lines"]
        keys = self._keys(record, original, lines)  # the first, where it is loaded, is LOAD
        those = lines.get(keys[0] if keys else f"{record.file}:{LOAD}", [])
        record.rows = len(those)
        if not those:
            return {"status": "", "by": ""}
        stage = partial(_judge_rows, those, self.known["text"])
        found = self._loaded(record, original, mutant, stage, self.seconds)
        record.changed = int(str(found.get("changed", 0)))
        return found

    def _layers(self, record: Record, original: str, mutant: Mutant) -> dict[str, Any]:
        layers = self.known["layers"]
        names = layers_of_mutant.touched(self._keys(record, original, layers["lines"]), layers)
        if not names:
            return {"status": "", "by": ""}
        stage = partial(_judge_layers, names, layers)
        found = self._loaded(record, original, mutant, stage, 3 * self.seconds)
        record.layers = int(str(found.get("changed", 0)))
        return found

    def _tests(self, record: Record, original: str, mutant: Mutant) -> dict[str, Any]:
        return failure(pytest_files(record.file), self.place, 6 * self.seconds)


def asked_for(options: argparse.Namespace, records: list[Record]) -> list[Mutant]:
    """The mutants that are drawn, those that a file names, or of earlier ones those that were not caught."""
    if options.again:
        left = [r for r in records if r.status in ("survived", "open")]
        places = [Place(r.file, r.code, r.after) for r in left]
    elif options.places is not None:
        places = read_places(options.places)
    else:
        return draw(options.count, options.seed, options.rooms)
    return [m for place in places for m in place.mutants(PACKAGE)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--results", type=Path, default=Path("mutants.json"))
    parser.add_argument(
        "--lines",
        type=Path,
        default=Path("mutants_lines.json"),
        help="which rows execute which line: made when missing",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=120,
        metavar="SECONDS",
        help="of CPU time for the rows of a mutant; three times that for its layers",
    )
    parser.add_argument(
        "--places", type=Path, help="a list of mutants instead of a drawn one, as mutation/equivalent.json"
    )
    parser.add_argument(
        "--rooms", nargs="+", default=ROOMS, help="folders or files of the compiler (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="no test files that take long")
    parser.add_argument("--again", action="store_true", help="those that were not caught once more")
    parser.add_argument("--list", action="store_true", help="print what survived, run nothing")
    options = parser.parse_args()
    found = (
        [Record(**r) for r in json.loads(options.results.read_text())] if options.results.is_file() else []
    )
    records = {r.key: r for r in found}
    if options.list:
        for r in records.values():
            if r.status == "survived":
                print(f"{r.key}   [{r.rows} rows, {r.changed} changed; {r.layers} layers]")
    else:
        if not options.lines.is_file():
            in_child(partial(written, options.lines), 7200)
        layers = options.lines.with_suffix(".layers.json")
        if not layers.is_file():
            in_child(partial(layers_of_mutant.written, layers), 7200)
        known = {**json.loads(options.lines.read_text()), "layers": json.loads(layers.read_text())}
        with tempfile.TemporaryDirectory(prefix="aot-model-mutants-") as folder:
            place = overlay(Path(folder))
            judge = Judge(place, known, options.limit, options.quick)
            known_equivalents = equivalents()
            for mutant in asked_for(options, found):
                at = place_of(mutant, PACKAGE)
                record = Record(at.file, at.code, at.after, mutant.line)
                listed = next((e for e in known_equivalents if e.fits(mutant, PACKAGE)), None)
                before = records.get(record.key)
                if before and not listed and not (options.again and before.status in ("survived", "open")):
                    continue
                if listed is not None:
                    record.status, record.reason = "equivalent", listed.reason
                else:
                    judge.judge(record, mutant)
                records[record.key] = record
                text = json.dumps([asdict(r) for r in records.values()], indent=1, ensure_ascii=False)
                options.results.write_text(text + "\n")
                print(
                    f"{len(records)}: {record.key}: {record.status} {record.by[:90]} ({record.seconds} s)",
                    flush=True,
                )
            judge.loaded.end()
    counts = Counter(r.status for r in records.values())
    told = f"{counts['caught']} caught, {counts['equivalent']} equivalent, {counts['survived']} not caught"
    told += f", {counts['open']} not judged" if counts["open"] else ""
    print(f"{len(records)} mutants: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
