"""The small convolutional network that interfaces are tried on."""

from __future__ import annotations

import pytest

from aot_model.emit.view import Options
from aot_model.pipeline import Request
from onnx_models import save, small_cnn


@pytest.fixture(scope="module")
def cnn(tmp_path_factory: pytest.TempPathFactory) -> Request:
    """With the generic interface."""
    path = save(small_cnn(), tmp_path_factory.mktemp("model") / "cnn.onnx")
    return Request(path, "cnn", "c", library=Options(interfaces=("module",)))
