"""Every input and constant of every operator in every other element type, alone and with all others of its
type: refused, or C without a warning.

    python tests/fuzz/element_types.py [--part 3/60] [--target cortex-m4]

All are 60,000 models for a target and take a quarter of an hour.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from campaign import BATCH, TARGETS, Case, run_batch
from onnx import TensorProto, numpy_helper
from seeds import seeds

TYPES = {
    TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.FLOAT16: np.float16,
    TensorProto.INT8: np.int8, TensorProto.UINT8: np.uint8, TensorProto.INT16: np.int16,
    TensorProto.INT32: np.int32, TensorProto.INT64: np.int64, TensorProto.UINT32: np.uint32,
    TensorProto.BOOL: np.bool_,
}  # fmt: skip


def retypings(types: Sequence[int], kinds: Iterable[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """(places, new type): each place alone, and in twos and all together those that have one type."""
    together = {t: [k for k, other in enumerate(types) if other == t] for t in types}
    places = [(k,) for k in range(len(types))]
    places += [pair for those in together.values() for pair in itertools.combinations(those, 2)]
    places += [tuple(those) for those in together.values() if len(those) > 2]
    yield from ((those, to) for those in places for to in kinds if types[those[0]] != to)


def _of_onnx(data: bytes) -> Iterator[bytes]:
    """Inputs and constants of the graph have another type; results have what follows from it."""
    base = onnx.load_from_string(data)
    types = [v.type.tensor_type.elem_type for v in base.graph.input]
    types += [t.data_type for t in base.graph.initializer]
    for places, to in retypings(types, TYPES):
        if any(types[k] == TensorProto.STRING for k in places):
            continue
        model = onnx.ModelProto()
        model.CopyFrom(base)
        every: list[Any] = [*model.graph.input, *model.graph.initializer]
        for k in places:
            if k < len(model.graph.input):
                every[k].type.tensor_type.elem_type = to
                continue
            with np.errstate(all="ignore"):
                numbers = numpy_helper.to_array(every[k]).astype(TYPES[to])
            every[k].CopyFrom(numpy_helper.from_array(numbers, every[k].name))
        for output in model.graph.output:
            output.type.Clear()
        yield model.SerializeToString()


def cases(part: int = 0, parts: int = 1, target: str = TARGETS[0]) -> Iterator[Case]:
    """Those of one part."""
    made = seeds()  # which also lets modules beside these be found
    from exchanged import other_types

    for number, (name, data) in enumerate(dict(made).items()):
        if number % parts == part % parts:
            forms = other_types(data, retypings) if name.endswith(".tflite") else _of_onnx(data)
            yield from (Case(f"{k}-{name}", form, target) for k, form in enumerate(forms))


def wrong(forms: list[Case]) -> tuple[int, list[str]]:
    """How many are compiled, and what went wrong."""
    compiled = 0
    for k in range(0, len(forms), BATCH):
        with tempfile.TemporaryDirectory(prefix="aot-model-types-") as folder:
            compiled += run_batch(forms[k : k + BATCH], Path(folder))[0]
    return compiled, [f"{c.name}: {c.why[-1500:]}" for c in forms if c.status == "failed"]


def main_of(cases: Callable[[int, int, str], Iterator[Case]], description: str) -> int:
    """A command that tries the cases of one part for one target."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0])
    arguments = parser.parse_args()
    part, parts = (int(n) for n in arguments.part.split("/"))
    forms = list(cases(part, parts, arguments.target))
    compiled, found = wrong(forms)
    print(*found, f"{len(forms):,} forms, {compiled:,} compiled, {len(found)} failed", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main_of(cases, __doc__ or ""))
