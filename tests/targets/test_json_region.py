"""The target json: every operator of the interpreter against the reference, blobs saved and loaded, and
broken ones.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from float_layers import ALL, NETWORKS, Case
from vector_unit import compiled, outputs

from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.ir.values import Value, constant
from aot_model.pipeline import Request, compile_model
from aot_model.targets.json_region import MAGIC, serialise
from corpus import MODELS, REASON, vectors
from firmware import run_firmware
from graphs import Maker, graph, value, weights
from qemu import available

PARAMETERS, VERSION = -3, -11


FEW = [
    c
    for c in ALL
    if c.name
    in (
        "conv2d_groups",
        "dense_relu",
        "broadcast",
        "clip",
        "prelu",
        "mean",
        "reshape",
        "several",
        "two_outputs",
    )
]


@pytest.mark.parametrize(
    ("case", "target"), [*((c, "json") for c in ALL), *((c, "json-weightless") for c in FEW)], ids=str
)
def test_same_as_the_reference(case: Case, target: str, tmp_path: Path) -> None:
    result = compiled(case.proto(), tmp_path, f"{target},c")
    assert any(a.target == target for a in result.assignments) or (target, case.name) == (
        "json-weightless",
        "mean",
    )
    for a, b in zip(outputs(result, tmp_path, *case.inputs()), case.expected(), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", NETWORKS, ids=lambda c: c.name)
def test_a_network_is_one_region(case: Case, tmp_path: Path) -> None:
    layers = json.loads(compiled(case.proto(), tmp_path, "json,c").texts["m.json"])["layers"]
    assert [x["op"] for x in layers].count("json:json_0") == 1


def test_constants_are_in_the_blob_or_apart(tmp_path: Path) -> None:
    """json: nothing but the blob is constant. json-weightless: weights can be replaced as parameters of the
    model.
    """
    case = NETWORKS[0]
    inside, apart = (
        compiled(case.proto(), tmp_path, "json,c"),
        compiled(case.proto(), tmp_path, "json-weightless,c"),
    )
    assert [b.name for b in inside.view.constants] == ["json_0_blob"]
    names = [b.name for b in apart.view.constants]
    assert len(names) > 5 and "json_weightless_0_blob" in names
    external = compile_model(
        Request(
            tmp_path / "m.onnx",
            "m",
            "json-weightless,c",
            library=apart.view.options.__class__(params="external"),
        )
    )
    assert len(external.binaries["m.params"]) > 4 * 64 * 6


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("name", ["kws_f32.onnx", "digits_mbv3.onnx"])
def test_network_of_the_corpus(name: str, tmp_path: Path) -> None:
    assert MODELS is not None
    result = compile_model(Request(MODELS / name, "m", "json,c"))
    inputs, expected = vectors(MODELS / name, 1, 1, 1)
    np.testing.assert_allclose(
        outputs(result, tmp_path, *inputs[0])[0].reshape(-1), expected[0][0].reshape(-1), atol=2e-5
    )


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_on_cortex_m4(tmp_path: Path) -> None:
    case = NETWORKS[0]
    done = run_firmware(compiled(case.proto(), tmp_path, "json,cortex-m4"), "m4", [case.inputs()], tmp_path)
    np.testing.assert_allclose(done.outputs[0][0], case.expected()[0], rtol=2e-5, atol=2e-6)


# --- blobs by themselves ------------------------------------------------------------------------------------


@cache
def _program() -> Path:
    folder = Path(mkdtemp(prefix="region-"))
    source = Path(__file__).with_name("region_main.c")
    command = ["cc", *STRICT, "-O1", *SANITIZE, f"-I{include_dir()}", str(source), "-lm", "-o", "region"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "region"


def _run(*blobs: bytes) -> list[list[str]]:
    """What region_main.c prints for each blob: bits of the outputs, then the status."""
    data = b"".join(struct.pack("<I", len(b)) + b for b in blobs)
    done = subprocess.run([_program()], input=data, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [line.split() for line in done.stdout.decode().splitlines()]


def _blob() -> bytes:
    """y = softmax(conv(x, w) + b) over 2 x 3 x 3 x 2, with a value between."""
    g = graph(
        lambda m, x: m.Softmax(
            m.Add(
                m.Convolution(x, weights("w", 2, 2, 2, 2), pads=(1, 1, 1, 1), strides=(2, 2)), weights("b", 2)
            ),
            axis=3,
        ),
        value("x", 2, 3, 3, 2),
    )
    return serialise(g)[0]


def _movements() -> bytes:
    """The other operators that compute places in memory."""

    def make(m: Maker, x: Value) -> Value:
        pooled = m.Pool(x, mode="average", kernel=(2, 2), strides=(1, 2), pads=(0, 1, 1, 0))
        turned = m.Transpose(m.Concat(pooled, m.PRelu(pooled, weights("s", 2)), axis=3), perm=(0, 3, 1, 2))
        mean = m.ReduceMean(turned, constant("axes", np.asarray([2, 3], np.int64)), keepdims=0)
        return m.Clip(m.MatMul(mean, weights("m", 4, 3)), weights("low"), None)

    return serialise(graph(make, value("x", 2, 3, 3, 2)))[0]


def test_saved_loaded_run(tmp_path: Path) -> None:
    """A blob in a file is all that a program needs: no line of generated C."""
    file = tmp_path / "region.bin"
    file.write_bytes(_blob())
    (line,) = _run(file.read_bytes())
    assert line[-1] == "0"
    got = np.asarray([int(bits, 16) for bits in line[:-1]], np.uint32).view(np.float32).reshape(2, 2, 2, 2)
    x = np.asarray([(i % 97 + 1) / 100 for i in range(36)], np.float32).reshape(2, 3, 3, 2)
    w, b = (np.arange(n, dtype=np.float32) for n in (16, 2))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    acc = np.stack(
        [
            [
                np.einsum("nhwc,ohwc->no", padded[:, r : r + 2, c : c + 2], w.reshape(2, 2, 2, 2))
                for c in (0, 2)
            ]
            for r in (0, 2)
        ]
    )
    e = np.exp((z := acc.transpose(2, 0, 1, 3) + b) - z.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(axis=-1, keepdims=True), rtol=1e-5)


def test_the_blob_is_documented_json(tmp_path: Path) -> None:
    blob = _blob()
    version, size, begin, constants, tensors, temporaries, _ = struct.unpack_from("<7I", blob, 4)
    assert blob[:4] == MAGIC and version == 1 and begin % 16 == 0 and begin + constants == len(blob)
    document = json.loads(blob[32 : 32 + size])
    assert [n["op"] for n in document["nodes"]] == ["conv2d", "add", "softmax"]
    assert len(document["tensors"]) == tensors and temporaries == 2 * 64
    assert blob == _blob()


# --- broken blobs -------------------------------------------------------------------------------------------


def _sealed(head: Sequence[int], rest: bytes) -> bytes:
    """A blob of header fields and the rest, with the right CRC."""
    start = MAGIC + struct.pack("<6I", *head)
    return start + struct.pack("<I", crc32(rest, crc32(start))) + rest


def _edited(edit: Callable[[Any], None]) -> bytes:
    """The blob with another document."""
    blob = _blob()
    version, size, begin, constants, tensors, temporaries, _ = struct.unpack_from("<7I", blob, 4)
    document = json.loads(blob[32 : 32 + size])
    edit(document)
    text = json.dumps(document).encode()
    return _sealed((version, len(text), 32 + len(text), constants, tensors, temporaries), text + blob[begin:])


def _set(path: str, new: object) -> Callable[[Any], None]:
    """Replace what is at a path such as nodes.0.op."""

    def edit(document: Any) -> None:
        *way, last = path.split(".")
        for step in way:
            document = document[int(step) if step.isdigit() else step]
        document[int(last) if last.isdigit() else last] = new

    return edit


BROKEN = {
    "nothing": b"",
    "short": _blob()[:31],
    "truncated": _blob()[:-1],
    "magic": b"AOTS" + _blob()[4:],
    "one bit": _blob()[:90] + bytes([_blob()[90] ^ 1]) + _blob()[91:],
}
EDITS: dict[str, Callable[[Any], None]] = {
    "no nodes": lambda d: d.pop("nodes"),
    "no tensors": lambda d: d.pop("tensors"),
    "fewer tensors": lambda d: d["tensors"].pop(),
    "operator": _set("nodes.0.op", "conv3d"),
    "operator of another type": _set("nodes.0.op", 7),
    "operand": _set("nodes.0.inputs", [99, 1]),
    "negative operand": _set("nodes.1.inputs", [-2, 1]),
    "no first operand": _set("nodes.1.inputs", [-1, 1]),
    "no operands": _set("nodes.0.inputs", []),
    "too many operands": _set("nodes.0.inputs", [1] * 17),
    "result": _set("nodes.2.output", 99),
    "result is a constant": _set("nodes.2.output", 1),
    "read before it is written": _set("nodes.1.inputs", [5, 3]),
    "output is never written": lambda d: d["nodes"].pop(),
    "shape": _set("tensors.0.shape", [2, 3, 3, 3]),
    "rank": _set("tensors.0.shape", [1] * 7),
    "no shape": lambda d: d["tensors"][0].pop("shape"),
    "empty tensor": _set("tensors.0.shape", [2, 0, 3, 2]),
    "huge tensor": _set("tensors.0.shape", [65536, 65536, 65536, 65536]),
    "no place": lambda d: d["tensors"][0].pop("input"),
    "constant beyond the end": _set("tensors.1.constant", 16),
    "odd constant": _set("tensors.1.constant", 2),
    "negative constant": _set("tensors.1.constant", -4),
    "temporary beyond the end": _set("tensors.2.temporary", 72),
    "input number": _set("tensors.0.input", 1 << 20),
    "stride": _set("nodes.0.strides", [0, 2]),
    "negative padding": _set("nodes.0.pads", [-1, 1, 1, 1]),
    "three strides": _set("nodes.0.strides", [2, 2, 2]),
    "one stride": _set("nodes.0.strides", [2]),
    "groups": _set("nodes.0.groups", 3),
    "no groups": _set("nodes.0.groups", 0),
    "axis": _set("nodes.2.axis", 4),
    "large axis": _set("nodes.2.axis", 1 << 31),
    "fraction": _set("nodes.2.axis", 1.5),
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged(name: str) -> None:
    assert _run(BROKEN[name]) == [[str(PARAMETERS)]]


@pytest.mark.parametrize("name", EDITS)
def test_contradictions_are_found_before_the_first_run(name: str) -> None:
    assert _run(_edited(EDITS[name])) == [[str(PARAMETERS)]]


def test_another_version() -> None:
    blob = _blob()
    fields = struct.unpack_from("<6I", blob, 4)
    assert _run(_sealed((2, *fields[1:]), blob[32:])) == [[str(VERSION)]]


def test_unknown_members_are_passed_over() -> None:
    """A later version may say more."""
    more = {"nested": [{"a": ["]", {"b": '\\"}'}]}, None, True, -1.5e3], "text": 'quote " and \\'}
    assert (
        _run(
            _edited(
                lambda d: (
                    d.update(extra=more)
                    or d["nodes"][0].update(extra=more)
                    or d["tensors"][0].update(extra=more)
                )
            )
        )[0][-1]
        == "0"
    )


def test_random_damage() -> None:
    """Bytes and words of text, header and document changed at random, with the right CRC: an error or a
    result, never an access outside.
    """
    rng = np.random.default_rng(23)
    assert {line[-1] for line in _run(_blob(), _movements())} == {"0"}
    blobs = []
    for turn in range(3000):
        original = (_blob(), _movements())[turn % 2]
        data = bytearray(original)
        for _ in range(int(rng.integers(1, 5))):
            at = int(rng.integers(4, len(data) if rng.random() < 0.3 else 700))
            if rng.random() < 0.2:
                del data[at : at + int(rng.integers(1, 9))]
            else:
                data[at : at + 1] = bytes(
                    rng.choice(list(b'0123456789-,:[]{}"\\ aenst\x00\xff'), int(rng.integers(1, 3))).tolist()
                )
        if len(data) >= 32 and rng.random() < 0.95:
            data = bytearray(
                _sealed(
                    (1, *struct.unpack_from("<5I", original if rng.random() < 0.8 else data, 8)),
                    bytes(data[32:]),
                )
            )
        blobs.append(bytes(data))
    statuses = {line[-1] for line in _run(*blobs)}
    assert statuses <= {"0", str(PARAMETERS), str(VERSION)} and len(statuses) >= 2
