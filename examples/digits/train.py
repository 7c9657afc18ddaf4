#!/usr/bin/env python3
"""Trains the example model: a small convolutional network on scikit-learn's handwritten digits (8x8 pixels).

    pip install numpy onnx scikit-learn
    python examples/digits/train.py

writes, beside this file, always the same bytes on the same versions of the packages:

digits.onnx   the model: float32 image [1, 1, 8, 8] with values 0..1 to float32 probabilities [1, 10]
digits.npz    eight test images (in_0, [8, 1, 1, 8, 8]) and what the ONNX reference evaluator says of them
              (out_0)
images.h      ten images as C arrays, one of each digit, none of them seen in training

The network and its training (forward, backward, Adam) are plain numpy; ten seconds on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
CHANNELS = (12, 24)
EPOCHS = 40
BATCH = 32
RATE = 2e-3
TRAINING_IMAGES = 1400

Array = np.ndarray
Parameters = dict[str, Array]


def initial_parameters(rng: np.random.Generator) -> Parameters:
    """He initialisation; convolution weights are [out, in, 3, 3], the classifier is [features, 10]."""

    def normal(*shape: int, fan_in: int) -> Array:
        return (rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)

    c1, c2 = CHANNELS
    return {
        "conv1.weight": normal(c1, 1, 3, 3, fan_in=9),
        "conv1.bias": np.zeros(c1, np.float32),
        "conv2.weight": normal(c2, c1, 3, 3, fan_in=9 * c1),
        "conv2.bias": np.zeros(c2, np.float32),
        "classifier.weight": normal(c2 * 4, 10, fan_in=c2 * 4),
        "classifier.bias": np.zeros(10, np.float32),
    }


def windows(x: Array) -> Array:
    """[n, c, h, w] to its 3x3 neighbourhoods, zero padded: [n, h, w, c, 3, 3]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sliding_window_view(padded, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)


def convolve(x: Array, weight: Array, bias: Array) -> Array:
    return np.einsum("nhwcij,ocij->nohw", windows(x), weight, optimize=True) + bias[:, None, None]


