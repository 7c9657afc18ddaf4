"""Attributes that are one of a few words, from the ONNX operator specification, which schemas do not have.

A word that nobody knows must not become the default in silence: what it asks for is not what would be
computed.
"""

from __future__ import annotations

from collections.abc import Mapping

_SCORES = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_EVERYWHERE: Mapping[str, tuple[str, ...]] = {
    "auto_pad": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""),
    "kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID"),
    "post_transform": _SCORES,
}
_OF: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("Cast", "round_mode"): ("up", "down", "nearest"),
    ("CastLike", "round_mode"): ("up", "down", "nearest"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("Momentum", "mode"): ("standard", "nesterov"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("Resize", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("TreeEnsemble", "post_transform"): (),  # a number, unlike those of the other trees
}


def words_of(operator: str, attribute: str) -> tuple[str, ...]:
    """The words that an attribute may be; none where it is free, or where the operator knows itself."""
    return _OF.get((operator, attribute), _EVERYWHERE.get(attribute, ()))
