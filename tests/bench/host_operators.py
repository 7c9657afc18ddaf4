"""What one operator costs on the host, alone, beside ONNX Runtime on one thread.

    python tests/bench/host_operators.py ['ReduceM*' …] [--rounds 10] [--cc gcc] [--flags "-O3"]

Of 16,384 floats, 64 rows of 256, or sixteen images of 64x64. The rows are those of host_latency.py.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
from host_latency import measure
from onnx import TensorProto, helper

ROWS, IMAGES = (1, 64, 256), (1, 16, 64, 64)
ELEMENTWISE = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish "
    "LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh "
    "ThresholdedRelu"
).split()
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()


def _model(
    op: str, shape: tuple[int, ...], constants: dict[str, np.ndarray], opset: int = 20, **attributes: object
) -> onnx.ModelProto:
    """y = op(x, constants); an empty name is an input that is left out."""
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    kind = TensorProto.INT64 if op.startswith("Arg") else TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [onnx.numpy_helper.from_array(v, k) for k, v in constants.items() if k],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def models() -> dict[str, onnx.ModelProto]:
    """Name -> network of one operator."""
    ramp = {"p": np.linspace(0.1, 2, 256, dtype=np.float32)}
    by_channel = np.linspace(0.1, 2, 16, dtype=np.float32)
    double = {"": np.empty(0), "s": np.asarray([1, 1, 2, 2], np.float32)}
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    found = {op: _model(op, ROWS, {}) for op in ELEMENTWISE}
    for op in REDUCTIONS:
        for axis in (1, 2):
            constants = {"a": np.asarray([axis], np.int64)}
            found[f"Reduce{op} over {'rows' if axis == 1 else 'columns'}"] = _model(
                f"Reduce{op}", ROWS, constants, 18
            )
    found |= {f"{op} of axis {axis}": _model(op, ROWS, {}, axis=axis)
              for op in ("Softmax", "LogSoftmax", "ArgMax", "ArgMin") for axis in (1, 2)}  # fmt: skip
    found |= {
        "Gelu by tanh": _model("Gelu", ROWS, {}, approximate="tanh"),
        "LayerNormalization": _model("LayerNormalization", ROWS, ramp),
        "InstanceNormalization": _model("InstanceNormalization", IMAGES, {"p": by_channel, "b": by_channel}),
        "Pow of tensors": _model("Pow", ROWS, ramp),
        "Div": _model("Div", ROWS, ramp),
        "CumSum": _model("CumSum", ROWS, {"a": np.asarray(2)}),
        "Transpose of rows": _model("Transpose", ROWS, {}, perm=[0, 2, 1]),
        "Transpose of images": _model("Transpose", IMAGES, {}, perm=[0, 2, 3, 1]),
        "MaxPool": _model("MaxPool", IMAGES, {}, **pool),
        "AveragePool": _model("AveragePool", IMAGES, {}, **pool),
        "GlobalAveragePool": _model("GlobalAveragePool", IMAGES, {}),
        "Resize, linear": _model("Resize", IMAGES, double, mode="linear"),
        "Resize, nearest": _model("Resize", IMAGES, double, mode="nearest"),
        "DepthToSpace": _model("DepthToSpace", IMAGES, {}, blocksize=2),
        "LRN": _model("LRN", IMAGES, {}, size=5),
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--flags", default="-O3")
    arguments = parser.parse_args()
    arguments.emx = False
    print("| model | ours, µs | runtime, µs | ours / runtime | difference |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models().items():
            if any(fnmatch.fnmatch(name, p) for p in arguments.patterns):
                path = Path(folder, f"{name}.onnx")
                onnx.save(model, path)
                print(measure(path, arguments), flush=True)


if __name__ == "__main__":
    main()
