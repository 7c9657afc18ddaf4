"""The cache of compilations: the bytes are those of a compilation without it, and no change goes
unnoticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aot_model.cli import build, main
from aot_model.emit.files import Product

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/build"))

from cmake_project import write_model  # noqa: E402

Compile = Callable[..., bool]


@pytest.fixture
def compile_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Compiles models/m.onnx into a folder; whether the compiler did work, rather than the cache."""
    monkeypatch.setenv("AOT_MODEL_CACHE_DIR", str(tmp_path / "cache"))
    work: list[object] = []
    own = build._compile
    monkeypatch.setattr(build, "_compile", lambda arguments: (work.append(arguments), own(arguments))[1])

    def run(*options: str, model: Path = tmp_path / "models/m.onnx", output: str = "out") -> bool:
        work.clear()
        paths = ["--depfile", str(tmp_path / output / "m.d"), "--report", str(tmp_path / output / "m.txt")]
        assert main(["compile", str(model), "-o", str(tmp_path / output), *paths, *options]) == 0
        return bool(work)

    write_model(tmp_path / "models/m.onnx", external_data="m.weights")
    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").iterdir())


def test_a_hit_gives_the_bytes_of_a_compilation(tmp_path: Path, compile_model: Compile) -> None:
    """From another place, too; the depfile names the files of this place."""
    assert compile_model("--params=external", output="out")
    made = contents(tmp_path / "out")
    assert set(made) == {"m.c", "m.h", "m.json", "m.params", "m.d", "m.txt"}
    assert not compile_model("--params=external", output="out")
    assert contents(tmp_path / "out") == made
    write_model(tmp_path / "elsewhere/m.onnx", external_data="m.weights")
    assert not compile_model("--params=external", model=tmp_path / "elsewhere/m.onnx", output="other")
    other = contents(tmp_path / "other")
    assert other.pop("m.d").decode() == made.pop("m.d").decode().replace(
        str(tmp_path / "models"), str(tmp_path / "elsewhere")
    ).replace(str(tmp_path / "out"), str(tmp_path / "other"))
    assert other == made


@pytest.mark.parametrize("option", [
    "--name=n", "--target=c", "--option=optimize=size", "--io=workspace", "--workspace=caller", "--pool=a",
    "--params=external", "--profile", "--interface=module", "--metadata=none", "--planner=greedy",
    "--max-ram=1m"
],
                         )  # fmt: skip
def test_every_option_counts(compile_model: Compile, option: str) -> None:
    assert compile_model()
    assert compile_model(option)
    assert not compile_model(option)


def test_every_input_counts(tmp_path: Path, compile_model: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_model()
    os.utime(tmp_path / "models/m.onnx")
    assert not compile_model()
    weights = tmp_path / "models/m.weights"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert compile_model() and not compile_model()
    write_model(tmp_path / "models/m.onnx", bias=2, external_data="m.weights")
    assert compile_model() and not compile_model()
    for changed in ("digest", "package_versions"):
        monkeypatch.setattr(f"aot_model.installation.{changed}", lambda: "another")
        assert compile_model() and not compile_model()


def test_errors_and_listings_are_not_kept(
    tmp_path: Path, compile_model: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert (
            main(["compile", str(tmp_path / "models/m.onnx"), "-o", str(tmp_path / "out"), "--max-flash=1"])
            == 1
        )
        assert "[E402]" in capsys.readouterr().err
    (tmp_path / "models/m.weights").rename(tmp_path / "models/gone")
    assert main(["compile", str(tmp_path / "models/m.onnx"), "-o", str(tmp_path / "out")]) == 1
    assert "[E103]" in capsys.readouterr().err
    (tmp_path / "models/gone").rename(tmp_path / "models/m.weights")
    assert compile_model("--dump-after=fold_constants") and compile_model("--dump-after=fold_constants")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data[:80] + b"x" + data[81:], lambda data: b""],
    ids=["cut", "changed", "empty"],
)
def test_damaged_entries_are_made_again(
    tmp_path: Path, compile_model: Compile, damage: Callable[[bytes], bytes]
) -> None:
    assert compile_model()
    made = contents(tmp_path / "out")
    for entry in entries(tmp_path):
        entry.write_bytes(damage(entry.read_bytes()))
        assert compile_model() and contents(tmp_path / "out") == made
        assert not compile_model()


WRONG = [
    "",
    "null",
    "0",
    "[]",
    "{}",
    '"text"',
    "[" * 100_000,
    "nonsense",
    '{"external": null}',
    '{"external": [1]}',
    '{"external": ["a\\u0000b"]}',
    '{"external": ["."]}',
    '{"external": ["\\ud800"]}',
    '{"files": null}',
    '{"files": {}}',
    '{"files": {"m.c": 1}}',
    '{"files": {"..": ""}}',
    '{"files": {"": ""}}',
    '{"files": {"m.h": "", "m.c": "", "m.json": ""}}',
]
"""What a whole entry may be instead of what it should be."""
FIELDS: list[tuple[str, object]] = [
    *(
        (key, value)
        for key in ("files", "report", "notes", "own", "external")
        for value in (None, 7, {}, [7], [[]], ["\ud800"], "\ud800")
    ),
    ("files", {"m.c": "AAAA"}),
    ("files", dict.fromkeys(("m.c", "m.h", "m.json"), "no base64")),
    ("files", dict.fromkeys(("m.c", "m.h", "m.json"), 7)),
    ("files", dict.fromkeys(("m.c", "m.h", "../m.json"), "")),
    ("own", ["gone.py"]),
    ("own", ["../aot_model/cache.py"]),
    ("own", ["/etc/passwd"]),
    ("own", ["a\0b"]),
    ("external", ["other"]),
    ("external", []),
]
"""What a field of the entry with the files may be."""


