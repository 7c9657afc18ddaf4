"""The map on top of the C: all steps, all memory, and what a layer's comment says of both."""

from __future__ import annotations

import re
from pathlib import Path

from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model
from onnx_models import save, small_cnn


def test_all_steps_and_all_memory_are_on_top(tmp_path: Path) -> None:
    view = (
        compiled := compile_model(
            Request(save(small_cnn(), tmp_path / "cnn.onnx"), "cnn", "c", library=Options(io="workspace"))
        )
    ).view
    head = compiled.texts["cnn.c"].split("*/")[0]
    steps = {int(n): f for n, f in re.findall(r"^ \* +(\d+)  (\w+) ", head, re.MULTILINE)}
    assert steps == {n: view.calls[c].name.removeprefix("cnn_") for c, n in view.steps.items()}
    rows = re.findall(r"^ \* +workspace \+ (\d+) +([\d,]+) +(\d+)(?: to (\d+))?  ", head, re.MULTILINE)
    told = sorted(
        (int(at), int(size.replace(",", "")), int(first), int(last or first))
        for at, size, first, last in rows
    )
    assert (
        told == sorted((at, b.nbytes, *view.addresses.live[b]) for b, (_, at) in view.addresses.of.items())
        and told
    )
    assert view.sha256 in head and f"aot-model {view.version}" in head


def test_a_layer_says_where_its_arguments_lie(tmp_path: Path) -> None:
    view = (compiled := compile_model(Request(save(small_cnn(), tmp_path / "cnn.onnx"), "cnn", "c"))).view
    layers = compiled.texts["cnn.c"].split("---- the model ----")[0]
    comments = " ".join(re.findall(r"/\*(.*?)\*/", layers, re.DOTALL)[1:]).replace("\n *", " ")
    for call, number in view.steps.items():
        (said,) = re.findall(rf"step {number}: .*?(?=step \d|$)", " ".join(comments.split()))
        for param, buffer in zip(call.function.params, call.arguments, strict=True):
            if buffer in view.addresses.of:
                assert f"{param.name} at workspace + {view.addresses.of[buffer][1]}" in said
