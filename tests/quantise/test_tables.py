"""What the command says of a plan's answers, for classes and for anything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from aot_model.cli.quantise import tables
from aot_model.quantise.score import Score


def lines(metric: str, value: float, whole: float) -> list[str]:
    score = Score(value, 0.1, 44.5, 10)
    row = SimpleNamespace(candidate=SimpleNamespace(plan=SimpleNamespace(method="minmax")), score=score)
    other = SimpleNamespace(candidate=row.candidate, score=Score(2 * value, 0.2, 41.5, 10))
    result: Any = SimpleNamespace(
        rows=[row, other], chosen=0, calibrated=score, metric=metric, float_value=whole, simulated=0,
        library=SimpleNamespace(ram=1, flash=2), compilers=("cc",),
    )  # fmt: skip
    return "\n".join(tables(result)).splitlines()


def test_noise_is_a_positive_share_with_figures() -> None:
    said = lines("noise", -3.54e-5, -0.0)
    assert said[0].split() == ["ranges", "noise", "SNR", "(dB)"]
    assert said[2].split() == ["minmax", "0.0035%", "44.5", "chosen"] and said[3].split()[1] == "0.0071%"
    assert [line.split() for line in said if line.startswith("float")] == [["float", "0%"]]
    assert not any("answers" in line or "-0" in line for line in said if "---" not in line)


def test_answers_are_told_of_classes() -> None:
    said = lines("top1", 0.95, 1.0)
    assert said[0].split() == ["ranges", "top1", "changed", "answers", "SNR", "(dB)"]
    assert said[2].split() == ["minmax", "95.00%", "10.00%", "44.5", "chosen"]
    assert lines("python:file.py:mine", 0.5, 1.0)[0].split()[:3] == ["ranges", "mine", "changed"]
    assert "answers" not in lines("cosine", 0.5, 1.0)[0]
