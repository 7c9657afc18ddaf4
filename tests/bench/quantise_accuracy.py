#!/usr/bin/env python3
"""Accuracy of `aot-model quantise` beside the whole grid of onnxruntime.quantization and beside NNCF.

    pip install scikit-learn
    python -m venv nncf && nncf/bin/pip install nncf onnx onnxruntime     # it wants versions of its own
    python tests/bench/quantise_accuracy.py --nncf nncf/bin/python [--seeds 2] [--json FILE] [MODEL.onnx ...]
    python tests/bench/quantise_accuracy.py --ours --mixed [MODEL.onnx ...]     # without peers; minutes more

tests/bench/mobilenet_v2.onnx and the models given, which take an image of 8x8 pixels; then the network of
examples/digits, trained anew with each seed (plain numpy), the seeds pooled. All get the same 150 images to
calibrate with, and each tool's best is chosen on the same 300: the fewest changed answers, then decibels. The
rest is the test set: those digits and, for more samples, copies with noise. Copies that are moved by up to a
pixel as well are beyond what the networks have learnt (most of them are wrong there, and near to another
answer): their changed answers stand in a column of their own. Answers of others are ONNX Runtime's (literal
meaning, no optimisations), ours those of the generated library. Cycles and bytes are of a Cortex-M4, as
`aot-model time` estimates them (0ws); flash is code and constants.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from aot_model.cli.values import times
from aot_model.host.compiler import HostCompiler
from aot_model.quantise.candidates import Calibration
from aot_model.quantise.cost import Budget, Cost, Platform, cost_of
from aot_model.quantise.data import Samples
from aot_model.quantise.mixed import Change, mixed
from aot_model.quantise.prepare import prepared, read_float
from aot_model.quantise.refine import learned
from aot_model.quantise.score import built
from aot_model.quantise.session import Job, quantise

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "digits"))
Array = np.ndarray
CALIBRATION, HELD = 150, 300
WITHIN = ("cycles=1.3x", "1.3x")
NNCF = """
import itertools, sys
import nncf, numpy, onnx
path, data, folder = sys.argv[1:]
model = onnx.load(path)
port = model.graph.input[0]
name, shape = port.name, [d.dim_value for d in port.type.tensor_type.shape.dim]
samples = [{name: x.reshape(shape)} for x in numpy.load(data)]
for kind, preset, fast in itertools.product((None, "TRANSFORMER"), ("PERFORMANCE", "MIXED"), (True, False)):
    try:
        made = nncf.quantize(onnx.load(path), nncf.Dataset(samples), subset_size=len(samples),
                             fast_bias_correction=fast,
                             preset=nncf.QuantizationPreset[preset], model_type=kind and nncf.ModelType[kind])
        onnx.save(made, f"{folder}/{kind or 'plain'} {preset}{'' if fast else ' slow'}.onnx")
    except Exception as error:
        print(kind, preset, fast, type(error).__name__, error, file=sys.stderr)
"""


def digits(npz: Path | None) -> tuple[Array, Array]:
    if npz is not None:
        found = np.load(npz)
        return (found["images"][:, None] / 16).astype(np.float32), found["labels"]
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.images[:, None] / 16).astype(np.float32), data.target


def trained(images: Array, labels: Array, seed: int, folder: Path) -> Path:
    """The network of examples/digits on these images."""
    import train

    order = np.random.default_rng(seed).permutation(len(images))
    model = train.build_model(train.train(images[order], labels[order]))
    path = folder / f"digits{seed}.onnx"
    onnx.save(model, path)
    return path


def noisy(images: Array, seed: int) -> Array:
    """The images with noise of a twentieth of the range."""
    rng = np.random.default_rng(seed)
    return np.clip(images + rng.normal(0, 0.05, images.shape), 0, 1).astype(np.float32)


def moved(images: Array, seed: int) -> Array:
    """The images, moved by up to a pixel, with noise of a twentieth of the range."""
    rng = np.random.default_rng(seed)
    found = np.stack([np.roll(i, tuple(rng.integers(-1, 2, 2)), (1, 2)) for i in images])
    return np.clip(found + rng.normal(0, 0.05, found.shape), 0, 1).astype(np.float32)


def parted(samples: Array) -> tuple[Array, Array]:
    """Of a test set: what is like the digits that the networks learnt, and the third that is moved."""
    rest = len(samples) // 3 * 2
    return samples[:rest], samples[rest:]


def answers(path: Path | bytes, images: Array) -> Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path if isinstance(path, bytes) else str(path), options)
    port = session.get_inputs()[0]
    return np.stack([session.run(None, {port.name: x.reshape(port.shape)})[0].reshape(-1) for x in images])


class Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, name: str, shape: list[int], images: Array) -> None:
        self.rows = iter([{name: x.reshape(shape)} for x in images])

    def get_next(self) -> dict[str, Array] | None:
        return next(self.rows, None)


def grid(path: Path, calibration: Array, folder: Path) -> dict[str, Path]:
    """onnxruntime.quantization with every combination of its settings that matters."""
    ready = folder / "ready.onnx"
    quant_pre_process(str(path), str(ready), skip_symbolic_shape=True)
    port = onnxruntime.InferenceSession(str(ready)).get_inputs()[0]
    found = {}
    methods = (CalibrationMethod.MinMax, CalibrationMethod.Entropy, CalibrationMethod.Percentile)
    for method, symmetric, channel in product(methods, (False, True), (True, False)):
        name = f"{method.name}{' symmetric' if symmetric else ''}{' per channel' if channel else ''}"
        out = folder / f"{name}.onnx"
        more = {"ActivationSymmetric": symmetric, "WeightSymmetric": True}
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            quantize_static(
                str(ready),
                str(out),
                Reader(port.name, port.shape, calibration),
                quant_format=QuantFormat.QDQ,
                per_channel=channel,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=method,
                extra_options=more,
            )
            found[name] = out
    return found


def nncf(path: Path, calibration: Array, folder: Path, python: Path) -> dict[str, Path]:
    """NNCF with its presets, kinds of models and both bias corrections."""
    out = folder / "nncf"
    out.mkdir()
    np.save(folder / "calibration.npy", calibration)
    command = [str(python), "-c", NNCF, str(path), str(folder / "calibration.npy"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    found = {file.stem: file for file in sorted(out.glob("*.onnx"))}
    if not found:
        print(f"  NNCF failed: {done.stderr[-400:]}", file=sys.stderr)
    return found


def decibels(got: Array, want: Array) -> float:
    return float(10 * np.log10(np.square(want).sum() / max(np.square(got - want).sum(), 1e-30)))


def best_of(several: dict[str, Path], path: Path, held: Array) -> Path | None:
    """By changed answers on the held-back samples, then by decibels to the float model's."""
    wanted = answers(path, held)
    scores = {}
    for name, file in several.items():
        with contextlib.suppress(Exception):
            got = answers(file, held)
            scores[name] = ((got.argmax(1) != wanted.argmax(1)).mean(), -decibels(got, wanted))
    return several[min(scores, key=lambda n: scores[n])] if scores else None


