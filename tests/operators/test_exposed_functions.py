"""No function with a loop that its callers' compiler could look into, in the code of every sample
(docs/compilers.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import registry_rows

from aot_model.errors import CompileError
from batch import compiled_case
from c_functions import exposed, header_functions


@pytest.mark.parametrize("target", ["host", "cortex-m55"])
def test_samples(target: str, tmp_path: Path) -> None:
    """One of each operator: it shows the kernels that a target has of its own. Portable C: test_operators."""
    seen, bad, last = 0, {}, None
    for row in registry_rows():
        if row.kind is last:
            continue
        last = row.kind
        try:
            text = compiled_case(row.case, tmp_path / "sample.onnx", "sample", target).texts["sample.c"]
        except CompileError:
            continue
        seen += 1
        found = exposed(text, header_functions())
        if found:
            bad[row.label] = found
    assert seen > 100
    assert not bad
