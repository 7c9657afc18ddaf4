"""TFLite's operators with tensors and options of other kinds, one or several at once: each file is refused
with an error of ours, or read and computes with operands of one type, in a moment and with little memory.

More of them: PYTHONPATH=tests python tests/tflite_operators/test_exchanged_tensors.py SEED COUNT [PATTERN]
"""

from __future__ import annotations

import fnmatch
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings
from aot_model.frontends.tflite import Importer
from aot_model.frontends.tflite_file import parse
from aot_model.ops.registry import load_all
from mixed import mixed_in
from room import room
from turns import commit_number

pytest.importorskip("ai_edge_litert.schema_py_generated")

FORMS = 12
"""Of each case, at each commit others."""
ROOM, SECONDS = 4 << 30, 5
"""Bytes beyond what the process has; of a processor, for one form."""


def raised(data: bytes) -> str | None:
    """What is raised that is no error of ours, and where; empty if nothing is, None if it is refused."""
    try:
        graph = Importer(parse(data, "m.tflite", None), "m.tflite", "litert-ref", Bindings()).run()
        return next(filter(None, (mixed_in(n.op, n.inputs) for n in graph.nodes)), "")
    except CompileError as error:
        return f"too much memory: {error}" if "allocate" in str(error) else None
    except Exception as error:
        place = [f for f in traceback.extract_tb(error.__traceback__) if "aot_model" in f.filename][-1]
        return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def campaign(seed: int, count: int, pattern: str = "*") -> tuple[int, int, list[str]]:
    """So many forms of each case: how many there were and how many were read, and what was raised."""
    from all_cases import CASES
    from exchanged import changed

    load_all()
    sources = sorted({c.model: c.name for c in CASES if fnmatch.fnmatch(c.name, pattern)}.items())
    found: list[str] = []
    tried, read = 0, 0
    with room(ROOM):
        for number, (source, name) in enumerate(sources):
            for form in range(count):
                data = changed(source, np.random.default_rng((seed, number, form)))
                start, tried = time.process_time(), tried + 1
                said = raised(data)
                took = time.process_time() - start
                read += said == ""
                if said or took > SECONDS:
                    found.append(f"{name}, form {form} of {seed}: {said or f'took {took:.1f} s'}")
    return tried, read, found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_tensor_of_another_kind_is_an_internal_error() -> None:
    tried, read, found = campaign(commit_number(), FORMS)
    assert read > tried / 5 > 1000 and not found, "\n".join(found[:20])


if __name__ == "__main__":
    tried, read, found = campaign(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    print(f"{tried:,} forms, {read:,} read, {len(found)} internal errors", *found[:40], sep="\n")
