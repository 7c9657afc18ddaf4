"""ONNX: what to do where an operator is not supported."""

from __future__ import annotations

import difflib

from aot_model.ops.registry import OPERATORS

_MAPS = "maps have no size that is known at compile time; give the model a tensor with a column for each key"
_INSTEAD = {
    "ai.onnx.ml.CastMap": _MAPS,
    "ai.onnx.ml.DictVectorizer": _MAPS,
    "com.microsoft.Tokenizer": "give the model words: a tensor of strings",
    "ImageDecoder": "it decodes files (JPEG, PNG …), whose size and work depend on their content; give the "
    "model the pixels",
}
"""Operators that are left out on purpose, and what to do without them."""
_LAYOUTS = ("com.microsoft.nchwc.", "com.ms.internal.nhwc.")
_FOR_ITS_MACHINE = (
    "its tensors are laid out for the processor that optimised the model, which the file "
    "does not name; save it with ORT_ENABLE_EXTENDED instead of ORT_ENABLE_ALL"
)


def label_of(domain: str, name: str) -> str:
    """An operator in messages."""
    return f"{domain}.{name}" if domain else name


def instead_of(label: str) -> str:
    """What to do where the operator is not supported."""
    if label in _INSTEAD:
        return _INSTEAD[label]
    if label.startswith(_LAYOUTS):
        return _FOR_ITS_MACHINE
    names = [label_of(d, n) for d, n in OPERATORS if d != "aot"]
    near = difflib.get_close_matches(label, names, 1, 0.75)
    return (
        f"the nearest supported operator is {near[0]}"
        if near
        else ("see `aot-model ops` for the operators that are")
    )
