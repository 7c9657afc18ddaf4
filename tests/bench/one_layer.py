"""A layer of any shape and type, alone in a TFLite model, with random weights and inputs that are the same
every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflite_models import FLOAT32, INT8, INT16, INT32, INT64, Op, T, build

TYPES = {"int8": INT8, "int16": INT16, "float32": FLOAT32}
SAME, VALID = 0, 1


@dataclass(frozen=True)
class Shape:
    """A layer, of any of the types; work: its multiply-accumulates, or its outputs."""

    kind: str
    name: str
    work: int
    operator: str
    x: tuple[int, ...]
    y: tuple[int, ...]
    w: tuple[int, ...] = ()
    options: str | None = None
    fields: tuple[tuple[str, Any], ...] = ()
    inputs: int = 1
    constants: tuple[tuple[int, ...], ...] = ()
    """Of int32, behind x; those of a transposed convolution before it."""

    def network(self, of: str) -> tuple[bytes, list[np.ndarray]]:
        """A TFLite model and inputs."""
        rng = np.random.default_rng(7)
        kind, real = TYPES[of], of == "float32"
        scale, zero = {"int8": (0.0235, -5), "int16": (0.0003, 0), "float32": (None, 0)}[of]

        def tensor(name: str, shape: tuple[int, ...], times: float = 1.0, z: int = zero) -> T:
            scales = () if scale is None else (scale * times,)
            return T(name, shape, kind, scales, (0 if of == "int16" else z,))

        depth = prod(self.w[1:]) if self.w and self.operator != "DEPTHWISE_CONV_2D" else prod(self.w[1:3])
        same = self.operator in (
            "CONCATENATION",
            "MAX_POOL_2D",
            "AVERAGE_POOL_2D",
            "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR",
            "PAD",
            "TRANSPOSE",
        )
        y = tensor("y", self.y, max(depth, 1) ** 0.5 if self.w else 1.0, zero if same else 3)
        if self.operator in ("SOFTMAX", "LOGISTIC") and not real:
            y = T(
                "y", self.y, kind, (1 / 256 if of == "int8" else 1 / 32768,), (-128 if of == "int8" else 0,)
            )
        if self.operator == "TANH" and not real:
            y = T("y", self.y, kind, (1 / 128 if of == "int8" else 1 / 32768,), (0,))
        tensors = [*(tensor(f"x{k}", self.x, 1.0 if same else 1.0 + k / 7) for k in range(self.inputs)), y]
        places = list(range(self.inputs))
        fields = dict(self.fields)
        for numbers in self.constants:
            places.insert(0 if self.operator == "TRANSPOSE_CONV" else len(places), len(tensors))
            data = np.asarray(numbers, np.int32)
            if self.operator == "PAD":
                data = data.reshape(-1, 2)
            tensors.append(T(f"c{len(tensors)}", data.shape, INT32, (), data=data))
        if self.w:
            out = self.w[3] if self.operator == "DEPTHWISE_CONV_2D" else self.w[0]
            scales = np.linspace(0.004, 0.02, out) if self.operator != "FULLY_CONNECTED" else np.full(1, 0.01)
            axis = 3 if self.operator == "DEPTHWISE_CONV_2D" else 0
            if real:
                w = T("w", self.w, FLOAT32, (), data=rng.normal(0, depth**-0.5, self.w).astype(np.float32))
                b = T("b", (out,), FLOAT32, (), data=rng.normal(0, 1, out).astype(np.float32))
            else:
                w = T(
                    "w",
                    self.w,
                    INT8,
                    tuple(scales.tolist()),
                    (0,) * len(scales),
                    rng.integers(-127, 128, self.w).astype(np.int8),
                    axis=axis,
                )
                bits = INT64 if of == "int16" else INT32
                product = tuple((np.float32(tensors[0].scale[0]) * scales.astype(np.float32)).tolist())
                b = T(
                    "b",
                    (out,),
                    bits,
                    product,
                    (0,) * len(scales),
                    rng.integers(-999, 1000, out).astype(np.int64 if of == "int16" else np.int32),
                )
            if self.operator == "TRANSPOSE_CONV":
                places.insert(1, len(tensors))
            else:
                places.append(len(tensors))
            places.append(len(tensors) + 1)
            tensors += [w, b]
        if self.operator in ("ADD", "SUB"):
            fields["PotScaleInt16"] = False
        op = Op(self.operator, tuple(places), (self.inputs,), self.options, fields)
        draw = {
            "int8": lambda s: rng.integers(-128, 128, s).astype(np.int8),
            "int16": lambda s: rng.integers(-32768, 32768, s).astype(np.int16),
            "float32": lambda s: rng.normal(0, 1, s).astype(np.float32),
        }[of]
        model = build(tensors, [op], list(range(self.inputs)), [self.inputs])
        return model, [draw(self.x) for _ in range(self.inputs)]


def _sized(n: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    return -(-n // stride) if padding == SAME else -(-(n - (kernel - 1) * dilation) // stride)


def convolution(
    kind: str,
    size: tuple[int, int],
    ins: int,
    outs: int,
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: int = SAME,
    dilation: int = 1,
    groups: int = 1,
) -> Shape:
    out = tuple(_sized(n, k, s, dilation, padding) for n, k, s in zip(size, kernel, stride, strict=True))
    fields = {
        "Padding": padding,
        "StrideH": stride[0],
        "StrideW": stride[1],
        "DilationHFactor": dilation,
        "DilationWFactor": dilation,
    }
    name = f"{size[0]}x{size[1]}x{ins} -> {outs}, {kernel[0]}x{kernel[1]}"
    name += f" /{stride[0]}{stride[1]}" if stride != (1, 1) else ""
    name += " valid" if padding == VALID else ""
    name += f" dilated {dilation}" if dilation > 1 else ""
    name += f" {groups} groups" if groups > 1 else ""
    return Shape(
        kind,
        name,
        prod(out) * outs * prod(kernel) * ins // groups,
        "CONV_2D",
        (1, *size, ins),
        (1, *out, outs),
        (outs, *kernel, ins // groups),
        "Conv2DOptions",
        tuple(fields.items()),
    )


def depthwise(
    size: tuple[int, int],
    channels: int,
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: int = SAME,
    dilation: int = 1,
    multiplier: int = 1,
) -> Shape:
    c = convolution("depthwise", size, channels, channels * multiplier, kernel, stride, padding, dilation)
    fields = (*c.fields, ("DepthMultiplier", multiplier))
    return Shape(
        "depthwise",
        c.name,
        prod(c.y) * prod(kernel),
        "DEPTHWISE_CONV_2D",
        c.x,
        c.y,
        (1, *kernel, channels * multiplier),
        "DepthwiseConv2DOptions",
        fields,
    )


def transposed(
    size: tuple[int, int], ins: int, outs: int, kernel: tuple[int, int], stride: tuple[int, int]
) -> Shape:
    y = (1, size[0] * stride[0], size[1] * stride[1], outs)
    fields = (("Padding", SAME), ("StrideH", stride[0]), ("StrideW", stride[1]))
    name = f"{size[0]}x{size[1]}x{ins} -> {outs}, {kernel[0]}x{kernel[1]} /{stride[0]}{stride[1]}"
    return Shape(
        "transposed",
        name,
        prod(size) * ins * outs * prod(kernel),
        "TRANSPOSE_CONV",
        (1, *size, ins),
        y,
        (outs, *kernel, ins),
        "TransposeConvOptions",
        fields,
        constants=(y,),
    )


def dense(rows: int, ins: int, outs: int) -> Shape:
    return Shape(
        "dense",
        f"{rows} x {ins} x {outs}",
        rows * ins * outs,
        "FULLY_CONNECTED",
        (rows, ins),
        (rows, outs),
        (outs, ins),
        "FullyConnectedOptions",
    )


def pool(
    mode: str,
    size: tuple[int, int],
    channels: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: int = VALID,
) -> Shape:
    out = tuple(_sized(n, k, s, 1, padding) for n, k, s in zip(size, kernel, stride, strict=True))
    fields = (
        ("Padding", padding),
        ("StrideH", stride[0]),
        ("StrideW", stride[1]),
        ("FilterHeight", kernel[0]),
        ("FilterWidth", kernel[1]),
    )
    name = f"{mode.lower()} {size[0]}x{size[1]}x{channels}, {kernel[0]}x{kernel[1]} /{stride[0]}{stride[1]}"
    name += " same" if padding == SAME else ""
    return Shape(
        "pooling",
        name,
        prod(out) * channels * prod(kernel),
        f"{mode}_POOL_2D",
        (1, *size, channels),
        (1, *out, channels),
        options="Pool2DOptions",
        fields=fields,
    )


def elementwise(
    operator: str,
    x: tuple[int, ...],
    inputs: int = 1,
    y: tuple[int, ...] | None = None,
    options: str | None = None,
    fields: dict[str, Any] | None = None,
    constants: tuple[tuple[int, ...], ...] = (),
) -> Shape:
    y = y or x
    return Shape(
        "elements",
        f"{operator.lower()} {'x'.join(map(str, x))}",
        prod(y),
        operator,
        x,
        y,
        options=options,
        fields=tuple((fields or {}).items()),
        inputs=inputs,
        constants=constants,
    )
