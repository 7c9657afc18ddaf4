"""Forms of operators on rows `p` whose number depends on data: `i`, `j`, ... of what follows are computed as
ONNX Runtime does, or refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

CONSTANTS = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},
    int64[1] last = {-1}, int64[1] far = {9223372036854775807}, int64[0] nothing = {}, int64 start = {0},
    int64 step = {1}, int64 second = {2}, int64[2] ends = {-1, 0}, int64[2,2] corners = {-1, 0, 0, -1},
    float[1,3] row = {2, 1, -1}, float[3] scale = {1, 2, 3}, float[1] nine = {9}, float[2] off_on = {0, 1},
    int64[3] same_rows = {0, 3, 1}, int64[2] rest = {0, -1}, int64[2] pieces = {1, 2},
    int64[2] places = {0, 1}, int64[2] limits = {2, 3}, int64[2] axes = {0, -1},
    int64[4] around = {0, 1, 0, 2}, int64[4] moved = {1, 0, -1, 0}, int64[2] twice = {1, 2},
    float none = {0}, float half = {0.5}, float whole = {1}, float more = {1.5}, float less = {-0.5},
    float[1] many = {2.5}"""
COUNT = "n = Shape <end = 1> (p) "
FORMS = {
    "i = ReduceMean <keepdims = 1> (p, zero) j = ReduceMean <keepdims = 0> (p)": "ij",
    "i = ReduceSum (p) j = ReduceMin (p) k = ReduceProd <keepdims = 0> (p) l = ReduceLogSumExp (p)": "ijkl",
    "i = ReduceSum <noop_with_empty_axes = 1> (p) "
    "j = ReduceSum <noop_with_empty_axes = 1> (p, nothing)": "ij",
    "w = Cast <to = 6> (p) i = ReduceMax (w) j = ReduceMin (w) "
    "u = Cast <to = 2> (w) k = ReduceMin (u)": "ijk",
    "i = ArgMax <axis = -2> (p) j = ArgMin <axis = -1> (p)": "ij",
    "i = Softmax <axis = -2> (p) j = LogSoftmax <axis = 0> (p)": "ij",
    "i = Gather <axis = 0> (p, ends) j = Gather <axis = 1> (p, ends) k = Gather (p, at)": "ijk",
    "i = GatherND (p, corners) r = Concat <axis = 0> (at, at) s = Reshape (r, pairs) "
    "j = GatherND (p, s)": "ij",
    "i = Reshape (p, same_rows) j = Reshape (p, rest)": "ij",
    COUNT + "s = Concat <axis = 0> (n, last) i = Reshape (p, s)": "i",
    COUNT + "s = Concat <axis = 0> (n, three, last) i = Reshape (p, s)": "i",
    "s = Slice (p, places, limits, axes) i = Neg (s) r = Slice (p, places, far_ends) j = Neg (r)": "ij",
    "s = Unsqueeze (p, one) i = Neg (s) r = Unsqueeze (p, last) j = Neg (r)": "ij",
    "s = Concat <axis = -2> (p, p, x) i = Neg (s) j = Concat <axis = 1> (p, p)": "ij",
    "i, j = TopK <axis = 1> (p, two)": "ij",
    COUNT + "i, j = TopK <axis = 0, largest = 0> (p, n)": "ij",
    "i = CumSum (p, one)": "i",
    COUNT + "s = Squeeze (n) i = Range (start, s, step)": "i",
    COUNT + "s = Squeeze (n) f = Cast <to = 1> (s) i = Range (none, f, whole)": "i",
    COUNT
    + "s = Squeeze (n) r = Range (start, s, step) t = Sub (s, r) u = Sub (t, step) i = Gather (p, u)": "i",
    COUNT + "s = Concat <axis = 0> (n, two) i = ConstantOfShape <value = int64[1] {7}> (s)": "i",
    "s = Shape <start = -1> (p) t = Shape (p) i = Concat <axis = 0> (s, t) j = Size (p)": "ij",
    "t = Transpose (x) i = MatMul (p, t)": "i",
    "i = LayerNormalization (p, scale)": "i",
    "g = Greater (p, row) i = Where (g, p, row) j = Max (p, p, row) k = Mean (p, row)": "ijk",
    "a = ArgMax <axis = 1, keepdims = 0> (p) i = OneHot (a, second, off_on)": "i",
    "i = Tile (p, twice) j = Pad (p, around) k, l = Split <axis = 1> (p, pieces)": "ijkl",
    "s = Shape (p) t = Expand (nine, s) i = Add (t, p)": "i",
    "a = Cast <to = 7> (mask) b = NonZero (a) c = Transpose <perm = [1, 0]> (b) d = ReduceSum (a) "
    "e = Expand (nine, d) f = ReduceSum <keepdims = 0> (x, one) i = ScatterND (f, c, e)": "i",
    'i = Einsum <equation = "ij,kj->ik"> (p, x)': "i",
    "i = NonZero (p)": "i",
    "i = Celu (p) j = Mod <fmod = 1> (p, row) k = EyeLike (p) l = Trilu (p)": "ijkl",
}
REFUSED = (
    "w = Cast <to = 6> (p) i = ReduceMean (w, zero)",
    "i = ArgMax <axis = 0, select_last_index = 1> (p)",
    "i = Hardmax <axis = 0> (p)",
    "i = Slice (p, one, far, zero)",
    "i = Slice (p, zero, last, zero)",
    "i = Slice (p, zero, far, zero, two)",
    "s = Unsqueeze (p, zero) i = Neg (s)",
    COUNT + "s = Squeeze (n) i = Range (start, s, second)",
    COUNT + "s = Squeeze (n) i = Range (step, s, step)",
    COUNT + "s = Squeeze (n) f = Cast <to = 1> (s) i = Range (none, f, more)",
    COUNT + "s = Squeeze (n) f = Cast <to = 1> (s) i = Range (half, f, whole)",
    COUNT + "s = Squeeze (n) f = Cast <to = 1> (s) g = Add (f, half) i = Range (none, g, whole)",
    COUNT + "g = Concat <axis = 0> (n, last) h = ReduceMin (g) i = Slice (x, zero, h)",
    COUNT + "f = Cast <to = 1> (n) g = Sub (f, half) h = Cast <to = 7> (g) i = Slice (p, zero, h)",
    COUNT + "f = Cast <to = 1> (n) g = Add (f, less) h = Cast <to = 7> (g) i = Slice (p, zero, h)",
    COUNT + "f = Cast <to = 1> (n) g = Concat <axis = 0> (f, many) h = ReduceMin <keepdims = 0> (g) "
    "i = Range (none, h, whole)",
    COUNT + "s = Concat <axis = 0> (two, n) i = ConstantOfShape (s)",
    "i, j, k = DynamicQuantizeLinear (p)",
    "i = Gemm <transA = 1> (p, p)",
    "a = ArgMax <axis = 1, keepdims = 0> (p) i = OneHot <axis = 0> (a, second, off_on)",
    "i = Pad (p, moved)",
    "i = Flatten <axis = 0> (p)",
    'i = Einsum <equation = "ij,ik->jk"> (p, p)',
    "i = Unique (p)",
    "i = ScatterND (p, corner, nine)",
    "i = LpNormalization <axis = 0> (p)",
    "i = RandomNormalLike (p)",
)


