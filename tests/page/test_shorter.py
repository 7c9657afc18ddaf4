"""Names in little room."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aot_model.page.shorter import Shorter

TORCH = [
    "/t/layers.0/self_attn/MatMul_output_0", "/t/layers.0/self_attn/Mul_1_output_0",
    "/t/layers.1/self_attn/MatMul_output_0", "/n/LayerNormalization_output_0", "input"
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "room", "label"),
    [
        (TORCH[0], 60, TORCH[0]),
        (TORCH[0], 28, "/t/layers.0/self_attn/MatMul"),
        (TORCH[0], 27, "…layers.0/self_attn/MatMul"),
        (TORCH[0], 22, "…0/self_attn/MatMul"),
        (TORCH[0], 10, "…MatMul"),
        (TORCH[1], 7, "…Mul_1"),
        (TORCH[0], 5, "…Mat…"),
        (TORCH[3], 22, "/n/LayerNormalization"),
        (TORCH[3], 12, "/n/LayerNor…"),
        ("input", 4, "inp…"),
    ],
)
def test_what_tells_names_apart_stays(name: str, room: int, label: str) -> None:
    assert Shorter(TORCH).of(name, room) == label


def test_an_ending_stays_where_it_is_all_that_differs() -> None:
    names = ["block/output_0", "block/output_1", "block", "other/output_0"]
    assert Shorter(names).of("block/output_0", 10) == "…output_0"
    assert Shorter(["encoder/out", "decoder/out"]).of("encoder/out", 9) == "encoder"


@given(
    st.lists(st.text(alphabet=string.ascii_letters[:3] + "/._:é", max_size=30), max_size=8),
    st.integers(0, 30),
)
def test_labels_fit(names: list[str], room: int) -> None:
    short = Shorter(names)
    assert all(len(short.of(n, room)) <= room for n in names)
    assert all(short.of(n, max(len(n), room)) == n for n in names)
