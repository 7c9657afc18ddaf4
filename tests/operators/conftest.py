"""The modules beside the tests are imported by name; of all samples half run elsewhere than on `c`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from turns import in_turn

ALL = 1000
"""More samples than any few operators have."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever runs everything gets the samples on `c`, and every other one on the other targets; the rest
    come with the next commit. Whoever asks for operators by name gets all of theirs."""
    elsewhere = [
        i
        for i in items
        if isinstance(i, pytest.Function)
        and i.path.name == "test_operators.py"
        and i.originalname == "test_sample"
        and i.callspec.params.get("target") not in (None, "c")
    ]
    if len(elsewhere) > ALL:
        left_out = {*elsewhere} - {*in_turn(elsewhere, 2)}
        items[:] = [i for i in items if i not in left_out]
        config.hook.pytest_deselected(items=[*left_out])