def _model(nodes: str, outputs: str) -> onnx.ModelProto:
    results = ", ".join(f"float {name}" for name in outputs)
    more = "int64[2] pairs = {2, 2}, int64[1,2] corner = {0, 1}, int64[2] far_ends = {100, 3}"
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float[5,3] x, bool[5] mask, int64[2] at) => ({results}) <{CONSTANTS}, {more}>
        {{ p = Compress <axis = 0> (x, mask) {nodes} }}"""
    net = onnx.parser.parse_model(text)
    for info in net.graph.output:
        info.ClearField("type")
    return net


def test_as_onnx_runtime() -> None:
    given = {
        "x": np.arange(15, dtype=np.float32).reshape(5, 3) - 4,
        "mask": np.asarray([1, 0, 1, 1, 0], bool),
        "at": np.asarray([-1, 0]),
    }
    cases, wanted = [], []
    for nodes, outputs in FORMS.items():
        net = _model(nodes, outputs)
        cases.append(Case(nodes, net, tuple(given.values())))
        wanted.append(onnxruntime.InferenceSession(net.SerializeToString()).run(None, given))
    for case, want, outcome in zip(cases, wanted, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for name, right, got in zip(FORMS[case.name], want, outcome.outputs, strict=False):
            shape = outcome.shapes.get(name, got.shape)
            assert shape == right.shape, case.name
            there = got[tuple(slice(n) for n in shape)]
            np.testing.assert_allclose(there, right, rtol=1e-5, atol=1e-6, err_msg=case.name)


@pytest.mark.parametrize("nodes", REFUSED)
def test_refused(nodes: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(nodes, "i").SerializeToString())
    with pytest.raises(CompileError, match="E203"):
        compile_model(Request(path, "m"))
