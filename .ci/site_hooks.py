"""What the documentation's site makes of pages that are written for readers of the repository.

README.md is the first page; links to files that are not pages become their names.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]


def on_files(files: Any, config: Any, **_: Any) -> Any:
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    place = (
        "."
        if page.file.src_uri == "index.md"
        else posixpath.join("docs", posixpath.dirname(page.file.src_uri))
    )

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(place, target))
        inside = "index.md" if path == "README.md" else posixpath.relpath(path, "docs")
        if files.get_file_from_path(inside) is None:
            assert (ROOT / path).exists(), f"{page.file.src_uri}: there is no {path}"
            return text if "`" in text else f"{text} (`{path}`)"
        return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(page.file.src_uri) or '.')}{anchor or ''})"  # noqa: E501

    if place == ".":
        markdown = re.sub(r"(!\[[^\]]*\]\()docs/", r"\1", markdown)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)", link, markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """The theme's script would ask another host for what old browsers lack, for the search in pages that are
    opened from disk and for diagrams, which no page has: it gets nothing."""
    for bundle in Path(config["site_dir"]).glob("assets/javascripts/**/*.js"):
        text = bundle.read_text()
        bundle.write_text(re.sub(r"https://unpkg\.com/[\w@./-]*", "about:blank", text))
    for source_map in Path(config["site_dir"]).glob("assets/**/*.map"):
        source_map.unlink()