class Bench:
    """One model and its samples."""

    def __init__(self, path: Path, calibration: Array, held: Array, test: Array, folder: Path) -> None:
        self.path, self.calibration, self.held, self.test, self.folder = path, calibration, held, test, folder
        self.port = onnxruntime.InferenceSession(str(path)).get_inputs()[0]
        for name, images in (("calibration", calibration), ("held", held)):
            np.savez(folder / f"{name}.npz", in_0=self._given(images))

    def _given(self, images: Array) -> Array:
        return images.reshape(len(images), *self.port.shape)

    def answers(
        self, python: Path | None, others: bool, mixes: bool
    ) -> Iterator[tuple[str, Array, Cost | None]]:
        """(tool, answers on the test set, cost of ours)."""
        yield "float", answers(self.path, self.test), None
        several = grid(self.path, self.calibration, self.folder) if others else {}
        if (found := best_of(several, self.path, self.held)) is not None:
            print(f"  onnxruntime: {found.stem}", file=sys.stderr)
            yield "onnxruntime's best of 12", answers(found, self.test), None
        if python is not None and others:
            several = nncf(self.path, self.calibration, self.folder, python)
            if (found := best_of(several, self.path, self.held)) is not None:
                print(f"  NNCF: {found.stem}", file=sys.stderr)
                yield "NNCF's best of 8", answers(found, self.test), None
        files = [self.folder / f"{part}.npz" for part in ("calibration", "held")]
        for name, wide in (("ours, 8 bits alone", 0.0), ("ours", 0.25)):
            yield name, *self._quantised(Job(self.path, files[0], holdout=str(files[1]), wide=wide))
        for within in WITHIN if mixes else ():
            budget, board = Budget(times=times(within)), Platform("cortex-m4")
            job = Job(self.path, files[0], holdout=str(files[1]), mixed=True, platform=board, budget=budget)
            yield f"ours, `--within {within}`", *self._quantised(job)
        yield "ours, weights of 4 bits", *self._ours(self._int4())

    def _quantised(self, job: Job) -> tuple[Array, Cost]:
        result = quantise(job, self.folder)
        print(f"  {result.rows[result.chosen].candidate.plan.method}", file=sys.stderr)
        return self._ours(result.model)

    def _int4(self) -> bytes:
        """All weights of layers in 4 bits, the rest as without 16 bits, by the best of all methods; rounding
        learnt."""
        model, _ = read_float(self.path, {}, {})
        samples = Samples({self.port.name: self._given(self.calibration)}, None, (), "")
        calibration = Calibration(prepared(model, self.folder, ""), samples, self.path)
        several = {}
        for base in calibration.all("auto"):
            names = dict.fromkeys(layer.weight for layer in base.source.choice.layers)
            narrow = mixed(calibration, base, tuple(Change("weights", n, "int4") for n in names))
            several[base.plan.method] = self.folder / f"{base.plan.method}.onnx"
            onnx.save(learned(calibration, narrow).model(""), several[base.plan.method])
        found = best_of(several, self.path, self.held)
        assert found is not None
        print(f"  4 bits: {found.stem}", file=sys.stderr)
        return found.read_bytes()

    def _ours(self, model: bytes) -> tuple[Array, Cost]:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        final = folder / "ours.onnx"
        final.write_bytes(model)
        samples = Samples({self.port.name: self._given(self.test)}, None, (), "")
        library = built(final, folder, HostCompiler.find(), {})
        outputs = [o.name for o in onnxruntime.InferenceSession(str(self.path)).get_outputs()]
        got = library.outputs(samples, outputs)[0].reshape(len(self.test), -1)
        return got, cost_of(final, folder, Platform("cortex-m4"), {}, samples)


