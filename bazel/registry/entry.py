#!/usr/bin/env python3
"""Writes the entry of a release for a Bazel registry: what is submitted to the Bazel Central Registry, or
served by one of your own.

    git archive --prefix=aot_model-0.1.0/ -o aot_model-0.1.0.tar.gz v0.1.0
    python bazel/registry/entry.py aot_model-0.1.0.tar.gz --url https://<where it is>/aot_model.tar.gz \\
        --repository github:<owner>/<name> --maintainer <name on GitHub> -o <checkout of the registry>

MODULE.bazel and presubmit.yml are those of the archive.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import tarfile
from pathlib import Path

PRESUBMIT = "bazel/registry/presubmit.yml"


def read(archive: Path) -> tuple[str, dict[str, str]]:
    """The folder that everything in the archive is in, and the texts of files of the entry."""
    with tarfile.open(archive) as opened:
        folders = {name.partition("/")[0] for name in opened.getnames()}
        if len(folders) != 1:
            sys.exit(f"{archive}: everything should be in one folder, not in {', '.join(sorted(folders))}")
        [folder] = folders
        texts = {}
        for name in ("MODULE.bazel", PRESUBMIT):
            try:
                file = opened.extractfile(f"{folder}/{name}")
            except KeyError:
                file = None
            if file is None:
                sys.exit(f"{archive}: there is no {folder}/{name}")
            texts[name] = file.read().decode()
    return folder, texts


def module(text: str) -> tuple[str, str]:
    """Name and version of a module."""
    found = [re.search(rf'^ *{key} = "(.*?)"', text, re.MULTILINE) for key in ("name", "version")]
    if not all(found):
        sys.exit("MODULE.bazel: there is no name or no version")
    name, version = (match[1] for match in found if match)
    return name, version


def write(registry: Path, archive: Path, url: str, repository: str, homepage: str, maintainer: str) -> Path:
    """The folder of the version; older versions that metadata.json has stay there."""
    folder, texts = read(archive)
    name, version = module(texts["MODULE.bazel"])
    digest = base64.b64encode(hashlib.sha256(archive.read_bytes()).digest()).decode()
    entry = registry / "modules" / name / version
    if entry.exists():
        sys.exit(f"{entry} is there: a version is never changed")
    entry.mkdir(parents=True)
    (entry / "MODULE.bazel").write_text(texts["MODULE.bazel"])
    (entry / "presubmit.yml").write_text(texts[PRESUBMIT])
    source = {"url": url, "integrity": f"sha256-{digest}", "strip_prefix": folder}
    (entry / "source.json").write_text(json.dumps(source, indent=4) + "\n")
    facts: dict[str, object] = {
        "homepage": homepage or repository.replace("github:", "https://github.com/"),
        "maintainers": [{"github": maintainer}],
        "repository": [repository],
        "versions": [],
        "yanked_versions": {},
    }
    file = entry.parent / "metadata.json"
    if file.exists():
        facts = json.loads(file.read_text())
    versions = facts["versions"]
    assert isinstance(versions, list)
    versions.append(version)
    file.write_text(json.dumps(facts, indent=4) + "\n")
    return entry


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--homepage", default="", help="default: that of the repository")
    parser.add_argument("--maintainer", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="REGISTRY")
    given = parser.parse_args()
    print(write(given.output, given.archive, given.url, given.repository, given.homepage, given.maintainer))


if __name__ == "__main__":
    main()
