"""`aot-model verify --layers`: the tensors of a model, as the generated code computes them, beside a
reference's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.cli import execute
from aot_model.cli.build import request
from aot_model.cli.execute import built, consecutive, output_rows, outputs_table, vectors_for
from aot_model.errors import fail
from aot_model.host.comparison import Comparison
from aot_model.ir.types import TensorType
from aot_model.layers.measure import Layer, Measured
from aot_model.layers.reference import FileNode

SHOWN = 40
"""Lines of the table."""
SHOWN_NODES = 8


def verify(arguments: argparse.Namespace) -> int:
    """The outputs alone, or with --layers every tensor."""
    return verify_layers(arguments) if arguments.layers else execute.verify(arguments)


def verify_layers(arguments: argparse.Namespace) -> int:
    """Exit status 1 when a layer is off, or an output differs from the vectors."""
    from aot_model.frontends.read import model_format
    from aot_model.host.program import scratch_folder
    from aot_model.layers.choice import open_reference
    from aot_model.layers.measure import measure

    with scratch_folder() as folder:
        program, compiled = built(arguments, Path(folder), replace(request(arguments).library, trace=True))
        view, tolerance = program.view, execute.tolerance_of(arguments, program.view)
        types = [p.buffer.type for p in view.inputs]
        vectors = None if arguments.vectors is None else vectors_for(view, arguments.vectors)
        if vectors is not None:
            inputs = [[array[k] for array in vectors.inputs] for k in range(vectors.count)]
        else:
            rng = np.random.default_rng(arguments.seed)
            inputs = [[random_input(t, rng) for t in types] for _ in range(arguments.random)]
        reference = open_reference(
            arguments.model,
            (read_as := model_format(arguments.model)),
            arguments.reference,
            compiled.constants,
            compiled.signature,
        )
        rows = consecutive(program, inputs, carry_over=False)
        measured = measure(program, rows, inputs, reference, tolerance)
    outputs = (
        []
        if vectors is None
        else output_rows(view, [row[len(view.traced) :] for row in rows], vectors, tolerance)
    )
    if arguments.json:
        print(json.dumps(_as_json(measured, outputs), indent=1))
    else:
        print(_text(measured, arguments.all))
        if vectors is not None:
            print(outputs_table(outputs, vectors.count))
    if first := measured.first_off:
        integers = read_as == "tflite" and any(layer.steps for layer in measured.layers)
        hint = _of_roundings(arguments) if integers else ""
        raise fail("E602", f"layer '{first.name}' is off", where=str(arguments.model), hint=hint)
    if any(row.differing for row in outputs):
        raise fail(
            "E602",
            "the outputs differ from the vectors by more than the tolerance, though no layer does",
            where=str(arguments.model),
        )
    return 0


def _of_roundings(arguments: argparse.Namespace) -> str:
    """What to try first with integers of TFLite, whose runtimes round in two ways; empty when it was."""
    from aot_model.targets.registry import parse_target

    asked = request(arguments)
    target = parse_target(asked.target, asked.options, asked.plugins)
    if not target.has_option("arithmetic") or target.option("arithmetic") == "litert-ref":
        return ""
    return (
        "with --option arithmetic=litert-ref integers are rounded as this reference does, not as TensorFlow "
        "Lite Micro: what is off then is not a rounding that grew"
    )


def random_input(type_: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Normal floats, any integer of 8 or 16 bits; wider integers, which mostly are indices, 0 or 1."""
    dtype = type_.dtype
    if dtype.is_string:
        return np.full(type_.shape, b"a", dtype.numpy)
    if dtype.is_float:
        return rng.standard_normal(type_.shape).astype(dtype.numpy)
    low, high = dtype.limits if 1 < dtype.bits <= 16 else (0, 1)
    return rng.integers(low, high, type_.shape, endpoint=True).astype(dtype.numpy)


# --- text ---------------------------------------------------------------------------------------------------


