"""The matrix of compilers and flags: programs that the compiler generates, built by many C compilers and
judged by oracles.

    python tests/matrix.py --list                       the columns (compilers with flags), those missing here
                                                        with the reason
    python tests/matrix.py --results all.jsonl          everything: many hours; again with the same file it
                                                        goes on where it was
    python tests/matrix.py --results all.jsonl --new    what the record (tests/compilers/record.json) has
                                                        not got of the same programs
    python tests/matrix.py --results all.jsonl --keep   the record has it from now on; runs nothing
    python tests/matrix.py --only 'gcc-12 -O2*' --units 'graphs/*,kernels/*'
    python tests/matrix.py --slice 17 --minutes 6       what CI runs for its 17th commit
    python tests/matrix.py --random seed 500            flags that nobody thought of, a program for each set
    python tests/matrix.py --results all.jsonl --table  a table of what is there; runs nothing

Rows are units: programs of many small models (cases of the conformance suite of onnx, samples of the
operators, random graphs), random networks, kernels of every family, the models of the corpus. Columns are
compilers with flags; each takes the code (`aot-model --target`) that fits it: `c` always, and vectors, DSP
or MVE where the flags allow. The exit status is 1 when anything is wrong, crashes or does not compile; what
is off in every column is no matter of compilers: it is said, and left to the tests of operators and models.
A slice does first what the record has not got, and with what time is left the rest.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import random
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from compilers import record, results
from compilers.cells import Cell, run_cell
from compilers.columns import Column, columns, missing
from compilers.groups import Unit, units
from compilers.models import LeftOut
from compilers.random_flags import random_columns

SLICES = 30
"""So many commits give every unit and every column a turn."""
TURNS = 4
"""Of the columns that a unit fits, one in so many has it in a slice; after SLICES * TURNS commits all had it.
"""


@dataclass(frozen=True)
class Task:
    """A unit for one kind of code, and the columns to build it in."""

    unit: Unit
    target: str
    columns: tuple[Column, ...]
    known: frozenset[tuple[str, str]]
    """(column, digest of the program) of results that there are."""
    end: float
    """Point in time after which no cell begins."""


@dataclass(frozen=True)
class Done:
    cells: tuple[Cell, ...] = ()
    left_out: tuple[str, ...] = ()
    late: int = 0
    error: str = ""


ROWS: dict[str, Unit] = {}


def work(
    label: str, target: str, fitting: Sequence[Column], known: frozenset[tuple[str, str]], end: float
) -> Done:
    """In a process of its own: generate the unit, then build and run it in each column."""
    unit = ROWS[label]
    if time.time() > end:
        return Done(late=len(fitting))
    with tempfile.TemporaryDirectory(prefix="aot-model-matrix-") as folder:
        try:
            program = unit.build(target, Path(folder))
        except LeftOut as reason:
            return Done(left_out=(f"{label} [{target}]: {reason}",))
        except Exception:
            return Done(error=f"{label} [{target}]: {traceback.format_exc(limit=-5)}")
        if program is None:
            return Done()
        digest = program.digest()
        found, late = [], 0
        for column in fitting:
            if (column.name, digest) in known:
                continue
            if time.time() > end:
                late += 1
                continue
            found.append(run_cell(column, target, label, program, digest))
        return Done(tuple(found), tuple(f"{label} [{target}] {text}" for text in program.left_out), late)


@dataclass(frozen=True)
class Choice:
    """What the command line asks for. columns, units: shell patterns, with commas; code: with
    semicolons. turn, part: of the units, and of the cells, the k-th of n parts, counted from 0.
    """

    columns: str = "*"
    units: str = "*"
    code: str = "*"
    turn: tuple[int, int] = (0, 1)
    part: tuple[int, int] = (0, 1)
    order: str = ""
    """Another order of the units for another text."""

    def for_commit(self, number: int) -> Choice:
        """The slice for a commit; in another order each time, since time ends some before the last unit."""
        return replace(
            self, turn=(number % SLICES, SLICES), part=(number // SLICES % TURNS, TURNS), order=str(number)
        )

    def has_column(self, name: str) -> bool:
        return _matches(name, self.columns)

    def has_unit(self, label: str) -> bool:
        return _matches(label, self.units) and _drawn(label, self.turn)

    def has_cell(self, label: str, column: str, code: str) -> bool:
        return _matches(code, self.code, ";") and _drawn(f"{label} {column} {code}", self.part)


def chosen(
    rows: Iterable[Unit], present: Sequence[Column], choice: Choice
) -> Iterator[tuple[Unit, str, list[Column]]]:
    """Units, the code, and the columns to build it in; units in an order that is drawn, so that a run that is
    ended early has seen some of each kind.
    """
    wanted = [c for c in present if choice.has_column(c.name)]
    for unit in sorted(rows, key=lambda u: hashlib.sha256(f"{choice.order} {u.label}".encode()).digest()):
        if not choice.has_unit(unit.label):
            continue
        by: dict[str, list[Column]] = defaultdict(list)
        for column in wanted:
            if not (unit.little_endian and column.big_endian):
                for code in column.targets:
                    if choice.has_cell(unit.label, column.name, code):
                        by[code].append(column)
        yield from ((unit, code, fitting) for code, fitting in by.items())


def drawn(
    rows: Sequence[Unit], made: Iterable[Column], seed: str
) -> Iterator[tuple[Unit, str, list[Column]]]:
    """For columns of random flags: one unit each, for all code that fits: that for a host is often nothing
    but that for `c`.
    """
    rng = random.Random(seed)
    for column in made:
        unit = rng.choice([u for u in rows if not (u.little_endian and column.big_endian)])
        yield from ((unit, code, [column]) for code in column.targets)


def _matches(name: str, patterns: str, between: str = ",") -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns.split(between))


def _drawn(name: str, part: tuple[int, int]) -> bool:
    """Whether a name is in the k-th of n parts."""
    number, parts = part
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % parts == number


def _quiet() -> None:
    """ONNX Runtime says at length what it cannot compute; nobody asked."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)


