"""Whole TFLite files: mutated ones, real models where they are at hand, and what their C must not have."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from small_tflite import CONV, CONVOLUTION, RNG, WEIGHTS, program, save, seeds

from aot_model.errors import CompileError
from aot_model.frontends.tflite import read_tflite
from aot_model.frontends.tflite_file import parse
from aot_model.host.program import SANITIZE, HostProgram, scratch_folder
from aot_model.host.program import build as build_program
from aot_model.pipeline import Request, compile_model
from tflite_models import build

MODELS = Path(os.environ.get("AOT_MODEL_MODELS", Path(__file__).parents[3] / "shared" / "models"))
FUZZ_CASES = int(os.environ.get("AOT_MODEL_FUZZ_CASES", "300"))


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, words replaced by awkward ones, the end cut off, pieces swapped."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if len(result) < 8:
            break
        at = rng.randrange(len(result) - 4)
        kind = rng.randrange(4)
        if kind == 0:
            result[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            word = rng.choice(
                (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, len(result), at, rng.getrandbits(32))
            )
            result[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
        elif kind == 2:
            del result[at:]
        else:
            other = rng.randrange(max(len(result) - 16, 1))
            result[at : at + 16] = result[other : other + 16]
    return bytes(result)


def test_mutated_models_end_in_an_error_or_a_graph(tmp_path: Path) -> None:
    """Nothing but CompileError may come out; what is accepted must compile."""
    rng = random.Random(20)
    valid = seeds()
    if MODELS.is_dir():
        small = [p for p in sorted(MODELS.glob("*.tflite")) if p.stat().st_size < 20000]
        valid += [p.read_bytes() for p in small]
    accepted = 0
    for case in range(FUZZ_CASES):
        path = save(tmp_path, mutated(rng.choice(valid), rng))
        try:
            if case % 10:
                read_tflite(path)
            else:
                compile_model(Request(path, "m", "c"))
            accepted += 1
        except CompileError:
            pass
    assert accepted > FUZZ_CASES // 20


def outputs(model: HostProgram, vectors: dict[str, np.ndarray], consecutive: bool) -> list[list[np.ndarray]]:
    """A model with state starts afresh for each vector, unless they are consecutive runs."""
    rows = [
        [vectors[f"in_{k}"][i] for k in range(len(model.view.inputs))] for i in range(len(vectors["in_0"]))
    ]
    return (
        model.run(rows)
        if consecutive or not model.view.program.states
        else [model.run([row])[0] for row in rows]
    )


def corpus() -> list[str]:
    index = MODELS / "index.json"
    if not index.is_file():
        return []
    return [
        r["file"]
        for r in json.loads(index.read_text())
        if r["file"].endswith(".tflite")
        and r["status"].startswith(("run", "stretch"))
        and r["size"] < 150_000
    ]


@pytest.mark.skipif(not corpus(), reason=f"no models in {MODELS}; set AOT_MODEL_MODELS")
@pytest.mark.parametrize("file", corpus())
def test_real_models_match_their_reference(file: str) -> None:
    """Integers to the bit, floats within 1e-3 of the range."""
    # it has no other reference
    options = {"arithmetic": "litert-ref"} if file == "k_attn_int8.tflite" else {}
    with scratch_folder() as folder:
        model = program(MODELS / file, Path(folder), *(SANITIZE if "int8" in file else ()), **options)
        for suffix in (".npz", ".seq.npz"):
            if not (MODELS / f"{file}{suffix}").is_file():
                continue
            with np.load(MODELS / f"{file}{suffix}") as stored:
                vectors = dict(stored)
            for i, row in enumerate(outputs(model, vectors, suffix == ".seq.npz")):
                for k, got in enumerate(row):
                    expected = vectors[f"out_{k}"][i]
                    if expected.dtype.kind == "f":
                        bound = 1e-3 * max(float(np.nanmax(np.abs(expected), initial=0)), 1e-9)
                        assert np.allclose(
                            got.reshape(expected.shape), expected, rtol=0, atol=bound, equal_nan=True
                        )
                    else:
                        assert np.array_equal(got.reshape(expected.shape), expected), (suffix, i, k)


@pytest.mark.skipif(not corpus(), reason=f"no models in {MODELS}; set AOT_MODEL_MODELS")
@pytest.mark.parametrize("file", ["ad_int8.tflite", "resnet8_int8.tflite"])
def test_fully_connected_layers_round_as_litert_when_asked(file: str) -> None:
    with scratch_folder() as folder, np.load(MODELS / f"{file}.npz") as vectors:
        model = program(MODELS / file, Path(folder), arithmetic="litert-ref")
        for i, row in enumerate(outputs(model, dict(vectors), False)):
            assert np.array_equal(
                row[0].reshape(vectors["litert_out_0"][i].shape), vectors["litert_out_0"][i]
            )


def test_integer_networks_have_no_floats(tmp_path: Path) -> None:
    compiled = compile_model(Request(save(tmp_path, seeds()[-1]), "m", "c"))
    assert "float" not in compiled.texts["m.c"].split("/* ---- metadata")[0]


def _behind(data: bytes, number: int, beyond: int = 0) -> bytes:
    """The file with the data of a buffer behind the flatbuffer, as files of more than 2 GB have it."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    buffer = model.buffers[number]
    raw = bytes(bytearray(buffer.data))
    buffer.data, buffer.offset, buffer.size = None, len(data), len(raw) + beyond

    def packed() -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    buffer.offset = -(-len(packed()) // 16) * 16
    return packed().ljust(buffer.offset, b"\0") + raw


def test_data_behind_the_flatbuffer() -> None:
    """The weights are the same as in a buffer of the flatbuffer."""
    data = parse(_behind(seeds()[0], 2), "m").subgraphs[0].tensors[1].data
    assert data is not None and np.array_equal(data, WEIGHTS)


def test_data_behind_the_end_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"\[E102\]"):
        read_tflite(save(tmp_path, _behind(seeds()[0], 2, beyond=1)))


def test_names_of_a_model_cannot_break_the_c_text(tmp_path: Path) -> None:
    """A hostile tensor name stays inside its comment."""
    tensors = [replace(t, name='*/ #error "x" /*' if t.name == "y" else t.name) for t in CONVOLUTION]
    compiled = compile_model(Request(save(tmp_path, build(tensors, [CONV], [0], [3])), "m", "c"))
    with scratch_folder() as folder:
        built = build_program(compiled.view, compiled.texts, Path(folder))
        x = np.asarray(RNG.integers(-128, 128, (1, 5, 6, 2)), dtype=np.int8)
        assert built.run([[x]])[0][0].dtype == np.dtype(np.int8)
