"""The estimate of work beside `aot-model time`: networks that its rates were not set by, by kind of layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from networks import Builder, attention, mobile, saved
from test_quantise import _calibration

from aot_model.host.firmware import find_compiler
from aot_model.host.timing import of_model
from aot_model.pipeline import Request, compile_model
from aot_model.quantise.candidates import Candidate, Prepared, tensor_plans
from aot_model.quantise.refine import with_tensors
from aot_model.quantise.work import cycles, macs
from qemu import available

REASON = "arm-none-eabi-gcc or qemu-system-arm is not installed"
WHOLE, PRODUCTS, MORE = 0.25, 0.3, 0.2
"""How far the estimate may be off: of a run; of all layers with weights; of what 16 bits cost, as a share of
the run of 8."""


def windows() -> onnx.ModelProto:
    """Convolutions of many and few channels, one that is transposed, depthwise ones, a concatenation."""
    b = Builder(11)
    x = b("Relu", b.conv("x", 12, 3))
    y = b("Relu", b.conv(x, 12, 12, group=12))
    y = b("Relu", b.conv(y, 24, 12, size=1))
    z = b("Relu", b.conv(y, 20, 24, stride=2))
    z = b("ConvTranspose", z, b.weights(20, 12, 2, 2), strides=[2, 2])
    x = b("Concat", x, z, axis=1)
    x = b("GlobalAveragePool", b("Relu", b.conv(x, 16, 24)))
    b("Gemm", b("Flatten", x), b.weights(5, 16), b.constant(np.zeros(5, np.float32)), transB=1, output="y")
    return b.model({"x": (1, 3, 12, 12)}, {"y": (1, 5)})


def _measured(candidate: Candidate, folder: Path) -> dict[str, int]:
    """Cycles by layer."""
    folder.mkdir()
    path = folder / "model.onnx"
    path.write_bytes(candidate.model("").SerializeToString(deterministic=True))
    compiled = compile_model(Request(path, "timed", "cortex-m4"))
    times = of_model(compiled.view, compiled.texts, folder, compiler=find_compiler(None, None))
    found: dict[str, int] = defaultdict(int)
    for layer in times.layers:
        found[layer.layer] += layer.cycles
    return found


@pytest.mark.skipif(not available(), reason=REASON)
@pytest.mark.parametrize("build", [windows, attention, mobile])
def test_estimates_beside_measured_cycles(build: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    calibration = _calibration(*saved(tmp_path, build()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    source = base.source
    kinds = dict.fromkeys(source.choice.kinds.values(), "int16")
    wide = with_tensors(base, tensor_plans(source, "minmax", kinds), "wide")
    layers = {n for layer in source.choice.layers for n in (layer.node, layer.adder)}
    sums = []
    for name, candidate, tensors in (("8", base, []), ("16", wide, source.choice.tensors)):
        got, own = _measured(candidate, tmp_path / name), cycles(source, tensors)
        for wanted, error in ((set(own) | set(got), WHOLE), (layers, PRODUCTS)):
            a, b = (sum(v for n, v in found.items() if n in wanted) for found in (got, own))
            assert abs(b / a - 1) < error, (build.__name__, name, a, b)
        sums.append((sum(got.values()), sum(own.values())))
    (a, b), (c, d) = sums
    assert abs((d - b) - (c - a)) < MORE * a, sums


def test_products_and_what_costs_nothing(tmp_path: Path) -> None:
    """Numbers of products as counted by hand; names of all nodes; wider tensors where they are read and made
    alone."""
    source: Prepared = _calibration(*saved(tmp_path, windows()), tmp_path).plain
    own = [macs(source, layer) for layer in source.choice.layers]
    assert own == [
        144 * 12 * 27, 144 * 12 * 9, 144 * 24 * 12, 36 * 20 * 9 * 24, 36 * 20 * 4 * 12, 144 * 16 * 9 * 24, 80
    ]  # fmt: skip
    plain, name = cycles(source), source.choice.layers[2].result
    assert set(plain) >= {node.name for node in source.network.model.graph.node}
    other = cycles(source, [name])
    changed = {n for n in plain if other[n] != plain[n]}
    near = {source.choice.layers[2].node, *(node.name for node in source.network.readers[name])}
    assert changed == near and all(other[n] > plain[n] for n in changed)
    flat = next(node.name for node in source.network.model.graph.node if node.op_type == "Flatten")
    assert plain[flat] == 0
