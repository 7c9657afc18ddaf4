"""Samples with other attributes than their own, or with inputs of other shapes: what all samples of an
operator leave alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from near_samples import near, typed
from oracles import ONNX_RUNTIME, Expected, expected
from rows import Row, rows_of
from verdict import verdict

from aot_model.ir.graph import Graph
from aot_model.ir.operator import Operator, Sample
from aot_model.ops.registry import OPERATORS
from batch import Outcome

FILE = Path(__file__).with_name("variants.json")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = ("forward", "reverse", "bidirectional")


def others(kind: type[Operator], rows: list[Row]) -> dict[str, list[Any]]:
    """By attribute: the values that samples have, the default, and another one of a number."""
    found: dict[str, list[Any]] = {}
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name.startswith("_"):
            continue
        values = [getattr(row.operator, f.name) for row in rows]
        if any(isinstance(v, (Graph, np.ndarray)) for v in values):
            continue
        values += [] if f.default is MISSING else [f.default]
        for v in (f.default, *values[:1]):
            if isinstance(v, float):
                values.append(v * 1.5 if v else 0.5)
            elif isinstance(v, int) and not isinstance(v, bool):
                values += [1 - v] if v in (0, 1) else [v + 1]
        distinct: list[Any] = []
        for v in values:
            if v is not MISSING and v not in distinct:
                distinct.append(v)
        found[f.name] = distinct
    return found


def with_other_attributes(kind: type[Operator]) -> Iterator[Row]:
    """Each sample with one attribute changed."""
    rows = rows_of(kind)
    known = others(kind, rows)
    for row in rows:
        for name, values in known.items():
            for n, value in enumerate(values):
                if value is None or value == getattr(row.operator, name):
                    continue
                sample = replace(row.sample, attributes={**row.sample.attributes, name: value})
                yield Row(f"{row.label} {name} {n}", kind, row.number, sample)


def recurrences() -> Iterator[Row]:
    """Recurrent layers in every direction and layout: with a bias, states, peepholes, a clip, lengths or
    without.
    """
    rng = np.random.default_rng(5)

    def some(*shape: int) -> np.ndarray:
        return np.asarray(rng.uniform(-1, 1, shape), np.float32)

    for name, gates in GATES.items():
        kind = OPERATORS["", name]
        for turn in range(18):
            direction, layout, hidden = DIRECTIONS[turn % 3], turn // 3 % 2, (3, 8)[turn // 2 % 2]
            n, steps, batch, ins = 1 + (turn % 3 == 2), 4, 3, 5
            state = (batch, n, hidden) if layout else (n, batch, hidden)
            inputs = [
                some(*((batch, steps) if layout else (steps, batch)), ins),
                some(n, gates * hidden, ins),
                some(n, gates * hidden, hidden),
                some(n, 2 * gates * hidden) if turn % 4 else None,
                np.asarray([4, 1, 2], np.int32) if turn % 5 == 1 and not layout else None,
                some(*state) if turn % 3 else None,
            ]
            if name == "LSTM":
                inputs += [some(*state) if turn % 3 else None, some(n, 3 * hidden) if turn % 4 > 1 else None]
            while inputs[-1] is None:
                inputs.pop()
            attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction, "layout": layout}
            if turn % 4 == 3 and not layout:
                attributes["clip"] = 0.4
            if name == "GRU" and turn % 2:
                attributes["linear_before_reset"] = 1
            constants = frozenset(k for k in (1, 2, 3) if k < len(inputs) and inputs[k] is not None)
            sample = Sample(
                tuple(inputs),
                attributes,
                constants=constants if turn % 2 else frozenset(),
                outputs=3 if name == "LSTM" else 2,
            )
            yield Row(f"{name}-recurrence-{turn}", kind, 0, sample)


def candidates() -> Iterator[Row]:
    """Samples with one attribute, the shape of one input, or a type changed."""
    for _, kind in sorted(OPERATORS.items()):
        rows = rows_of(kind)
        if rows and rows[0].in_onnx and not any(row.has_bodies for row in rows):
            yield from with_other_attributes(kind)
            for row in rows:
                yield from near(row)
    yield from typed()


def chosen() -> list[Row]:
    """Recurrent layers, and those of the candidates in which comparisons and conditions of ops/ come out as
    in no sample: variants.json, as mutation/noted_edges.py found them.
    """
    labels = set(json.loads(FILE.read_text()))
    found = [row for row in candidates() if row.label in labels]
    gone = labels - {row.label for row in found}
    assert not gone, f"no sample has these variants: {sorted(gone)}"
    return [*recurrences(), *found]


def oracles(row: Row) -> Expected:
    """ONNX Runtime alone where it computes a row: the evaluator leaves some attributes out of account."""
    with np.errstate(all="ignore"):
        known = expected(row)
    if ONNX_RUNTIME in known.outputs:
        return replace(known, outputs={ONNX_RUNTIME: known.outputs[ONNX_RUNTIME]})
    return known


def problem(row: Row, outcome: Outcome) -> str:
    return verdict(row, outcome, oracles(row))
