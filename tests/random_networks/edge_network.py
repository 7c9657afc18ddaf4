"""A model that is drawn operator by operator, with numbers at the ends of types, ties, NaN and infinities,
extents of 0 and 1, axes from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from exact_floats import Array
from onnx import helper, numpy_helper

FLOATS, WHOLE = (
    ("float32", "float16", "float64"),
    ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
)
ODD = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    127.5,
    -128.5,
    255.5,
    65504.0,
    65520.0,
    2.0**31,
    -(2.0**31),
    2.0**32,
    2.0**63,
    -(2.0**63),
    2.0**64,
    1e-8,
    1e-40,
    -1e-45,
    88.8,
    -104.0,
    709.5,
    np.nan,
    np.nan,
    np.inf,
    -np.inf,
    3.4e38,
    -3.4e38,
)


@dataclass
class Edge:
    """A model that is drawn operator by operator."""

    rng: np.random.Generator
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    fed: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    relative: bool = False
    """Whether float results may be off by a share of themselves."""
    share: float = 0.0
    """How far they may be from an oracle's, of the largest finite number of an output."""
    steps: int = 0
    """How far integers may be."""
    open: bool = False
    """Whether oracles cannot tell."""
    names: int = 0

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def once(self, of: int) -> bool:
        """True once in so many times."""
        return self.number(1, of) == 1

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """Some extents are 1, few are 0."""
        rank = self.number(low, high)
        return tuple(self.pick(1, 2, 3, 3, 4, 5, 7, 0 if self.once(5) else 2) for _ in range(rank))

    def axis(self, rank: int) -> int:
        return self.number(-rank, rank - 1)

    def numbers(self, kind: str, shape: Sequence[int]) -> Array:
        """Numbers of a type: usual ones, few different ones, some or all at its edges."""
        share = self.pick(0.0, 0.1, 0.4, 1.0)
        if kind == "bool":
            return self.rng.random(shape) < self.pick(0.5, 0.1, 1.0)
        if kind in WHOLE:
            ends = np.iinfo(kind)
            usual = self.rng.integers(max(-9, ends.min), 9, shape)
            odd = np.asarray([ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1, 2, ends.max // 2], kind)
            wild = self.rng.integers(ends.min, ends.max, shape, endpoint=True, dtype=kind)
            wild = np.where(self.rng.random(shape) < 0.7, odd[self.rng.integers(0, len(odd), shape)], wild)
            return np.where(self.rng.random(shape) < share, wild, usual.astype(kind))
        usual = self.rng.normal(0, self.pick(1, 1, 4, 100), shape)
        usual = np.round(usual * 2) / 2 if self.once(2) else usual
        wild = np.asarray(ODD)[self.rng.integers(0, len(ODD), shape)]
        with np.errstate(all="ignore"):
            return np.where(self.rng.random(shape) < share, wild, usual).astype(_type(kind))

    def tame(self, kind: str, shape: Sequence[int], spread: float = 1.0) -> Array:
        return self.rng.normal(0, spread, shape).astype(kind)

    def given(self, data: Any, constant: float = 0.25) -> str:
        """An input of the graph, or a constant."""
        data = np.asarray(data)
        known = bool(self.rng.random() < constant) or data.dtype.kind == "V"
        name = self.name("c" if known else "x")
        (self.constants if known else self.fed)[name] = data
        return name

    def known(self, data: Any, kind: str = "int64") -> str:
        return self.given(np.asarray(data, _type(kind)), 1)

    def x(self, kind: str, shape: Sequence[int], constant: float = 0.25) -> str:
        return self.given(self.numbers(kind, shape), constant)

    def node(
        self, kind: str, inputs: Sequence[str], count: int = 1, domain: str = "", **given: Any
    ) -> list[str]:
        made = [self.name("v") for _ in range(count)]
        given = {k: v for k, v in given.items() if v is not None}
        self.nodes.append(helper.make_node(kind, list(inputs), made, domain=domain, **given))
        self.kinds.append(f"{domain}.{kind}".lstrip("."))
        return made

    def runtime(self, kind: str, inputs: Sequence[str], count: int = 1, **given: Any) -> list[str]:
        return self.node(kind, inputs, count, domain="com.microsoft", **given)

    def end(self, *names: str) -> None:
        self.outputs += names

    def model(self) -> onnx.ModelProto:
        def port(name: str, data: Array) -> onnx.ValueInfoProto:
            kind = (
                onnx.TensorProto.STRING
                if data.dtype.kind in "OSU"
                else helper.np_dtype_to_tensor_dtype(data.dtype)
            )
            return helper.make_tensor_value_info(name, kind, data.shape)

        graph = helper.make_graph(
            self.nodes,
            "edge",
            [port(k, v) for k, v in self.fed.items()],
            [onnx.ValueInfoProto(name=o) for o in self.outputs],
            [numpy_helper.from_array(v, k) for k, v in self.constants.items()],
        )
        domains = {"": self.opset, "com.microsoft": 1, "ai.onnx.ml": 3}
        used = {n.domain for n in self.nodes} | {""}
        imports = [helper.make_opsetid(d, v) for d, v in domains.items() if d in used]
        return helper.make_model(graph, opset_imports=imports, ir_version=11 if self.opset > 22 else 10)


FEW = {
    "float8e4m3fn": 17,
    "float8e4m3fnuz": 18,
    "float8e5m2": 19,
    "float8e5m2fnuz": 20,
    "float4e2m1": 23,
    "int4": 22,
    "uint4": 21,
    "bfloat16": 16,
}


def _type(kind: str) -> Any:
    return helper.tensor_dtype_to_np_dtype(FEW[kind]) if kind in FEW else np.dtype(kind)


def enum(kind: str) -> int:
    """The number that files have for a type."""
    return FEW.get(kind) or int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


Layer = Callable[[Edge], str | None]
"""Draws an operator; the name of a result that others may follow, or None."""
LAYERS: list[tuple[Layer, int]] = []


def edge(times: int) -> Callable[[Layer], Layer]:
    def add(made: Layer) -> Layer:
        LAYERS.append((made, times))
        return made

    return add


FOLLOWERS: list[Callable[[Edge, str], str]] = []
"""Of any float result: what passes join with what is before it."""
