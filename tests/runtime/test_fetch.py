"""--fetch: weights are copied to the workspace while the layers before compute."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from aot_model.cli import main
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.ir.program import Access, Buffer, Call, Device, Function, Param, Program, Role, Step
from aot_model.ir.types import DType, TensorType
from aot_model.lowering.fetch import FETCH, LEAST, LINE, fetch
from aot_model.lowering.memory_plan import plan_memory
from onnx_models import model, save, tensor
from qemu import BOARDS, available, build_and_run

DMA = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"
static void *to_;
static const void *from_;
static uint32_t bytes_, copies;
/* What lies there is gone when a copy begins, and until it is complete nothing else may be kept there. */
static void begin(void *to, const void *from, uint32_t bytes)
{
    if (to_ != NULL || (uintptr_t)to %% 32u != 0u || bytes == 0u) { exit(3); }
    memset(to, 0xa5, (bytes + 31u) / 32u * 32u);
    to_ = to;
    from_ = from;
    bytes_ = bytes;
}
static void wait(void *to, uint32_t bytes)
{
    if (to_ != to || bytes_ != bytes) { exit(4); }
    memset(to, 0x5a, (bytes + 31u) / 32u * 32u);
    memcpy(to, from_, bytes);
    to_ = NULL;
    ++copies;
}
int main(void)
{
    static float x[] = { %s }, y[2][%d];
    const net_inputs inputs = { x };
    for (int k = 0; k < 2; ++k) { /* by memcpy(), then as DMA does it */
        const net_outputs outputs = { y[k] };
        if (net_run(&inputs, &outputs) != 0) { return 1; }
#ifdef PLAIN
        (void)begin;
        (void)wait;
#else
        net_fetch_begin = begin;
        net_fetch_wait = wait;
#endif
    }
    if (to_ != NULL || memcmp(y[0], y[1], sizeof y[0]) != 0) { return 2; }
    printf("%%lu", (unsigned long)copies);
    for (unsigned k = 0; k < sizeof y[1] / sizeof y[1][0]; ++k) {
        uint32_t bits;
        memcpy(&bits, &y[1][k], sizeof bits);
        printf(" %%lu", (unsigned long)bits);
    }
    return 0;
}
"""
X = np.random.default_rng(5).normal(size=(1, 3, 6, 6)).astype(np.float32)
WIDTHS = (72, 40, 33, 40, 5)


def network() -> onnx.ModelProto:
    """A convolution and dense layers, of sizes that are no lines of a cache."""
    rng = np.random.default_rng(6)
    data = {"w": rng.normal(size=(8, 3, 3, 3)) / 5}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["d0"]),
    ]
    for k, (n, m) in enumerate(pairwise(WIDTHS)):
        data |= {f"w{k}": rng.normal(size=(n, m)) / 6, f"b{k}": rng.normal(size=m)}
        nodes.append(helper.make_node("Gemm", [f"d{k}", f"w{k}", f"b{k}"], [f"g{k}"], name=f"dense{k}"))
        nodes.append(helper.make_node("Tanh", [f"g{k}"], [f"d{k + 1}"]))
    arrays = {name: array.astype(np.float32) for name, array in data.items()}
    return model(nodes, [tensor("x", X.shape)], [tensor(f"d{len(WIDTHS) - 1}", (1, WIDTHS[-1]))], arrays)


def program_of(proto: onnx.ModelProto, folder: Path, *options: str) -> None:
    """The library of a network, and a program that runs it."""
    path = save(proto, folder / "net.onnx")
    assert main(["compile", str(path), "-o", str(folder), *options]) == 0
    numbers = ", ".join(f"{float(v)!r}f" for v in X.reshape(-1))
    (folder / "main.c").write_text(DMA % (numbers, WIDTHS[-1]))


def made(folder: Path, *options: str) -> np.ndarray:
    """The network's library and program, and what comes out."""
    proto = network()
    program_of(proto, folder, *options)
    return np.asarray(ReferenceEvaluator(proto).run(None, {"x": X})[0]).reshape(-1)


def test_a_budget_without_room_for_copies_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(network(), tmp_path / "net.onnx")
    words = ["compile", str(path), "-o", str(tmp_path), "--target", "c", "--fetch", "18k", "--max-ram"]
    assert main([*words, "4k"]) == 1
    assert "--fetch 0" in capsys.readouterr().err
    assert main([*words, "20k"]) == 0


def copies(folder: Path) -> list[int]:
    """Bytes of each copy that a run makes."""
    return [
        layer["constant_bytes"]
        for layer in json.loads((folder / "net.json").read_text())["layers"]
        if layer["op"] == FETCH
    ]


