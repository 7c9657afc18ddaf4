"""What is said of a quantised model that is not like the float one."""

from __future__ import annotations

import pytest

from aot_model.quantise.session import doubts_of_result


@pytest.mark.parametrize(("metric", "lost", "near", "said"),
                         [("top1", 0.2, 10.0, "loses 20%"), ("top1", 0.0, 10.2, "only 10 dB near"),
                          ("mse", 0.2, 14.9, "only 15 dB near"), ("cosine", 0.0, 15.0, ""),
                          ("top1", 0.1, 30.0, "")])  # fmt: skip
def test_result(metric: str, lost: float, near: float, said: str) -> None:
    """Answers that are the same say little where outputs are no classes: near counts for every metric."""
    found = doubts_of_result(metric, lost, near)
    assert len(found) == bool(said) and all(said in text for text in found)
