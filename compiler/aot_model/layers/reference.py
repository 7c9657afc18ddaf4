"""What a reference implementation of a model file gives: the file's nodes, and the value of any of its
tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aot_model.errors import CompileError, fail

Key = str | int
"""Of a tensor: its name in ONNX, its number in TFLite."""
Tensors = Mapping[Key, np.ndarray]


@dataclass(frozen=True)
class FileNode:
    """A node of the model file, its tensors by key."""

    name: str
    kind: str
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]


class Reference(Protocol):
    """A reference implementation that has loaded a model."""

    @property
    def title(self) -> str:
        """Its name, version and settings."""

    @property
    def clamps(self) -> bool:
        """Whether results beyond the largest number are that number, where the program has infinities."""

    @property
    def share(self) -> float:
        """The share of their range that floats may be off because the reference rounds more than the program
        does; 0 where it does not.
        """

    @property
    def nodes(self) -> Sequence[FileNode]:
        """The file's nodes, in the order in which they run."""

    @property
    def outputs(self) -> Sequence[Key]:
        """The file's outputs."""

    def run(self, inputs: Sequence[np.ndarray], wanted: Sequence[Key]) -> Tensors:
        """Tensors for one vector of inputs; those that it does not have are left out."""

    def run_apart(self, inputs: Sequence[np.ndarray], given: Tensors) -> Tensors | None:
        """The tensors of `given`, each computed from the others in it rather than from what the reference
        itself has for them: what each layer should make of the inputs that it got. None where the
        implementation cannot."""


def missing(package: str, why: str) -> CompileError:
    """A package that is optional is needed now."""
    return fail(
        "E902", f"{why} needs the package {package}, which is not installed", hint=f"pip install {package}"
    )
