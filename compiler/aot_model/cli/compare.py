"""`aot-model compare`: which layer of one model loses what another one has."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.cli.execute import built
from aot_model.cli.table import table
from aot_model.errors import fail
from aot_model.frontends.arrays import read_arrays
from aot_model.frontends.read import model_format
from aot_model.layers.data import vectors
from aot_model.layers.findings import decibels, explained, findings, first_loss, interval, loses
from aot_model.layers.losses import Losses, Pair, losses
from aot_model.layers.sides import ProgramSide, ReferenceSide, Side
from aot_model.layers.statistics import BINS, Sums

SHOWN = 40
SCHEMA = 1


def compare(arguments: argparse.Namespace) -> int:
    """Exit status 1 where --least-snr was given and a layer loses more."""
    from aot_model.host.program import scratch_folder

    with scratch_folder() as folder:
        b = _side(arguments, arguments.model, arguments.b, Path(folder) / "b", arguments.on)
        a = _side(arguments, arguments.a_model, arguments.a, Path(folder) / "a", None)
        arrays, _ = read_arrays(arguments.inputs, "inputs")
        given = {"in_0": arrays[""]} if "" in arrays else arrays
        ours, theirs = (vectors(x, y, given, str(arguments.inputs)) for x, y in ((a, b), (b, a)))
        found = losses(a, b, ours[: arguments.limit], theirs[: arguments.limit])
    if not found.pairs:
        raise fail(
            "E603",
            "the two have no tensor in common, not even an output",
            where=str(arguments.model),
            hint="compare a model with the one that it was made of",
        )
    least = 20.0 if arguments.least_snr is None else arguments.least_snr
    print(
        json.dumps(as_json(found, least), indent=1)
        if arguments.json
        else _text(found, least, len(ours), arguments.all)
    )
    if arguments.least_snr is not None and (first := first_loss(found, least)):
        raise fail("E602", explained(first), where=str(arguments.model))
    return 0


def _side(arguments: argparse.Namespace, path: Path, how: str, folder: Path, on: str | None) -> Side:
    """A file as a reference runs it, or the program that is generated of it."""
    constants = {name: np.asarray(values) for name, values in arguments.constant}
    signature = arguments.signature if model_format(path) == "tflite" else None
    if how == "reference":
        return ReferenceSide(path, arguments.reference, constants if arguments.constant else {}, signature)
    from dataclasses import replace

    from aot_model.cli.build import request

    one = argparse.Namespace(**{**vars(arguments), "model": path, "on": on, "signature": signature})
    if path is not arguments.model:
        one.target, one.option = "host", []  # what it is compared with: nothing is to be found out of it
        one.cc = one.cflags = one.runner = None
        one.sources = []
    program, compiled = built(one, folder, replace(request(one).library, trace=True))
    where = f"generated code for {compiled.view.target.label}" + (f" on {on}" if on else "")
    return ProgramSide(path, program, compiled.constants, where, compiled.signature)


# --- text
# -----------------------------------------------------------------------------------------------------------


def _text(found: Losses, least: float, there: int, every: bool) -> str:
    samples = f"{found.samples:,} sample{'' if found.samples == 1 else 's'}" + (
        f" of {there:,}" if there > found.samples else ""
    )
    lines = [
        f"A: {found.a}",
        f"B: {found.b}",
        f"{samples}; {len(found.pairs)} tensors are in both; {found.only_a} only in A, {found.only_b} only "
        f"in B",
    ]
    if found.unlike:
        lines.append(f"not comparable, for their shapes differ: {', '.join(found.unlike[:8])}")
    first = first_loss(found, least)
    lines += ["", *(_described(first) if first else _none(found, least))]
    others = [p for p in found.pairs if p is not first and loses(found, p, least)]
    lines += [f"also: {explained(p)}" for p in others[:8]]
    if len(others) > 8:
        lines.append(f"and {len(others) - 8} more")
    shown = found.pairs if every or len(found.pairs) <= SHOWN else _worst(found)
    head = (
        "tensor",
        "made by",
        "type",
        "own SNR",
        "SNR",
        "cosine",
        "max error",
        "saturated",
        "range of A",
        "B can say",
        "",
    )
    lines += ["", table(head, [_row(found, p, least) for p in shown], right=(3, 4, 5, 6, 7))]
    if len(shown) < len(found.pairs):
        lines.append(f"the {len(shown)} that lose most of {len(found.pairs)}; --all lists them")
    for o in found.outputs:
        changed = ""
        if o.changed is not None:
            changed = f"; the largest element is another one in {o.changed:,} of {found.samples:,}"
        assert o.pair.whole is not None
        lines.append(f"output {o.pair.name}: {decibels(o.pair.whole.snr)}{changed}")
    return "\n".join(lines)


def _worst(found: Losses) -> list[Pair]:
    kept = {id(p) for p in sorted(found.pairs, key=lambda p: p.judged.snr)[:SHOWN]}
    return [p for p in found.pairs if id(p) in kept]


def _none(found: Losses, least: float) -> list[str]:
    """No layer by itself; the errors of many may add up."""
    ends = [o.pair.whole.snr for o in found.outputs if o.pair.whole is not None]
    said = f"no layer loses by itself: each is more than {least:g} dB above its own error"
    if min(ends, default=least) >= least:
        return [said]
    worst = sorted((p for p in found.pairs if p.own is not None), key=lambda p: p.judged.snr)[:3]
    added = ", ".join(f"{p.name} ({decibels(p.judged.snr)})" for p in worst)
    return [f"{said}, but the errors add up to {decibels(min(ends))} at the output; the largest are {added}"]


def _described(pair: Pair) -> list[str]:
    lines = [f"the first layer that loses: {explained(pair)}"]
    lines += [f"  and {f.words}" for f in findings(pair)[1:]]
    if pair.nodes:
        listed = [f"{n.kind} '{n.name}'" for n in pair.nodes]
        lines.append(
            f"  in the model file: {', '.join(listed[:8])}"
            + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")
        )
    if pair.made is not None:
        lines.append(
            f"  in the program: {', '.join(f'{f}()' for f in pair.made.functions)}, layer "
            f"{', '.join(map(repr, pair.made.layers))}"
        )
    return lines


def _row(found: Losses, pair: Pair, least: float) -> tuple[object, ...]:
    whole, kinds = pair.whole, " + ".join(pair.kinds) or "-"
    assert whole is not None
    return (
        pair.name[:40],
        kinds if len(kinds) <= 36 else f"{kinds[:33]}...",
        pair.type,
        _db(pair.own),
        _db(whole),
        "-" if whole.cosine is None else f"{whole.cosine:.5f}",
        f"{whole.worst:.3g}",
        f"{100 * pair.judged.share_saturated:.2g} %" if pair.limits else "-",
        interval(*whole.want_range) if whole.elements else "-",
        interval(*pair.limits) if pair.limits else "-",
        "loses" if loses(found, pair, least) else "",
    )  # fmt: skip


def _db(sums: Sums | None) -> str:
    return "-" if sums is None else "same" if sums.snr > 120 else f"{sums.snr:.1f}"


# --- JSON
# -----------------------------------------------------------------------------------------------------------


def as_json(found: Losses, least: float) -> dict[str, Any]:
    """The schema is in docs/compare.md."""
    first = first_loss(found, least)
    return {
        "comparison": SCHEMA,
        "a": found.a,
        "b": found.b,
        "samples": found.samples,
        "least_snr": least,
        "first_loss": None if first is None else first.name,
        "words": " ".join(_none(found, least)) if first is None else explained(first),
        "only_a": found.only_a,
        "only_b": found.only_b,
        "not_comparable": list(found.unlike),
        "outputs": [{
            "name": o.pair.name,
            "changed": o.changed
        } for o in found.outputs],
        "tensors": [_tensor(found, p, least) for p in found.pairs],
    }  # fmt: skip


def _tensor(found: Losses, p: Pair, least: float) -> dict[str, Any]:
    assert p.whole is not None
    return {
        "name": p.name,
        "a": p.a,
        "b": p.b,
        "type": p.type,
        "loses": loses(found, p, least),
        "findings": [{
            "kind": f.kind,
            "words": f.words
        } for f in findings(p)],
        "own": None if p.own is None else _sums(p.own),
        "whole": _sums(p.whole),
        "range_a": _range(p.whole.want_range),
        "range_b": _range(p.whole.got_range),
        "limits": None if p.limits is None else _range(p.limits),
        "step": None if p.steps is None else p.steps.size,
        "reads": [found.pairs[k].name for k in p.reads],
        "nodes": [{
            "name": n.name,
            "operator": n.kind
        } for n in p.nodes],
        "program": None if p.made is None else {
            "functions": list(p.made.functions),
            "layers": list(p.made.layers),
            "calls": list(p.made.calls)
        },
        "histogram": {
            "reach": p.histogram.reach,
            "bins": BINS,
            "a": p.histogram.want.tolist(),
            "b": p.histogram.got.tolist()
        },
    }  # fmt: skip


def _sums(s: Sums) -> dict[str, Any]:
    """snr: null where nothing differs; identical says so."""
    return {
        "snr": s.snr if np.isfinite(s.snr) else None,
        "identical": s.snr == float("inf"),
        "cosine": s.cosine,
        "max_error": s.worst,
        "rms_error": s.rms,
        "saturated": s.share_saturated,
        "elements": s.elements,
    }  # fmt: skip


def _range(pair: tuple[float, float]) -> list[float] | None:
    return [float(pair[0]), float(pair[1])] if np.isfinite(pair).all() else None
