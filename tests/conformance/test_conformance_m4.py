"""Cases of the conformance suite on an emulated Cortex-M4: 300 small ones.

The sample is the same everywhere: cases that results.json has as passed, in the order of a hash of their
names.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
import suite
from test_conformance import EXPECTED

from qemu import available

LARGEST = 16 * 1024
"""Bytes of a case's inputs and outputs."""
COUNT = 300


def sample(count: int) -> list[suite.Test]:
    """Small cases that should pass."""
    known = json.loads(EXPECTED.read_text())["cases"]
    small = [
        t
        for t in suite.load_tests()
        if known.get(t.name, {}).get("status") == "pass" and _bytes(t) <= LARGEST
    ]
    return sorted(small, key=lambda t: hashlib.sha256(t.name.encode()).digest())[:count]


def _bytes(test: suite.Test) -> int:
    arrays = [
        v
        for ins, outs in test.data
        for value in (*ins, *outs)
        if value is not None
        for v in (value if isinstance(value, list) else [value])
    ]
    return sum(np.asarray(a).nbytes for a in arrays)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_sample_on_cortex_m4() -> None:
    tests = sample(COUNT)
    results = suite.run_tests(tests, "cortex-m4", sanitize=False, board="m4")
    wrong = [f"{n}: {r.status}: {r.message[:200]}" for n, r in results.items() if r.status != "pass"]
    assert len(results) == COUNT and not wrong, "\n".join(wrong)
