"""Compilations of a model from the command line, and what one that must fail says."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot_model.cli import main


def compile_(path: Path, out: Path, *more: str) -> int:
    return main(["compile", str(path), "-o", str(out), "--target", "c", "--name", "m", *more])


def rejected(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, *words: str) -> str:
    """The message of a compilation that must fail."""
    out = tmp_path / "out"
    assert compile_(path, out) == 1
    text = capsys.readouterr().err
    assert f"[{code}]" in text and "Traceback" not in text and "internal" not in text
    for word in words:
        assert word in text
    assert len(text) < 20_000
    assert not out.exists() or not list(out.iterdir())
    return text
