#!/usr/bin/env python3
"""Trains a small MobileNetV2 on scikit-learn's digits: mobilenet_v2.onnx, for quantise_accuracy.py.

    pip install scikit-learn
    python tests/bench/mobilenet_v2.py

Inverted residuals (expansion, depthwise 3x3, projection, ReLU6) without normalisations, which an exporter
folds anyway; plain numpy with the gradients written out, a minute on one core. It learns from the first 1,000
digits of a permutation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray
HERE = Path(__file__).resolve().parent
BLOCKS = ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 32, 2), (32, 32, 1))
"""Channels in, out, stride; each expands by four."""
TRAINING = 1000
EPOCHS, BATCH, RATE = 40, 50, 3e-3


class Layer:
    """A convolution of pixels (NHWC), 1x1 or depthwise 3x3, and ReLU6 behind it where `bounded`."""

    def __init__(
        self, rng: np.random.Generator, inside: int, out: int, deep: bool, stride: int, bounded: bool
    ) -> None:
        fan = 9 if deep else inside
        shape = (9, inside) if deep else (inside, out)
        self.weight = (rng.standard_normal(shape) * np.sqrt(2.0 / fan)).astype(np.float32)
        self.bias = np.zeros(out, np.float32)
        self.deep, self.stride, self.bounded = deep, stride, bounded

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        if self.deep:
            padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
            windows = sliding_window_view(padded, (3, 3), axis=(1, 2))[:, :: self.stride, :: self.stride]
            self.x = windows.reshape(*windows.shape[:4], 9)
            y = np.einsum("nhwck,kc->nhwc", self.x, self.weight) + self.bias
        else:
            self.x = x
            y = x @ self.weight + self.bias
        self.inside = (y > 0) & (y < 6) if self.bounded else None
        return np.clip(y, 0, 6) if self.bounded else y

    def backward(self, d: Array) -> Array:
        if self.inside is not None:
            d = d * self.inside
        self.d_bias = d.sum(axis=(0, 1, 2))
        if not self.deep:
            self.d_weight = self.x.reshape(-1, self.x.shape[-1]).T @ d.reshape(-1, d.shape[-1])
            return d @ self.weight.T
        self.d_weight = np.einsum("nhwck,nhwc->kc", self.x, d)
        n, h, w, c = self.shape
        back = np.zeros((n, h + 2, w + 2, c), np.float32)
        s = self.stride
        for k in range(9):
            y, x = divmod(k, 3)
            back[:, y : y + s * d.shape[1] : s, x : x + s * d.shape[2] : s] += d * self.weight[k]
        return back[:, 1:-1, 1:-1]


class Net:
    """Stem, blocks, head; the mean of the pixels is classified."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.stem = Layer(rng, 9, 16, False, 1, True)
        self.blocks = [
            (
                Layer(rng, i, 4 * i, False, 1, True),
                Layer(rng, 4 * i, 4 * i, True, s, True),
                Layer(rng, 4 * i, o, False, 1, False),
            )
            for i, o, s in BLOCKS
        ]
        for _, _, last in self.blocks:
            last.weight *= 0.5
        self.head = Layer(rng, 32, 64, False, 1, True)
        self.classifier = Layer(rng, 64, 10, False, 1, False)
        self.layers = [self.stem, *(layer for b in self.blocks for layer in b), self.head, self.classifier]

    def forward(self, images: Array) -> Array:
        padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
        x = self.stem.forward(sliding_window_view(padded, (3, 3), axis=(1, 2)).reshape(len(images), 8, 8, 9))
        for block in self.blocks:
            y = x
            for layer in block:
                y = layer.forward(y)
            x = x + y if y.shape == x.shape else y
        x = self.head.forward(x)
        self.pixels = x.shape
        return self.classifier.forward(x.mean(axis=(1, 2), keepdims=True))[:, 0, 0]

    def backward(self, d: Array) -> None:
        d = self.classifier.backward(d[:, None, None])
        d = np.broadcast_to(d / (self.pixels[1] * self.pixels[2]), self.pixels).astype(np.float32)
        d = self.head.backward(d)
        for block in self.blocks[::-1]:
            own = d
            for layer in block[::-1]:
                own = layer.backward(own)
            d = own + d if own.shape == d.shape else own
        self.stem.backward(d)


def train(images: Array, labels: Array) -> Net:
    """Adam with a rate that falls to zero along a cosine; images are moved by up to a pixel."""
    rng = np.random.default_rng(1)
    net = Net(rng)
    state: list[list[Any]] = [[0.0, 0.0] for _ in range(2 * len(net.layers))]
    steps, step = EPOCHS * (len(images) // BATCH), 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            step += 1
            batch = order[start : start + BATCH]
            shift = tuple(rng.integers(-1, 2, 2))
            logits = net.forward(np.roll(images[batch], shift, (1, 2)))
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            net.backward(((p - np.eye(10)[labels[batch]]) / BATCH).astype(np.float32))
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for k, layer in enumerate(net.layers):
                for j, (name, g) in enumerate((("weight", layer.d_weight), ("bias", layer.d_bias))):
                    known = state[2 * k + j]
                    known[0] = 0.9 * known[0] + 0.1 * g
                    known[1] = 0.999 * known[1] + 0.001 * g * g
                    unbiased = known[0] / (1 - 0.9**step)
                    change = rate * unbiased / (np.sqrt(known[1] / (1 - 0.999**step)) + 1e-8)
                    setattr(layer, name, (getattr(layer, name) - change).astype(np.float32))
    return net


def exported(net: Net) -> onnx.ModelProto:
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, data: Array) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(data, np.float32), name))
        return name

    low, high = constant("low", np.float32(0)), constant("high", np.float32(6))

    def node(kind: str, inputs: list[str], name: str, **more: object) -> str:
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **more))
        return name

    def conv(layer: Layer, x: str, name: str, size: int = 1) -> str:
        out = len(layer.bias)
        group = out if layer.deep else 1
        weight = layer.weight.T.reshape(out, -1, size, size)
        inputs = [x, constant(f"{name}.weight", weight), constant(f"{name}.bias", layer.bias)]
        pads = [size // 2] * 4
        more = {"kernel_shape": [size, size], "strides": [layer.stride] * 2}
        y = node("Conv", inputs, name, pads=pads, group=group, **more)
        return node("Clip", [y, low, high], f"{name}.clip") if layer.bounded else y

    x = conv(net.stem, "image", "stem", 3)
    for k, (expand, deep, project) in enumerate(net.blocks):
        y = conv(expand, x, f"block{k}.expand")
        y = conv(deep, y, f"block{k}.depthwise", 3)
        y = conv(project, y, f"block{k}.project")
        same = BLOCKS[k][0] == BLOCKS[k][1] and BLOCKS[k][2] == 1
        x = node("Add", [x, y], f"block{k}.sum") if same else y
    x = conv(net.head, x, "head")
    x = node("Flatten", [node("GlobalAveragePool", [x], "mean")], "features")
    last = net.classifier
    weight, bias = constant("classifier.weight", last.weight), constant("classifier.bias", last.bias)
    node("Gemm", [x, weight, bias], "logits")
    graph = helper.make_graph(
        nodes,
        "mobilenet_v2",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        constants,
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, producer_name="aot-model bench")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, labels = (data.images[order] / 16).astype(np.float32), data.target[order]
    net = train(images[:TRAINING], labels[:TRAINING])
    right = net.forward(images[TRAINING:]).argmax(axis=1) == labels[TRAINING:]
    print(f"{right.mean():.2%} of {len(right)} test images are classified right")
    (HERE / "mobilenet_v2.onnx").write_bytes(exported(net).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