@pytest.mark.parametrize("target", ["c", "host", "cortex-m3"])
@pytest.mark.parametrize(("room", "least"), [("18k", 4), ("12k", 5), ("8000", 6), ("1400", 1)])
def test_copies_are_complete_before_they_are_read(tmp_path: Path, target: str, room: str, least: int) -> None:
    expected = made(tmp_path, "--target", target, "--fetch", room)
    assert f"is aligned to {LINE} bytes, and its last line of {LINE} is" in (tmp_path / "net.h").read_text()
    flags = [*STRICT, *SANITIZE, "-march=native", f"-I{include_dir()}"]
    subprocess.run(["cc", *flags, "main.c", "net.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    count, *numbers = ran.stdout.split()
    assert int(count) == len(copies(tmp_path)) >= least
    np.testing.assert_allclose(
        np.asarray(numbers, np.uint32).view(np.float32), expected, rtol=2e-5, atol=2e-6
    )


def test_nothing_is_copied_where_there_is_no_room(tmp_path: Path) -> None:
    for options, declared in (((), False), (("--fetch", "0"), False), (("--fetch", "511"), True)):
        made(tmp_path, "--target", "c", *options)
        assert copies(tmp_path) == []
        assert ("net_fetch_begin" in (tmp_path / "net.h").read_text()) is declared
        subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "net.c"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("seed", range(40))
def test_the_most_bytes_that_fit_are_copied(seed: int) -> None:
    """Beside all subsets: copies that follow each other take no more than there is."""
    rng = np.random.default_rng(seed)
    sizes = [int(v) for v in rng.integers(100, 6000, rng.integers(1, 9))]
    program, most = layers_of(sizes), int(rng.integers(400, 12_000))
    fetch(program, most, "net")
    got = [call.arguments[0].nbytes for call in program.calls() if call.op == FETCH]
    rounded = [-(-v // LINE) * LINE for v in sizes]
    fitting = [
        subset
        for count in range(len(sizes) + 1)
        for subset in combinations(range(1, len(sizes)), count)
        if all(sizes[k] >= LEAST and rounded[k] <= most for k in subset)
        and all(rounded[a] + rounded[b] <= most for a, b in pairwise(subset))
    ]
    most_bytes = max(sum(rounded[k] for k in subset) for subset in fitting)
    assert sum(-(-v // LINE) * LINE for v in got) == most_bytes
    live = plan_memory(program).live
    copies = [(b, span) for b, span in live.items() if b.name.endswith("_fetched")]
    for step in range(3 * len(sizes) + 1):
        assert sum(b.nbytes for b, (first, last) in copies if first <= step <= last) <= most


@pytest.mark.parametrize(("most", "copied"), [(1024, 2), (1023, 1), (512, 1), (511, 0)])
def test_the_last_byte_of_the_room(most: int, copied: int) -> None:
    program = layers_of([100, 512, 512])
    fetch(program, most, "net")
    assert sum(call.op == FETCH for call in program.calls()) == copied


def layers_of(sizes: Sequence[int]) -> Program:
    """A program of layers with constants of so many bytes."""
    real = TensorType(DType.FLOAT32, (4,))
    first = place = Buffer("x", real, Role.INPUT)
    accesses = {"x": Access.READ, "w": Access.READ, "y": Access.WRITE}
    params = tuple(Param(name, DType.FLOAT32, access) for name, access in accesses.items())
    body: list[Step] = []
    for k, size in enumerate(sizes):
        weights = Buffer(f"w{k}", TensorType(DType.INT8, (size,)), Role.CONSTANT, np.zeros(size, np.int8))
        result = Buffer(f"y{k}", real, Role.OUTPUT if k == len(sizes) - 1 else Role.WORKSPACE)
        body.append(Call(Function("layer", params, ""), (place, weights, result), layer=f"l{k}", macs=size))
        place = result
    return Program("net", [first], [place], body)


@pytest.mark.parametrize(
    ("change", "owner", "copied"),
    [({}, "", 1), ({"macs": 0}, "", 0), ({"target": "npu"}, "", 0), ({}, "npu", 0)],
)
def test_what_is_not_copied(change: dict[str, Any], owner: str, copied: int) -> None:
    """Tables, and what another target computes."""
    program = layers_of([600, 600, 100])
    call = list(program.calls())[1]
    program.body[1] = replace(call, function=replace(call.function, owner=owner), **change)
    fetch(program, 1 << 20, "net")
    assert sum(c.op == FETCH for c in program.calls()) == copied


@pytest.mark.parametrize("by_device", [False, True])
def test_no_copy_is_under_way_where_a_run_may_end(by_device: bool) -> None:
    """Copies begin behind a step that can fail, and the one behind it gets none: a run that ended there would
    leave DMA writing to memory that the program uses for something else.
    """
    program = layers_of([600] * 5)
    call = list(program.calls())[2]
    how: dict[str, Any] = {"device": Device("npu", "npu.h")} if by_device else {"fails": True}
    call.function = replace(call.function, **how)
    fetch(program, 1 << 20, "net")
    order = [f"{c.op} {c.layer}".strip() for c in program.calls()]
    first = ["Fetch l1", "l0", "Wait l1", "Fetch l2", "l1", "Wait l2", "l2"]
    assert order == [*first, "Fetch l4", "l3", "Wait l4", "l4"]


@pytest.mark.parametrize("window", [False, True])
def test_weights_that_others_read_stay_where_they_are(window: bool) -> None:
    """Two layers with one constant, or with a window of it."""
    program = layers_of([600] * 4)
    calls = list(program.calls())
    weights = calls[1].arguments[1]
    other = replace(weights, name="window", view_of=(weights, 0)) if window else weights
    calls[3].arguments = (calls[3].arguments[0], other, calls[3].arguments[2])
    fetch(program, 1 << 20, "net")
    assert [c.layer for c in program.calls() if c.op == FETCH] == ["l2"]


def test_parameters_of_their_own_file(tmp_path: Path) -> None:
    """Retrained ones fit the library that copies them."""
    made(tmp_path, "--target", "c", "--fetch", "18k", "--params", "external")
    assert copies(tmp_path)
    again, library = tmp_path / "again.params", str(tmp_path / "net.json")
    assert main(["params", str(tmp_path / "net.onnx"), "-o", str(again), "--for", library]) == 0
    assert again.read_bytes() == (tmp_path / "net.params").read_bytes()
    subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "net.c"], cwd=tmp_path, check=True)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("core", ["m4", "m55"])
def test_on_a_core(tmp_path: Path, core: str) -> None:
    expected = made(tmp_path, "--target", f"cortex-{core}", "--fetch", "18k")
    flags = ["-O2", f"-I{include_dir()}"]
    count, *numbers = build_and_run(BOARDS[core], ["main.c", "net.c"], tmp_path, flags).split()
    assert int(count) == len(copies(tmp_path)) > 0
    np.testing.assert_allclose(
        np.asarray(numbers, np.uint32).view(np.float32), expected, rtol=2e-5, atol=2e-6
    )


def integers() -> onnx.ModelProto:
    """Dense layers of int8, with scales by column."""
    rng = np.random.default_rng(7)
    constants: dict[str, np.ndarray] = {"s0": np.float32(0.02), "z": np.int8(3)}
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "s0", "z"], ["q0"]),
    ]
    widths = (108, 64, 48, 5)
    for k, (n, m) in enumerate(pairwise(widths)):
        constants |= {
            f"w{k}": rng.integers(-127, 128, (n, m)).astype(np.int8),
            f"sw{k}": rng.uniform(0.001, 0.002, m).astype(np.float32),
            f"b{k}": rng.integers(-900, 900, m).astype(np.int32),
            f"s{k + 1}": np.float32(0.01 * (k + 1)),
        }
        constants[f"sb{k}"] = constants[f"s{k}"] * constants[f"sw{k}"]
        nodes += [
            helper.make_node("DequantizeLinear", [f"q{k}", f"s{k}", "z"], [f"d{k}"]),
            helper.make_node("DequantizeLinear", [f"w{k}", f"sw{k}"], [f"dw{k}"], axis=1),
            helper.make_node("DequantizeLinear", [f"b{k}", f"sb{k}"], [f"db{k}"], axis=0),
            helper.make_node("Gemm", [f"d{k}", f"dw{k}", f"db{k}"], [f"g{k}"], name=f"dense{k}"),
            helper.make_node("Relu", [f"g{k}"], [f"r{k}"]),
            helper.make_node("QuantizeLinear", [f"r{k}", f"s{k + 1}", "z"], [f"q{k + 1}"]),
        ]
    last = len(widths) - 1
    nodes.append(helper.make_node("DequantizeLinear", [f"q{last}", f"s{last}", "z"], ["y"]))
    return model(nodes, [tensor("x", X.shape)], [tensor("y", (1, widths[-1]))], constants)


@pytest.mark.parametrize("target", ["c", "host", "cortex-m4", "cortex-m55"])
def test_integers_are_the_same_as_without(tmp_path: Path, target: str) -> None:
    """In pieces of 16 columns, on this machine and in QEMU."""
    core = target.removeprefix("cortex-")
    if core != target and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    results = []
    for options in ((), ("--fetch", "4500")):
        folder = tmp_path / f"n{len(options)}"
        folder.mkdir()
        program_of(integers(), folder, "--target", target, *options)
        flags = [f"-I{include_dir()}", *(["-DPLAIN"] if not options else [])]
        if core != target:
            results.append(build_and_run(BOARDS[core], ["main.c", "net.c"], folder, ["-O2", *flags]).split())
            continue
        flags += [*STRICT, *SANITIZE, "-march=native"]
        subprocess.run(["cc", *flags, "main.c", "net.c", "-lm", "-o", "main"], cwd=folder, check=True)
        ran = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, (ran.returncode, ran.stderr)
        results.append(ran.stdout.split())
    (none, *whole), (count, *pieces) = results
    assert int(none) == 0 and int(count) == len(copies(folder)) >= 5
    assert pieces == whole and len(set(whole)) > 2
