"""The entry of a release for a Bazel registry, and the project that the registry's tests build: structure and
versions. No Bazel that has modules is needed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from cmake_project import ROOT
from packaging.requirements import Requirement
from packaging.version import Version

import aot_model

EXAMPLE = ROOT / "examples/bazel_module"
VERSION = aot_model.__version__


def archive(folder: Path, *more: str, without: str = "") -> Path:
    """A release; more: of what else there is."""
    file = folder / f"aot_model-{VERSION}.tar.gz"
    with tarfile.open(file, "w:gz") as made:
        for name in ("MODULE.bazel", "bazel/registry/presubmit.yml"):
            if name != without:
                made.add(ROOT / name, f"aot_model-{VERSION}/{name}")
        for name in more:
            made.add(ROOT / "MODULE.bazel", name)
    return file


def entry(file: Path, registry: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([
        sys.executable, ROOT / "bazel/registry/entry.py", file, "--url", f"https://example.org/{file.name}",
        "--repository", "github:owner/aot-model", "--maintainer", "owner", "-o", registry
    ], capture_output=True, text=True, check=False)  # fmt: skip


def test_entry(tmp_path: Path) -> None:
    """As bazel.build/external/registry and the central registry's schema of metadata.json have it."""
    file, registry = archive(tmp_path), tmp_path / "registry"
    done = entry(file, registry)
    assert done.returncode == 0, done.stderr
    folder = registry / "modules/aot_model" / VERSION
    assert done.stdout == f"{folder}\n"
    assert {path.name for path in folder.iterdir()} == {"MODULE.bazel", "presubmit.yml", "source.json"}
    assert (folder / "MODULE.bazel").read_bytes() == (ROOT / "MODULE.bazel").read_bytes()
    digest = base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
    assert json.loads((folder / "source.json").read_text()) == {
        "url": f"https://example.org/{file.name}",
        "integrity": f"sha256-{digest}",
        "strip_prefix": f"aot_model-{VERSION}",
    }
    metadata = registry / "modules/aot_model/metadata.json"
    assert json.loads(metadata.read_text()) == {
        "homepage": "https://github.com/owner/aot-model",
        "maintainers": [{"github": "owner"}],
        "repository": ["github:owner/aot-model"],
        "versions": [VERSION],
        "yanked_versions": {},
    }
    assert "a version is never changed" in entry(file, registry).stderr
    assert json.loads(metadata.read_text())["versions"] == [VERSION]


@pytest.mark.parametrize("without", ["MODULE.bazel", "bazel/registry/presubmit.yml", ""])
def test_archives_that_are_no_release(tmp_path: Path, without: str) -> None:
    more = [] if without else ["other/MODULE.bazel"]
    done = entry(archive(tmp_path, *more, without=without), tmp_path / "registry")
    said = f"there is no aot_model-{VERSION}/{without}" if without else "should be in one folder"
    assert done.returncode == 1 and said in done.stderr
    assert not (tmp_path / "registry").exists()


def test_presubmit() -> None:
    """Builds a project that is there, with each Bazel that the module says it works with."""
    content = yaml.safe_load((ROOT / "bazel/registry/presubmit.yml").read_text())["bcr_test_module"]
    assert (ROOT / content["module_path"] / "MODULE.bazel").is_file()
    module = (ROOT / "MODULE.bazel").read_text()
    least = re.search(r'bazel_compatibility = \[">=(\d+)\.', module)
    assert least and min(int(one.removesuffix(".x")) for one in content["matrix"]["bazel"]) == int(least[1])
    assert f'version = "{VERSION}"' in module
    for task in content["tasks"].values():
        assert {task["platform"], task["bazel"]} == {"${{ platform }}", "${{ bazel }}"}
        assert task["test_targets"] == ["//..."]


def test_the_example_has_the_compilers_packages() -> None:
    """Locked with hashes, in versions that pyproject.toml allows; these and no others are dependencies."""
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(text) for text in project["dependencies"]]
    locked = dict(re.findall(r"^([\w.-]+)==(\S+) \\$", (EXAMPLE / "requirements_lock.txt").read_text(),
                             re.MULTILINE))  # fmt: skip
    for requirement in wanted:
        assert locked[requirement.name] in requirement.specifier, requirement
    lines = (EXAMPLE / "requirements_lock.txt").read_text().splitlines()
    hashes = [line for line in lines if re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line)]
    assert len(hashes) + len(locked) + 1 == len(lines)
    build = (EXAMPLE / "BUILD.bazel").read_text()
    named = re.search(r'"@compiler_packages//" \+ name for name in \[(.*?)\]', build, re.DOTALL)
    assert named
    assert sorted(re.findall(r'"(\w+)"', named[1])) == sorted(r.name.replace("-", "_") for r in wanted)
    module = (EXAMPLE / "MODULE.bazel").read_text()
    [version] = set(re.findall(r'python_version = "(.*?)"', module))
    assert Version(version) in Requirement(f"python{project['requires-python']}").specifier
