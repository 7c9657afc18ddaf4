"""`aot-model targets` and `aot-model ops`: what there is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from aot_model.cli.table import Row, as_json, markdown, table


def _print(arguments: argparse.Namespace, head: Sequence[str], rows: Sequence[Row]) -> int:
    if arguments.json:
        print(as_json(head, rows))
        return 0
    texts = [[", ".join(map(str, c)) if isinstance(c, (list, tuple)) else c for c in row] for row in rows]
    print(markdown(head, texts) if arguments.markdown else table(head, texts))
    return 0


def targets_(arguments: argparse.Namespace) -> int:
    from aot_model.targets.registry import targets

    rows = []
    for name, target in sorted(targets(tuple(arguments.target_plugin)).items()):
        options = {n: a.default for t in reversed(target.lineage()) for n, a in t.attributes.items()}
        chain = [t.name for t in target.lineage()[1:]]
        patterns = list(dict.fromkeys(p.name for p in target.offloads.patterns)) if target.offloads is not None else []
        rows.append((name, target.description, chain, [f"{n}={d}" for n, d in sorted(options.items())], list(target.c_flags), patterns))
    return _print(arguments, ("target", "description", "falls back on", "options", "compiler flags", "takes over"), rows)


def operators(arguments: argparse.Namespace) -> int:
    from dataclasses import fields

    from aot_model.frontends.tflite import supported_operators
    from aot_model.ops.registry import OPERATORS, load_all

    load_all()
    rows: list[Row] = [
        (domain or "ai.onnx", name, sorted(f.name for f in fields(cls)), "kernel" if cls.has("lower") else "composite" if cls.has("expand") else "expression")
        for (domain, name), cls in sorted(OPERATORS.items())
        if domain != "aot"
    ]
    rows += [("tflite", name, [], "rule") for name in supported_operators()]
    return _print(arguments, ("domain", "operator", "attributes", "form"), rows)
