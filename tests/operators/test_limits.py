"""Limits of what operators take, from both sides: the last that is taken, the first that is refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import onnx
import pytest
from oracles import expected
from rows import label_of, registry_rows, rows_of, taken, values_of
from verdict import verdict

from aot_model.ir.expr import Call, Cell, Expr, cell, walk
from aot_model.ir.index import Index, dense_position, index_variables
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.kernels.arguments import scratch_buffer
from aot_model.kernels.base import Scratch
from aot_model.ops.composition import Algebra
from aot_model.ops.detection import overlap
from aot_model.ops.filter_bank import FilterBank
from aot_model.ops.forest import LEAF, Forest
from aot_model.ops.matmul import MatMul
from aot_model.ops.microsoft_attention import Attention
from aot_model.ops.microsoft_blocks import GatherBlockQuantized, MatMulNBits
from aot_model.ops.pool import Pool
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.registry import MAX_TABLES, OPERATORS, Build, bounded, load_all
from aot_model.ops.requantise import Rescale
from aot_model.ops.resample import _source
from aot_model.ops.windows import MAX_BORDER, check_windows
from batch import Case, run_cases
from onnx_models import model, tensor

load_all()


@pytest.mark.parametrize(
    ("begin", "end", "stride", "fits"),
    [
        (MAX_BORDER, 0, 1, True),
        (MAX_BORDER + 1, 0, 1, False),
        (0, MAX_BORDER, 1, True),
        (0, MAX_BORDER + 1, 1, False),
        (MAX_BORDER // 2, MAX_BORDER // 2 + 1, 1, False),
        (2 * MAX_BORDER + 1, 0, 2, True),
        (2 * MAX_BORDER + 2, 0, 2, False),
    ],
)
def test_outputs_whose_windows_are_partly_in_the_padding(
    begin: int, end: int, stride: int, fits: bool
) -> None:
    try:
        check_windows((7,), (3,), (stride,), (begin, end), (1,))
    except OperatorError as error:
        assert not fits and str(MAX_BORDER) in str(error)
    else:
        assert fits


@pytest.mark.parametrize(("size", "fits"), [((1 << 31) - 1, True), (1 << 31, False)])
def test_memory_of_a_kernel_is_indexed_by_int32(size: int, fits: bool) -> None:
    try:
        scratch_buffer("plane", Scratch("plane", size))
    except OperatorError as error:
        assert not fits and error.code == "E202" and "2,147,483,648" in str(error)
    else:
        assert fits


@pytest.mark.parametrize(("places", "fits"), [(0, False), (1, False), (2, True)])
def test_a_filter_bank_has_a_channel(places: int, fits: bool) -> None:
    """The first band only gives."""
    tables = [np.zeros(places, np.int16)] * 3
    weights = TensorType(DType.INT16, (4,))
    assert taken(FilterBank(), TensorType(DType.UINT32, (4,)), weights, weights, *tables) is fits


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matrices_of_few_bits_stay_packed(bits: int) -> None:
    """Up to four bits two elements share a byte, zero points too."""
    packed, scales = np.zeros((8, 2, 2 * bits), np.uint8), np.ones((8, 2), np.float32)
    rows, places = Value("x", TensorType(DType.FLOAT32, (3, 32))), Value("i", TensorType(DType.INT64, (3,)))
    for operator, inputs in (
        (MatMulNBits(32, 8, 16, bits=bits), (rows, constant("b", packed), constant("s", scales))),
        (
            GatherBlockQuantized(block_size=16, quantize_axis=1, bits=bits),
            (constant("b", packed.reshape(8, 4 * bits)), places, constant("s", scales)),
        ),
    ):
        build = Build([], "test")
        operator.expand(build, list(inputs))
        integers = [v for n in build.nodes for v in n.inputs if v is not None and v.data is not None]
        kinds = {v.dtype for v in integers if v.dtype.is_integer and v.type.elements in (8 * 32, 8 * 2)}
        assert kinds == {DType.UINT8 if bits == 8 else DType.UINT4}


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ((8, 8, 4), True),
        ((4, 4, 12), True),
        ((8, 4, 8), False),
        ((4, 8, 8), False),
        ((8, 8, 8), False),
        ((10, 10), False),
    ],
)
def test_queries_are_as_wide_as_keys(sizes: tuple[int, ...], fits: bool) -> None:
    given = [TensorType(DType.FLOAT32, s) for s in ((2, 3, 4), (4, 20), (20,))]
    operator = Attention(2, qkv_hidden_sizes=sizes)
    assert taken(operator, *given, said="are not queries, keys and values") is fits


@pytest.mark.parametrize(("extent", "fits"), [(2, False), (3, True)])
def test_a_window_is_not_larger_than_its_input(extent: int, fits: bool) -> None:
    for mode in ("max", "average"):
        x = TensorType(DType.FLOAT32, (1, 5, extent, 4))
        assert taken(Pool(mode, (3, 3)), x, said="larger than the padded input") is fits


@pytest.mark.parametrize(("kernel", "dilation", "alike"), [(2, 1, True), (3, 1, False), (2, 2, False)])
def test_windows_within_the_border_are_alike(kernel: int, dilation: int, alike: bool) -> None:
    """The divisor of an average is a constant where no window reaches beyond the image."""
    node = Pool("average", (kernel, 1), strides=(2, 1), dilations=(dilation, 1), ceil_mode=1)
    count = node._count(index_variables((1, 3, 1, 1)), (1, 6, 1, 1), DType.INT32)
    assert all(part.op == "mul" for part in walk(count) if isinstance(part, Call)) is alike


def test_coordinates_lie_behind_batch_axes() -> None:
    kind = OPERATORS["", "GatherND"]
    for shape, fits in (((1,), False), ((1, 1), True), ((1, 2), False), ((2, 1), False)):
        data, indices = TensorType(DType.FLOAT32, (1, 3)), TensorType(DType.INT64, shape)
        assert taken(kind(batch_dims=1), data, indices, said="batch axes") is fits  # type: ignore[call-arg]


def test_pads_may_leave_nothing_but_not_less() -> None:
    for begin, fits in ((-1, True), (-2, False)):
        pads = np.asarray([begin, -2], np.int64)
        x = TensorType(DType.FLOAT32, (3,))
        assert taken(OPERATORS["", "Pad"](), x, pads, said="pads leave") is fits
    for far, fits in ((2**31 - 1, True), (2**31, False), (2**63 - 1, False)):
        pads = np.asarray([-far, far], np.int64)
        assert taken(OPERATORS["", "Pad"](), x, pads, said="a pad of") is fits


@pytest.mark.parametrize(("targets", "fits"), [((0, 1), True), ((0, 2), False), ((-1, 0), False)])
def test_leaves_vote_for_targets_that_there_are(targets: tuple[int, ...], fits: bool) -> None:
    """Of a tree of one branch, whose leaves vote for one each."""
    forest = Forest(
        (0, 0, 0),
        (0.5, 0.0, 0.0),
        (1, 0, 0),
        (2, 0, 0),
        ("BRANCH_LEQ", LEAF, LEAF),
        (0, 0, 0),
        (0,),
        ((), (0,), (1,)),
        targets,
        (1.0, 2.0),
    )
    node = OPERATORS["aot", "TreeSums"](forest, 2)  # type: ignore[call-arg]
    assert taken(node, TensorType(DType.FLOAT32, (3, 1)), said="votes for another") is fits


@pytest.mark.parametrize(
    ("inputs", "strides", "strided"),
    [(4, (24, 8, 1), True), (4, (1, 16, 4), False), (4, (8, 1, 2), False), (1, (24, 8, 3), True)],
)
def test_elements_of_a_step_lie_one_behind_the_other(
    inputs: int, strides: tuple[int, ...], strided: bool
) -> None:
    """Of a recurrent layer, whatever is between steps and between sequences."""
    x = Value("x", TensorType(DType.FLOAT32, (3, 2, inputs)))
    layer = OPERATORS["", "GRU"](hidden_size=5)  # type: ignore[call-arg]
    others = [constant(n, np.ones((1, 15, k), np.float32)) for n, k in (("w", inputs), ("r", 5))]
    assert layer.reads_strided([x, *others], 0, strides) is strided
    assert not layer.reads_strided([x, *others], 1, strides)


@pytest.mark.parametrize(
    ("shape", "strides", "strided"),
    [
        ((2, 3, 4), (24, 8, 1), True),
        ((2, 3, 4), (48, 8, 1), False),
        ((2, 3, 4), (8, 16, 1), False),
        ((1, 3, 4), (7, 8, 1), True),
        ((5, 2, 3, 4), (48, 24, 8, 1), True),
        ((5, 2, 3, 4), (96, 24, 8, 1), False),
        ((2, 1, 3, 4), (0, 0, 8, 1), False),
        ((2, 1, 3, 4), (24, 0, 8, 1), True),
        ((2, 1, 4), (8, 0, 1), False),
    ],
)
def test_rows_that_meet_a_constant_lie_one_behind_the_other(
    shape: tuple[int, ...], strides: tuple[int, ...], strided: bool
) -> None:
    x, w = Value("x", TensorType(DType.FLOAT32, shape)), constant("w", np.ones((4, 2), np.float32))
    assert MatMul().reads_strided([x, w], 0, strides) is strided
    assert MatMul().reads_strided([x, Value("w", w.type)], 0, strides)


def test_rows_that_are_there_twice_meet_a_constant() -> None:
    """Below an axis of one: the batch begins where it began before, not behind its rows."""
    x, w = (np.arange(n, dtype=np.float32).reshape(-1, 3) for n in (15, 12))
    node = onnx.helper.make_node
    nodes = [node("Expand", ["x", "to"], ["twice"]), node("MatMul", ["twice", "w"], ["y"])]
    constants = {"to": np.asarray([2, 1, 5, 3]), "w": np.ascontiguousarray(w.T)}
    proto = model(nodes, [tensor("x", (5, 3))], [tensor("y", None)], constants)
    (found,) = run_cases([Case("twice", proto, (x,))], jobs=1)
    assert found.status == "ok", found.message
    assert found.outputs[0].tolist() == [[(x @ w.T).tolist()]] * 2


@pytest.mark.parametrize(
    ("positions", "table"),
    [
        ([0], False),
        ([0, 0, 0], False),
        ([0, 1, 2], False),
        ([0, 0, 1, 1], False),
        ([0, 0, 0, 1, 1, 1], False),
        ([0, 2, 4], False),
        ([0, 3], False),
        ([1, 2], True),
        ([0, 0, 1], True),
        ([4, 0, 2], True),
        ([], False),
    ],
)
def test_positions_that_follow_a_rule_need_no_table(positions: list[int], table: bool) -> None:
    places = constant("positions", np.array(positions, np.int32))

    def at(value: Value, index: Index) -> Expr:
        return cell(value, dense_position(index, value.shape))

    found = _source(at, places, index_variables((max(len(positions), 1),))[0])
    assert any(isinstance(part, Cell) for part in walk(found)) is table


def test_a_range_is_known_when_it_is_compiled() -> None:
    one = np.asarray([1], np.int64)
    for k, name in enumerate(("start", "limit", "delta")):
        given = [one, one, one]
        given[k] = TensorType(DType.INT64, (1,))  # type: ignore[call-overload]
        assert not taken(OPERATORS["", "Range"](), *given, said=f"{name} known at run time only")
    assert taken(OPERATORS["", "Range"](), one, one, one)


def test_once_a_number_is_the_number() -> None:
    a, x = Algebra(Build([], "test")), Value("x", TensorType(DType.FLOAT32, (3,)))
    assert a.mul(x, 1) is x and a.mul(x, 1.0) is x and a.add(x, None) is x
    assert [n.kind for n in a.build.nodes] == []
    a.mul(x, constant("one", np.ones(1, np.float32)))
    a.mul(x, 2)
    assert [n.kind for n in a.build.nodes] == ["Mul", "Mul"]


@pytest.mark.parametrize("field", ["vectors_per_class", "coefficients", "rho", "prob_a", "prob_b"])
def test_lists_of_a_support_vector_machine_fit(field: str) -> None:
    kind, seen = OPERATORS["ai.onnx.ml", "SVMClassifier"], 0
    for sample in kind.samples():
        node = kind(**sample.attributes)
        given = getattr(node, field)
        if node.support_vectors and given:  # type: ignore[attr-defined]
            seen += 1
            assert taken(node, TensorType(DType.FLOAT32, sample.inputs[0].shape))
            longer = replace(node, **{field: (*given, given[-1])})  # type: ignore[type-var]
            assert not taken(longer, TensorType(DType.FLOAT32, sample.inputs[0].shape))
    assert seen


@pytest.mark.parametrize(
    ("a", "b", "result", "plain"),
    # with shifts of 1 the terms are as long as a word, and with a zero point longer
    [(0, 0, -13, True), (1, 1, -14, False), (0, 1, -13, False), (1, 0, -13, False), (0, 0, -14, False)],
)
def test_sums_of_one_scale_multiply_nothing(a: int, b: int, result: int, plain: bool) -> None:
    terms = [Rescale(0, 1 << 30, shift) for shift in (a, b, result)]
    node = QuantisedSum("add", *terms, left_shift=15, low=-32768, high=32767)
    values = [Value(name, TensorType(DType.INT16, (4,))) for name in "xy"]

    def at(value: Value, index: Index) -> Expr:
        return cell(value, dense_position(index, value.shape))

    parts = walk(node.express(at, values, index_variables((4,)), 0))
    assert all(part.op != "mul" for part in parts if isinstance(part, Call)) is plain


@pytest.mark.parametrize("given", [0, 1, 100])
def test_tables_are_as_large_as_four_times_what_is_given(given: int) -> None:
    bounded(MAX_TABLES + 4 * given, given)
    with pytest.raises(OperatorError):
        bounded(MAX_TABLES + 4 * given + 1, given)


@pytest.mark.parametrize(("size", "fits"), [(-1, True), (0, False), (1, True)])
def test_a_local_window_has_keys(size: int, fits: bool) -> None:
    """ONNX Runtime gives zeros where no key is seen."""
    row = next(r for r in rows_of(OPERATORS["com.microsoft", "GroupQueryAttention"]) if not r.sample.states)
    sample = replace(row.sample, attributes={**row.sample.attributes, "local_window_size": size})
    (outcome,) = run_cases([replace(row, sample=sample).case], "c", jobs=1)
    assert outcome.status == ("ok" if fits else "refused"), outcome.message


@pytest.mark.parametrize(
    ("name", "alphas", "betas", "fits"),
    [
        ("Affine", (1.0,), (0.0,), True),
        ("Affine", (1.0,), (), False),
        ("Affine", (), (1.0,), False),
        ("ScaledTanh", (1.0,), (1.0,), True),
        ("ScaledTanh", (1.0,), (), False),
        ("ThresholdedRelu", (1.0,), (), True),
        ("ThresholdedRelu", (), (), False),
        ("HardSigmoid", (), (), True),
        ("LeakyRelu", (), (), True),
        ("Elu", (), (), True),
    ],
)
@pytest.mark.parametrize("layer", [("", "RNN"), ("com.microsoft", "DynamicQuantizeLSTM")])
def test_defaults_of_activations_that_runtimes_do_not_share(
    layer: tuple[str, str], name: str, alphas: tuple[float, ...], betas: tuple[float, ...], fits: bool
) -> None:
    """The standard has no defaults for Affine and ScaledTanh, ONNX Runtime 0, for ThresholdedRelu too."""
    row = next(r for r in rows_of(OPERATORS[layer]) if r.sample.attributes.get("direction") is None)
    names = (name,) if layer[1] == "RNN" else ("Sigmoid", "Tanh", name)
    of = {"activations": names, "activation_alpha": alphas, "activation_beta": betas}
    attributes = {**row.sample.attributes, **{k: v for k, v in of.items() if v}}
    other = replace(row, sample=replace(row.sample, attributes=attributes))
    (outcome,) = run_cases([other.case], "c", jobs=1)
    assert outcome.status == ("ok" if fits else "refused"), outcome.message
    if fits:
        known = expected(other)
        assert known.outputs and verdict(other, outcome, known) == ""


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sequences_have_steps(kind: str, axis: int) -> None:
    """ONNX Runtime gives zeros after no steps, others the state before them."""
    row = rows_of(OPERATORS["", kind])[0]
    shape = list(np.shape(row.sample.inputs[0]))
    shape[axis] = 0
    others = values_of(row)[1:]
    with pytest.raises(OperatorError, match="without steps"):
        row.operator.infer([Value("x", TensorType(DType.FLOAT32, tuple(shape))), *others])


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(("rows", "pads", "fits"), [(0, 1, False), (0, 0, True), (1, 1, True)])
def test_axes_are_padded_with_elements_that_they_have(mode: str, rows: int, pads: int, fits: bool) -> None:
    x = Value("x", TensorType(DType.FLOAT32, (rows, 4)))
    given = [x, constant("pads", np.asarray([pads, 0, 0, 0]))]
    with nullcontext() if fits else pytest.raises(OperatorError, match="no elements"):
        assert OPERATORS["", "Pad"](mode=mode).infer(given)[0].shape == (rows + pads, 4)  # type: ignore[call-arg]


@pytest.mark.parametrize("seed", range(30))
def test_boxes_overlap_by_their_areas(seed: int) -> None:
    """Counted in cells of a grid; corners in any order, boxes without an area."""
    p, q = np.random.default_rng(seed).integers(0, 6, (2, 4))

    def cells(box: np.ndarray) -> set[tuple[int, int]]:
        (top, bottom), (left, right) = (sorted((int(box[k]), int(box[k + 2]))) for k in (0, 1))
        return {(y, x) for y in range(top, bottom) for x in range(left, right)}

    both, either = cells(p) & cells(q), cells(p) | cells(q)
    wanted = len(both) / len(either) if cells(p) and cells(q) else 0.0
    assert overlap(p.astype(np.float32), q.astype(np.float32)) == pytest.approx(wanted)


def _half(t: TensorType) -> TensorType:
    return replace(t, dtype=DType.FLOAT16) if t.dtype is DType.FLOAT32 else t


MOVERS = set(
    """
    BitCast Compress Concat ConstantOfShape aot.ConcatRows DequantizeLinear Expand EyeLike Flatten Gather
    GatherElements GatherND Identity Pad QuantizeLinear Reshape ReverseSequence Scatter ScatterElements
    ScatterND Slice Split Squeeze TensorScatter Tile Transpose Unsqueeze aot.Exponential aot.Frames
    aot.Lookup aot.NearestSample aot.Quantise aot.ReshapeTo aot.ScatterElementsRows aot.ScatterNDRows
    aot.SliceAt aot.UpdateAt
    """.split()
)
"""Whose elements of 16 bits and less are not widened: they move them, or convert them themselves."""

COMPARING = {"TopK", "Unique"}
"""What gives numbers of the input, and compares them, for which they are widened."""


def test_operators_that_only_move_make_no_numbers() -> None:
    """And those that are computed as a whole, also of float16, and give numbers of the input in all samples
    say so.
    """
    says, does = set(), dict[str, bool]()
    for row in registry_rows():
        x = [np.asarray(v) for v in row.sample.inputs if v is not None]
        if not x or not row.kind.has("fold") or not any(v.dtype == np.float32 for v in x):
            continue
        halves = [v and Value(v.name, _half(v.type), v.data) for v in values_of(row)]
        try:
            row.operator.infer(halves)
        except OperatorError:
            continue
        label = label_of(row.kind)
        with np.errstate(all="ignore"):
            results = [np.asarray(y) for y in row.operator.fold([*row.sample.inputs])]
        given = np.concatenate([v.reshape(-1) for v in x if v.dtype == np.float32])
        floats = [y for y in results if y.dtype == np.float32]
        if not floats:
            continue
        moved = all(np.isin(y[y == y], [*given, 0.0]).all() for y in floats)
        assert moved or not row.operator.only_moves(), row.label
        does[label] = does.get(label, True) and moved
        says |= {label} if row.operator.only_moves() else set()
    others = {label for label, moved in does.items() if moved} - says
    assert others == COMPARING
    assert says <= MOVERS and {label_of(r.kind) for r in registry_rows() if r.operator.only_moves()} == MOVERS


@pytest.mark.parametrize(("indexes", "fits"), [((0, 3), True), ((-1, 3), False), ((), False)])
def test_pools_of_ngrams(indexes: tuple[int, ...], fits: bool) -> None:
    """None at all, or an index below 0, are no columns of a result."""
    given = {"mode": "TF", "max_gram_length": 1, "min_gram_length": 1, "max_skip_count": 0}
    pool = {"ngram_counts": (0,), "ngram_indexes": indexes, "pool_int64s": (4, 5)[: len(indexes)]}
    vectorizer = OPERATORS["", "TfIdfVectorizer"](**given, **pool)  # type: ignore[call-arg]
    assert taken(vectorizer, TensorType(DType.INT64, (6,)), said="n-gram") == fits


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("end", "fits"), [(1e6, True), (2**20, False), (-np.inf, False), (np.nan, False)])
def test_a_region_of_interest_is_near_the_image(end: float, fits: bool) -> None:
    row = next(
        r
        for r in rows_of(OPERATORS["", "Resize"])
        if r.sample.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    )
    region = np.array(row.sample.inputs[1], np.float32)
    region[-1] = end
    sample = replace(row.sample, inputs=(row.sample.inputs[0], region, *row.sample.inputs[2:]))
    (outcome,) = run_cases([replace(row, sample=sample).case], "c", jobs=1)
    assert outcome.status == ("ok" if fits else "refused"), outcome.message
