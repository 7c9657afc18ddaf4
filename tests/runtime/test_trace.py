"""--trace: the program gets each tensor with its name as soon as it is complete."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from aot_model.cli import main
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.library.metadata import Metadata
from onnx_models import model, save, tensor

PROGRAM = """#include <stdio.h>
#include "net.h"
static void told(uint32_t number, const char *tensor, const void *data, uint32_t bytes)
{
    const uint8_t *const from = data;
    printf("%lu|%s|", (unsigned long)number, tensor);
    for (uint32_t k = 0; k < bytes; ++k) { printf("%02x", (unsigned)from[k]); }
    printf("\\n");
}
int main(void)
{
    static float x[32], y[4];
    const net_inputs inputs = { x };
    const net_outputs outputs = { y };
    for (int k = 0; k < 32; ++k) { x[k] = 0.125f * (float)(k - 9); }
    if (net_run(&inputs, &outputs) != 0) { return 1; } /* nobody listens */
    net_trace = told;
    return net_run(&inputs, &outputs) == 0 ? 0 : 1;
}
"""


def test_every_tensor_has_its_name_and_its_elements(tmp_path: Path) -> None:
    """Names that C would misread, beside what ONNX's evaluator computes."""
    rng = np.random.default_rng(3)
    w = rng.standard_normal((4, 2, 3, 3)).astype(np.float32)
    odd = 'it\'s "half" \\n %s'
    nodes = [
        helper.make_node("Conv", ["x", "w"], [odd], name="conv", pads=[1] * 4),
        helper.make_node("GlobalMaxPool", [odd], ["most"], name="pool"),
        helper.make_node("Softmax", ["most"], ["y"], name="soft", axis=1),
    ]
    proto = model(nodes, [tensor("x", (1, 2, 4, 4))], [tensor("y", (1, 4, 1, 1))], {"w": w})
    path = save(proto, tmp_path / "net.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path), "--target", "c", "--trace"]) == 0
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "net.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
    said = (
        subprocess.run(["./main"], cwd=tmp_path, capture_output=True, check=True).stdout.decode().splitlines()
    )
    facts = Metadata.read(tmp_path / "net.json")
    assert [line.split("|")[0] for line in said] == [str(k) for k in range(len(facts.trace))]
    x = (0.125 * (np.arange(32) - 9)).astype(np.float32).reshape(1, 2, 4, 4)
    names = [odd, "most", "y"]
    for name in (odd, "most"):
        proto.graph.output.append(helper.make_empty_tensor_value_info(name))
    expected = dict(zip(["y", odd, "most"], ReferenceEvaluator(proto).run(None, {"x": x}), strict=True))
    got = {}
    for line, told in zip(said, facts.trace, strict=True):
        _, name, data = line.split("|")
        assert name == told.tensors[0] and told.layers and told.type.nbytes == len(data) // 2
        array = np.frombuffer(bytes.fromhex(data), told.type.dtype.numpy).reshape(told.type.shape)
        got[name] = array.transpose(told.axes) if told.axes else array.reshape(expected[name].shape)
    assert set(got) == set(names) and facts.trace[0].axes == (0, 3, 1, 2)
    for name in names:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-6)


def _relu(folder: Path, *options: str) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="r")
    proto = model([node], [tensor("x", (4,))], [tensor("y", (4,))], {})
    assert main(["compile", str(save(proto, folder / "net.onnx")), "-o", str(folder), *options]) == 0


def test_nothing_of_it_without_the_option(tmp_path: Path) -> None:
    _relu(tmp_path, "--target", "c")
    assert all("trace" not in (tmp_path / f"net.{end}").read_text() for end in ("c", "h", "json"))


@pytest.mark.parametrize("interface", ["module", "positional"])
def test_with_interfaces(tmp_path: Path, interface: str) -> None:
    _relu(tmp_path, "--trace", "--profile", "--target", "c", "--interface", interface)
    subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "net.c"], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "net.json").read_text())["trace"][0]["tensors"] == ["y"]
