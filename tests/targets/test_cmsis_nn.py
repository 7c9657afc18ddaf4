"""The target cmsis-nn: layer by layer and whole networks bit for bit as the plain target, scratch, and what
it refuses.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cmsis_nn_library import HERE, NAME, REAL, library
from integer_layers import CONVOLUTIONS, OTHERS, SAME, Layer, padded_convolution

from aot_model.host.program import SANITIZE, build, scratch_folder
from aot_model.installation import rules_dir
from aot_model.kernels.base import ConvShape
from aot_model.pipeline import Compiled, Request, compile_model
from aot_model.targets import cmsis_nn_scratch
from corpus import MODELS, REASON, vectors
from firmware import run_firmware
from qemu import BOARDS, available

LAYERS = (*CONVOLUTIONS, *OTHERS)
EXTENSIONS = {"none": (), "dsp": ("-DARM_MATH_DSP=1",), "mve": ("-DARM_MATH_DSP=1", "-DARM_MATH_MVEI=1")}
"""What tells the stand-in on the host which build of the library to be."""


def _run(compiled: Compiled, layer: Layer, folder: Path, *flags: str) -> list[list[np.ndarray]]:
    return build(compiled.view, compiled.texts, folder, ("-O1", *flags)).run(list(layer.inputs()))


@cache
def _expected(layer: Layer) -> list[list[np.ndarray]]:
    """What the portable target computes."""
    with scratch_folder() as name:
        return _run(compile_model(Request(layer.save(Path(name)), "m", "c")), layer, Path(name))


def _claimed(compiled: Compiled) -> set[str]:
    return {a.pattern for a in compiled.assignments if a.operator not in ("ReshapeTo", "Flatten")}


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: f"{layer.name}-{NAME}")
def test_layer(layer: Layer, tmp_path: Path) -> None:
    """Every layer is one call of the library, and gives the bytes of the portable target."""
    model = layer.save(tmp_path)
    compiled = compile_model(Request(model, "m", "cmsis-nn,c"))
    assert "" not in _claimed(compiled)
    lib = library()
    got = _run(
        compiled, layer, tmp_path / "library", *(SANITIZE if REAL is None else ()), *lib.flags, lib.object
    )
    for a, b in zip(got, _expected(layer), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 2, 1, 0)], ids=str)
def test_a_padding_before_a_convolution_is_part_of_it(
    pads: tuple[int, int, int, int], tmp_path: Path
) -> None:
    """As Keras exports ZeroPadding2D: one call instead of a copy and a call."""
    model = tmp_path / "padded.tflite"
    model.write_bytes(padded_convolution(*pads))
    compiled = compile_model(Request(model, "m", "cmsis-nn,c"))
    assert {a.pattern for a in compiled.assignments} == {"convolution"}  # the pass fold_pads was there before
    lib, x = library(), [[np.random.default_rng(1).integers(-128, 128, (1, 6, 5, 3), dtype=np.int8)]]
    got = build(compiled.view, compiled.texts, tmp_path / "library", ("-O1", *lib.flags, lib.object)).run(x)
    plain = compile_model(Request(model, "m", "c"))
    np.testing.assert_array_equal(
        got[0][0], build(plain.view, plain.texts, tmp_path / "plain", ("-O1",)).run(x)[0][0]
    )


def test_a_padded_kernel_of_one_element_stays_here(tmp_path: Path) -> None:
    """The library's code for 1x1 takes no size of the output: what padding adds would not be written."""
    model = tmp_path / "padded.tflite"
    model.write_bytes(padded_convolution(0, 0, 2, 3, kernel=1))
    compiled = compile_model(Request(model, "m", "cmsis-nn,c"))
    assert ("Convolution", "") in [(a.operator, a.pattern) for a in compiled.assignments]
    lib, x = library(), [[np.random.default_rng(1).integers(-128, 128, (1, 6, 5, 3), dtype=np.int8)]]
    got = build(compiled.view, compiled.texts, tmp_path / "library", ("-O1", *lib.flags, lib.object)).run(x)
    plain = compile_model(Request(model, "m", "c"))
    np.testing.assert_array_equal(
        got[0][0], build(plain.view, plain.texts, tmp_path / "plain", ("-O1",)).run(x)[0][0]
    )