def run(
    tasks: Sequence[tuple[Unit, str, list[Column]]],
    known: Iterable[record.Key],
    jobs: int,
    end: float,
    path: Path | None,
) -> tuple[list[Cell], list[str], list[str], int]:
    """(cells, what was left out, errors of our own, cells for which there was no time). known: cells that are
    not run.
    """
    before: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for column, target, unit, digest in known:
        before[unit, target].add((column, digest))
    cells, left_out, errors, late = [], [], [], 0
    with ProcessPoolExecutor(jobs, initializer=_quiet) as pool:
        futures = [
            pool.submit(work, u.label, t, fitting, frozenset(before[u.label, t]), end)
            for u, t, fitting in tasks
        ]
        for number, future in enumerate(as_completed(futures), 1):
            done = future.result()
            cells += done.cells
            left_out += done.left_out
            errors += [done.error] if done.error else []
            late += done.late
            if path:
                results.append(path, done.cells)
            for cell in done.cells:
                if cell.status in results.BAD:
                    print(
                        f"{cell.unit} [{cell.target}] {cell.column}: {cell.status}: {str(cell.faults)[:400]}",
                        flush=True,
                    )
            if number % 20 == 0:
                print(
                    f"  {number} of {len(futures)} programs, {len(cells):,} cells",
                    file=sys.stderr,
                    flush=True,
                )
    return cells, left_out, errors, late


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="list columns and units, and run nothing")
    parser.add_argument(
        "--only", default="*", metavar="PATTERNS", help="shell patterns of columns, with commas"
    )
    parser.add_argument(
        "--units", default="*", metavar="PATTERNS", help="shell patterns of units, with commas"
    )
    parser.add_argument(
        "--target", default="*", metavar="PATTERNS", help="shell patterns of the code, with semicolons"
    )
    parser.add_argument(
        "--part", default="0/1", metavar="K/N", help="of the cells the K-th of N parts, counted from 0"
    )
    parser.add_argument(
        "--slice",
        type=int,
        metavar="N",
        help=f"the part for commit N: over {SLICES} commits every unit and every column has its turn",
    )
    parser.add_argument(
        "--minutes", type=float, default=1e9, help="begin nothing after so many; what is left is counted"
    )
    parser.add_argument(
        "--random",
        nargs=2,
        metavar=("SEED", "COUNT"),
        help="so many columns of random flags, a program each, instead of those of the list",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--results",
        type=Path,
        metavar="JSONL",
        help="results are added to it; those that are there and still hold are not computed again",
    )
    parser.add_argument(
        "--new", action="store_true", help="leave out what the record has of the same programs"
    )
    parser.add_argument(
        "--keep", action="store_true", help="add what is right in --results to the record, and run nothing"
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="print the record and --results as a table in Markdown, and run nothing",
    )
    return parser.parse_args()


