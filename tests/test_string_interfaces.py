"""Strings on a core, through the generic interface, and from the command line: every way in and out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.cli import main
from aot_model.emit.view import Options
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.ir.strings import decoded
from aot_model.library.module import ModelError, load
from aot_model.pipeline import Request, compile_model
from firmware import run_firmware
from onnx_models import model, save, tensor
from qemu import available
from string_models import ML, STRING, needs_cc, node_model, slots


def command_model() -> onnx.ModelProto:
    """Words to small letters, their bigrams, a class with a name; and which of them are numbers."""
    nodes = [
        helper.make_node("StringNormalizer", ["words"], ["small"], case_change_action="LOWER"),
        helper.make_node(
            "TfIdfVectorizer",
            ["small"],
            ["grams"],
            mode="TFIDF",
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=1,
            ngram_counts=[0, 3],
            ngram_indexes=[0, 1, 2, 3, 4],
            pool_strings=["lamp", "door", "off", "lamp", "off", "open", "door"],
            weights=[1.0, 1.0, 0.5, 2.0, 2.0],
        ),
        helper.make_node(
            "LinearClassifier",
            ["grams"],
            ["command", "scores"],
            domain="ai.onnx.ml",
            classlabels_strings=["lamp off", "open door", "?"],
            coefficients=[0.5, 0.0, 0.5, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            intercepts=[0.0, 0.0, 1.0],
        ),
        helper.make_node("RegexFullMatch", ["words"], ["number"], pattern=r"[+-]?\d+(\.\d*)?"),
        helper.make_node("StringConcat", ["words", "mark"], ["marked"]),
    ]
    outputs = [onnx.ValueInfoProto(name=n) for n in ("command", "number", "marked")]
    return model(
        nodes,
        [tensor("words", [1, 4], STRING)],
        outputs,
        {"mark": np.asarray(["!"], object)},
        opset=20,
        domains=ML,
    )


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("core", ["m0", "m4"])
def test_on_the_core(core: str, tmp_path: Path) -> None:
    compiled = compile_model(
        Request(
            save(command_model(), tmp_path / "m.onnx"),
            "m",
            f"cortex-{core}",
            library=Options(string_bytes=16),
        )
    )
    x = [slots("Lamp", "please", "OFF", "1"), slots("Open", "door", "-2.5", "x")]
    firmware = run_firmware(compiled, core, [[v] for v in x], tmp_path)
    found = [
        [decoded(a).reshape(-1).tolist() if a.dtype.kind == "S" else a.reshape(-1).tolist() for a in row]
        for row in firmware.outputs
    ]
    assert found[0] == [["lamp off"], [False, False, False, True], ["Lamp!", "please!", "OFF!", "1!"]]
    assert found[1] == [["open door"], [False, False, True, False], ["Open!", "door!", "-2.5!", "x!"]]
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-u", "model.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {s for s in symbols if s != "U" and not s.startswith("__aeabi_")} <= {"memcpy", "memset"}


@needs_cc
def test_by_the_generic_interface(tmp_path: Path) -> None:
    compiled = compile_model(
        Request(save(command_model(), tmp_path / "m.onnx"), "m", "c", library=Options(interfaces=("module",)))
    )
    for name, text in compiled.texts.items():
        (tmp_path / name).write_text(text)
    subprocess.run(
        ["cc", "-shared", "-fPIC", *STRICT, f"-I{include_dir()}", "m.c", "-o", "libm_strings.so"],
        cwd=tmp_path,
        check=True,
    )
    module = load(tmp_path / "libm_strings.so", "m")
    assert module.inputs[0].dtype == np.dtype("S64")
    command, number, marked = module(np.asarray([["lamp", "off", "7", "ü" * 30]]))
    assert (
        command.tolist() == [b"lamp off"]
        and number.tolist() == [[False, False, True, False]]
        and decoded(marked)[0, 3] == "ü" * 30 + "!"
    )
    with pytest.raises(ValueError, match="does not fit the 63"):
        module.set_input(0, np.asarray([["x" * 64, "", "", ""]]))
    with pytest.raises(ModelError, match="a string is too long"):
        module(np.asarray([["x" * 63, "", "", ""]]))


@needs_cc
def test_run_and_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(
        node_model("StringConcat", [tensor("a", [2], STRING), tensor("b", [2], STRING)]), tmp_path / "m.onnx"
    )
    np.savez(tmp_path / "in.npz", a=np.asarray(["x", "ü"]), b=np.asarray(["1", "2"]))
    assert (
        main(["run", str(path), "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")])
        == 0
    )
    assert np.load(tmp_path / "out.npz")["y0"].tolist() == ["x1", "ü2"]
    stacked = {"in_0": np.asarray([["x", "ü"]]), "in_1": np.asarray([["1", "2"]])}
    np.savez(tmp_path / "right.npz", **stacked, out_0=np.asarray([["x1", "ü2"]]))
    np.savez(tmp_path / "wrong.npz", **stacked, out_0=np.asarray([["x1", "ü3"]]))
    assert main(["verify", str(path), "--vectors", str(tmp_path / "right.npz")]) == 0
    assert main(["verify", str(path), "--vectors", str(tmp_path / "wrong.npz")]) == 1
    np.savez(tmp_path / "long.npz", a=np.asarray(["x" * 16, ""]), b=np.asarray(["1", "2"]))
    capsys.readouterr()
    assert main(["run", str(path), "--string-bytes", "16", "--inputs", str(tmp_path / "long.npz")]) == 1
    assert "does not fit the 15" in capsys.readouterr().err
