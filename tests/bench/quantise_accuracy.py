#!/usr/bin/env python3
"""Accuracy of `aot-model quantise` beside onnxruntime.quantization's whole grid, choices made on the same
held-back samples.

    pip install scikit-learn
    python tests/bench/quantise_accuracy.py [--seeds 4] [MODEL.onnx ...]

Without models: the network of examples/digits, trained anew with each seed (plain numpy) on another 900 of
the 1,797
digits; 300 calibrate and choose (those are no test samples), the rest is the test set, reported once,
pooled over the
seeds. With models that take an image of 8x8 pixels: theirs are the answers, and the test set is every digit
and its
copies, moved by one pixel, with noise. Both quantisers are scored with ONNX Runtime's literal meaning for
its own models
and with our library for ours.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
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

from aot_model.host.compiler import HostCompiler
from aot_model.quantise.data import Samples
from aot_model.quantise.score import built
from aot_model.quantise.session import Job, quantise

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "digits"))
Array = np.ndarray


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

    train.TRAINING_IMAGES = len(images)
    order = np.random.default_rng(seed).permutation(len(images))
    model = train.build_model(train.train(images[order], labels[order]))
    path = folder / f"digits{seed}.onnx"
    onnx.save(model, path)
    return path


def moved(images: Array, seed: int) -> Array:
    """The images, moved by up to a pixel, with noise of a tenth of the range."""
    rng = np.random.default_rng(seed)
    found = np.stack([np.roll(i, tuple(rng.integers(-1, 2, 2)), (1, 2)) for i in images])
    return np.clip(found + rng.normal(0, 0.05, found.shape), 0, 1).astype(np.float32)


def answers(path: Path | bytes, images: Array) -> Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
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


def decibels(got: Array, want: Array) -> float:
    return float(10 * np.log10(np.square(want).sum() / np.square(got - want).sum()))


def one(
    path: Path, calibration: Array, held: Array, test: Array, labels: Array | None, folder: Path
) -> dict[str, Array]:
    """Answers of the float model and of each quantiser's best on the test set."""
    want_held, want = answers(path, held), answers(path, test)
    scored = {}
    for name, file in grid(path, calibration, folder).items():
        got = answers(file, held)
        scored[name] = ((got.argmax(1) != want_held.argmax(1)).mean(), -decibels(got, want_held))
    best = min(scored, key=lambda name: scored[name])
    files = {"calibration": calibration, "held": held}
    port = onnxruntime.InferenceSession(str(path)).get_inputs()[0]
    for name, images in files.items():
        np.savez(folder / f"{name}.npz", in_0=images.reshape(len(images), *port.shape))
    job = Job(path, folder / "calibration.npz", holdout=str(folder / "held.npz"))
    result = quantise(job, folder)
    final = folder / "ours.onnx"
    final.write_bytes(result.model)
    library = built(final, Path(tempfile.mkdtemp(dir=folder)), HostCompiler.find(), {})
    given = test.reshape(len(test), *port.shape)
    outputs = [o.name for o in onnxruntime.InferenceSession(str(path)).get_outputs()]
    ours = library.outputs(Samples({port.name: given}, None, (), ""), outputs)[0].reshape(len(test), -1)
    print(
        f"  onnxruntime's best: {best}; ours: {result.rows[result.chosen].candidate.plan.method}", flush=True
    )
    return {"float": want, "onnxruntime": answers(folder / f"{best}.onnx", test), "ours": ours}


def report(title: str, parts: list[dict[str, Array]], labels: list[Array] | None) -> None:
    whole = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    want, right = whole["float"], None if labels is None else np.concatenate(labels)
    print(f"{title}: {len(want)} test samples")
    for name, got in whole.items():
        accuracy = "" if right is None else f"{(got.argmax(1) == right).mean():8.2%}"
        changed = (got.argmax(1) != want.argmax(1)).mean()
        snr = "" if name == "float" else f"{decibels(got, want):6.1f} dB"
        print(f"  {name:12} {accuracy} changed {changed:6.2%}  {snr}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("models", nargs="*", type=Path)
    arguments.add_argument("--seeds", type=int, default=4)
    arguments.add_argument(
        "--digits", type=Path, help=".npz with images and labels, instead of scikit-learn's"
    )
    given = arguments.parse_args()
    images, labels = digits(given.digits)
    with tempfile.TemporaryDirectory() as scratch:
        for path in given.models:
            folder = Path(tempfile.mkdtemp(dir=scratch))
            order = np.random.default_rng(0).permutation(len(images))
            a, b, rest = images[order[:200]], images[order[200:600]], images[order[600:]]
            test = np.concatenate([rest, moved(rest, 1)])
            report(path.name, [one(path, a, b, test, None, folder)], None)
        parts, right = [], []
        for seed in range(0 if given.models else given.seeds):
            folder = Path(tempfile.mkdtemp(dir=scratch))
            order = np.random.default_rng(seed).permutation(len(images))
            train, a, b, test = np.split(order, [900, 1000, 1200])
            path = trained(images[train], labels[train], seed, folder)
            parts.append(one(path, images[a], images[b], images[test], None, folder))
            right.append(labels[test])
        if parts:
            report("digits CNN", parts, right)


if __name__ == "__main__":
    main()
