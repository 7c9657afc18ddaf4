"""docs/walk.md works as it is written: its commands and its Python are run from top to bottom, its pictures
are there, and what it says that is printed is printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_project import has_tools

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "walk.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
FAILS = "  # exit status 1"


def script() -> str:
    """The page's blocks as one script that stops at the first surprise."""
    parts = [f'set -euo pipefail\naot-model() {{ "{sys.executable}" -m aot_model "$@"; }}']
    for language, text in BLOCKS:
        if language == "python":
            parts.append(f"\"{sys.executable}\" - <<'END'\n{text}END")
        elif language == "sh":
            for line in text.splitlines():
                command = line.removesuffix(FAILS)
                parts.append(line if command == line else f"if {command}; then echo fails not; exit 9; fi")
    return "\n".join(parts)


TOOLS = ("cc", "cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")


@pytest.mark.skipif(not has_tools(*TOOLS), reason="needs compilers and QEMU")
def test_the_walk(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("onnxruntime")
    assert {language for language, _ in BLOCKS} == {"python", "sh", "text"}
    assert script().count("fails not") == 2
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "compiler"),
        "AotModel_DIR": str(ROOT / "cmake"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-c", script()], cwd=tmp_path / "examples", env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    for language, text in BLOCKS:
        if language == "text":
            for line in text.splitlines():
                assert line in done.stdout, f"{line}\n{done.stdout}"
    assert (tmp_path / "examples/report.html").stat().st_size > 50_000


def test_its_pictures_and_links_are_there() -> None:
    found = re.findall(r"\]\(([^)]+)\)", PAGE.read_text())
    links = [link.partition("#")[0] for link in found if "://" not in link]
    assert len([link for link in links if link.endswith(".png")]) == 3
    assert all((PAGE.parent / link).exists() for link in links)
