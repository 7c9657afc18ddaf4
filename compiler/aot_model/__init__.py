"""aot-model: compiles a trained network ahead of time into a plain C static library."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from aot_model.module import Module

__version__ = "0.1.0"


def load(path: str | Path, name: str | None = None) -> Module:
    """A model of a shared library that was built with --interface module; see aot_model.module.load()."""
    from aot_model import module  # imports numpy, which the command line does not wait for

    return module.load(path, name)
