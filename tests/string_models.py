"""Models with strings, built with sanitizers, and their inputs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import HostProgram
from aot_model.ir.strings import encoded, string_type
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save
from sanitizers import sanitized

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")
STRING = TensorProto.STRING
ML = {"ai.onnx.ml": 3}


def slots(*texts: str, width: int = 16) -> np.ndarray:
    return encoded(np.asarray(texts, object), string_type(width))


def node_model(
    op: str,
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: int = 1,
    constants: Mapping[str, np.ndarray] | None = None,
    domain: str = "",
    version: int = 3,
    **attributes: object,
) -> onnx.ModelProto:
    names = [i.name for i in inputs] + list(constants or {})
    node = helper.make_node(
        op, names, [f"y{k}" for k in range(outputs)], name="node", domain=domain, **attributes
    )
    results = [onnx.ValueInfoProto(name=f"y{k}") for k in range(outputs)]
    return model([node], inputs, results, constants, opset=20, domains={"ai.onnx.ml": version})


def program(proto: onnx.ModelProto, folder: Path, width: int = 16) -> HostProgram:
    """Built with sanitizers."""
    compiled = compile_model(
        Request(save(proto, folder / "m.onnx"), "m", "c", library=Options(string_bytes=width))
    )
    return sanitized(compiled.view, compiled.texts, folder)


def status(made: HostProgram, *inputs: np.ndarray) -> int:
    """What the run returns."""
    try:
        made.run([inputs])
    except CompileError as error:
        found = re.search(r"m_run returned (-\d+)", str(error))
        assert found, str(error)
        return int(found[1])
    return 0
