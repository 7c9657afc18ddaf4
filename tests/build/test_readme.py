"""README.md tells the truth: its project builds and runs, its tables are complete."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from cmake_project import ROOT, Project, has_tools

from aot_model.targets.registry import targets

README = (ROOT / "README.md").read_text()


@pytest.mark.skipif(not has_tools("cmake", "ninja", "cc"), reason="needs cmake, ninja and cc")
def test_the_project_of_the_readme(tmp_path: Path) -> None:
    lists, code = (
        re.search(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        for language in ("cmake", "c")
    )
    assert lists and code
    project = Project(tmp_path / "p", "")
    project.write("CMakeLists.txt", lists[1])
    project.write("main.c", code[1])
    shutil.copy(ROOT / "examples/digits/digits.onnx", project.folder)
    project.configure()
    project.build()
    assert 0 <= float(project.run(project.build_folder / "app")) <= 1


def test_all_targets_are_in_the_readme() -> None:
    assert set(targets()) <= {
        name
        for row in re.findall(r"^\| (`[\w-]+`(?:, `[\w-]+`)*) \|", README, re.MULTILINE)
        for name in re.findall(r"[\w-]+", row)
    }


@pytest.mark.parametrize("file", ["README.md", "docs/build-systems.md"])
def test_all_links_lead_somewhere(file: str) -> None:
    links = [
        link.partition("#")[0]
        for link in re.findall(r"\]\(([^)]+)\)", (ROOT / file).read_text())
        if "://" not in link
    ]
    assert links and all((ROOT / file).parent.joinpath(link).exists() for link in links)