def _choice(options: argparse.Namespace) -> Choice:
    number, _, parts = options.part.partition("/")
    choice = Choice(options.only, options.units, options.target, part=(int(number), int(parts)))
    return choice if options.slice is None else choice.for_commit(options.slice)


def _list(rows: Sequence[Unit], absent: Mapping[str, str]) -> None:
    for column in columns():
        print(
            f"{column.name}: "
            f"{f'missing: {absent[column.name]}' if column.name in absent else ', '.join(column.targets)}"
        )
    print(f"{len(rows)} units: {dict(Counter(u.group for u in rows))}")


def main() -> int:
    options = _options()
    rows = units()
    ROWS.update({u.label: u for u in rows})
    absent = {c.name: reason for c in columns() if (reason := missing(c))}
    present = [c for c in columns() if c.name not in absent]
    known = list(results.read(options.results).values()) if options.results else []
    recorded = record.read()
    if options.list:
        _list(rows, absent)
        return 0
    if options.keep:
        print(f"{record.add(known):,} cells in {record.PATH.name}")
        return 0
    if options.table:
        planned = {(c.name, t): len(rows) for c in present for t in c.targets}
        last = {(c.column, c.target, c.unit): c for c in [*recorded, *known]}
        print(results.markdown(columns(), last, absent, planned))
        return 0
    start = time.time()
    choice = _choice(options)
    if options.random:
        seed, number = options.random[0], int(options.random[1])
        tasks = list(drawn(rows, random_columns(seed, number), seed))
    else:
        tasks = list(chosen(rows, present, choice))
    for name, reason in absent.items():
        if choice.has_column(name):
            print(f"missing: {name}: {reason}")
    skipped = {record.key(c) for c in known}
    if options.new or options.slice is not None:
        skipped |= {record.key(c) for c in recorded}
    end = start + 60 * options.minutes
    cells, left_out, errors, late = run(tasks, skipped, options.jobs, end, options.results)
    if options.slice is not None and not late:
        # What the record has may still fail here: other releases of compilers, another processor.
        again, _, more, _ = run(tasks, {record.key(c) for c in cells}, options.jobs, end, options.results)
        cells, errors = cells + again, errors + more
    count = Counter(c.status for c in cells)
    faults = results.everywhere(cells)
    bad = [
        c for c in cells if c.status in results.BAD and any((c.unit, case) not in faults for case in c.faults)
    ]
    print(*errors, sep="\n", end="\n" if errors else "")
    print(
        f"{sum(c.cases for c in cells):,} cases in {len(cells):,} cells of {len({c.column for c in cells})} "
        f"columns in {time.time() - start:.0f} s: {dict(count)}; "
        f"{late} cells had no time, {len(left_out)} cases left out, {len(faults)} faults in every column, "
        f"{len(errors)} errors of this tool"
    )
    return 1 if bad or errors else 0


if __name__ == "__main__":
    sys.exit(main())
