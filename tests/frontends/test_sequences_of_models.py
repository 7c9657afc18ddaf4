"""Sequences, optionals, and forms of branches, loops and scans, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime

from batch import Case, run_cases

CONSTANTS = """int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64 last = {-1},
    int64 before = {-2}, int64[2] sizes = {1, 3}"""
FORMS = {
    # PyTorch's exporter writes unbind() so
    "q = SplitToSequence <keepdims = 0> (x, one) i = SequenceAt (q, last) j = SequenceLength (q)": "ij",
    "q = SplitToSequence <axis = -1, keepdims = 0> (x) i = SequenceAt (q, last) j = SequenceLength (q)": "ij",
    "q = SplitToSequence <axis = 1> (x) i = SequenceAt (q, zero)": "i",
    "q = SplitToSequence <keepdims = 0> (x, sizes) i = SequenceAt (q, one) j = SequenceAt (q, zero)": "ij",
    "q = SplitToSequence (x, three) i = SequenceAt (q, last) j = SequenceAt (q, before)": "ij",
    "q = SplitToSequence (x, two) n = Neg (x) r = SequenceInsert (q, n, zero) i = SequenceAt (r, zero)": "i",
    "q = SplitToSequence (x, two) n = Neg (x) r = SequenceInsert (q, n, last) i = SequenceAt (r, one)": "i",
    "q = SplitToSequence (x, two) n = Neg (x) l = SequenceLength (q) r = SequenceInsert (q, n, l) "
    "i = SequenceAt (r, last) j = SequenceLength (r)": "ij",
    "q = SplitToSequence (x, one) r = SequenceErase (q) s = SequenceErase (r, zero) "
    "i = ConcatFromSequence <axis = 0> (s)": "i",
    "q = SplitToSequence <keepdims = 0> (x) i = ConcatFromSequence <axis = -1, new_axis = 1> (q) "
    "j = ConcatFromSequence <axis = 1, new_axis = 1> (q) k = ConcatFromSequence <axis = -1> (q)": "ijk",
    "q = Optional (x) i = OptionalHasElement (q) j = OptionalGetElement (q) k = OptionalHasElement ()": "ijk",
    "q = SplitToSequence (x, one) n = Neg (x) p = SplitToSequence (n, one) u, v = SequenceMap (q, p) "
    "<body = b (float[1,3] a, float[1,3] k) => (float[1,3] o, float[1,3] r) "
    "{ o = Mul (a, k) r = Add (a, o) }> "
    "i = ConcatFromSequence <axis = 0> (u) j = ConcatFromSequence <axis = 0> (v)": "ij",
    "e = SequenceEmpty () q = SequenceMap (e) <body = b (float[3] a) => (float[3] r) { r = Neg (a) }> "
    "i = SequenceLength (q)": "i",
    "e = SequenceEmpty () q = Loop (three, , e) <body = b (int64 t, bool c, seq(float[3]) a) => "
    "(bool c, seq(float[3]) r) { g = Gather <axis = 0> (x, t) r = SequenceInsert (a, g) }> "
    "i = ConcatFromSequence <axis = 0, new_axis = 1> (q)": "i",
    # a loop of so many turns ends with its body's condition, too
    "i = Loop (three, , x) <body = b (int64 t, bool c, float[n,3] a) => (bool d, float[m,3] r) "
    "{ d = Less (t, one) r = Concat <axis = 0> (a, a) }>": "i",
    "i, j = Scan (h, x) <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1], "
    "scan_output_axes = [1], body = b (float[3] s, float[3] v) => (float[3] o, float[3] w) "
    "{ o = Add (s, v) w = Identity (o) }>": "ij",
    "i = Scan (x) <num_scan_inputs = 1, scan_input_axes = [-1], scan_output_axes = [-1], "
    "body = b (float[4] v) => (float[4] w) { w = CumSum (v, zero) }>": "i",
    "i, j = Scan (h, x, x) <num_scan_inputs = 2, scan_input_directions = [0, 1], body = b (float[3] s, "
    "float[3] v, float[3] u) => (float[3] o, float[3] w) { o = Add (s, v) w = Mul (o, u) }>": "ij",
}


def test_as_onnx_runtime() -> None:
    given = {"x": np.arange(12, dtype=np.float32).reshape(4, 3) - 5, "h": np.ones(3, np.float32)}
    cases, wanted = [], []
    for nodes, outputs in FORMS.items():
        results = ", ".join(f"float {name}" for name in outputs)
        text = f"g (float[4,3] x, float[3] h) => ({results}) <{CONSTANTS}> {{ {nodes} }}"
        net = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')
        for info in net.graph.output:
            info.ClearField("type")
        cases.append(Case(nodes, net, tuple(given.values())))
        wanted.append(onnxruntime.InferenceSession(net.SerializeToString()).run(None, given))
    for case, want, outcome in zip(cases, wanted, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for got, right in zip(outcome.outputs, want, strict=True):
            assert got.shape == np.shape(right), case.name
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6, err_msg=case.name)