def _text(measured: Measured, every: bool) -> str:
    from aot_model.cli.table import table

    count = {
        s: sum(layer.status == s for layer in measured.layers) for s in ("ok", "rounding", "inherited", "off")
    }
    said = ", ".join(f"{n} {_WORDS[s]}" for s, n in count.items() if n)
    lines = [
        f"reference: {measured.reference}; {measured.vectors} vector{'' if measured.vectors == 1 else 's'}",
        f"{len(measured.layers)} tensors are in the model file and in the program ({said or 'none'}), "
        f"{measured.fused} are fused into others",
    ]
    if measured.refused:
        lines.append(
            "not comparable, for the reference has them in another shape or type, or not: "
            f"{', '.join(measured.refused[:SHOWN_NODES])}"
        )
    if first := measured.first_off:
        lines += ["", *_described(first)]
    shown = [layer for layer in measured.layers if every or layer.status != "ok"]
    if shown:
        head = ("tensor", "made by", "type", "own error", "of range", "steps", "with inputs'", "of range", "")
        lines += [
            "",
            table(
                head, [_row(layer) for layer in (shown if every else shown[:SHOWN])], right=(3, 4, 5, 6, 7)
            ),
        ]
        if len(shown) > SHOWN and not every:
            lines.append(f"and {len(shown) - SHOWN} more; --all lists them")
    return "\n".join(lines)


_WORDS = {
    "ok": "right",
    "rounding": "off by a step for each rounding, as they may be",
    "inherited": "right for what they are given",
    "off": "off",
}


def _row(layer: Layer) -> tuple[object, ...]:
    own, whole = layer.own, layer.inherited
    steps = f"{(own or whole).worst:g}" if layer.steps else "-"
    own_cells = ("-", "-") if own is None else (f"{own.worst:.3g}", _of_range(own))
    kinds = " + ".join(_kinds(layer.nodes))
    return (
        layer.name[:40],
        kinds if len(kinds) <= 48 else f"{kinds[:45]}...",
        layer.type,
        *own_cells,
        steps,
        f"{whole.worst:.3g}",
        _of_range(whole),
        layer.status,
    )


def _of_range(c: Comparison) -> str:
    return "-" if c.of_range is None else f"{c.of_range:.2g}"


def _kinds(nodes: Sequence[FileNode]) -> list[str]:
    """Operators in order; a row of equal ones once, with its length."""
    result: list[str] = []
    for node in nodes:
        last, _, times = result[-1].partition(" x") if result else ("", "", "")
        if last == node.kind:
            result[-1] = f"{last} x{int(times or 1) + 1}"
        else:
            result.append(node.kind)
    return result


def _described(layer: Layer) -> list[str]:
    """The layer in words: by how much it is off, what it was fused with, and what both sides call it."""
    judged = layer.own or layer.inherited
    amount = f"{judged.worst:.3g}"
    if judged.of_range is not None:
        amount += f" = {judged.of_range:.2g} of its range"
    if layer.steps:
        amount += f" = {judged.worst:g} steps"
    whence = "computed from the same inputs" if layer.own else "including what its inputs are off"
    nodes = [f"{n.kind} '{n.name}'" for n in layer.nodes]
    listed = ", ".join(nodes[:SHOWN_NODES]) + (
        f" and {len(nodes) - SHOWN_NODES} more" if len(nodes) > SHOWN_NODES else ""
    )
    return [
        f"the first layer that is off makes '{layer.name}', {layer.type}: by {amount}, in "
        f"{judged.differing:,} of {judged.elements:,} elements, {whence}",
        f"  in the model file: {listed}",
        f"  in the program: {', '.join(f'{f}()' for f in layer.functions)}, layer "
        f"{', '.join(map(repr, layer.layers))}",
    ]


# --- JSON ---------------------------------------------------------------------------------------------------


def _as_json(measured: Measured, outputs: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "reference": measured.reference,
        "vectors": measured.vectors,
        "fused": measured.fused,
        "not_comparable": list(measured.refused),
        "first_off": None if measured.first_off is None else measured.first_off.name,
        "tensors": [_tensor(layer) for layer in measured.layers],
        "outputs": [_amount(c) | {"name": c.name} for c in outputs],
    }


def _tensor(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "key": layer.key,
        "type": layer.type,
        "status": layer.status,
        "own": None if layer.own is None else _amount(layer.own),
        "inherited": _amount(layer.inherited),
        "steps": layer.steps,
        "nodes": [{"name": n.name, "operator": n.kind} for n in layer.nodes],
        "program": {"functions": list(layer.functions), "layers": list(layer.layers)},
    }


def _amount(c: Comparison) -> dict[str, Any]:
    return {
        "max": _finite(c.worst),
        "range": c.extent,
        "of_range": None if c.of_range is None else _finite(c.of_range),
        "differing": c.differing,
        "elements": c.elements,
    }


def _finite(number: float) -> float | None:
    """JSON has no infinity: null is a NaN or an infinity where there should be a number."""
    return number if np.isfinite(number) else None
