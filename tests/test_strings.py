"""Tensors of strings: what fits, what does not, what lies behind the end of a text, and encoders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.cli.arguments import parser
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import build
from aot_model.ir.strings import WIDTHS, decoded, encoded, string_type
from aot_model.ir.types import DType
from aot_model.pipeline import Request, compile_model
from aot_model.text.regular_expressions import compile_pattern
from onnx_models import model, save, tensor
from string_models import ML, STRING, needs_cc, node_model, program, slots, status


def test_the_options_are_the_types() -> None:
    action = next(
        a
        for a in parser()._subparsers._group_actions[0].choices["compile"]._actions
        if a.dest == "string_bytes"
    )  # type: ignore[union-attr]
    assert sorted(map(int, action.choices or ())) == list(WIDTHS)


@pytest.mark.parametrize("width", WIDTHS)
def test_slots_and_texts(width: int) -> None:
    dtype = string_type(width)
    assert DType.of(dtype.numpy) is dtype and dtype.size == width
    texts = np.asarray([["", "x" * (width - 1)], ["ü€😀", " a "]], object)
    assert (decoded(encoded(texts, dtype)) == texts).all()
    for bad in ("x" * width, "ü" * (width // 2), "a\0b"):
        with pytest.raises(ValueError, match="the string"):
            encoded([bad], dtype)


# --- generated code -----------------------------------------------------------------------------------------


@needs_cc
def test_a_result_that_does_not_fit_ends_the_run(tmp_path: Path) -> None:
    made = program(node_model("StringConcat", [tensor("a", [2], STRING), tensor("b", [2], STRING)]), tmp_path)
    assert status(made, slots("1234567", "x"), slots("12345678", "y")) == 0
    assert status(made, slots("12345678", "x"), slots("12345678", "y")) == -12
    (y,) = made.run([(slots("1234567", "ü"), slots("12345678", "€"))])[0]
    assert decoded(y).tolist() == ["123456712345678", "ü€"]


@needs_cc
def test_a_slot_without_an_end_is_read_to_its_last_byte_but_one(tmp_path: Path) -> None:
    full = np.asarray([b"x" * 16], "S16")
    made = program(node_model("Equal", [tensor("a", [1], STRING), tensor("b", [1], STRING)]), tmp_path)
    assert made.run([(full, np.asarray([b"x" * 15], "S16"))])[0][0].tolist() == [True]
    matches = program(node_model("RegexFullMatch", [tensor("a", [1], STRING)], pattern="x{15}"), tmp_path)
    assert matches.run([(full,)])[0][0].tolist() == [True]
    split = program(node_model("StringSplit", [tensor("a", [1], STRING)], 2, delimiter="y"), tmp_path)
    substrings, counts, shape = split.run([(full,)])[0]
    assert counts.tolist() == [1] and shape.tolist() == [1, 1] and substrings.reshape(-1)[0] == b"x" * 15


@pytest.mark.parametrize(("delimiter", "most"), [("", 8), ("y", 16), ("yz", 8), ("abcdefgh", 2)])
def test_room_for_the_substrings_of_a_full_slot(delimiter: str, most: int, tmp_path: Path) -> None:
    """15 bytes: every other one is a blank, or as many as fit are delimiters."""
    onnx.save(
        node_model("StringSplit", [tensor("a", [1], STRING)], 2, delimiter=delimiter), tmp_path / "m.onnx"
    )
    view = compile_model(Request(tmp_path / "m.onnx", "m", "c", library=Options(string_bytes=16))).view
    assert view.outputs[0].buffer.type.shape == (1, most)


@needs_cc
def test_what_lies_behind_the_end_does_not_matter(tmp_path: Path) -> None:
    dirty = np.frombuffer(b"ab\0rubbish\xff\xff\xff\xff\xff\xff", "S16")
    made = program(node_model("Equal", [tensor("a", [1], STRING), tensor("b", [1], STRING)]), tmp_path)
    assert made.run([(dirty, slots("ab"))])[0][0].tolist() == [True]
    concat = program(
        node_model("StringConcat", [tensor("a", [1], STRING), tensor("b", [1], STRING)]), tmp_path
    )
    assert concat.run([(dirty, slots("c"))])[0][0].tobytes() == b"abc" + bytes(13)


@needs_cc
@pytest.mark.parametrize(
    ("op", "constants", "attributes", "expected"),
    [("Transpose", {}, {}, lambda x: x.T),
     ("Gather", {"i": np.asarray([1, 0, 1])}, {"axis": 1}, lambda x: x[:, [1, 0, 1]]),
     ("Concat", {}, {"axis": 0}, lambda x: x),
     ("Slice", {"s": np.asarray([1]), "e": np.asarray([2]), "a": np.asarray([1])}, {}, lambda x: x[:, 1:2]),
     ("Reshape", {"s": np.asarray([3, 2])}, {}, lambda x: x.reshape(3, 2)),
     ("Expand", {"s": np.asarray([2, 2, 3])}, {}, lambda x: np.broadcast_to(x, (2, 2, 3))),
     ("Tile", {"r": np.asarray([2, 1])}, {}, lambda x: np.tile(x, (2, 1))),
     ("Pad", {"p": np.asarray([0, 1, 1, 0])
              }, {}, lambda x: np.pad(encoded(x, string_type(16)), ((0, 1), (1, 0)), constant_values=b"")),
     ("ScatterElements", {"i": np.asarray([[1], [0]]), "u": np.asarray([["n"], ["m"]], object)
                          }, {"axis": 1}, lambda x: np.asarray([["a", "n", "ccc"], ["m", "ü", "b"]], object)),
     ("Trilu", {}, {}, lambda x: np.asarray([["a", "", "ccc"], ["", "ü", "b"]], object)),
     ("Identity", {}, {}, lambda x: x), ("Size", {}, {}, lambda x: np.asarray(6))],
)  # fmt: skip
def test_strings_move_as_numbers_do(
    op: str,
    constants: Mapping[str, np.ndarray],
    attributes: Mapping[str, object],
    expected: object,
    tmp_path: Path,
) -> None:
    x = np.asarray([["a", "", "ccc"], ["x" * 15, "ü", "b"]], object)
    proto = node_model(op, [tensor("x", x.shape, STRING)], constants=constants, **attributes)
    (y,) = program(proto, tmp_path).run([(encoded(x, string_type(16)),)])[0]
    want = expected(x)  # type: ignore[operator]
    assert y.shape == want.shape
    assert (y == (want if want.dtype.kind in "iS" else encoded(want, string_type(16)))).all()


@needs_cc
def test_different_strings(tmp_path: Path) -> None:
    """In the order of their bytes."""
    proto = node_model("Unique", [tensor("x", [5], STRING)], 4)
    y, first, inverse, counts, shape, *_ = program(proto, tmp_path).run([(slots("b", "a", "ab", "b", ""),)])[
        0
    ]
    assert shape.tolist() == [4] and decoded(y)[:4].tolist() == ["", "a", "ab", "b"]
    assert (first[:4].tolist(), inverse.tolist(), counts[:4].tolist()) == (
        [4, 1, 2, 0],
        [3, 1, 2, 3, 0],
        [1, 1, 1, 2],
    )


@needs_cc
def test_bodies_of_control_flow(tmp_path: Path) -> None:
    """Strings that a loop carries; a result that does not fit ends the run from inside."""
    body = helper.make_graph(
        [helper.make_node("StringConcat", ["v", "x"], ["w"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("v", [2], STRING)],
        [tensor("d", [], TensorProto.BOOL), tensor("w", [2], STRING)],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    made = program(
        model(
            [loop],
            [tensor("n", [], TensorProto.INT64), tensor("x", [2], STRING)],
            [onnx.ValueInfoProto(name="y")],
            opset=20,
        ),
        tmp_path,
    )
    assert decoded(made.run([(np.asarray(2), slots("ab", "c"))])[0][0]).tolist() == ["ababab", "ccc"]
    assert status(made, np.asarray(6), slots("ab", "c")) == 0
    assert status(made, np.asarray(7), slots("ab", "c")) == -12


@needs_cc
def test_choices_between_strings_are_compared(tmp_path: Path) -> None:
    """Where and Equal in one loop: the comparison of a choice, and of a constant."""
    nodes = [
        helper.make_node("Where", ["c", "a", "word"], ["w"]),
        helper.make_node("Equal", ["w", "b"], ["same"]),
        helper.make_node("Where", ["same", "w", "other"], ["y"]),
    ]
    constants = {"word": np.asarray(['?\\"\n1'], object), "other": np.asarray(["no"], object)}
    proto = model(
        nodes,
        [tensor("c", [3], TensorProto.BOOL), tensor("a", [3], STRING), tensor("b", [3], STRING)],
        [onnx.ValueInfoProto(name="y")],
        constants,
        opset=20,
    )
    condition = np.asarray([True, False, True])
    (y,) = program(proto, tmp_path).run([(condition, slots("a", "b", "c"), slots("a", '?\\"\n1', "a"))])[0]
    assert decoded(y).tolist() == ["a", '?\\"\n1', "no"]


@needs_cc
def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    """Sanitizers watch; well-formed letters around the damage still change."""
    rng = np.random.default_rng(0)
    rows = [
        b"A\xc3",
        b"\xe1\xb8",
        b"A\xffB",
        b"\xc3A",
        b"\xed\xa0\x80Z",
        *(bytes(rng.integers(128, 256, 15, dtype=np.uint8)) for _ in range(20)),
    ]
    x = np.asarray(rows, "S16")
    lower = program(
        node_model("StringNormalizer", [tensor("x", x.shape, STRING)], case_change_action="LOWER"), tmp_path
    )
    (y,) = lower.run([(x,)])[0]
    assert y[:5].tolist() == [b"a\xc3", b"\xe1\xb8", b"a\xffb", b"\xc3a", b"\xed\xa0\x80z"]
    matcher = program(node_model("RegexFullMatch", [tensor("x", x.shape, STRING)], pattern=".*"), tmp_path)
    (found,) = matcher.run([(x,)])[0]
    assert found.tolist() == [_is_utf8(row) for row in rows]


@needs_cc
@pytest.mark.parametrize("last", [9, 10])
def test_states_beyond_a_byte(last: int, tmp_path: Path) -> None:
    """A pattern of 256 states, whose numbers are bytes, and of 257."""
    letters = [chr(ord("0") + k) for k in range(70) if chr(ord("0") + k).isalnum()]
    words = [*(c * 6 for c in letters[:49]), letters[49] * last]
    pattern = "|".join(words)
    assert len(compile_pattern(pattern).accepts) == 247 + last
    near = [w[:-1] for w in words] + [w + w[0] for w in words] + [w[1:] + "0" for w in words[1:]]
    x = np.asarray([w.encode() for w in (*words, *near, "")], "S40")
    matcher = program(node_model("RegexFullMatch", [tensor("x", x.shape, STRING)], pattern=pattern), tmp_path)
    (found,) = matcher.run([(x,)])[0]
    assert found.tolist() == [k < len(words) for k in range(len(x))]


def _is_utf8(data: bytes) -> bool:
    try:
        return "\n" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


@needs_cc
@pytest.mark.parametrize("word", ["a" * 15 + "tail", "a" * 15 + "\0"])
def test_words_that_no_slot_holds_are_found_nowhere(word: str, tmp_path: Path) -> None:
    x = slots("a" * 15, "b")
    proto = node_model(
        "StringNormalizer", [tensor("x", x.shape, STRING)], stopwords=[word], is_case_sensitive=1
    )
    _, shape = program(proto, tmp_path).run([(x,)])[0]
    assert shape.tolist() == [2]


@needs_cc
def test_stop_words_without_regard_to_case(tmp_path: Path) -> None:
    x = slots("Monday", "tuesday", "MONDAY", "Sonntag", "sÖnntag")
    proto = node_model("StringNormalizer", [tensor("x", x.shape, STRING)], stopwords=["monday", "SÖNNTAG"])
    y, shape = program(proto, tmp_path).run([(x,)])[0]
    assert shape.tolist() == [2] and decoded(y)[:2].tolist() == ["tuesday", "Sonntag"]


# --- encoders -----------------------------------------------------------------------------------------------


@needs_cc
def test_an_unknown_category_ends_the_run(tmp_path: Path) -> None:
    proto = node_model(
        "OneHotEncoder",
        [tensor("x", [2], STRING)],
        domain="ai.onnx.ml",
        cats_strings=["red", "blue"],
        zeros=0,
    )
    made = program(proto, tmp_path)
    assert status(made, slots("blue", "green")) == -13
    assert made.run([(slots("blue", "red"),)])[0][0].tolist() == [[0, 1], [1, 0]]


@needs_cc
def test_label_encoder_of_opset_1(tmp_path: Path) -> None:
    attributes = {"classes_strings": ["zero", "one"], "default_int64": -3, "default_string": "?"}
    forward = node_model(
        "LabelEncoder", [tensor("x", [3], STRING)], domain="ai.onnx.ml", version=1, **attributes
    )
    assert program(forward, tmp_path).run([(slots("one", "two", "zero"),)])[0][0].tolist() == [1, -3, 0]
    back = node_model(
        "LabelEncoder", [tensor("x", [3], TensorProto.INT64)], domain="ai.onnx.ml", version=1, **attributes
    )
    assert decoded(program(back, tmp_path).run([(np.asarray([1, 7, 0]),)])[0][0]).tolist() == [
        "one",
        "?",
        "zero",
    ]


@needs_cc
def test_zip_map_is_the_tensor(tmp_path: Path) -> None:
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "p"],
            domain="ai.onnx.ml",
            coefficients=[1.0, -1.0, -1.0, 1.0],
            intercepts=[0.0, 0.0],
            classlabels_strings=["no", "yes"],
            post_transform="SOFTMAX",
        ),
        helper.make_node(
            "ZipMap", ["p"], ["probabilities"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]
        ),
    ]
    proto = model(
        nodes,
        [tensor("x", [1, 2])],
        [onnx.ValueInfoProto(name="label"), onnx.ValueInfoProto(name="probabilities")],
        domains=ML,
    )
    compiled = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    assert compiled.notes == (
        "'probabilities' is a tensor instead of maps (ZipMap); its columns are no, yes",
    )
    assert [(p.c_name, str(p.buffer.type)) for p in compiled.view.outputs] == [
        ("label", "string64[1]"),
        ("probabilities", "float32[1,2]"),
    ]
    label, scores = build(compiled.view, compiled.texts, tmp_path).run([(np.asarray([[0, 1]], np.float32),)])[
        0
    ]
    assert label.tolist() == [b"yes"] and np.isclose(scores.sum(), 1) and scores[0, 1] > 0.8


@pytest.mark.parametrize("pattern", ["(", r"\p{L}", "((a{1000}){1000})"])
def test_patterns_that_are_refused(pattern: str, tmp_path: Path) -> None:
    proto = node_model("RegexFullMatch", [tensor("x", [1], STRING)], pattern=pattern)
    with pytest.raises(CompileError, match=r"the pattern .* \[E202\]"):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("proto", "why"), [
    (node_model("Concat", [tensor("x", [1], STRING)], constants={"c": np.asarray(["x" * 16], object)},
                axis=0), "does not fit the 15"),
    (node_model("NonZero", [tensor("x", [3], STRING)]), "not supported on strings"),
    (node_model("Cast", [tensor("x", [1], STRING)],
                to=TensorProto.FLOAT), "conversion of string16 to float32"),
    (node_model("Cast", [tensor("x", [1])], to=STRING), "conversion of float32 to string16"),
    (node_model("DictVectorizer", [tensor("x", [1])], domain="ai.onnx.ml",
                string_vocabulary=["a"]), "maps have no size"),
],
                         )  # fmt: skip
def test_what_is_refused(proto: onnx.ModelProto, why: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=why):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c", library=Options(string_bytes=16)))