@pytest.mark.parametrize("extension", ["dsp", "mve"])
@pytest.mark.parametrize(
    "layer",
    [x for x in LAYERS if x.kind not in ("ADD", "MUL", "SOFTMAX", "MAX_POOL_2D")],
    ids=lambda x: x.name,
)
def test_scratch_for_other_builds_of_the_library(layer: Layer, extension: str, tmp_path: Path) -> None:
    """What is planned for Cortex-M4 and M55 is what the stand-in, built so, asks for and overwrites."""
    model = layer.save(tmp_path)
    compiled = compile_model(Request(model, "m", f"cmsis-nn,extension={extension},c"))
    lib = library(*EXTENSIONS[extension], real=False)
    got = _run(
        compiled, layer, tmp_path / "library", *SANITIZE, *EXTENSIONS[extension], *lib.flags, lib.object
    )
    for a, b in zip(got, _expected(layer), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def test_a_library_that_needs_more_scratch_is_an_error(tmp_path: Path) -> None:
    """Code for a library without the DSP extension, linked with one that has it: no result, no overrun."""
    layer = next(x for x in LAYERS if x.name == "depthwise_5x2")
    compiled = compile_model(Request(layer.save(tmp_path), "m", "cmsis-nn,c"))
    lib = library(*EXTENSIONS["dsp"], real=False)
    with pytest.raises(Exception, match="failed with status"):
        _run(compiled, layer, tmp_path / "build", *SANITIZE, *EXTENSIONS["dsp"], *lib.flags, lib.object)


def test_single_rounding_is_refused_by_the_preprocessor(tmp_path: Path) -> None:
    compiled = compile_model(Request(LAYERS[0].save(tmp_path), "m", "cmsis-nn,c"))
    with pytest.raises(Exception, match="CMSIS_NN_USE_SINGLE_ROUNDING"):
        _run(compiled, LAYERS[0], tmp_path / "build", "-DCMSIS_NN_USE_SINGLE_ROUNDING", f"-I{HERE}")


# --- scratch ------------------------------------------------------------------------------------------------


def _shapes() -> list[ConvShape]:
    """Random geometries of more than one row; many with one column or a kernel of 1x1, which the library
    computes differently.
    """
    rng = np.random.default_rng(9)
    found: list[ConvShape] = []
    while len(found) < 400:
        n, h, w, c, o = (int(v) for v in rng.integers((1, 2, 1, 1, 1), (3, 30, 9, 20, 9)))
        (kh, kw), (sh, sw), (dh, dw) = (
            rng.integers(1, 6, 2).tolist(),
            rng.integers(1, 5, 2).tolist(),
            rng.choice([1, 1, 1, 2], 2).tolist(),
        )
        if rng.random() < 0.4:
            w = kw = 1
        if rng.random() < 0.1:
            kh = kw = 1
        top, left, more = (int(v) for v in rng.integers(0, (kh, kw, 2)))
        oh, ow = (
            (h + 2 * top - dh * (kh - 1) - 1) // sh + 1,
            (w + 2 * left + more - dw * (kw - 1) - 1) // sw + 1,
        )
        if min(oh, ow) >= 1 and h + 2 * top >= dh * (kh - 1) + 1:
            found.append(ConvShape(n, h, w, c, oh, ow, o, kh, kw, sh, sw, dh, dw, top, left))
    return found


def _shared(folder: Path, extension: str) -> tuple[ctypes.CDLL, str]:
    """The library as the host can load it, and how the names of its functions end."""
    flags = () if REAL else EXTENSIONS[extension]
    lib = library("-fPIC", *flags)
    file = folder / f"{extension}.so"
    subprocess.run(["cc", "-shared", "-o", str(file), lib.object], check=True)
    return ctypes.CDLL(str(file)), f"_{extension}" if REAL and extension != "none" else ""


@pytest.mark.parametrize("extension", cmsis_nn_scratch.EXTENSIONS)
def test_planned_sizes_are_those_of_the_library(extension: str, tmp_path: Path) -> None:
    lib, suffix = _shared(tmp_path, extension)

    def ints(*values: int) -> ctypes.Array[ctypes.c_int32]:
        return (ctypes.c_int32 * len(values))(*values)

    for s in _shapes():
        geometry = (s.stride_w, s.stride_h, s.pad_left, s.pad_top, s.dilation_w, s.dilation_h, -128, 127)
        x, y = ints(s.batch, s.in_h, s.in_w, s.in_c), ints(s.batch, s.out_h, s.out_w, s.out_c)
        asked = getattr(lib, f"arm_convolve_wrapper_s8_get_buffer_size{suffix}")(
            ints(0, 0, *geometry), x, ints(s.out_c, s.kernel_h, s.kernel_w, s.in_c), y
        )
        planned = cmsis_nn_scratch.convolution(s, extension)
        if extension == "dsp" and s.kernel_h == s.kernel_w == 1:
            assert planned >= asked  # only some compilers' builds use it
        else:
            assert planned == asked, s
        if s.in_c == 1:
            continue
        for multiplier in (1, 2):
            d = replace(s, out_c=s.in_c * multiplier, groups=s.in_c)
            out, w = ints(d.batch, d.out_h, d.out_w, d.out_c), ints(1, d.kernel_h, d.kernel_w, d.out_c)
            asked = getattr(lib, f"arm_depthwise_conv_wrapper_s8_get_buffer_size{suffix}")(
                ints(0, 0, multiplier, *geometry), x, w, out
            )
            assert cmsis_nn_scratch.depthwise(d, extension) == asked, d
        assert cmsis_nn_scratch.average_pool(s, extension) == getattr(
            lib, f"arm_avgpool_s8_get_buffer_size{suffix}"
        )(s.out_w, s.in_c)
        asked = getattr(lib, f"arm_fully_connected_s8_get_buffer_size{suffix}")(ints(s.in_c, 1, 1, s.out_c))
        assert cmsis_nn_scratch.fully_connected(s.out_c, extension) == asked


# --- whole networks -----------------------------------------------------------------------------------------

NETWORKS = ("kws_int8.tflite", "resnet8_int8.tflite", "vww_int8.tflite")


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("name", NETWORKS)
def test_network_on_the_host(name: str, tmp_path: Path) -> None:
    assert MODELS is not None
    compiled = compile_model(Request(MODELS / name, "m", "cmsis-nn,c"))
    inputs, expected = vectors(MODELS / name, 1, 1, 3)
    lib = library()
    got = build(compiled.view, compiled.texts, tmp_path, ("-O2", *lib.flags, lib.object)).run(inputs)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a[0].reshape(-1), b[0].reshape(-1))


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
@pytest.mark.parametrize(
    ("board", "name"),
    [*(("m4", n) for n in NETWORKS), ("m55", "kws_int8.tflite"), ("m55", "resnet8_int8.tflite")],
)
def test_network_on_the_core(board: str, name: str, tmp_path: Path) -> None:
    assert MODELS is not None
    compiled = compile_model(Request(MODELS / name, "m", f"cmsis-nn,cortex-{board}"))
    inputs, expected = vectors(MODELS / name, 1, 1, 1)
    lib = library(*BOARDS[board].flags, "-mthumb", compiler="arm-none-eabi-gcc")
    done = run_firmware(compiled, board, inputs, tmp_path, ("-O2", *lib.flags), objects=[lib.object])
    print(f"{NAME}: {name} on {board}: {done.instructions:,} instructions")
    np.testing.assert_array_equal(done.outputs[0][0].reshape(-1), expected[0][0].reshape(-1))


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
@pytest.mark.parametrize("board", ["m4", "m55"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_layer_on_the_core(layer: Layer, board: str, tmp_path: Path) -> None:
    """The library's code for this core; with the stand-in, what differs between cores is the scratch."""
    if REAL is None:
        pytest.skip("AOT_MODEL_CMSIS_NN_DIR is not set; the stand-in is the same code on every core")
    model = layer.save(tmp_path)
    compiled = compile_model(Request(model, "m", f"cmsis-nn,cortex-{board}"))
    lib = library(*BOARDS[board].flags, "-mthumb", compiler="arm-none-eabi-gcc")
    done = run_firmware(
        compiled, board, list(layer.inputs()), tmp_path, ("-O2", *lib.flags), objects=[lib.object]
    )
    for a, b in zip(done.outputs, _expected(layer), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


# --- build rules --------------------------------------------------------------------------------------------

_CMAKE = """cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C CXX)
find_package(AotModel REQUIRED)
aot_model_library(layer MODEL {model} TARGET c OFFLOAD cmsis-nn)
add_executable(app main.c)
target_link_libraries(app PRIVATE layer)
"""
_MAIN = """#include "layer.h"
static int8_t x[37], y[11];
int main(void) { return layer_run(&(layer_inputs){ x }, &(layer_outputs){ y }); }
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_cmake_finds_the_library(tmp_path: Path) -> None:
    """AOT_MODEL_CMSIS_NN_DIR is all that a project says."""
    model = next(x for x in LAYERS if x.name == "dense").save(tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(_CMAKE.format(model=model.name))
    (tmp_path / "main.c").write_text(_MAIN)
    rules = rules_dir("cmake")
    where = [
        "-S",
        ".",
        "-B",
        "build",
        f"-DAotModel_DIR={rules}",
        f"-DAOT_MODEL_CMSIS_NN_DIR={REAL or HERE}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    for command in (["cmake", *where], ["cmake", "--build", "build", "--target", "app"], ["build/app"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


# --- what it does not take ----------------------------------------------------------------------------------

REFUSED = (
    (Layer("add_broadcast", "ADD", (1, 4, 4, 3), (1, 1, 1, 3), (1, 4, 4, 3)), "does not broadcast"),
    (Layer("softmax_scale", "SOFTMAX", (1, 5), y=(1, 5), scale=1e-9), "fixed-point format"),
    (Layer("grouped", "CONV_2D", (1, 4, 4, 4), (6, 3, 3, 2), (1, 4, 4, 6), padding=SAME), "2 groups"),
)


@pytest.mark.parametrize(("layer", "reason"), REFUSED, ids=lambda v: getattr(v, "name", ""))
def test_refused_with_the_reason(layer: Layer, reason: str, tmp_path: Path) -> None:
    """The processor's own kernels compute it, and `check` can say why."""
    compiled = compile_model(Request(layer.save(tmp_path), "m", "cmsis-nn,c"))
    assert any(reason in why for a in compiled.assignments for _, _, why in a.refused), compiled.assignments
    assert "arm_nnfunctions.h" not in compiled.texts["m.c"]
