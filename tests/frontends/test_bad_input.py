"""Files that are no models, data beside them that is missing or damaged, places that cannot be written: one
clear message with its code, exit status 1, nothing written, no traceback.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto
from rejected import compile_, rejected

from onnx_models import save, small_cnn

# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "E102"),
        (b"hello world\n" * 50, "E102"),
        (bytes(5000), "E102"),
        (small_cnn().SerializeToString()[:900], "E102"),
        (b"\x08\x08", "E102"),
    ],
)
def test_not_a_model(content: bytes, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    rejected(path, tmp_path, capsys, code, str(path))


def test_missing_file_and_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected(tmp_path / "none.onnx", tmp_path, capsys, "E101", "No such file")
    rejected(tmp_path, tmp_path, capsys, "E101", "directory")


def external(location: str, **entries: str) -> onnx.ModelProto:
    """small_cnn with its first weights elsewhere."""
    proto = small_cnn()
    weights = proto.graph.initializer[0]
    weights.data_location = TensorProto.EXTERNAL
    weights.ClearField("raw_data")
    for key, value in {"location": location, **entries}.items():
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    return proto


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../secret.bin", "link", "", "a\0b", "sub/../../secret.bin"]
)
def test_external_data_leaves_the_folder(
    location: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(1000))
    (folder / "link").symlink_to(tmp_path / "secret.bin")
    rejected(save(external(location), folder / "m.onnx"), tmp_path, capsys, "E103", "'w1'")


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ({}, "E102"),
        ({"offset": "99999999999"}, "E103"),
        ({"length": "-5"}, "E103"),
        ({"offset": "abc"}, "E103"),
    ],
)
def test_external_data_is_damaged(
    entries: dict[str, str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.bin").write_bytes(b"12")
    rejected(save(external("short.bin", **entries), tmp_path / "m.onnx"), tmp_path, capsys, code, "'w1'")


def test_external_data_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected(save(external("w.bin"), tmp_path / "m.onnx"), tmp_path, capsys, "E103", "w.bin", "missing")


def test_external_data_is_read(tmp_path: Path) -> None:
    weights = small_cnn().graph.initializer[0].raw_data
    (tmp_path / "w.bin").write_bytes(weights)
    assert (
        compile_(
            save(external("w.bin"), tmp_path / "m.onnx"), tmp_path / "a", "--depfile", str(tmp_path / "d")
        )
        == 0
    )
    assert "w.bin" in (tmp_path / "d").read_text()


# --- places that cannot be written --------------------------------------------------------------------------


def test_output_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("mine")
    assert compile_(save(small_cnn(), tmp_path / "m.onnx"), tmp_path / "out") == 1
    assert "[E105]" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_is_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    (out / "m.h").mkdir(parents=True)
    assert compile_(save(small_cnn(), tmp_path / "m.onnx"), out) == 1
    assert "[E105]" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["m.h"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_write_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    assert compile_(save(small_cnn(), tmp_path / "m.onnx"), out) == 1
    assert "[E105]" in capsys.readouterr().err


def test_disk_full(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk; what was there before stays."""
    path, out = save(small_cnn(), tmp_path / "m.onnx"), tmp_path / "out"
    out.mkdir()
    (out / "m.c").write_text("old")
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        "from aot_model.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        # without -B Python would leave halves of its byte code
        [sys.executable, "-B", "-c", program, "compile", str(path), "-o", str(out), "--name", "m"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "[E105]" in done.stderr and "Traceback" not in done.stderr
    assert [(p.name, p.read_text()) for p in out.iterdir()] == [("m.c", "old")]
