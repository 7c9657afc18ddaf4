"""`aot-model inspect`: what is in a model, and what it needs."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

from aot_model.c.names import printable
from aot_model.cli.build import request, tell_notes
from aot_model.cli.table import table
from aot_model.emit.metadata import metadata_of
from aot_model.library.metadata import Metadata
from aot_model.pipeline import Compiled, compile_model

CHART_WIDTH = 60
MAX_PERIOD = 64
"""Calls of a turn of a loop that was unrolled."""
BINARIES = (".so", ".elf", ".axf", ".out", ".exe", ".bin", ".json", "")
"""Files that have compiled models in them."""


def inspect(arguments: argparse.Namespace) -> int:
    if arguments.model.suffix in BINARIES:
        found = [library(m) for m in Metadata.read_all(arguments.model)]
        print(json.dumps(found, indent=1) if arguments.json else "\n\n".join(map(_text, found)))
        return 0
    compiled = compile_model(request(arguments))
    facts = describe(compiled)
    if arguments.json:
        print(json.dumps(facts, indent=1))
        return 0
    print(_text(facts))
    tell_notes(compiled.notes)
    return 0


def describe(compiled: Compiled) -> dict[str, Any]:
    """The metadata of the library, and what only people ask for: operators as in the file, memory at each
    step.
    """
    facts = library(metadata_of(compiled.view))
    facts["operators"] = dict(sorted(compiled.operators.items()))
    facts["parameters"] = compiled.parameters
    facts["notes"] = list(compiled.notes)
    return facts


def library(metadata: Metadata) -> dict[str, Any]:
    """The metadata; operators as compiled, memory at each step."""
    facts = metadata.to_dict()
    facts["operators"] = dict(sorted(Counter(layer.op for layer in metadata.layers).items()))
    facts["memory_over_time"] = [
        {"step": step, "layer": layer.name, "op": layer.op, "bytes": layer.workspace_bytes}
        for step, layer in enumerate(metadata.layers, 1)
    ]
    return facts


def _text(facts: dict[str, Any]) -> str:
    model = facts["model"]
    lines = [
        f"{facts['name']}: {printable(model['file_name'])} (sha256 {model['sha256'][:16]}…), for target "
        f"{facts['target']}",
        "",
    ]
    for kind in ("inputs", "outputs"):
        rows = [
            (
                printable(p["name"]),
                p["c_name"],
                f"{p['dtype']}{p['shape']}",
                f"{p['bytes']:,}",
                _quantisation(p),
            )
            for p in facts[kind]
        ]
        lines += [table((kind, "in C", "type", "bytes", "quantisation"), rows, right=(3,)), ""]
    counted: dict[str, int] = facts["operators"]
    by_count = sorted(counted, key=lambda name: (-counted[name], name))
    lines += [table(("operator", "count"), [(name, counted[name]) for name in by_count], right=(1,)), ""]
    pools = ", ".join(f"{p['name']} {p['bytes']:,} bytes" for p in facts["workspace"]["pools"])
    lines += [
        *(
            [f"parameters          {facts['parameters']:,}"]
            if isinstance(facts.get("parameters"), int)
            else []
        ),
        f"constants           {facts['constants_bytes']:,} bytes",
        f"multiply-accumulate {facts['macs']:,}",
        f"workspace           {pools} (lower bound {facts['lower_bound']:,})",
        "",
        *_chart(facts["memory_over_time"]),
    ]
    return "\n".join(lines)


def _quantisation(port: dict[str, Any]) -> str:
    q = port["quantisation"]
    if q is None:
        return "-"
    return (
        f"{q['scale'][0]:.6g} * (q - {q['zero_point'][0]})"
        if len(q["scale"]) == 1
        else f"{len(q['scale'])} scales, axis {q['axis']}"
    )


def _chart(steps: list[dict[str, Any]]) -> list[str]:
    """One line for each call: a bar of the bytes in use while it runs; turns of a loop that was unrolled as
    one."""
    peak = max((s["bytes"] for s in steps), default=0)
    lines = ["memory in use (bytes), call by call; * is the peak"]
    for first, length, times in folded([s["op"] for s in steps]):
        for s in steps[first : first + length]:
            most = max(steps[s["step"] - 1 + turn * length]["bytes"] for turn in range(times))
            bar = "#" * round(CHART_WIDTH * most / peak) if peak else ""
            mark = "*" if peak and most == peak else " "
            lines.append(
                f"{s['step']:>4} {most:>11,} {mark}|{bar:<{CHART_WIDTH}}| {printable(s['layer'], 32)} "
                f"({s['op']})"
            )
        if times > 1:
            last = first + length * times
            which = f"these {length} calls are" if length > 1 else "this call is"
            lines.append(f"     {which} there {times} times, up to {last}; bytes: the most of all")
    return lines


def folded(words: list[str]) -> list[tuple[int, int, int]]:
    """Runs (first, length, times): `length` words that come `times` times in a row; those that come once
    have times 1.

    A run is folded where it saves more than two lines; the shortest period is taken, so that 40 equal ones
    are one.
    """
    runs: list[tuple[int, int, int]] = []
    at = 0
    while at < len(words):
        best = (1, 1)
        for length in range(1, min(MAX_PERIOD, (len(words) - at) // 2) + 1):
            turn, times = words[at : at + length], 1
            while words[at + length * times : at + length * (times + 1)] == turn:
                times += 1
            if times > 1 and length * (times - 1) > max(2, best[0] * (best[1] - 1)):
                best = (length, times)
        runs.append((at, *best))
        at += best[0] * best[1]
    return runs
