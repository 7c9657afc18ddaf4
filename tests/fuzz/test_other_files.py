"""Files beside the model that are wrong are refused with words of ours."""

from __future__ import annotations

import importlib.util
import shutil
import sys

import command_lines
import other_files
import pytest

import qemu
from turns import commit_number

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="alarms of Linux")


def test_mutated_files() -> None:
    made: set[str] = set()
    faults = other_files.faults(commit_number(), 50, made.update)
    assert not faults, "\n\n".join(map(str, faults))
    wanted = {"out/digits.json", "digits.npz"}
    wanted |= {"comparison.json"} if shutil.which("gcc") else set()
    wanted |= {"times.json"} if qemu.available() else set()
    wanted |= {"plan.json", "frontier.json"} if importlib.util.find_spec("onnxruntime") else set()
    assert wanted <= made


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("plan.json", '{"schema": 1, "tensors": {}, "weights": {}, "bias": {"nobody": [1]}}'),
        (
            "plan.json",
            '{"schema": 1, "tensors": {"image": {"type": "int8", "scale": 1e-320}}, "weights": {}}',
        ),
        ("times.json", '{"layers": [{"cycles": 1e999}]}'),
    ],
)
def test_what_failed_once(file: str, change: str) -> None:
    with command_lines.folder_of_files():
        with open("changed.json", "w") as changed:
            changed.write(change)
        assert command_lines.fault_of([*other_files.READERS[file], "changed.json"]) is None
