"""README.md tells the truth: its project builds and runs, its tables are complete."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from cmake_project import ROOT, Project, documented_keywords, has_tools

from aot_model.targets.registry import targets

README = (ROOT / "README.md").read_text()


@pytest.mark.skipif(not has_tools("cmake", "ninja", "cc"), reason="needs cmake, ninja and cc")
def test_the_project_of_the_readme(tmp_path: Path) -> None:
    lists, code = (re.search(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL) for language in ("cmake", "c"))
    assert lists and code
    project = Project(tmp_path / "p", "")
    project.write("CMakeLists.txt", lists[1])
    project.write("main.c", code[1])
    shutil.copy(ROOT / "examples/digits/digits.onnx", project.folder)
    project.configure()
    project.build()
    assert 0 <= float(project.run(project.build_folder / "app")) <= 1


def test_all_keywords_are_in_the_readme() -> None:
    block = README.partition("### All keywords")[2].partition("```cmake\n")[2].partition("```")[0]
    for file, function in (("AotModelLibrary.cmake", "aot_model_library"), ("AotModelTest.cmake", "aot_model_test")):
        call = block.partition(f"{function}(")[2].partition(")\naot_model")[0]
        assert documented_keywords(file, function) == set(re.findall(r"\b[A-Z_]{2,}\b", call))


def test_all_targets_are_in_the_readme() -> None:
    assert set(targets()) <= set(re.findall(r"^\| `([\w-]+)` \|", README, re.MULTILINE))


def test_all_links_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links and all((ROOT / link).exists() for link in links)


def test_the_options_of_all_build_systems_are_documented() -> None:
    """The table of docs/build-systems.md has the keywords that the rules themselves document."""
    text = (ROOT / "docs/build-systems.md").read_text()
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")][2:]
    cmake, bazel, scons = ({row[k] for row in rows if re.fullmatch(r"\w+", row[k])} for k in (1, 2, 3))
    assert cmake | {"EXCLUDE_FROM_ALL"} == documented_keywords("AotModelLibrary.cmake", "aot_model_library")
    rule = re.search(r"Args:\n        name: of the cc_library.\n(.*?)\*\*", (ROOT / "bazel/library.bzl").read_text(), re.DOTALL)
    as_in_cc_library = {"deps", "tags", "testonly", "target_compatible_with", "visibility"}
    assert rule and bazel | as_in_cc_library == set(re.findall(r"^        (\w+):", rule[1], re.MULTILINE))
    tool = re.search(r"these arguments:\n\n(.*?)\n\n", (ROOT / "compiler/aot_model/scons/aot_model.py").read_text(), re.DOTALL)
    assert tool and scons == {"model"} | set(re.findall(r"^    (\w+)", tool[1], re.MULTILINE))
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links and all((ROOT / "docs" / link).exists() for link in links)
