"""Compile and run the rows of a mutant."""

from __future__ import annotations

import importlib
from collections import defaultdict
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

for _name in (
    "numpy",
    "onnx",
    "onnx.reference",
    "onnxruntime",
    "onnx_ir",
    "ml_dtypes",
    "jinja2",
    "flatbuffers",
    "tflite",
):
    importlib.import_module(_name)

RUN: dict[str, dict[str, Any]] = {
    "c": {"flags": ("-O1",)},
    "host": {"flags": ("-O1", "-march=native")},
    "cortex-m4": {"board": "m4", "sanitize": False},
    "cortex-m55": {"board": "m55", "sanitize": False},
}
MOST = {"c": 12, "host": 12, "cortex-m4": 10, "cortex-m55": 10}
"""Rows that run on a target at a time."""


def _constants(labels: list[str], known: dict[str, Any]) -> str:
    """What is wrong with the rows when all their inputs are constants."""
    from oracles import expected
    from rows import folded
    from verdict import verdict

    from batch import Outcome

    for label in labels:
        row = known[label].row
        if row is not None and not row.sample.states:
            try:
                outputs = folded(row)
            except Exception as error:
                outputs = None
                if "scale" not in str(error):
                    return f"{row.label} of constants: {type(error).__name__}: {error}"[:300]
            problem = (
                "" if outputs is None else verdict(row, Outcome("ok", "", tuple(outputs)), expected(row))
            )
            if problem:
                return f"{row.label} of constants: {problem[:150]}"
    return ""


def loaded() -> dict[str, Any]:
    """All rows, of the compiler that this process finds first."""
    from subjects import subjects

    return subjects()


def judged(
    known: dict[str, Any],
    rows: list[tuple[str, str]],
    texts: dict[str, str],
    ends: tuple[int, ...] = (6, 40, 1000),
) -> dict[str, object]:
    """What some rows say of the compiler as it is loaded. The first few, then more, then all others."""
    from costs import differs, recorded
    from test_refusals import key

    from batch import compiled_case, run_cases
    from translation_unit import Generated

    total, costs = 0, recorded()
    for few in (rows[a:b] for a, b in pairwise((0, *ends))):
        by_target = defaultdict(list)
        with TemporaryDirectory() as folder:
            for label, target in few:
                try:
                    texts_of = compiled_case(known[label].case, Path(folder) / "model", "m0", target).texts
                except Exception as error:
                    return {
                        "status": "caught",
                        "by": f"{label} for {target}: {type(error).__name__}: {error}"[:300],
                    }
                if sha256(texts_of["m0.c"].encode()).hexdigest() == texts.get(f"{label} {target}"):
                    continue
                by_target[target].append(label)
                row = known[label].row
                made = Generated("m0", texts_of["m0.c"], texts_of["m0.h"], "", (), ())
                if target == "c" and row is not None and differs(key(row), made, costs):
                    return {"status": "caught", "by": f"{label} costs something else"}
        total += sum(map(len, by_target.values()))
        problem = _constants([label for label, target in few if target == "c"], known)
        if problem:
            return {"status": "caught", "by": problem}
        for target, all_labels in by_target.items():
            labels = all_labels[: MOST[target]]
            for label, found in zip(
                labels, run_cases([known[n].case for n in labels], target, jobs=1, **RUN[target]), strict=True
            ):
                problem = known[label].problem(found)
                if problem:
                    return {
                        "status": "caught",
                        "by": f"{label} on {target}: {problem[:150]}",
                        "changed": total,
                    }
    return {"status": "", "by": "", "changed": total}
