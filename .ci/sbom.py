#!/usr/bin/env python3
"""Write the bill of materials of a release as CycloneDX 1.6 JSON, the same bytes from the same sources and
environment.

    python .ci/sbom.py -o aot-model.cdx.json

In it: the Python packages that the compiler needs, in the versions of this environment (the one that the
release was tested with) beside what it asks for; and the C headers that become part of everything that it
generates, each with its digest. SOURCE_DATE_EPOCH, where it is set, is the time of the document; without it
there is none.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import os
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; mypy brings it
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "compiler" / "aot_model" / "runtime" / "include"


def document() -> dict[str, Any]:
    """The bill of materials of this checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], _version()
    packages = [_package(text) for text in sorted(project["dependencies"])]
    files = [_file(path) for path in sorted(HEADERS.rglob("*")) if path.suffix in (".h", ".hpp", ".c")]
    own = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]["text"]}}],
        "purl": f"pkg:pypi/{name}@{version}",
        "components": files,
    }
    about: dict[str, Any] = {"component": own}
    if os.environ.get("SOURCE_DATE_EPOCH"):
        about["timestamp"] = datetime.datetime.fromtimestamp(
            int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc
        ).isoformat()
    content = {
        "metadata": about,
        "components": packages,
        "dependencies": [
            {"ref": own["bom-ref"], "dependsOn": [p["bom-ref"] for p in packages]},
            *({"ref": p["bom-ref"]} for p in packages),
        ],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        **content,
    }


def text() -> str:
    return json.dumps(document(), indent=2, sort_keys=True) + "\n"


def _version() -> str:
    """aot_model.__version__, without importing it."""
    source = ast.parse((ROOT / "compiler" / "aot_model" / "__init__.py").read_text(encoding="utf-8"))
    found = [
        n.value
        for n in ast.walk(source)
        if isinstance(n, ast.Assign) and any(getattr(t, "id", "") == "__version__" for t in n.targets)
    ]
    return str(ast.literal_eval(found[0]))


def _package(requirement: str) -> dict[str, Any]:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    name = re.sub(r"[-_.]+", "-", match[0]).lower()
    version = metadata.version(match[0])
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "scope": "required",
        "properties": [{"name": "aot-model:requirement", "value": requirement}],
    }


def _file(path: Path) -> dict[str, Any]:
    name = path.relative_to(HEADERS).as_posix()
    return {
        "type": "file",
        "bom-ref": f"file:{name}",
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, help="a file instead of the standard output")
    output = parser.parse_args().output
    output.write_text(text(), encoding="utf-8") if output else sys.stdout.write(text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
