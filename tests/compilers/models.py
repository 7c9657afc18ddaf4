"""Real models as units of the matrix: the corpus of the tests, and networks from outside where their folder
is there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import corpus
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from translation_unit import Generated, driver

from .judge import Expectation, Tolerance
from .program import Program, program_of

LARGEST_C = 12_000_000
"""Bytes of C that compile in reasonable time at all levels."""

NOISE = 5e-7
"""Absolute: a few units in the last place of 1.0."""

_FOREIGN = Path(
    os.environ.get("AOT_MODEL_FOREIGN", Path(__file__).resolve().parents[3] / "shared" / "foreign")
)


class LeftOut(Exception):
    """Why a model is not in the matrix."""


def model_units() -> Iterator[tuple[str, str]]:
    """(group, file) of all models that have vectors."""
    yield from (("models", file) for file, row in sorted(corpus.index().items()) if row["vectors"])
    yield from (("foreign", file) for file in sorted(_foreign()))


@cache
def _foreign() -> dict[str, dict[str, Any]]:
    return (
        {row["file"]: row for row in json.loads((_FOREIGN / "index.json").read_text())}
        if (_FOREIGN / "index.json").exists()
        else {}
    )


def model_program(group: str, file: str, target: str, folder: Path) -> Program:
    """The program of a model's first vector. LeftOut when the compiler refuses the model, or its C is too
    long.
    """
    path = _path(group, file)
    options, dims = _arguments(group, file)
    try:
        compiled = compile_model(Request(path, "m0", target, options, dims, library=Options()))
    except CompileError as error:
        raise LeftOut(str(error).splitlines()[0].replace(str(path), file)[:200]) from None
    view, texts = compiled.view, compiled.texts
    if len(texts["m0.c"]) > LARGEST_C:
        raise LeftOut(f"{len(texts['m0.c']):,} bytes of C")
    item = Generated(
        "m0",
        texts["m0.c"],
        texts["m0.h"],
        driver(view),
        tuple(view.helpers),
        tuple((p.buffer.name, p.buffer.type.dtype.label, p.buffer.type.shape) for p in view.outputs),
    )
    with np.load(path.with_name(path.name + ".npz")) as data:
        inputs = tuple(data[f"in_{k}"][0] for k in range(len(view.inputs)))
        wanted = tuple(data[f"out_{k}"][0].reshape(p.buffer.type.shape) for k, p in enumerate(view.outputs))
        oracles = [wanted]
        if any(f"opt_out_{k}" in data for k in range(len(wanted))):
            oracles.append(
                tuple(
                    data[f"opt_out_{k}"][0].reshape(w.shape) if f"opt_out_{k}" in data else w
                    for k, w in enumerate(wanted)
                )
            )
    oracles = [tuple(w.astype(object) if w.dtype.kind in "SU" else w for w in oracle) for oracle in oracles]
    rule = _tolerance_of_foreign if group == "foreign" else _tolerance_of_model
    return program_of(
        folder,
        [item],
        [inputs],
        [Expectation(file, tuple(oracles), tuple(rule(file, w) for w in wanted), rounds(texts["m0.c"]))],
        macs=view.macs,
    )


TO_INTEGERS = re.compile(r"aot_model_(quantise_r|rint_|round_(by|quotient|sum)|float(16|32|64)_to_u?int)")
"""Functions of floats that become integers: divided by a number or not, with or without saturation."""


def rounds(text: str) -> bool:
    """Whether C makes integers of floats."""
    return TO_INTEGERS.search(text) is not None


def _path(group: str, file: str) -> Path:
    return (_FOREIGN if group == "foreign" else corpus.MODELS or Path()) / file


def _arguments(group: str, file: str) -> tuple[dict[str, str], dict[str, int]]:
    """Options of the target, and dimensions."""
    if group == "models":
        # Where TensorFlow Lite Micro cannot run a model, its vectors are those of LiteRT's reference kernels.
        row = corpus.index()[file]
        with np.load(_path(group, file + ".npz")) as data:
            given = [data[f"in_{k}"][0].shape for k in range(len(row["inputs"]))]
        return (
            {"arithmetic": "litert-ref"} if (row.get("tflm") or {}).get("error") else {},
            {
                axis: length
                for i, shape in zip(row["inputs"], given, strict=True)
                for axis, length in zip(i["shape"], shape, strict=True)
                if isinstance(axis, str)
            },
        )
    words = _foreign()[file]["verify"]
    pairs = list(zip(words[::2], words[1::2], strict=True))
    options = dict(text.split("=", 1) for flag, text in pairs if flag == "--option")
    return options, {
        k: int(v) for k, _, v in (text.rpartition("=") for flag, text in pairs if flag == "--dim")
    }


def _tolerance_of_model(file: str, want: np.ndarray) -> Tolerance:
    """As the tests of the corpus have it (tests/test_models.py): integers of TFLite exactly, quantised ONNX
    within a step; float16 as `aot-model verify` has it.
    """
    extent = float(np.max(np.abs(want), initial=0.0)) if want.dtype.kind in "fiub" else 0.0
    quantised = any(
        o.startswith(("QLinear", "DequantizeLinear", "QuantizeLinear", "com.microsoft.Q"))
        for o in corpus.index()[file]["ops"]
    )
    if file.endswith(".tflite"):
        return Tolerance(0.0, 1e-3 * max(extent, 1e-9)) if want.dtype.kind == "f" else Tolerance()
    if not quantised:
        step = 2.0**-10 if want.dtype == np.float16 else 1e-4
        return Tolerance(1e-3, max(step * extent, NOISE))
    gaps = np.diff(np.unique(want.ravel())) if want.dtype.kind == "f" else np.ones(1)
    gaps = gaps[gaps > 1e-7]
    step = float(gaps.min()) if gaps.size else extent or 1.0
    return Tolerance(0.0, 1.001 * 3 * step, 0.999, integers=True)


def _tolerance_of_foreign(file: str, want: np.ndarray) -> Tolerance:
    """That of `aot-model verify`, or half as much again as the runtime's own executions are apart."""
    finite = want[np.isfinite(want)] if want.dtype.kind == "f" else np.zeros(0)
    uncertainty = 1.5 * float(_foreign()[file]["ref_vs_optimised"] or 0.0)
    return Tolerance(
        1e-3, max(1e-4 * float(np.max(np.abs(finite), initial=0.0)), uncertainty), integers=uncertainty >= 1.0
    )
