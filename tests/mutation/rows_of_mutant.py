"""Compile and run the rows of a mutant; in a process that has loaded nothing of the compiler yet."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

for _name in ("numpy", "onnx", "onnx.reference", "onnxruntime", "onnx_ir", "ml_dtypes", "jinja2", "flatbuffers", "tflite"):
    importlib.import_module(_name)

RUN: dict[str, dict[str, Any]] = {
    "c": {"flags": ("-O1",)}, "host": {"flags": ("-O1", "-march=native")}, "cortex-m4": {"board": "m4", "sanitize": False}, "cortex-m55": {"board": "m55", "sanitize": False},
}  # fmt: skip


def _constants(labels: list[str]) -> str:
    """What is wrong with the rows when all their inputs are constants."""
    from oracles import expected
    from rows import folded, registry_rows
    from verdict import verdict

    from batch import Outcome

    for row in registry_rows():
        if row.label in labels and not row.sample.states:
            try:
                outputs = folded(row)
            except Exception as error:
                outputs = None
                if "scale" not in str(error):
                    return f"{row.label} of constants: {type(error).__name__}: {error}"[:300]
            problem = "" if outputs is None else verdict(row, Outcome("ok", "", tuple(outputs)), expected(row))
            if problem:
                return f"{row.label} of constants: {problem[:150]}"
    return ""


def outcome(place: Path, rows: list[tuple[str, str]], texts: dict[str, str]) -> dict[str, object]:
    """What the rows say of the compiler in a folder: caught, or nothing."""
    sys.path.insert(0, str(place))
    sys.dont_write_bytecode = True
    from subjects import subjects

    from batch import compiled_case, run_cases

    known = subjects()
    by_target = defaultdict(list)
    with TemporaryDirectory() as folder:
        for label, target in rows:
            try:
                text = compiled_case(known[label].case, Path(folder) / "model", "m", target).texts["m.c"]
            except Exception as error:
                return {"status": "caught", "by": f"{label} for {target}: {type(error).__name__}: {error}"[:300]}
            if sha256(text.encode()).hexdigest() != texts[f"{label} {target}"]:
                by_target[target].append(label)
    changed = sum(map(len, by_target.values()))
    problem = _constants([label for label, target in rows if target == "c"])
    if problem:
        return {"status": "caught", "by": problem}
    for target, labels in by_target.items():
        for label, found in zip(labels, run_cases([known[n].case for n in labels], target, jobs=1, **RUN[target]), strict=True):
            problem = known[label].problem(found)
            if problem:
                return {"status": "caught", "by": f"{label} on {target}: {problem[:150]}"}
    return {"status": "", "by": "", "changed": changed}
