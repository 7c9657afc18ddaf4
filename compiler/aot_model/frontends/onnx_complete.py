"""ONNX: a file as one model that lacks nothing: checked, with its external data, functions in place."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.checker
import onnx.inliner
import onnx.numpy_helper

from aot_model.errors import fail
from aot_model.frontends.onnx_checks import AI_ONNX, check_lengths, check_model
from aot_model.frontends.onnx_file import load_external, read_proto
from aot_model.frontends.onnx_order import sort_nodes
from aot_model.frontends.onnx_sparse import make_dense


def complete_proto(path: Path) -> tuple[bytes, onnx.ModelProto, list[Path]]:
    """The bytes of a file; the model in it, checked, with its external data and its functions in place of
    their calls where that is right; all files that it is made of. CompileError E1xx."""
    data, proto = read_proto(path)
    check_model(proto, str(path))
    sources = [path, *load_external(proto, path)]
    check_lengths(proto, str(path))
    for opset in (o for owner in (proto, *proto.functions) for o in owner.opset_import):
        if opset.domain in AI_ONNX:  # the inliner, and what compares opsets, knows one of the spellings
            opset.domain = ""
    make_dense(proto, str(path))
    # the inliner forgets what functions say of attributes that a call leaves out: then they stay functions
    if proto.functions and not any(f.attribute_proto for f in proto.functions):
        try:
            proto = onnx.inliner.inline_local_functions(proto)
        except Exception as error:
            raise fail("E102", f"the model's functions cannot be inlined: {error}", where=str(path)) from None
    sort_nodes(proto.graph, str(path))
    return data, proto, sources
