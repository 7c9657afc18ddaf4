"""Command lines at random end with a status and words of ours; what does not is seen."""

from __future__ import annotations

import sys

import command_lines
import pytest

from turns import commit_number

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="alarms of Linux")


def told(faults: list[command_lines.Fault]) -> str:
    return "\n\n".join(map(str, faults))


def test_random_command_lines() -> None:
    faults = command_lines.faults(commit_number(), 150)
    assert not faults, told(faults)


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "digits.onnx", "--pool-speed=--"],
        ["targets", "--target-plugin", "a" * 300],
        ["targets", "--target-plugin", "bad.py"],
        ["size", "network.tflite", "network.tflite", '--compiler="'],
        ["time", "network.tflite", "--target", "cortex-m4", "--runs=99999999999999999999"],
        ["verify", "network.tflite", "--random=99999999999999999999"],
    ],
)
def test_what_failed_once(words: list[str]) -> None:
    with command_lines.folder_of_files():
        assert command_lines.fault_of(words) is None


@pytest.mark.parametrize(
    ("does", "seen"),
    [
        (lambda words: 70, "status 70"),
        (lambda words: 1, "status 1"),
        (lambda words: sys.exit(3), "status 3"),
        (lambda words: print("internal error [E901]") or 1, "E901"),
        (lambda words: {}["x"], "KeyError"),
    ],
)
def test_a_fault_is_seen(does: object, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error, nothing said, a status that is nobody's, a traceback."""
    monkeypatch.setattr(command_lines, "main", does)
    fault = command_lines.fault_of(["check", "digits.onnx"])
    assert fault is not None and seen in fault.what and fault.words == ("check", "digits.onnx")