def pool(x: Array) -> tuple[Array, Array]:
    """2x2 maximum, and the mask of the elements that were it."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    top = blocks.max(axis=(3, 5), keepdims=True)
    return top[:, :, :, 0, :, 0], (blocks == top).reshape(x.shape)


def spread(gradient: Array, mask: Array) -> Array:
    """Gradient of the 2x2 maximum."""
    return gradient.repeat(2, axis=2).repeat(2, axis=3) * mask


def loss_gradients(p: Parameters, images: Array, labels: Array) -> Parameters:
    """Gradients of the mean cross entropy of a batch by every parameter."""
    a1 = convolve(images, p["conv1.weight"], p["conv1.bias"])
    h1, mask1 = pool(np.maximum(a1, 0))
    a2 = convolve(h1, p["conv2.weight"], p["conv2.bias"])
    h2, mask2 = pool(np.maximum(a2, 0))
    features = h2.reshape(len(images), -1)
    logits = features @ p["classifier.weight"] + p["classifier.bias"]
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)

    d_logits = (probabilities - np.eye(10, dtype=np.float32)[labels]) / len(images)
    d_h2 = (d_logits @ p["classifier.weight"].T).reshape(h2.shape)
    d_a2 = spread(d_h2, mask2) * (a2 > 0)
    turned = p["conv2.weight"][:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    d_h1 = np.einsum("nhwoij,coij->nchw", windows(d_a2), turned, optimize=True)
    d_a1 = spread(d_h1, mask1) * (a1 > 0)
    return {
        "conv1.weight": np.einsum("nhwcij,nohw->ocij", windows(images), d_a1, optimize=True),
        "conv1.bias": d_a1.sum(axis=(0, 2, 3)),
        "conv2.weight": np.einsum("nhwcij,nohw->ocij", windows(h1), d_a2, optimize=True),
        "conv2.bias": d_a2.sum(axis=(0, 2, 3)),
        "classifier.weight": features.T @ d_logits,
        "classifier.bias": d_logits.sum(axis=0),
    }


def train(images: Array, labels: Array) -> Parameters:
    """Adam with a rate that falls to zero along a cosine."""
    rng = np.random.default_rng(1)
    p = initial_parameters(rng)
    mean = {k: np.zeros_like(v) for k, v in p.items()}
    square = {k: np.zeros_like(v) for k, v in p.items()}
    steps = EPOCHS * (len(images) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            step += 1
            batch = order[start : start + BATCH]
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for k, g in loss_gradients(p, images[batch], labels[batch]).items():
                mean[k] = 0.9 * mean[k] + 0.1 * g
                square[k] = 0.999 * square[k] + 0.001 * g * g
                unbiased = mean[k] / (1 - 0.9**step)
                p[k] -= rate * unbiased / (np.sqrt(square[k] / (1 - 0.999**step)) + 1e-8)
    return {k: v.astype(np.float32) for k, v in p.items()}


def build_model(p: Parameters) -> onnx.ModelProto:
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pooling = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], name="conv1", **conv),
        helper.make_node("Relu", ["conv1"], ["relu1"], name="relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], name="pool1", **pooling),
        helper.make_node("Conv", ["pool1", "conv2.weight", "conv2.bias"], ["conv2"], name="conv2", **conv),
        helper.make_node("Relu", ["conv2"], ["relu2"], name="relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool2"], name="pool2", **pooling),
        helper.make_node("Flatten", ["pool2"], ["features"], name="flatten"),
        helper.make_node(
            "Gemm", ["features", "classifier.weight", "classifier.bias"], ["logits"], name="classifier"
        ),
        helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(v, k) for k, v in p.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="aot-model example"
    )
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def c_images(images: Array, labels: Array) -> str:
    """Pixels 0..16 as C, laid out so that the digits can be seen in the source."""
    lines = [
        "/* Ten 8x8 images of scikit-learn's digits data set, pixels 0..16, none of them seen in training.",
        " * Written by train.py. */",
        "#ifndef DIGITS_IMAGES_H",
        "#define DIGITS_IMAGES_H",
        "",
        "#include <stdint.h>",
        "",
        "#define DIGITS_IMAGES 10",
        "",
        "static const uint8_t digits_labels[DIGITS_IMAGES] = {" + ", ".join(map(str, labels)) + "};",
        "",
        "static const uint8_t digits_images[DIGITS_IMAGES][64] = {",
    ]
    for image in images:
        rows = [", ".join(f"{pixel:2d}" for pixel in row) + "," for row in image.astype(int)]
        lines += ["    {"] + [f"        {row}" for row in rows] + ["    },"]
    return "\n".join([*lines, "};", "", "#endif", ""])


def main() -> None:
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    pixels, labels = digits.images[order], digits.target[order]
    images = (pixels[:, None] / 16.0).astype(np.float32)
    train_set, test_set = slice(0, TRAINING_IMAGES), slice(TRAINING_IMAGES, None)

    model = build_model(train(images[train_set], labels[train_set]))
    (HERE / "digits.onnx").write_bytes(model.SerializeToString(deterministic=True))

    reference = ReferenceEvaluator(model)
    answers = [reference.run(None, {"image": image[None]})[0] for image in images[test_set]]
    right = np.array([int(a.argmax()) for a in answers]) == labels[test_set]
    print(f"{right.mean():.2%} of {len(right)} test images are classified right")

    np.savez(HERE / "digits.npz", in_0=images[test_set][:8, None], out_0=np.stack(answers[:8]))
    one_of_each = [TRAINING_IMAGES + int(np.argmax(labels[test_set] == digit)) for digit in range(10)]
    (HERE / "images.h").write_text(c_images(pixels[one_of_each], labels[one_of_each]), newline="\n")


if __name__ == "__main__":
    main()
