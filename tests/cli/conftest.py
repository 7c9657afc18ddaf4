"""The small convolutional network that commands are tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import save, small_cnn


@pytest.fixture
def cnn(tmp_path: Path) -> Path:
    return save(small_cnn(), tmp_path / "cnn.onnx")
