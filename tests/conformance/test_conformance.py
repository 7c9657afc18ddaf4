"""The conformance suite of onnx: a part of it in every run of the tests, another one for each commit, and all
of it with AOT_MODEL_CONFORMANCE=all.
"""

from __future__ import annotations

import fnmatch
import json
import os
from pathlib import Path

import document
import pytest
import suite

from turns import commit_number

EXPECTED = Path(__file__).with_name("results.json")
EVERYTHING = os.environ.get("AOT_MODEL_CONFORMANCE") == "all"
PATTERN = "test_[r-s]*_example"
PARTS = 20
"""After so many commits every case had its turn."""


def test_nothing_is_lost() -> None:
    """Every case that results.json has as passed still passes; none crashes or is wrong without being listed
    there.
    """
    known = json.loads(EXPECTED.read_text())
    if known["onnx"] != suite.onnx.__version__:
        pytest.skip(f"results.json is of onnx {known['onnx']}")
    tests = suite.load_tests()
    if not EVERYTHING:
        turn = commit_number() % PARTS
        tests = [t for k, t in enumerate(tests) if k % PARTS == turn or fnmatch.fnmatch(t.name, PATTERN)]
    results = suite.run_tests(tests)
    worse = [
        f"{n}: {r.status}: {r.message[:200]}"
        for n, r in results.items()
        if r.status != "pass" and known["cases"].get(n, {}).get("status") == "pass"
    ]
    assert not worse, "\n".join(worse)


def test_the_table_of_operators_is_fresh() -> None:
    assert document.PAGE.read_text() == document.page(), "run tests/conformance/document.py"
