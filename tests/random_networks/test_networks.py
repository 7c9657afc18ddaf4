"""Random networks on every kind of target; campaign.py runs more of them.

Each commit has other ones of integers that must be equal and of floats. Of those that are quantised in
parts they are always the same: a number on the edge between two steps may tip, and who looks decides
whether it did. What was wrong once is in corpus/.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import network_campaign as campaign
import random_onnx
import tflite

from batch import Case
from qemu import available
from tflite_reference import litert
from turns import commit_number

COUNT = 8
BOARDS = pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
TARGETS = [
    pytest.param(t, marks=[BOARDS] if campaign.TARGETS[t] else [])
    for t in ("c", "host", "cortex-m4", "cortex-m55")
]
CORPUS = sorted(p for p in (Path(__file__).parent / "corpus").iterdir() if p.suffix in (".onnx", ".tflite"))


def check(
    networks: list[campaign.Network], target: str, flags: tuple[str, ...] = (), memory: str | int = "planned"
) -> None:
    problems = campaign.run(networks, target, jobs=1, flags=flags, memory=memory)
    wrong = [
        f"{n.case.name}: {p}\n    {' '.join(n.kinds)}" for n, p in zip(networks, problems, strict=True) if p
    ]
    assert not wrong, "\n".join(wrong)


TIES = ("qdq", "ort")
DERIVED = ("ort", "half", "tffloat")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["tflite", "float", "qdq", "derived"])
def test_random_networks(kind: str, target: str) -> None:
    """derived: ONNX Runtime's quantisers, float16 and floats of TFLite take turns."""
    kind = DERIVED[commit_number() % len(DERIVED)] if kind == "derived" else kind
    first = 0 if kind in TIES else COUNT * commit_number()
    networks = [n for k in range(first, first + COUNT) if (n := campaign.MAKERS[kind](k)) is not None]
    assert len(networks) >= COUNT // 2
    check(networks, target)


@BOARDS
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_drawn_memory(target: str) -> None:
    """Buffers over each other wherever calls say that they may be."""
    kind = list(campaign.MAKERS)[commit_number() % len(campaign.MAKERS)]
    first = COUNT * commit_number()
    numbers = [62_000_062, 62_000_063] if kind in TIES else range(first, first + COUNT)
    networks = [n for k in numbers if (n := campaign.MAKERS[kind](k)) is not None]
    for seed in (62, commit_number()):
        check(networks, target, memory=seed)


def saved(path: Path) -> campaign.Network:
    """A network of the corpus, with inputs of its own."""
    rng = np.random.default_rng(1)
    if path.suffix == ".onnx":
        model = onnx.load(path)
        fed = {
            i.name: rng.normal(0, 1, [d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
            for i in model.graph.input
        }
        case = Case(path.stem, model, tuple(fed.values()))
        return campaign.Network(0, case, (tuple(random_onnx.runtime(model, fed)),), (), {}, False)
    content = path.read_bytes()
    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    tensors = [graph.Tensors(int(i)) for i in graph.InputsAsNumpy()]
    kinds = {
        tflite.TensorType.INT8: np.int8,
        tflite.TensorType.UINT8: np.uint8,
        tflite.TensorType.INT16: np.int16,
    }
    given = tuple(
        rng.integers(
            np.iinfo(kinds[t.Type()]).min, np.iinfo(kinds[t.Type()]).max, t.ShapeAsNumpy(), endpoint=True
        ).astype(kinds[t.Type()])
        for t in tensors
    )
    case = Case(path.stem, content, given, options={"arithmetic": "litert-ref"})
    return campaign.Network(0, case, (tuple(litert(content, given)),), (), {}, True)


@pytest.mark.parametrize("flags", ["-O2", "-O3"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_was_wrong_once(target: str, flags: str) -> None:
    networks = [saved(path) for path in CORPUS]
    check(networks, target, (flags, *(["-march=native"] if target == "host" else [])))
