"""What quantised fragments with extreme parameters are made of: scales, zero points, weights, biases and
inputs from the ends of what there is as well as from what is usual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from exact_floats import INTEGERS, Array, NoNumber, evaluated
from onnx import helper, numpy_helper

SCALES = (1e-45, 1e-40, 1.1754944e-38, 1e-38, 1e-30, 1e-20, 1e-10, 1e10, 1e20, 1e30, 3e38)
ELEMENTS, PRODUCTS = 3000, 300_000
ODD_NUMBERS = (0.0, -0.0, 1.0, -1.0, 6.0, 0.5, 1e-30, 1e30, -1e30, np.inf, -np.inf, 3e38, 1e-45)


@dataclass(frozen=True)
class Tensor:
    """Integers with one scale: the name, the shape, scale and zero point by name and by number."""

    name: str
    shape: tuple[int, ...]
    kind: str
    parameters: tuple[str, str]
    scale: float
    zero: int


class Rejected(Exception):
    """What was drawn does not fit."""


def stored(data: Array, kind: str) -> Array:
    """Integers as onnx keeps them, of few bits as well."""
    few = {"int2", "uint2", "int4", "uint4"}
    return np.asarray(data).astype(getattr(ml_dtypes, kind) if kind in few else kind)


@dataclass
class Fragment:
    """Nodes that are drawn one after the other, and what they mean where a node is a quantised operator: the
    same in floats between DequantizeLinear and QuantizeLinear.
    """

    rng: np.random.Generator
    opset: int
    tame: float
    """The share of parameters that are usual ones."""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    meaning: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    fed: dict[str, Array] = field(default_factory=dict)
    values: list[Tensor] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    known: dict[str, Array] = field(default_factory=dict)
    """All values, in doubles."""
    exact: dict[str, Array] = field(default_factory=dict)
    """Constants of the meaning that no float is."""
    halves: set[str] = field(default_factory=set)
    """Values of float16."""
    scales: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    products: int = 0
    names: int = 0

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def odd(self, share: float = 1) -> bool:
        """Whether a parameter is one that is not usual."""
        return bool(self.rng.random() < share * (1 - self.tame))

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def constant(self, data: Any, prefix: str = "c") -> str:
        name = self.name(prefix)
        self.constants[name] = kept = np.asarray(data)
        self.known[name] = kept.astype(np.float64) if kept.dtype == np.float32 else kept
        return name

    def floats(self, data: Any) -> str:
        with np.errstate(over="ignore"):
            return self.constant(np.asarray(data, np.float64).astype(np.float32))

    def integers(self, data: Any) -> str:
        return self.constant(np.asarray(data, np.int64))

    def mean(self, kind: str, inputs: list[str], count: int = 1, **given: Any) -> list[str]:
        """A node of the meaning alone, whose values are known from here on."""
        made = [self.name("v") for _ in range(count)]
        node = helper.make_node(kind, inputs, made, **given)
        self.meaning.append(node)
        try:
            self.known |= evaluated(
                [node], {i: self.known[i] for i in inputs if i}, self.opset, lambda _: lambda _: 0
            )
        except (
            NoNumber,
            NotImplementedError,
            ValueError,
            IndexError,
            TypeError,
            AttributeError,
            RuntimeError,
        ) as e:
            raise Rejected(f"{kind}: {e}") from e
        if any(self.known[m].size > ELEMENTS for m in made):
            raise Rejected("too large")
        return made

    def node(self, kind: str, inputs: list[str], count: int = 1, **given: Any) -> list[str]:
        """A node."""
        made = self.mean(kind, inputs, count, **given)
        self.nodes.append(self.meaning[-1])
        self.kinds.append(kind)
        return made

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.known[name].shape)

    def afford(self, products: int) -> None:
        self.products += products
        if self.products > PRODUCTS:
            raise Rejected("too many products")

    # ---- parameters

    def scale(self, natural: float) -> float:
        """Near one that suits, or far from it."""
        natural = min(max(natural, 1e-30), 1e30) if np.isfinite(natural) else 1.0
        drawn = natural * float(np.exp(self.rng.normal(0, 0.4)))
        if self.odd():
            how = self.number(0, 9)
            if how < 3:
                drawn = 2.0 ** np.round(np.log2(natural))
            elif how < 5 and self.scales:
                drawn = self.pick(*self.scales) * self.pick(1, 1, 2, 0.5)
            elif how < 8:
                drawn = natural * 2.0 ** self.rng.uniform(-40, 40)
            elif how < 9:
                drawn = natural * 2.0 ** self.number(-40, 40)
            else:
                drawn = self.pick(*SCALES)
        with np.errstate(over="ignore"):
            kept = float(np.clip(np.float32(drawn), np.float32(1e-45), np.finfo(np.float32).max))
        self.scales.append(kept)
        return kept

    def zero(self, kind: str) -> int:
        low, high = INTEGERS[kind]
        if self.odd():
            return int(self.pick(low, high, low + 1, high - 1))
        middle = 0 if low < 0 else (high + 1) // 2
        return int(self.pick(0, middle, middle, self.number(low, high)))

    def kind(self) -> str:
        if self.odd(0.1) and self.opset >= 21:
            return str(self.pick("int4", "uint4"))
        wide = ("int16", "uint16") if self.opset >= 21 else ()
        return str(self.pick("uint8", "uint8", "uint8", "int8", "int8", "int8", *wide))

    def tensor(self, name: str, shape: tuple[int, ...], kind: str, scale: float, zero: int) -> Tensor:
        by = (self.constant(np.float32(scale)), self.constant(stored(np.asarray(zero), kind)))
        if self.odd(0.2):  # known when it runs
            fed = {self.name("s"): self.constants.pop(by[0]), self.name("z"): self.constants.pop(by[1])}
            self.fed |= fed
            self.known |= {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in fed.items()}
            by = tuple(fed)
        return Tensor(name, shape, kind, by, float(np.float32(scale)), zero)

    def steps(self, kind: str, shape: tuple[int, ...]) -> Array:
        """Integers of a type: spread over all of it, at its ends, all the same."""
        low, high = INTEGERS[kind]
        how = self.number(0, 5) if self.odd(2) else 0
        if how == 0:
            return self.rng.integers(low, high, shape, endpoint=True)
        if how == 1:
            return self.rng.choice([low, high], shape)
        if how == 2:
            return np.full(shape, self.pick(low, high, 0, 1))
        data = self.rng.integers(low, high, shape, endpoint=True)
        if how == 3:
            return np.where(self.rng.random(shape) < 0.8, self.pick(0, low), data)
        if how == 4 and shape and shape[0]:
            data[self.number(0, shape[0] - 1)] = 0
        return data // self.pick(1, 16)

    # ---- values

    def given(self, shape: tuple[int, ...], kind: str) -> Tensor:
        """A new input of the graph: integers, or floats that are quantised, some between two steps."""
        scale, zero = self.scale(0.02 if kind.endswith("8") else 1e-4), self.zero(kind)
        name = self.name("x")
        if kind in ("int4", "uint4") or self.number(0, 1):
            x = self.tensor(self.name("x"), shape, kind, scale, zero)
            with np.errstate(all="ignore"):
                reals = (self.steps(kind, shape) - zero + self.pick(0.0, 0.5, 0.25)) * np.float64(x.scale)
                reals = np.where(self.rng.random(shape) < 0.1, reals * self.pick(-1, 3, 1e3), reals)
                if self.odd(0.3) and reals.size:
                    reals.reshape(-1)[self.number(0, reals.size - 1)] = self.pick(
                        np.inf, -np.inf, 3e38, -3e38
                    )
                self.fed[name] = reals.astype(np.float32)
            self.known[name] = self.fed[name].astype(np.float64)
            made = self.node("QuantizeLinear", [name, *x.parameters])[0]
            return Tensor(made, shape, kind, x.parameters, x.scale, zero)
        self.fed[name] = self.known[name] = stored(self.steps(kind, shape), kind)
        return self.tensor(name, shape, kind, scale, zero)

    def real(self, x: Tensor, hidden: bool = False) -> str:
        """Its numbers as floats. hidden: of the meaning alone."""
        make = self.mean if hidden else self.node
        return make("DequantizeLinear", [x.name, *x.parameters])[0]

    def suited(self, real: str) -> float:
        """The size of the largest of floats."""
        values = self.known[real]
        finite = np.abs(values[np.isfinite(values)])
        return float(finite.max(initial=0)) or 1.0

    def result(self, real: str, kind: str = "") -> Tensor:
        """What stands for the numbers of a float result: not quantised yet."""
        kind = kind or self.kind()
        low, high = INTEGERS[kind]
        return self.tensor(
            "", self.shape(real), kind, self.scale(self.suited(real) / (high - low)), self.zero(kind)
        )

    def named(self, x: Tensor, name: str) -> Tensor:
        made = Tensor(name, x.shape, x.kind, x.parameters, x.scale, x.zero)
        self.values.append(made)
        return made

    def quantise(self, real: str) -> Tensor:
        x = self.result(real)
        return self.named(x, self.node("QuantizeLinear", [real, *x.parameters])[0])

    def model(self, ends: list[str]) -> onnx.ModelProto:
        read = {i for n in self.nodes for i in n.input}

        def port(name: str, data: Array) -> onnx.ValueInfoProto:
            data = data.astype(np.float32) if data.dtype == np.float64 else data
            return helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape
            )

        graph = helper.make_graph(
            self.nodes,
            "fragment",
            [port(k, v) for k, v in self.fed.items()],
            [port(k, self.known[k]) for k in ends],
            [numpy_helper.from_array(v, k) for k, v in self.constants.items() if k in read],
        )
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=11 if self.opset > 22 else 10)


Layer = Callable[[Fragment, Tensor], Any]
LAYERS: list[tuple[Layer, int]] = []


def layer(times: int) -> Callable[[Layer], Layer]:
    def add(made: Layer) -> Layer:
        LAYERS.append((made, times))
        return made

    return add
