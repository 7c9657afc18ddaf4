"""Plans to choose from: each way to find ranges, with and without equalisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx

from aot_model.passes.qdq_site import MOVEMENTS
from aot_model.quantise.check import check
from aot_model.quantise.choose import Choice, choose
from aot_model.quantise.data import Samples
from aot_model.quantise.equalise import equalised, factors, pairs
from aot_model.quantise.functions import Function, functions
from aot_model.quantise.insert import inserted
from aot_model.quantise.network import Network
from aot_model.quantise.plan import LIMITS, Plan, TensorPlan, fitted
from aot_model.quantise.ranges import METHODS, Seen, observe, united
from aot_model.quantise.runtime import FloatModel
from aot_model.quantise.weights import weight_plans

SMALL = 4096
"""Ends of the model with at most so many elements are of 16 bits: they cost nothing there, and answers do
not tie."""


LEAST_SHARE = 1 / 16
"""A tensor of 16 bits that reaches so far, as a share of the others of a sum, has their scale: it keeps 11
bits, and the sum rounds nothing."""
CHANNELS_LAST = ("LayerNormalization", "MatMul", "Gemm")


@dataclass
class Prepared:
    """A float model with what calibration saw of it."""

    network: Network
    choice: Choice
    seen: dict[str, Seen]
    equalisation: tuple[tuple[str, tuple[float, ...]], ...] = ()
    functions: dict[str, Function] = field(default_factory=dict)

    def together(self, names: Sequence[str]) -> Seen:
        """What was seen of tensors that have one scale."""
        found = united([self.seen[n] for n in names if n in self.seen])
        return replace(found, behind=self.functions.get(self.choice.groups[names[0]]))


@dataclass(frozen=True)
class Candidate:
    """A plan, and the float model that it is for."""

    plan: Plan
    source: Prepared
    method: str = ""
    """How its ranges were found; empty when it was given."""

    @property
    def learnt(self) -> bool:
        """Whether rounding is."""
        return any(w.rounding for w in self.plan.weights.values())

    def model(self, where: str) -> onnx.ModelProto:
        return inserted(self.source.network, self.source.choice, self.plan, where)


class Calibration:
    """The float model and the samples; plans of them."""

    def __init__(self, model: onnx.ModelProto, samples: Samples, path: Path, powers: bool = False) -> None:
        self.where = str(path)
        self.samples = samples
        network = Network(model)
        self.plain = self._observed(network, choose(network, powers))
        self._equal: Prepared | None = None

    def _observed(
        self, network: Network, choice: Choice, done: tuple[tuple[str, tuple[float, ...]], ...] = ()
    ) -> Prepared:
        several = pairs(network, choice)
        wanted = list(dict.fromkeys([*choice.tensors, *(p.tensor for p in several)]))
        last = {layer.before for layer in choice.layers if layer.kind in CHANNELS_LAST}
        last |= {n for n in wanted if n in network.producer and network.producer[n].op_type in CHANNELS_LAST}
        float_model = FloatModel(network.model, wanted, self.where)
        seen = observe(float_model, self.samples, last) if wanted else {}
        return Prepared(network, choice, seen, done, functions(network, choice))

    def equal(self) -> Prepared | None:
        """The model with channels equalised; None where nothing can be."""
        if self._equal is None:
            several = pairs(self.plain.network, self.plain.choice)
            chosen = tuple(factors(self.plain.network, several, self.plain.seen).items())
            if not chosen:
                return None
            scaled = equalised(self.plain.network, several, dict(chosen))
            self._equal = self._observed(scaled, self.plain.choice, chosen)
        return self._equal

    def candidate(self, method: str, equalise: bool) -> Candidate | None:
        """Int8, with the nearest integers; None where nothing can be equalised."""
        source = self.equal() if equalise else self.plain
        if source is None:
            return None
        tensors = tensor_plans(source, method)
        weights = weight_plans(source.network, source.choice, tensors)
        words = f"{method}, equalised" if equalise else method
        return Candidate(Plan(tensors, weights, source.equalisation, method=words), source, method)

    def all(self, method: str) -> Iterator[Candidate]:
        """Plans of int8 for "auto" or one method; equal ones once."""
        known: list[tuple[object, ...]] = []
        for equalise in (False, True):
            for name in METHODS if method == "auto" else (method,):
                found = self.candidate(name, equalise)
                if found is None:
                    continue
                key = (found.plan.tensors, found.plan.weights, found.plan.equalisation)
                if key not in known:
                    known.append(key)
                    yield found


def tensor_plans(source: Prepared, method: str, kinds: dict[str, str] | None = None) -> dict[str, TensorPlan]:
    """Type, scale and zero point of every tensor; kinds: other types than int8, by representative of a
    kind."""
    choice = source.choice
    members: dict[str, list[str]] = {}
    for name in choice.tensors:
        members.setdefault(choice.groups[name], []).append(name)
    reaches: dict[str, float] = {}
    for name, one in source.seen.items():
        if name in choice.sums:
            together = choice.sums[name]
            reaches[together] = max(reaches.get(together, 0.0), -one.low, one.high)
    result: dict[str, TensorPlan] = {}
    for names in members.values():
        seen = [source.seen[n] for n in names if n in source.seen]
        if not seen:
            continue
        kind = type_of(source, names[0], kinds or {})
        low, high = LIMITS[kind]
        if kind == "int8":
            found = METHODS[method](source.together(names), high - low)
        else:  # room for numbers that calibration did not see costs one bit of many
            reach = 2 * max(max(-s.low, s.high) for s in seen)
            summed = 2 * reaches[choice.sums[names[0]]]
            reach = summed if reach >= LEAST_SHARE * summed else reach
            found = -reach, reach
        plan = fitted(kind, *found, choice.powers)
        result.update(dict.fromkeys(names, plan))
    return multiplied(source, result)


def multiplied(source: Prepared, tensors: dict[str, TensorPlan]) -> dict[str, TensorPlan]:
    """The plans with products with a number in the integers of what they are made of."""
    choice, result = source.choice, dict(tensors)
    for name, product, number in choice.multiples:
        members = [t for t in choice.tensors if choice.groups[t] == choice.groups[product]]
        makers = {t: source.network.producer.get(t) for t in members if t != product}
        if name in members or any(n is None or n.op_type not in MOVEMENTS for n in makers.values()):
            continue
        plan = result.get(name)
        if plan is None or product not in result or plan.type != result[product].type or choice.powers:
            continue
        scale = float(np.float32(plan.scale * number))
        if 0 < scale < np.inf:
            result.update(dict.fromkeys((t for t in members if t in result), replace(plan, scale=scale)))
    return {name: result[name] for name in choice.tensors if name in result}


def type_of(source: Prepared, name: str, kinds: dict[str, str]) -> str:
    choice = source.choice
    chosen = kinds.get(choice.kinds[name])
    if chosen is not None:
        return chosen
    together = [t for t in choice.tensors if choice.kinds[t] == choice.kinds[name]]
    shapes = [source.network.shape(t) for t in together]
    wide = wide_ends(source) and all(t in choice.ends for t in together)
    return "int16" if wide and all(s is not None and np.prod(s) <= SMALL for s in shapes) else "int8"


def wide_ends(source: Prepared) -> bool:
    from aot_model.quantise.prepare import has_wide_types

    return has_wide_types(source.network.model)


def without_data(model: onnx.ModelProto, plan: Plan, where: str) -> Candidate:
    """A plan that was given, on the model that it was made for: its equalisation is in it. CompileError E302
    where it was made for another.
    """
    network = Network(model)
    choice = choose(network)
    several = pairs(network, choice)
    check(network, choice, several, plan, where)
    scaled = equalised(network, several, dict(plan.equalisation)) if plan.equalisation else network
    return Candidate(plan, Prepared(scaled, choice, {}, tuple(plan.equalisation)))
