"""The plan: of each tensor and each constant its type, scale and zero point. Data: written as JSON, edited,
given back."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.errors import fail

SCHEMA = 1
LIMITS = {"int4": (-8, 7), "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
FLOAT = "float"
LEAST, LARGEST = (float(getattr(np.finfo(np.float32), name)) for name in ("tiny", "max"))
"""Scales and factors are floats of 32 bits in the model."""


@dataclass(frozen=True)
class TensorPlan:
    """A tensor: `scale * (integer - zero_point)`; of type "float" it stays as it is."""

    type: str
    scale: float = 1.0
    zero_point: int = 0

    @property
    def range(self) -> tuple[float, float]:
        low, high = LIMITS[self.type]
        return self.scale * (low - self.zero_point), self.scale * (high - self.zero_point)


@dataclass(frozen=True)
class WeightPlan:
    """A constant: one scale, or one for each index of an axis; zero is 0."""

    type: str
    axis: int | None = None
    scale: tuple[float, ...] = (1.0,)
    rounding: str = ""
    """What is added to the nearest integers: int8 in the constant's order, zlib, base64; empty: nothing."""

    def steps(self, count: int) -> np.ndarray:
        """`rounding` of so many elements. ValueError where it is of others."""
        if not self.rounding:
            return np.zeros(count, np.int8)
        try:
            # One more than there should be is enough to see that there are too many.
            data = zlib.decompressobj().decompress(base64.b64decode(self.rounding, validate=True), count + 1)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"its rounding cannot be read: {error}") from None
        if len(data) != count:
            raise ValueError(f"its rounding is not of {count} elements")
        return np.frombuffer(data, np.int8)


@dataclass(frozen=True)
class Plan:
    """All that decides the quantised model, given the float one."""

    tensors: Mapping[str, TensorPlan]
    weights: Mapping[str, WeightPlan]
    equalisation: Sequence[tuple[str, tuple[float, ...]]] = ()
    """(tensor, by what each of its channels is divided), in order."""
    bias: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Layer -> what is added to its bias, by channel."""
    method: str = ""

    def to_json(self) -> str:
        """Lines that a person reads and edits: one for each tensor."""

        def block(name: str, entries: list[tuple[str, Any]]) -> str:
            rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in entries)
            return f' "{name}": {{{chr(10)}{rows}{chr(10)} }}' if entries else f' "{name}": {{}}'

        parts = [
            f' "schema": {SCHEMA}',
            ' "kind": "aot-model quantisation plan"',
            f' "method": {json.dumps(self.method)}',
            block("tensors", [(name, _tensor_entry(t)) for name, t in self.tensors.items()]),
            block("weights", [(name, _weight_entry(w)) for name, w in self.weights.items()]),
            block("equalisation", [(name, list(f)) for name, f in self.equalisation]),
            block("bias", [(name, list(b)) for name, b in self.bias.items()]),
        ]
        return "{\n" + ",\n".join(parts) + "\n}\n"

    @staticmethod
    def read(path: Path) -> Plan:
        """A plan that was written, and maybe edited. CompileError E101, E302 with everything that is
        wrong."""
        try:
            facts = json.loads(path.read_bytes())
        except OSError as error:
            raise fail("E101", f"cannot read the plan: {error.strerror or error}", where=str(path)) from None
        except ValueError as error:
            raise fail("E302", f"the plan is not JSON: {error}", where=str(path)) from None
        try:
            if facts["schema"] != SCHEMA:
                raise ValueError(f"schema {facts['schema']} instead of {SCHEMA}")
            return Plan(
                {n: _tensor(n, t) for n, t in facts["tensors"].items()},
                {n: _weight(n, w) for n, w in facts["weights"].items()},
                tuple((n, _positive(n, f)) for n, f in facts.get("equalisation", {}).items()),
                {n: tuple(map(_finite, b)) for n, b in facts.get("bias", {}).items()},
                str(facts.get("method", "")),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            raise fail(
                "E302",
                f"the plan cannot be used: {said}",
                where=str(path),
                hint="docs/quantise.md has its form; `--write-plan` writes one",
            ) from None


def _tensor_entry(plan: TensorPlan) -> dict[str, Any]:
    if plan.type == FLOAT:
        return {"type": FLOAT}
    return {"type": plan.type, "scale": plan.scale, "zero_point": plan.zero_point}


def _weight_entry(plan: WeightPlan) -> dict[str, Any]:
    if plan.type == FLOAT:
        return {"type": FLOAT}
    learnt = {"rounding": plan.rounding} if plan.rounding else {}
    return {"type": plan.type, "axis": plan.axis, "scale": list(plan.scale), **learnt}


def _finite(value: Any) -> float:
    number = float(value)
    if not abs(number) <= LARGEST:
        raise ValueError(f"{value} is not a finite number")
    return number


def _positive(name: str, values: Any) -> tuple[float, ...]:
    found = tuple(map(_finite, values))
    if not found or min(found) < LEAST:
        raise ValueError(f"'{name}': scales and factors must be more than 0")
    return found


def _known(name: str, kind: Any, kinds: tuple[str, ...]) -> str:
    if kind not in (*kinds, FLOAT):
        raise ValueError(f"'{name}' has type {kind}; there are {', '.join(kinds)}, {FLOAT}")
    return str(kind)


def _tensor(name: str, entry: Mapping[str, Any]) -> TensorPlan:
    kind = _known(name, entry["type"], ("int8", "uint8", "int16"))
    if kind == FLOAT:
        return TensorPlan(FLOAT)
    zero = entry.get("zero_point", 0)
    low, high = LIMITS[kind]
    if not isinstance(zero, int) or not low <= zero <= high:
        raise ValueError(f"'{name}' has zero point {zero}, which {kind} cannot have")
    return TensorPlan(kind, _positive(name, [entry["scale"]])[0], zero)


def _weight(name: str, entry: Mapping[str, Any]) -> WeightPlan:
    kind = _known(name, entry["type"], ("int8", "int4", "int16"))
    if kind == FLOAT:
        return WeightPlan(FLOAT)
    axis = entry.get("axis")
    if axis is not None and not isinstance(axis, int):
        raise ValueError(f"'{name}' has axis {axis}")
    return WeightPlan(kind, axis, _positive(name, entry["scale"]), str(entry.get("rounding", "")))


def fitted(kind: str, low: float, high: float, powers: bool = False) -> TensorPlan:
    """The integers for a range of real numbers; 0 is one of them. int16 is symmetric, which kernels need, and
    its scale a power of two: it has bits to spare, and nothing is divided then.

    powers: with a scale that is a power of two."""
    low, high = min(low, 0.0), max(high, 0.0)
    least, most = LIMITS[kind]
    if kind == "int16":
        return TensorPlan(kind, rounded(max(-low, high, 1e-12) / most, True))
    scale = rounded(max(high - low, 1e-12) / (most - least), powers)
    return TensorPlan(kind, scale, int(np.clip(np.rint(least - low / scale), least, most)))


def rounded(value: float, powers: bool = False) -> float:
    """As float32 with 16 bits: sums that machines round differently shall not become other models. Or the
    power of two that is not less."""
    if powers:
        return float(2.0 ** max(np.ceil(np.log2(rounded(value))), -126.0))
    number = np.asarray(value, np.float32)
    bits = number.view(np.uint32)
    up = np.asarray((int(bits) + 0xFF) & ~0xFF, np.uint32)  # never less: the range must stay inside
    return max(float(up.view(np.float32)), float(np.finfo(np.float32).tiny))
