"""ONNX files: the model's own, and those with external data (tensors whose values are beside the model).

The data are read here and not with onnx.external_data_helper, which refuses symbolic links and files with
several hard links: build systems that sandbox their actions (Bazel) or copy sources (SCons) hand in just
those.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from aot_model.c.names import printable
from aot_model.errors import CompileError, Problem, fail
from aot_model.frontends.onnx_checks import tensors, wanted_bytes


def read_proto(path: Path) -> tuple[bytes, onnx.ModelProto]:
    """The content of a file and the model in it, external data not loaded. CompileError E101, E102."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise fail("E101", f"cannot read the model: {error.strerror or error}", where=str(path)) from None
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise fail(
            "E102", f"neither an ONNX nor a TFLite model: {error}", where=str(path), hint=_other_format(path)
        ) from None
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise fail(
            "E102",
            "neither an ONNX nor a TFLite model: it has no graph",
            where=str(path),
            hint=_other_format(path),
        )
    return data, proto


def _other_format(path: Path) -> str:
    """What to do with a file that is a model of somebody else's."""
    known = {
        ".h5": "Keras",
        ".keras": "Keras",
        ".pb": "TensorFlow",
        ".pt": "PyTorch",
        ".pth": "PyTorch",
        ".pkl": "Python's pickle",
        ".safetensors": "safetensors",
        ".joblib": "scikit-learn",
        ".mlmodel": "Core ML",
    }
    if owner := known.get(path.suffix.lower()):
        return (
            f"'{path.suffix}' is a file of {owner}: export it to ONNX (torch.onnx.export, tf2onnx, "
            "skl2onnx) or TFLite (tf.lite.TFLiteConverter)"
        )
    return "give an .onnx or .tflite file"


def external_locations(proto: onnx.ModelProto) -> list[str]:
    """Locations of external data as they are written in the model; whether they exist is not looked at."""
    return sorted(
        {
            e.value
            for t in _external(proto)
            for e in t.external_data
            if e.key == "location" and _is_name(e.value)
        }
    )


def operators(proto: onnx.ModelProto) -> Counter[tuple[str, str]]:
    """How often each operator (domain, name) is in a model: in inner graphs too, and in functions, which are
    not operators themselves.
    """
    functions = {(f.domain, f.name) for f in proto.functions}
    counted: Counter[tuple[str, str]] = Counter()
    waiting = [*proto.graph.node, *(node for f in proto.functions for node in f.node)]
    while waiting:
        node = waiting.pop()
        if (node.domain, node.op_type) not in functions:
            counted[node.domain or "ai.onnx", node.op_type] += 1
        for attribute in node.attribute:
            waiting += [*attribute.g.node, *(inner for graph in attribute.graphs for inner in graph.node)]
    return counted


def load_external(proto: onnx.ModelProto, path: Path) -> list[Path]:
    """Read external data into the tensors; the files that it came from.

    CompileError E103 with all data that are missing or shorter than the model says, or outside the model's
    folder.
    """
    files: dict[Path, bytes] = {}
    problems: list[Problem] = []
    for tensor in _external(proto):
        name = printable(tensor.name)
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        file = path.parent / location
        try:
            if not _is_name(location) or not _is_beside(file, path):
                problems.append(
                    Problem(
                        "E103",
                        f"external data of '{name}' is at '{printable(location)}', "
                        "outside the model's folder",
                        str(path),
                    )
                )
                continue
            if not file.is_file():
                problems.append(
                    Problem(
                        "E103",
                        f"external data '{printable(location)}' of '{name}' is missing",
                        str(path),
                        "copy it beside the model",
                    )
                )
                continue
            if file not in files:
                files[file] = file.read_bytes()
            tensor.raw_data = _part(files[file], entries, wanted_bytes(tensor))
        # RuntimeError: Python before 3.13 of links in a circle
        except (OSError, ValueError, RuntimeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            problems.append(
                Problem(
                    "E103",
                    f"external data '{printable(location)}' of '{name}' cannot be read: "
                    f"{printable(str(why))}",
                    str(path),
                )
            )
            continue
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    if problems:
        raise CompileError(dict.fromkeys(problems))
    return list(files)


def _is_name(location: object) -> bool:
    """Whether a location can be the name of a file: text (protobuf gives bytes for what is not UTF-8) that
    can be shown.
    """
    return (
        isinstance(location, str)
        and location != ""
        and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in location)
    )


def _is_beside(file: Path, model: Path) -> bool:
    """Whether a file is in the model's folder or below it, also when both are links into another folder (a
    sandbox).
    """
    return any(
        file.resolve().is_relative_to(folder) for folder in (model.parent.resolve(), model.resolve().parent)
    )


def _part(data: bytes, entries: dict[str, str], wanted: int | None) -> bytes:
    """Bytes [offset, offset + length) of a file; without a length as many as are wanted, or all there are.
    ValueError when it does not have them.
    """
    offset = int(entries.get("offset") or 0)
    length = len(data) - offset
    if entries.get("length"):
        length = int(entries["length"])
    elif wanted is not None:
        length = min(length, wanted)
    if offset < 0 or length < 0 or offset + length > len(data):
        raise ValueError(f"offset {offset} and length {length} are not inside its {len(data)} bytes")
    return data[offset : offset + length]


def _external(proto: onnx.ModelProto) -> list[onnx.TensorProto]:
    return [t for t in tensors(proto) if t.data_location == onnx.TensorProto.EXTERNAL]
