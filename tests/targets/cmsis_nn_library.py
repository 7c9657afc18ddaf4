"""CMSIS-NN as tests link it: the library itself where AOT_MODEL_CMSIS_NN_DIR names its sources, else the
stand-in.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

HERE = Path(__file__).parent / "cmsis_nn"
REAL = os.environ.get("AOT_MODEL_CMSIS_NN_DIR")
NAME = "CMSIS-NN" if REAL else "stand-in"
_FOLDERS = (
    "Activation BasicMath Concatenation Convolution FullyConnected LSTM NNSupport Pad Pooling "
    "Reshape SVD Softmax Transpose"
).split()


@dataclass(frozen=True)
class Library:
    """Compiler flags for code that calls the library, and an object file with all of it."""

    flags: tuple[str, ...]
    object: str


def library(*flags: str, compiler: str = "cc", real: bool = REAL is not None) -> Library:
    """The library for a processor's compiler flags."""
    return _built(compiler, flags, real)


@cache
def _built(compiler: str, flags: Sequence[str], real: bool) -> Library:
    folder = Path(mkdtemp(prefix="cmsis-nn-"))
    if not real:
        _run(
            folder,
            compiler,
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Werror",
            "-O1",
            *flags,
            f"-I{HERE}",
            "-c",
            str(HERE / "cmsis_nn.c"),
        )
        return Library((f"-I{HERE}",), str(folder / "cmsis_nn.o"))
    assert REAL is not None
    include = Path(REAL) / "Include"
    sources = [
        f for name in _FOLDERS for f in sorted((Path(REAL) / "Source" / f"{name}Functions").glob("*.c"))
    ]
    integer = [str(f) for f in sources if not f.stem.endswith(("_f16", "_f32", "_flt"))]
    _run(folder, compiler, "-O2", "-w", *flags, f"-I{include}", "-c", *integer)
    objects = sorted(f.name for f in folder.glob("*.o"))
    _run(folder, compiler, *flags, "-r", "-nostdlib", *objects, "-o", "cmsis_nn_all.o")
    return Library(("-isystem", str(include)), str(folder / "cmsis_nn_all.o"))


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
