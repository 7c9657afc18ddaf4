"""What is said only to people: on a terminal, and in colours where they are wanted."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator

PATIENCE = 2.0
"""Seconds before it is said that work goes on."""


def is_coloured() -> bool:
    """Whether the standard error has colours: a terminal, unless NO_COLOR (no-color.org) or TERM says no."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(message: str) -> str:
    """A message of errors with colours, where there are any."""
    if not is_coloured():
        return message
    message = re.sub(r"(?m)(^|: )error:", "\\1\033[1;31merror:\033[0m", message)
    return re.sub(r"(?m)^  hint:", "  \033[1;36mhint:\033[0m", message)


@contextlib.contextmanager
def patience(what: str) -> Iterator[None]:
    """Says on a terminal that long work goes on, and for how long, in a line that goes when it is done."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()

    def tell() -> None:
        began = time.monotonic()
        while not over.wait(PATIENCE if time.monotonic() - began < PATIENCE else 0.5):
            print(f"\r{what}: {time.monotonic() - began:.0f} s ", end="", file=sys.stderr, flush=True)
        if time.monotonic() - began >= PATIENCE:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
