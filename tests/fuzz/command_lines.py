"""Command lines at random, from what the parser declares: each ends with a status that says whose mistake it
is and with words about it, never with a traceback or an internal error.

    python tests/fuzz/command_lines.py --cases 1500 --seed 7
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from seeds import seeds

from aot_model.cli import main
from aot_model.cli.arguments import parser

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
SECONDS = 120
"""For each."""
TARGETS = (
    "c",
    "host",
    "cortex-m0",
    "cortex-m4",
    "cortex-m55",
    "cortex-m4,memory=l4-art",
    "cmsis-nn,cortex-m4",
    "json",
    "no-such-target",
)
WORDS = (
    *("", "0", "1", "-1", "8", "64k", "1.5M", "5%", "1.3x", "1e9", "nan", "99999999999999999999", "true"),
    *(
        "x",
        "--",
        "a,b",
        "a:b",
        "a=b",
        "x:0=3",
        "image=1",
        "image:0=2",
        "fast:4k",
        "memory=l4-art",
        "vector=v4",
    ),
    *(
        "none",
        "full",
        "workspace",
        "caller",
        "speed",
        "size",
        "model name",
        "ü",
        "%s",
        "{}",
        "\n",
        '"',
        "a" * 300,
    ),
    *("out", "out/z.json", "../x", "empty/y", "digits.onnx", "digits.npz", "network.tflite"),
    *("bad.json", "bad.npz", "bad.onnx", "bad.tflite", "bad.py", "empty"),
)
FILES = {
    "bad.json": '{"a": 1}',
    "bad.npz": "zz",
    "bad.onnx": "junk",
    "bad.tflite": "TFL3junk",
    "bad.py": "raise SystemExit(3)",
    "empty": "",
}
MODELS = ("digits.onnx", "network.tflite")


@dataclass(frozen=True)
class Fault:
    """A command line, and what is wrong with how it ended."""

    words: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return f"aot-model {shlex.join(self.words)}\n{self.what}"


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every subcommand."""
    actions = parser()._actions
    return dict(next(a for a in actions if isinstance(a, argparse._SubParsersAction)).choices)


def drawn(rng: random.Random, known: dict[str, argparse.ArgumentParser]) -> list[str]:
    """A command with arguments and some of its options, most values of the wrong kind."""
    name = rng.choice(sorted(known))
    words, options = [name], []
    for action in known[name]._actions:
        if action.option_strings:
            # --debug shows tracebacks: that is what it is for
            options += [] if {"-h", "--debug"} & set(action.option_strings) else [action]
        else:
            count = 1 if action.nargs in (None, "+", "?") else rng.randint(0, 2)
            words += [rng.choice(MODELS if rng.random() < 0.8 else WORDS) for _ in range(count)]
    for action in rng.sample(options, min(len(options), rng.choice((0, 1, 1, 2, 2, 3, 5)))):
        option = rng.choice(action.option_strings)
        count = (
            action.nargs if isinstance(action.nargs, int) else rng.randint(1, 2) if action.nargs == "+" else 1
        )
        values = [_value(rng, action) for _ in range(count)]
        if count == 1 and rng.random() < 0.5 and option.startswith("--"):
            words.append(f"{option}={values[0]}")
        else:
            words += [option, *values]
    return words


def _value(rng: random.Random, action: argparse.Action) -> str:
    if action.choices and rng.random() < 0.8:
        return str(rng.choice(list(action.choices)))
    if action.dest == "target":
        return rng.choice(TARGETS)
    if action.default not in (None, argparse.SUPPRESS) and rng.random() < 0.25:
        return str(action.default)
    return rng.choice(WORDS)


class Late(Exception):
    """It took too long."""


def fault_of(words: Sequence[str]) -> Fault | None:
    """What is wrong with how a command line ends, in this process and folder."""
    said = io.StringIO()
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status: object = main(list(words))
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        return Fault(tuple(words), traceback.format_exc()[-2000:])
    finally:
        signal.alarm(0)
    text = said.getvalue()
    internal = "Traceback" in text or ("E901" in text and words[0] != "explain")  # it lists the codes
    if status not in (0, 1, 2) or internal or (status and not text.strip()):
        return Fault(tuple(words), f"status {status}: {text[-2000:]}")
    return None


def _late(*_: object) -> None:
    raise Late


@contextlib.contextmanager
def folder_of_files() -> Iterator[None]:
    """A new working directory with models, vectors and files that are no such thing."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="aot-model-commands-") as outer:
        folder = Path(outer) / "here"  # what is written beside it goes too
        folder.mkdir()
        for name in ("digits.onnx", "digits.npz"):
            shutil.copy(DIGITS / name, folder)
        network = next(data for name, data in seeds() if name.endswith(".tflite"))
        (folder / "network.tflite").write_bytes(network)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def faults(seed: int, cases: int) -> list[Fault]:
    """Of so many command lines."""
    rng, known, found = random.Random(seed), commands(), []
    with folder_of_files():
        for _ in range(cases):
            fault = fault_of(drawn(rng, known))
            if fault is not None:
                found.append(fault)
    return found


def campaign(text: str, cases: int, what: str, judge: Callable[[int, int], list[Fault]]) -> int:
    """A command: prints what judge(seed, cases) finds. text: its description; what: a case is, in words."""
    options = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=cases)
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    found = judge(asked.seed, asked.cases)
    print(*found, sep="\n\n", end="\n" if found else "")
    print(f"{asked.cases} {what}, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(campaign(__doc__, 1500, "command lines", faults))
