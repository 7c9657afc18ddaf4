"""The truth: a quantised model compiled, built for this machine and run, its answers beside the float
model's.

The integers are those of firmware: the kernels of all processors compute the same ones.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.errors import fail
from aot_model.host.compiler import HostCompiler
from aot_model.host.program import HostProgram, build
from aot_model.pipeline import Request, compile_model
from aot_model.quantise.data import Samples

Array = np.ndarray
Metric = Callable[[list[Array], list[Array], Array | None], float]
"""(outputs, those of the float model, labels) -> a number, more is better."""


def top1(outputs: list[Array], reference: list[Array], labels: Array | None) -> float:
    """The share of right answers; without labels, of answers that are the float model's."""
    answers = classes(outputs[0])
    right = classes(reference[0]) if labels is None else labels.astype(answers.dtype)
    return float((answers == (right if answers.ndim == 1 else right.reshape(answers.shape))).mean())


def classes(output: Array) -> Array:
    """The largest element of each row; of one number, whether it is in the upper half of 0 and 1; a whole
    number is the class."""
    rows = output.reshape(len(output), -1)
    if output.dtype.kind in "iu" and rows.shape[1] == 1:
        return rows[:, 0]  # the model chooses by itself
    return np.asarray(rows.argmax(axis=1) if rows.shape[1] > 1 else (rows[:, 0] > 0.5).astype(np.int64))


def mse(outputs: list[Array], reference: list[Array], labels: Array | None) -> float:
    """Minus the mean squared difference from the float model's."""
    return -float(
        np.mean([np.square(a.astype(np.float64) - b).mean() for a, b in zip(outputs, reference, strict=True)])
    )


def cosine(outputs: list[Array], reference: list[Array], labels: Array | None) -> float:
    """The mean cosine between outputs and the float model's."""
    found = []
    for a, b in zip(outputs, reference, strict=True):
        x, y = a.reshape(len(a), -1).astype(np.float64), b.reshape(len(b), -1).astype(np.float64)
        size = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        found.append(
            np.where(size > 0, (x * y).sum(axis=1) / np.where(size > 0, size, 1), (x == y).all(axis=1)).mean()
        )
    return float(np.mean(found))


def lost(outputs: list[Array], reference: list[Array], labels: Array | None) -> float:
    """Minus the noise in the outputs, as a share of their power."""
    return -noise(outputs, reference)


METRICS: dict[str, Metric] = {"top1": top1, "mse": mse, "cosine": cosine, "noise": lost}


def usual(samples: Samples, reference: Sequence[Array]) -> str:
    """The metric for such outputs when the user names none: answers where they are of classes, else
    closeness."""
    first = reference[0]
    shape = tuple(n for n in first.shape[1:] if n != 1)
    if samples.labels is not None:
        return "top1"
    if len(reference) > 1 or len(shape) > 1:
        return "noise"
    if first.dtype.kind in "iu":
        return "top1"
    if not shape:  # one number: a probability, or a quantity
        return "top1" if first.size and first.min() >= 0 and first.max() <= 1 else "noise"
    again = any(tuple(n for n in a.shape[1:] if n != 1) == shape for a in samples.inputs.values())
    return "noise" if again else "top1"


def metric(text: str) -> tuple[Metric, tuple[Path, ...]]:
    """A metric by its name, or `python:file.py:function`; the files that it is in. CompileError E501."""
    if text in METRICS:
        return METRICS[text], ()
    kind, _, rest = text.partition(":")
    file, _, function = rest.rpartition(":")
    if kind != "python" or not file:
        raise fail(
            "E501",
            f"there is no metric '{text}'",
            hint=f"there are {', '.join(METRICS)}, python:FILE.py:FUNCTION",
        )
    try:
        spec = importlib.util.spec_from_file_location("aot_model_metric", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found: Any = getattr(module, function)
    except (Exception, SystemExit) as error:
        raise fail("E501", f"the metric {text} cannot be loaded: {error}") from None

    def checked(outputs: list[Array], reference: list[Array], labels: Array | None) -> float:
        try:
            value = float(found(outputs, reference, labels))
        except (Exception, SystemExit) as error:
            raise fail("E501", f"the metric {text} failed: {type(error).__name__}: {error}") from None
        if not np.isfinite(value):
            raise fail("E501", f"the metric {text} gave {value}")
        return value

    return checked, (Path(file),)


@dataclass(frozen=True)
class Score:
    """How a quantised model answers, by samples whose answers the float model gave."""

    value: float
    changed: float
    """The share of samples with another largest output than the float model's."""
    snr: float
    """Of all outputs, in dB: more is closer to the float model."""
    samples: int


def noise(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    """As a share of the signal's power, the mean of all outputs; numbers of elements and the like, which are
    no signals, do not count beside others."""
    pairs = list(zip(outputs, reference, strict=True))
    signals = [(a, b) for a, b in pairs if b.dtype.kind == "f"] or pairs
    powers = [float(np.square(b.astype(np.float64)).mean()) for _, b in signals]
    least = max(1e-6 * max(powers), 1e-30)
    found = [
        float(np.square(a.astype(np.float64) - b).mean()) / max(power, least)
        for (a, b), power in zip(signals, powers, strict=True)
    ]
    return float(np.mean(found))


def snr(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    return -10 * float(np.log10(np.maximum(noise(outputs, reference), 1e-15)))


def score(outputs: list[Array], reference: list[Array], labels: Array | None, by: Metric) -> Score:
    pairs = [(a, b) for a, b in zip(outputs, reference, strict=True) if a.shape == b.shape]
    if not pairs:
        raise fail("E104", "no output has as many elements as the float model's: none can be compared")
    outputs, reference = [a for a, _ in pairs], [b for _, b in pairs]  # bounds leave room behind the others
    changed = float((classes(outputs[0]) != classes(reference[0])).mean())
    return Score(by(outputs, reference, labels), changed, snr(outputs, reference), len(outputs[0]))


@dataclass(frozen=True)
class Built:
    """A library of this machine, and what it would need."""

    program: HostProgram

    @property
    def ram(self) -> int:
        return self.program.view.workspace_size

    @property
    def flash(self) -> int:
        return self.program.view.constant_bytes

    def outputs(self, samples: Samples, wanted: Sequence[str]) -> list[Array]:
        """Of each sample, from a fresh state: the model's own, not those that count rows."""
        names = list(samples.inputs)
        vectors = [[samples.inputs[n][k] for n in names] for k in range(samples.count)]
        once = bool(self.program.view.program.states)
        rows = [self.program.run([v])[0] for v in vectors] if once else self.program.run(vectors)
        made = [p.buffer.name for p in self.program.view.outputs]
        return [np.stack([row[made.index(name)] for row in rows]) for name in wanted]


def built(model: Path, folder: Path, compiler: HostCompiler, bounds: Mapping[str, int]) -> Built:
    """The model compiled for this machine, and built."""
    request = Request(model, "scored", "host", compiler.fitted("host", {}), bounds=bounds)
    compiled = compile_model(request)
    return Built(build(compiled.view, compiled.texts, folder, compiler=compiler, level="-O1"))
