"""The documentation builds as a site, without a warning, with every page, and asks no other host for
anything.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_navigation() -> None:
    named = set(
        re.findall(r"[\w/-]+\.md", yaml.dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    )
    assert {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")} == named - {
        "index.md"
    }


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^\"'> ]+")
    assert [found for page in site.rglob("*.html") for found in loads.findall(page.read_text())] == []
    hosts = re.compile(
        r"(?:importScripts|import|fetch|script\()\s*\(?[\"'`]https?://[^\"'`]+|unpkg\.com|googleapis|gstatic|jsdelivr"
    )
    assert [found for file in site.rglob("*.js") for found in hosts.findall(file.read_text())] == []
    assert [
        found
        for file in site.rglob("*.css")
        for found in re.findall(r"url\([\"']?https?:[^)]*", file.read_text())
    ] == []


def test_the_reference_is_made_of_docstrings(site: Path) -> None:
    text = (site / "reference/index.html").read_text()
    assert (
        "A pattern that a target takes over." in text
        and "Compile a model; nothing is written." in text
        and "load(" in text
    )
