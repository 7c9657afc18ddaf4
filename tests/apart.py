"""A function in a process of its own: runtimes end theirs for some of what does not fit, or never return."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

SECONDS = 60


class Apart:
    """The function; None where its process ended or took too long. What it raises is raised here."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._start()

    def _start(self) -> None:
        self._pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_find_modules, initargs=(sys.path,)
        )

    def __call__(self, argument: Any) -> Any:
        try:
            return self._pool.submit(self._function, argument).result(timeout=SECONDS)
        except (BrokenProcessPool, TimeoutError):
            for process in list(self._pool._processes.values()):
                process.kill()
            self._start()
        return None


def _find_modules(path: list[str]) -> None:
    sys.path[:] = path
