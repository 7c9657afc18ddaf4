"""Metadata: one object that JSON, a shared library, firmware and a flash image give back the same; what it
costs.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import aot_model
from aot_model.cli import main
from aot_model.emit.metadata import metadata_of
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.library.binary import find
from aot_model.library.metadata import Metadata
from aot_model.memory import Pool
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, small_cnn, tensor
from qemu import BOARDS, COMPILER, available, build
from tflite_models import Op, T
from tflite_models import build as tflite

THREE = (Pool("fast", 320, 32), Pool("sram", 640), Pool("ext"))
on_board = pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")


def cnn(folder: Path) -> Path:
    return save(small_cnn(), folder / "cnn.onnx")


def quantised(folder: Path) -> Path:
    """An int8 network, whose ports have scales and zero points."""
    w = T("w", (3, 4), data=np.arange(12, dtype=np.int8).reshape(3, 4), scale=(0.25,), zero=(0,))
    tensors = [T("in put:0", (1, 4), scale=(0.5,), zero=(-3,)), w, T("y", (1, 3), scale=(0.125,), zero=(7,))]
    path = folder / "dense.tflite"
    path.write_bytes(
        tflite(tensors, [Op("FULLY_CONNECTED", (0, 1, -1), (2,), "FullyConnectedOptions")], [0], [2])
    )
    return path


def odd(folder: Path) -> Path:
    """A scalar without a shape, a name in other letters, an output that is an input, no arithmetic."""
    return save(
        model([helper.make_node("Identity", ["größe/Ω"], ["y"])], [tensor("größe/Ω", [])], [tensor("y", [])]),
        folder / "odd.onnx",
    )


CASES = [
    (cnn, Options(), (Pool("workspace"),)),
    (cnn, Options("caller", "workspace"), THREE),
    (cnn, Options(params="external"), THREE),
    (quantised, Options(), (Pool("sram"),)),
    (odd, Options("caller"), (Pool("workspace"),)),
]


def without_what_only_json_has(facts: Metadata) -> Metadata:
    external = facts.parameters
    return replace(
        facts,
        options={},
        notes=(),
        devices=(),
        pools=tuple(replace(p, section=None, speed=0, targets=()) for p in facts.pools),
        layers=tuple(replace(layer, function="", scratch_bytes=0) for layer in facts.layers),
        inputs=tuple(replace(t, pool=None, offset=None) for t in facts.inputs),
        outputs=tuple(replace(t, pool=None, offset=None) for t in facts.outputs),
        parameters=None if external is None else replace(external, file=None, structure=()),
    )


def compiled(
    folder: Path, make: object, options: Options, pools: tuple[Pool, ...], target: str = "c", name: str = "m"
) -> Metadata:
    made = compile_model(Request(make(folder), name, target, library=options, pools=pools))  # type: ignore[operator]
    write(made, folder)
    return metadata_of(made.view)


def shared(folder: Path, *names: str, flags: Sequence[str] = ()) -> Path:
    command = [
        "cc",
        *STRICT,
        *flags,
        "-shared",
        "-fPIC",
        f"-I{include_dir()}",
        *(f"{n}.c" for n in names),
        "-lm",
        "-o",
        "libm.so",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libm.so"


MAIN = '#include "m.h"\nint main(void) { return (int)m_metadata()->version - 2; }\n'


@pytest.mark.parametrize(("make", "options", "pools"), CASES)
def test_json_and_shared_library(
    tmp_path: Path, make: object, options: Options, pools: tuple[Pool, ...]
) -> None:
    facts = compiled(tmp_path, make, options, pools)
    assert Metadata.read(tmp_path / "m.json") == facts
    assert Metadata.read(shared(tmp_path, "m")) == without_what_only_json_has(facts)
    if options.io == "caller":
        loaded = aot_model.load(loadable(tmp_path, make, options, pools))
        assert loaded.metadata == without_what_only_json_has(facts)


def loadable(folder: Path, make: object, options: Options, pools: tuple[Pool, ...]) -> Path:
    inside = folder / "loadable"
    inside.mkdir()
    compiled(inside, make, replace(options, interfaces=("module",)), pools)
    return shared(inside, "m")


@on_board
@pytest.mark.parametrize(("make", "options", "pools"), CASES[1:4])
def test_firmware_and_flash_image(
    tmp_path: Path, make: object, options: Options, pools: tuple[Pool, ...]
) -> None:
    facts = compiled(tmp_path, make, options, pools, "cortex-m4")
    (tmp_path / "main.c").write_text(MAIN)
    elf = build(BOARDS["m4"], ["main.c", "m.c"], tmp_path, ["-O2", f"-I{include_dir()}"])
    subprocess.run(
        ["arm-none-eabi-objcopy", "-O", "binary", "board.elf", "flash.bin"], cwd=tmp_path, check=True
    )
    want = without_what_only_json_has(facts)
    assert Metadata.read(tmp_path / "m.json") == facts
    assert Metadata.read(elf) == Metadata.read(tmp_path / "flash.bin") == want


def test_what_it_says(tmp_path: Path) -> None:
    facts = compiled(tmp_path, cnn, Options(), (Pool("workspace"),))
    assert (facts.name, facts.model_file, facts.target, len(facts.model_sha256)) == ("m", "cnn.onnx", "c", 64)
    assert facts.macs == sum(layer.macs for layer in facts.layers) > 0
    assert facts.constant_bytes == sum(layer.constant_bytes for layer in facts.layers) > 0
    assert max(layer.workspace_bytes for layer in facts.layers) == facts.lower_bound <= facts.workspace_size
    assert facts.layers[0].op == "Convolution"
    dense = compiled(tmp_path, quantised, Options(), (Pool("workspace"),)).inputs[0]
    assert (dense.name, dense.quantisation.scale, dense.quantisation.zero_point) == (
        "in put:0",
        (0.5,),
        (-3,),
    )  # type: ignore[union-attr]


def test_size_has_numbers_only(tmp_path: Path) -> None:
    facts = compiled(tmp_path, cnn, Options(metadata="size"), THREE)
    found = Metadata.read(shared(tmp_path, "m"))
    assert found == replace(without_what_only_json_has(facts), inputs=(), outputs=(), layers=())


def test_several_models_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = [
        without_what_only_json_has(compiled(tmp_path, make, Options(), (Pool("workspace"),), name=name))
        for name, make in (("m", cnn), ("n", quantised))
    ]
    path = shared(tmp_path, "n", "m")
    assert list(Metadata.read_all(path)) == facts
    assert aot_model.models(path) == ("m", "n")
    with pytest.raises(CompileError, match="has several models: m, n"):
        Metadata.read(path)
    assert main(["inspect", str(path)]) == 0
    text = capsys.readouterr().out
    assert "m: cnn.onnx" in text and "n: dense.tflite" in text and "0.5 * (q - -3)" in text
    assert main(["inspect", str(path), "--json"]) == 0
    assert [m["macs"] for m in json.loads(capsys.readouterr().out)] == [f.macs for f in facts]


def test_files_without_metadata(tmp_path: Path) -> None:
    """Of any kind: an object file, text, a file that ends too early, bytes that only begin alike; always an
    error with the reason.
    """
    compiled(tmp_path, cnn, Options(), (Pool("workspace"),))
    data = shared(tmp_path, "m").read_bytes()
    subprocess.run(["cc", f"-I{include_dir()}", "-c", "m.c"], cwd=tmp_path, check=True)
    at = data.index(b"AOTMODEL")
    newer = data[: at + 8] + b"\3" + data[at + 9 :]
    cases = [
        (tmp_path / "m.o").read_bytes(),
        b"",
        b"text",
        b"AOTMODEL",
        b"AOTMODEL" * 40,
        b"\x7fELF",
        newer,
        *(data[:n] for n in range(0, at + 100, 97)),
    ]
    for case in cases:
        with pytest.raises(CompileError, match="has no metadata of a model") as error:
            find(case, "file")
        assert error.value.problems[0].code == "E102"
    with pytest.raises(CompileError, match="another version"):
        find(newer, "file")
    with pytest.raises(CompileError, match="cannot be read"):
        Metadata.read(tmp_path / "none.so")


@pytest.mark.parametrize("change", [{"schema": 1}, {"inputs": 5}, {"workspace": None}])
def test_json_of_another_version(tmp_path: Path, change: dict[str, object]) -> None:
    facts = compiled(tmp_path, cnn, Options(), (Pool("workspace"),))
    (tmp_path / "x.json").write_text(json.dumps({**facts.to_dict(), **change}))
    with pytest.raises(CompileError, match="is not the metadata of a generated library"):
        Metadata.read(tmp_path / "x.json")


def _linked(folder: Path, level: str, *flags: str) -> tuple[int, Path]:
    """(bytes of flash, ELF) of firmware that only runs the model."""
    folder.mkdir()
    compiled(folder, cnn, Options(metadata=level), (Pool("workspace"),), "cortex-m4")
    (folder / "main.c").write_text(
        '#include "m.h"\nstatic float x[72], y[5];\nint main(void) { const m_inputs i = { x }; const '
        "m_outputs o = { y }; return m_run(&i, &o); }\n"
    )
    elf = build(
        BOARDS["m4"],
        ["main.c", "m.c"],
        folder,
        ["-Os", "-ffunction-sections", "-fdata-sections", f"-I{include_dir()}", *flags],
    )
    row = (
        subprocess.run([COMPILER.replace("gcc", "size"), elf], check=True, capture_output=True, text=True)
        .stdout.splitlines()[1]
        .split()
    )
    return int(row[0]) + int(row[1]), elf


@on_board
def test_none_costs_nothing_and_unused_metadata_go(tmp_path: Path) -> None:
    """Not a byte of the ELF, with --metadata none, or where the linker removes what nothing refers to; -u
    keeps them.
    """
    none, elf = _linked(tmp_path / "none", "none")
    assert b"AOTMODEL" not in elf.read_bytes()
    collected, elf = _linked(tmp_path / "full", "full", "-Wl,--gc-sections")
    bare, _ = _linked(tmp_path / "bare", "none", "-Wl,--gc-sections")
    assert collected == bare and b"AOTMODEL" not in elf.read_bytes()
    kept, elf = _linked(tmp_path / "kept", "full", "-Wl,--gc-sections", "-Wl,-u,m_metadata")
    assert Metadata.read(elf).macs > 0
    full, _ = _linked(tmp_path / "all", "full")
    print(f"metadata: none 0, full {full - none} bytes")
    assert kept > bare and full > none
