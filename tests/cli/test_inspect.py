"""`inspect`: a loop that was unrolled takes a line for each call of one turn."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from aot_model.cli import main
from aot_model.cli.inspect import folded
from onnx_models import model, save, tensor


def test_folded_runs_are_the_words() -> None:
    random.seed(4)
    for _ in range(300):
        words = [random.choice("ab") for _ in range(random.randrange(30))]
        runs = folded(words)
        assert list(itertools.chain(*(words[f : f + n] * times for f, n, times in runs))) == words
        assert [f for f, _, _ in runs] == list(itertools.accumulate((n * t for _, n, t in runs), initial=0))[
            :-1
        ]
    assert folded(["x", *"abc" * 9, "y"]) == [(0, 1, 1), (1, 3, 9), (28, 1, 1)]
    assert folded(["a"] * 40) == [(0, 1, 40)] and folded(list("abab")) == [(k, 1, 1) for k in range(4)]


def test_an_unrolled_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, at = [], "x"
    for k in range(12):
        nodes += [
            helper.make_node("MatMul", [at, "w"], [f"p{k}"], name=f"product{k}"),
            helper.make_node("Softmax", [f"p{k}"], [f"s{k}"], name=f"soft{k}"),
        ]
        at = f"s{k}"
    nodes.append(helper.make_node("MatMul", [at, "w"], ["y"], name="last"))
    path = save(
        model(nodes, [tensor("x", (1, 8))], [tensor("y", (1, 8))], {"w": np.ones((8, 8), np.float32)}),
        tmp_path / "m.onnx",
    )
    assert main(["inspect", str(path), "--target", "c"]) == 0
    chart = capsys.readouterr().out.partition("call by call")[2]
    assert "are there 1" in chart and "product0" in chart and "last" in chart and "product7" not in chart
    assert chart.count("\n") < 14
