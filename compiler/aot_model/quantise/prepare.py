"""The float model as it is quantised: extents fixed, a version of ONNX that has the types, constants
folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.shape_inference
import onnx.version_converter
from onnx import helper, numpy_helper

from aot_model.errors import CompileError, fail
from aot_model.frontends.onnx_complete import complete_proto
from aot_model.quantise.runtime import simplified

LEAST, WIDE = 13, 21
"""Versions of ONNX: scales by channel; integers of 16 and 4 bits."""


def read_float(
    path: Path, dims: Mapping[str, int], constants: Mapping[str, Sequence[float]]
) -> tuple[onnx.ModelProto, tuple[Path, ...]]:
    """The model in a file with its symbolic extents replaced, and its files. CompileError E1xx, E203."""
    from aot_model.frontends.read import model_format

    if model_format(path) != "onnx":
        raise fail(
            "E202",
            "only ONNX models are quantised, and this is a TFLite file",
            where=str(path),
            hint="export the float model to ONNX, or quantise with the TFLite converter",
        )
    _, model, sources = complete_proto(path)
    initial = {t.name for t in model.graph.initializer}
    used, open_, named = set(), [], dict[str, None]()
    for info in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                used.add(dim.dim_param)
                dim.dim_value = dims[dim.dim_param]
    for info in model.graph.input:
        if info.name not in initial and any(d.dim_value <= 0 for d in info.type.tensor_type.shape.dim):
            names = [d.dim_param or "?" for d in info.type.tensor_type.shape.dim if d.dim_value <= 0]
            open_.append(f"'{info.name}' ({', '.join(names)})")
            named.update(dict.fromkeys(n for n in names if n != "?"))
    if open_:
        raise fail(
            "E203",
            f"extents of inputs are not known: {', '.join(open_)}",
            where=str(path),
            hint=f"fix them: {' '.join(f'--dim {n}=1' for n in named)}, or what they are in use"
            if named
            else "they have no names: export the model with fixed extents",
        )
    if unknown := sorted(set(dims) - used):
        raise fail("E501", f"there is no symbolic dimension '{unknown[0]}'", where=str(path))
    for name, values in constants.items():
        _bind(model, name, values, str(path))
    return model, tuple(sources)


def _bind(model: onnx.ModelProto, name: str, values: Sequence[float], where: str) -> None:
    """An input becomes a constant."""
    info = next((i for i in model.graph.input if i.name == name), None)
    if info is None:
        raise fail("E501", f"there is no input '{name}' to be a constant", where=where)
    kind = info.type.tensor_type
    shape = tuple(d.dim_value for d in kind.shape.dim)
    try:
        data = np.asarray(values, helper.tensor_dtype_to_np_dtype(kind.elem_type))
        data = np.broadcast_to(data, shape) if data.size == 1 else data.reshape(shape)
    except ValueError:
        raise fail(
            "E501", f"input '{name}' of shape {list(shape)} has {len(values)} numbers", where=where
        ) from None
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(data), name))
    model.graph.input.remove(info)


def prepared(model: onnx.ModelProto, folder: Path, where: str) -> onnx.ModelProto:
    """A model of a version that has integers of 16 and 4 bits (where the conversion fails, at least scales
    by channel),
    simplified, with the shapes of all tensors. CompileError E202, E603."""
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    # Shapes that an exporter noted with a symbol would hide those that are inferred.
    del model.graph.value_info[:]
    for wanted in (WIDE, LEAST) if version < WIDE else (version,):
        try:
            newer = onnx.version_converter.convert_version(model, wanted) if version < wanted else model
        except Exception as error:
            if wanted == LEAST:
                why = f"the model is of version {version} of ONNX and cannot be converted to {LEAST}: {error}"
                hint = "export it with opset_version=17 or newer"
                raise fail("E202", why, where=where, hint=hint) from None
            continue
        try:
            result = simplified(newer, folder, where)
            break
        except CompileError:
            if wanted == LEAST or version >= WIDE:
                raise  # not the conversion is wrong, but the model
    for number, node in enumerate(result.graph.node):
        node.name = node.name or f"{node.op_type.lower()}_{number}"
    return onnx.shape_inference.infer_shapes(result, data_prop=True)


def has_wide_types(model: onnx.ModelProto) -> bool:
    return any(o.domain in ("", "ai.onnx") and o.version >= WIDE for o in model.opset_import)
