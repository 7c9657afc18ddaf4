"""aot-model: compiles a trained network ahead of time into a plain C static library."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aot_model.library.metadata import Metadata
    from aot_model.library.module import load, models

__all__ = ["Metadata", "load", "models"]
__version__ = "0.1.0"

_PLACES = {
    "Metadata": "aot_model.library.metadata",
    "load": "aot_model.library.module",
    "models": "aot_model.library.module",
}


def __getattr__(name: str) -> Any:
    """These import numpy, which the command line does not wait for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'aot_model' has no attribute '{name}'")
    return getattr(importlib.import_module(_PLACES[name]), name)