def forge(path: Path, data: bytes) -> None:
    """An entry whose checksum is right."""
    path.write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def test_entries_of_another_structure_are_not_there(
    tmp_path: Path, compile_model: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in them: the model is compiled, the files are right, and the entry is replaced."""
    assert compile_model()
    made = contents(tmp_path / "out")
    kept = {path: path.read_bytes() for path in entries(tmp_path)}
    [whole] = [path for path in kept if b'"files"' in kept[path]]
    product = compiled_once(monkeypatch)
    cases = [(path, text.encode()) for path in kept for text in WRONG]
    for key, value in FIELDS:
        entry = json.loads(kept[whole].partition(b"\n")[2])
        if entry[key] != value:
            cases.append((whole, json.dumps({**entry, key: value}).encode()))
            cases.append((whole, json.dumps({k: v for k, v in entry.items() if k != key}).encode()))
    for path, data in cases:
        forge(path, data)
        product.clear()
        assert compile_model() or product, data[-300:]
        assert contents(tmp_path / "out") == made, data[:100]
        assert {p: p.read_bytes() for p in entries(tmp_path)} == kept, data[:100]


def compiled_once(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """From now on the compiler gives what it gave the first time; what is added to the list says that it was
    asked.
    """
    asked: list[object] = []
    known: list[Product] = []
    own = build._compile

    def compile_(arguments: argparse.Namespace) -> Product:
        asked.append(arguments)
        if not known:
            known.append(own(arguments))
        return known[0]

    monkeypatch.setattr(build, "_compile", compile_)
    return asked


def test_a_model_that_changes_meanwhile_is_not_kept(
    tmp_path: Path, compile_model: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = build._compile

    def slow(arguments: argparse.Namespace) -> Product:
        made = own(arguments)
        write_model(tmp_path / "models/m.onnx", bias=1.0, external_data="m.weights")
        return made

    monkeypatch.setattr(build, "_compile", slow)
    assert compile_model()
    monkeypatch.setattr(build, "_compile", own)
    compile_model()
    new = contents(tmp_path / "out")["m.c"]
    monkeypatch.delenv("AOT_MODEL_CACHE_DIR")
    compile_model()
    assert contents(tmp_path / "out")["m.c"] == new


def test_entries_cannot_name_other_folders(tmp_path: Path, compile_model: Compile) -> None:
    assert compile_model()
    for path in entries(tmp_path):
        forge(path, path.read_bytes().partition(b"\n")[2].replace(b'"m.h"', b'"../m.h"'))
    assert compile_model() and not (tmp_path / "m.h").exists()


def test_those_not_used_for_longest_go_first(
    tmp_path: Path, compile_model: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("--name=a", "--name=b", "--name=c")
    for age, name in enumerate(names):
        before = set(entries(tmp_path)) if age else set()
        compile_model(name)
        for entry in set(entries(tmp_path)) - before:
            os.utime(entry, (1000 + age, 1000 + age))
    assert not compile_model("--name=a")  # now the youngest
    total = sum(entry.stat().st_size for entry in entries(tmp_path))
    monkeypatch.setenv("AOT_MODEL_CACHE_SIZE", str(total + total // 6))  # room for three and a half
    assert compile_model("--name=d")
    assert sum(entry.stat().st_size for entry in entries(tmp_path)) <= total + total // 6
    assert [compile_model(name) for name in ("--name=a", "--name=c", "--name=d")] == [False, False, False]
    assert compile_model("--name=b")


def test_mistakes(
    tmp_path: Path,
    compile_model: Compile,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AOT_MODEL_CACHE_SIZE", "much")
    assert main(["compile", str(tmp_path / "models/m.onnx"), "-o", str(tmp_path / "out")]) == 1
    assert "AOT_MODEL_CACHE_SIZE: 'much' is not a number of bytes [E501]" in capsys.readouterr().err
    monkeypatch.delenv("AOT_MODEL_CACHE_SIZE")
    (tmp_path / "file").touch()
    monkeypatch.setenv("AOT_MODEL_CACHE_DIR", str(tmp_path / "file/cache"))
    assert compile_model()
    assert f"note: the cache {tmp_path}/file/cache cannot be used: Not a directory" in capsys.readouterr().err


def test_builds_at_the_same_time(tmp_path: Path, compile_model: Compile) -> None:
    """Several processes fill and shrink one folder: all succeed with the same bytes."""
    environment = os.environ | {"AOT_MODEL_CACHE_SIZE": "100k"}
    command = [
        sys.executable,
        str(ROOT / "compiler/aot_model"),
        "compile",
        str(tmp_path / "models/m.onnx"),
        "-o",
    ]
    running = [
        subprocess.Popen([*command, str(tmp_path / f"out{k}"), f"--name=n{k % 2}"], env=environment)
        for k in range(4)
    ]
    assert [process.wait(120) for process in running] == [0] * 4
    assert contents(tmp_path / "out0") == contents(tmp_path / "out2") and contents(
        tmp_path / "out1"
    ) == contents(tmp_path / "out3")
    assert all(entry.name.endswith(".aot-model") for entry in entries(tmp_path))