Answers = dict[str, tuple[Array, Cost | None]]


def pooled(title: str, parts: list[Answers], labels: list[Array]) -> list[dict[str, object]]:
    """Rows of the table: parts of several seeds together, costs of the first."""
    names = [n for n in parts[0] if all(n in p for p in parts)]
    whole = {
        n: [np.concatenate(t) for t in zip(*(parted(p[n][0]) for p in parts), strict=True)] for n in names
    }
    known = [np.concatenate(t) for t in zip(*map(parted, labels), strict=True)]
    base = parts[0]["ours, 8 bits alone"][1]
    right = [float((w.argmax(1) == k).mean()) for w, k in zip(whole["float"], known, strict=True)]
    rows = []
    for name, got in whole.items():
        cost = parts[0][name][1]
        row: dict[str, object] = {"model": title, "samples": len(got[0]), "tool": name}
        row["drop"] = right[0] - float((got[0].argmax(1) == known[0]).mean())
        changed = [
            float((g.argmax(1) != w.argmax(1)).mean()) for g, w in zip(got, whole["float"], strict=True)
        ]
        row["changed"], row["changed_moved"] = changed
        row["snr"] = None if name == "float" else decibels(got[0], whole["float"][0])
        for key in ("cycles", "ram", "flash"):
            row[key] = None if cost is None or base is None else getattr(cost, key) / getattr(base, key)
        row["accuracy"], row["accuracy_moved"] = right
        rows.append(row)
    return rows


def line(row: dict[str, object]) -> str:
    def cell(key: str, form: str) -> str:
        return "" if row[key] is None else format(row[key], form)

    costs = " | ".join(cell(key, ".2f") for key in ("cycles", "ram", "flash"))
    if row["tool"] == "float":
        right = f"float, {row['accuracy']:.2%} right, {row['accuracy_moved']:.0%} where moved"
        return f"| {row['model']}, {row['samples']:,} samples | {right} | | | | | | | |"
    lost = f"{100 * float(row['drop']):+.2f}"  # type: ignore[arg-type]
    answers = f"{cell('changed', '.2%')} | {cell('snr', '.1f')} | {cell('changed_moved', '.2%')}"
    return f"| | {row['tool']} | {lost} | {answers} | {costs} |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("models", nargs="*", type=Path)
    arguments.add_argument("--seeds", type=int, default=2)
    arguments.add_argument("--nncf", type=Path, help="the Python that has NNCF")
    arguments.add_argument("--ours", action="store_true", help="without the other tools")
    arguments.add_argument("--mixed", action="store_true", help="mixed precision, too, which takes minutes")
    arguments.add_argument("--json", type=Path, help="write the rows")
    arguments.add_argument("--digits", type=Path, help=".npz of images and labels, instead of scikit-learn's")
    given = arguments.parse_args()
    logging.disable(logging.WARNING)
    images, labels = digits(given.digits)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order]
    rows: list[dict[str, object]] = []
    print("| model | tool | points lost | changed answers | SNR (dB) | where moved | cycles | RAM | flash |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")

    def whole(start: int, seed: int) -> tuple[Array, Array]:
        rest, known = images[start:], labels[start:]
        return np.concatenate([rest, noisy(rest, seed), moved(rest, seed)]), np.concatenate([known] * 3)

    def done(title: str, parts: list[Answers], known: list[Array]) -> None:
        found = pooled(title, parts, known)
        print("\n".join(map(line, found)), flush=True)
        rows.extend(found)

    with tempfile.TemporaryDirectory() as scratch:

        def one(path: Path, a: Array, b: Array, test: Array) -> Answers:
            bench = Bench(path, a, b, test, Path(tempfile.mkdtemp(dir=scratch)))
            return {
                name: (got, cost)
                for name, got, cost in bench.answers(given.nncf, not given.ours, given.mixed)
            }

        for path in [HERE / "mobilenet_v2.onnx", *given.models]:
            start = CALIBRATION + HELD
            test, known = whole(start, 1)
            done(path.stem, [one(path, images[:CALIBRATION], images[CALIBRATION:start], test)], [known])
        parts, right = [], []
        for seed in range(given.seeds):  # they learn from 1,000 digits; 797 are new
            path = trained(images[:1000], labels[:1000], seed, Path(scratch))
            test, known = whole(1000, seed + 2)
            parts.append(one(path, images[:CALIBRATION], images[CALIBRATION : CALIBRATION + HELD], test))
            right.append(known)
        if parts:
            done(f"examples/digits, {given.seeds} seeds", parts, right)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    main()
