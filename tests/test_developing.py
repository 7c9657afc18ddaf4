"""The pages for contributors are true: their Python runs, their commands work, their links and files are
there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from onnx_models import model, save, tensor

ROOT = Path(__file__).resolve().parents[1]
PAGES = {page.name: page for page in (ROOT / "docs/developing").glob("*.md")}
SEARCHED = [ROOT / "compiler", ROOT / "tests", ROOT / "tests/operators"]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", [n for n, page in PAGES.items() if blocks(page, "python")])
def test_the_code_of_a_page_runs(name: str, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks(PAGES[name], "python")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, SEARCHED))}
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=300, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [n for n, page in PAGES.items() if blocks(page, "sh")])
def test_the_commands_of_a_page_work(name: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="p"),
        helper.make_node("Mul", ["p", "f"], ["y"], name="y"),
    ]
    constants = {
        "w": np.arange(12, dtype=np.float32).reshape(3, 4) / 7,
        "f": np.asarray([[1], [2]], np.float32),
    }
    save(model(nodes, [tensor("x", (2, 3))], [tensor("y", (2, 4))], constants), tmp_path / "model.onnx")
    for line in "".join(blocks(PAGES[name], "sh")).splitlines():
        command = [sys.executable, "-m", "aot_model", *shlex.split(line)[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert line.startswith("aot-model ") and done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        if "--explain fuse_affine" in line:
            assert "'f' is not one number for each of 4 channels" in done.stdout + done.stderr


@pytest.mark.parametrize("name", [*PAGES, "../../CONTRIBUTING.md"])
def test_links_and_files_are_there(name: str) -> None:
    page = ROOT / "docs/developing" / name
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), link
    for path in re.findall(
        r"`((?:tests|compiler|passes|targets|ir|ops|cli|frontends|emit|lowering)/[\w/.]+\.(?:py|json))`", text
    ):
        assert (ROOT / path).exists() or (ROOT / "compiler/aot_model" / path).exists(), path
