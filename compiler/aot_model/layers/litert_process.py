"""LiteRT in a process of its own: for files that it cannot take it ends the one that it runs in.

python -m aot_model.layers.litert_process    answers requests on the standard input until that ends
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from aot_model.layers.reference import Key, Tensors


@dataclass(frozen=True)
class Request:
    """A run of a model: `constants` are inputs by index, `inputs` the others in their order."""

    model: bytes
    kernels: str
    constants: Tensors
    inputs: Sequence[np.ndarray]
    wanted: Collection[Key]


class Died(Exception):
    """The process has ended; the text says how, and what it said last."""


class Process:
    """Answers requests one after the other; it is started by the first, and again after it died."""

    def __init__(self) -> None:
        self._running: tuple[subprocess.Popen[bytes], IO[bytes]] | None = None

    def run(self, request: Request) -> Tensors:
        """The tensors that are wanted and there. RuntimeError with LiteRT's words; Died."""
        process, said = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            ok, answer = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._running = None
            raise Died(_end(process.wait(), said)) from None
        if not ok:
            raise RuntimeError(answer)
        return dict(answer)

    def _started(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._running is None:
            package = str(Path(__file__).resolve().parents[2])
            path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH")) if p)
            said = tempfile.TemporaryFile()  # noqa: SIM115
            process = subprocess.Popen(
                [sys.executable, "-m", "aot_model.layers.litert_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env={**os.environ, "PYTHONPATH": path},
            )
            weakref.finalize(self, _close, process)
            self._running = process, said
        return self._running


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # what was not sent to one that died
                continue
    process.wait()


def _end(code: int, said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    by = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return f"its process ended ({by}){': ' + lines[-1][:300] if lines else ''}"


def _run(request: Request) -> dict[Any, np.ndarray]:
    from ai_edge_litert import interpreter

    # An interpreter of its own for each vector: variables start afresh.
    run = interpreter.Interpreter(
        model_content=request.model,
        experimental_op_resolver_type=interpreter.OpResolverType[request.kernels],
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    given, constants = iter(request.inputs), request.constants
    feeds = {
        d["index"]: (d["shape"], constants[d["index"]] if d["index"] in constants else next(given))
        for d in run.get_input_details()
    }
    for index, (shape, array) in feeds.items():
        if tuple(shape) != array.shape:
            run.resize_tensor_input(index, array.shape)
    run.allocate_tensors()
    for index, (_, array) in feeds.items():
        run.set_tensor(index, array)
    run.invoke()
    found = {}
    for key in request.wanted:
        try:
            found[key] = np.array(run.get_tensor(key))
        except ValueError:  # it has no data: unused, or of a delegate
            continue
    return found


def main() -> None:
    """What LiteRT prints goes to the standard error, so that answers are alone on the standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: tuple[bool, object]
        try:
            answer = True, _run(request)
        except (RuntimeError, ValueError) as error:
            answer = False, str(error)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
