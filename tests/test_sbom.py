"""The bill of materials: valid CycloneDX, complete, and the same every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aot_model import __version__
from aot_model.installation import REQUIREMENTS, include_dir

TOOL = Path(__file__).parents[1] / ".ci" / "sbom.py"


def written(**environment: str) -> str:
    return subprocess.run(
        [sys.executable, str(TOOL)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_it_follows_the_schema() -> None:
    pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib has the schema")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    check = JsonStrictValidator(SchemaVersion.V1_6)
    assert check.validate_str(written()) is None
    assert check.validate_str(written(SOURCE_DATE_EPOCH="1700000000")) is None
    assert check.validate_str(written().replace('"type": "library"', '"type": "thing"')) is not None


def test_it_is_complete() -> None:
    found = json.loads(written())
    assert found["metadata"]["component"]["version"] == __version__
    assert {c["name"] for c in found["components"]} == set(REQUIREMENTS.values())
    headers = {c["name"] for c in found["metadata"]["component"]["components"]}
    assert headers == {
        p.relative_to(include_dir()).as_posix() for p in include_dir().rglob("*") if p.is_file()
    }


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    assert written(PYTHONHASHSEED="1") == written(PYTHONHASHSEED="2")
    assert written(SOURCE_DATE_EPOCH="1700000000") != written(SOURCE_DATE_EPOCH="1700000001")
    subprocess.run([sys.executable, str(TOOL), "-o", str(tmp_path / "bom.json")], check=True)
    assert (tmp_path / "bom.json").read_text() == written()
