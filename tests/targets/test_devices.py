"""Devices: activated around a run, opened around each call, given back in reverse order, and the first error
counts.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import compiled, elementwise, install, unit

import aot_model
from aot_model.cli.keywords import OPTIONS
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.ir.program import Device
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.target import Target
from aot_model.library.module import ModelError
from aot_model.partition.lower import RegionSite
from aot_model.partition.region import Region
from aot_model.pipeline import write
from onnx_models import model, tensor

node = helper.make_node
X = np.asarray([[1, 2, 3, 4], [0, -1, 2, -3]], np.float32)

INTERFACES = next(k for k in OPTIONS if k.name == "interfaces").choices
NPU = Device("npu", "npu.h", "npu_context")
DSP = Device("dsp", "dsp.h", "struct dsp")

DRIVER_H = """#ifndef NPU_H
#define NPU_H
#include <stdint.h>
typedef struct { char *log; int fails; } npu_context;
int32_t npu_note(npu_context *npu, char what);
int32_t npu_activate(npu_context *npu);
int32_t npu_open(npu_context *npu);
int32_t npu_close(npu_context *npu);
int32_t npu_deactivate(npu_context *npu);
#endif
"""
DRIVER = """#include "npu.h"

/* Writes down what is called; call number `fails`, counted from 1, returns its number. */
int32_t npu_note(npu_context *npu, char what)
{
    *npu->log++ = what;
    *npu->log = 0;
    ++npu->fails;
    return npu->fails <= 0 ? 0 : npu->fails;
}
int32_t npu_activate(npu_context *npu) { return npu_note(npu, 'A'); }
int32_t npu_open(npu_context *npu) { return npu_note(npu, 'O'); }
int32_t npu_close(npu_context *npu) { return npu_note(npu, 'C'); }
int32_t npu_deactivate(npu_context *npu) { return npu_note(npu, 'D'); }
"""
DSP_H = """#ifndef DSP_H
#define DSP_H
#include <stdint.h>
struct dsp { char *log; };
int32_t dsp_activate(struct dsp *dsp);
int32_t dsp_open(struct dsp *dsp);
int32_t dsp_close(struct dsp *dsp);
int32_t dsp_deactivate(struct dsp *dsp);
#endif
"""


def lower(region: Region, build: RegionSite) -> None:
    for match in region.matches:
        body = (
            "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] > 0.0f ? x[k] : 0.0f;\n    }\n    "
            "return npu_note(npu, 'r');"
        )
        build.call(
            "relu",
            body,
            [Argument("x", match.result.inputs[0]), written("y", match.result.outputs[0])],
            match=match,
            fails=True,
        )  # type: ignore[arg-type]


def npu(device: Device | None = NPU, **changes: Any) -> Target:
    return unit("npu", **{"patterns": (elementwise("Relu"),), "lower": lower, "device": device, **changes})


def chain(*kinds: str) -> onnx.ModelProto:
    names = ["x", *(f"t{k}" for k in range(1, len(kinds))), "y"]
    return model(
        [node(k, [a], [b], name=f"{k.lower()}") for k, a, b in zip(kinds, names, names[1:], strict=False)],
        [tensor("x", [2, 4])],
        [tensor("y", [2, 4])],
    )


MAIN = """#include "m.h"
#include <string.h>
int main(int argc, char **argv)
{
    static const float x[8] = { 1, -1, 2, -2, 3, -3, 4, -4 };
    static float y[8];
    static char log[64];
    npu_context npu = { log, -1 };
    const m_inputs in = { x };
    const m_outputs out = { y };
    const m_devices devices = { &npu };
    npu.fails = -(argv[1][0] - 'a');
    if (m_run(&in, &out, argc > 3 ? NULL : &devices) != argv[2][0] - '0') { return 1; }
    return strcmp(log, argc > 3 ? "" : argv[3 - 1] + 1) == 0 ? 0 : 2;
}
"""


def built(
    proto: onnx.ModelProto, folder: Path, main: str, target: str = "npu,c", library: Options | None = None
) -> Path:
    result = compiled(proto, folder, target, library=library or Options())
    write(result, folder)
    for name, text in {"npu.h": DRIVER_H, "npu.c": DRIVER, "main.c": main}.items():
        (folder / name).write_text(text)
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "npu.c", "m.c", "-lm", "-o", "main"],
        cwd=folder,
        check=True,
    )
    return folder / "main"


def test_order_and_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Activate, Open, call, Close, Open, call, Close, Deactivate; whichever call fails, all that was begun is
    ended.
    """
    install(monkeypatch, npu(merge=False))
    program = built(chain("Relu", "Tanh", "Relu"), tmp_path, MAIN)
    orders = {
        0: "AOrCOrCD",
        1: "A",
        2: "AOD",
        3: "AOrCD",
        4: "AOrCD",
        5: "AOrCOD",
        6: "AOrCOrCD",
        7: "AOrCOrCD",
        8: "AOrCOrCD",
    }
    for failing, order in orders.items():
        first = chr(ord("a") + (failing - 1 if failing else 20))
        done = subprocess.run([program, first, f"{1 if failing else 0}{order}"])
        assert done.returncode == 0, (failing, order)


def test_without_devices_a_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, npu())
    main = """#include "m.h"
    int main(void)
    {
        static float x[8], y[8];
        const m_inputs in = { x };
        const m_outputs out = { y };
        const m_devices none = { NULL };
        return m_run(&in, &out, NULL) == AOT_MODEL_ERROR_NULL && m_run(&in, &out, &none) == AOT_MODEL_ERROR_NULL ? 0 : 1;
    }
    """  # noqa: E501
    assert subprocess.run([built(chain("Relu"), tmp_path, main)]).returncode == 0


def test_a_model_that_does_not_use_the_device_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, npu())
    texts = compiled(chain("Tanh"), tmp_path, "npu,c").texts
    assert (
        "m_devices" not in texts["m.h"]
        and "npu.h" not in texts["m.h"]
        and "int32_t status" not in texts["m.c"]
    )
    assert "devices" not in json.loads(texts["m.json"])


def test_typed_contexts_of_two_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A type of the header is included, a struct is declared; activation nests."""

    def on_dsp(region: Region, build: RegionSite) -> None:
        build.external(
            "dsp_tanh",
            [Argument("x", region.graph.inputs[0]), written("y", region.graph.outputs[0])],
            header="dsp.h",
            fails=True,
        )

    install(monkeypatch, npu(), unit("dsp", patterns=(elementwise("Tanh"),), lower=on_dsp, device=DSP))
    texts = compiled(chain("Relu", "Tanh"), tmp_path, "npu,dsp,c").texts
    head, code = texts["m.h"], texts["m.c"]
    assert '#include "npu.h"' in head and '#include "dsp.h"' not in head and '#include "dsp.h"' in code
    assert "    npu_context *npu;" in head and "struct dsp;" in head and "    struct dsp *dsp;" in head
    order = [
        "npu_activate(",
        "dsp_activate(",
        "m_layers(inputs, outputs, devices)",
        "dsp_deactivate(",
        "npu_deactivate(",
    ]
    places = [code.index(text, code.index("int32_t m_run(")) for text in order]
    assert places == sorted(places)
    assert "status = dsp_tanh(" in code and "devices->dsp);" in code


def test_steps_can_be_left_out_and_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver without context that only has to be switched on, and one with names of its own."""
    quiet = replace(NPU, context=None, activate="power_up", open=None, close=None, deactivate=None)

    def plain(region: Region, build: RegionSite) -> None:
        build.call(
            "relu",
            "    memcpy(y, x, 32);",
            [Argument("x", region.graph.inputs[0]), written("y", region.graph.outputs[0])],
            includes=["string.h"],
        )

    install(monkeypatch, npu(quiet, lower=plain))
    texts = compiled(chain("Relu"), tmp_path, "npu,c").texts
    assert "m_devices" not in texts["m.h"] and "status = power_up();" in texts["m.c"]
    assert "open" not in texts["m.c"] and "status = m_layers(inputs, outputs);" in texts["m.c"]
    write(compiled(chain("Relu"), tmp_path, "npu,c"), tmp_path)
    (tmp_path / "npu.h").write_text("#include <stdint.h>\nint32_t power_up(void);\n")
    subprocess.run(["cc", *STRICT, "-c", f"-I{include_dir()}", "m.c"], cwd=tmp_path, check=True)


def test_calls_that_cannot_fail_are_opened_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(region: Region, build: RegionSite) -> None:
        body = "    (void)npu;\n    memcpy(y, x, 32);"
        build.call(
            "relu",
            body,
            [Argument("x", region.graph.inputs[0]), written("y", region.graph.outputs[0])],
            includes=["string.h"],
        )

    install(monkeypatch, npu(lower=plain))
    program = built(chain("Relu"), tmp_path, MAIN)
    for failing, order in {0: "AOCD", 2: "AOD", 3: "AOCD"}.items():
        first = chr(ord("a") + (failing - 1 if failing else 20))
        assert subprocess.run([program, first, f"{1 if failing else 0}{order}"]).returncode == 0, order


def test_some_calls_do_without_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(region: Region, build: RegionSite) -> None:
        build.call(
            "copy",
            "    memcpy(y, x, 32);",
            [Argument("x", region.graph.inputs[0]), written("y", region.graph.outputs[0])],
            includes=["string.h"],
            device=False,
        )

    install(monkeypatch, npu(lower=plain))
    assert "devices" not in compiled(chain("Relu"), tmp_path, "npu,c").texts["m.h"]


@pytest.mark.parametrize("workspace", ["static", "caller"])
@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_with_every_kind_of_workspace(
    io: str, workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, npu())
    write(
        compiled(
            chain("Relu", "Tanh"),
            tmp_path,
            "npu,c",
            library=Options(workspace, io, profile=True, params="external"),
        ),
        tmp_path,
    )
    (tmp_path / "npu.h").write_text(DRIVER_H)
    subprocess.run(["cc", *STRICT, "-c", f"-I{include_dir()}", "m.c"], cwd=tmp_path, check=True)
    if (io, workspace) == ("caller", "static"):
        write(
            compiled(
                chain("Relu", "Tanh"),
                tmp_path,
                "npu,c",
                library=Options(interfaces=INTERFACES, params="external"),
            ),
            tmp_path,
        )
        subprocess.run(["cc", *STRICT, "-c", f"-I{include_dir()}", "m.c"], cwd=tmp_path, check=True)
    (tmp_path / "m.cc").write_text('#include "m.h"\nint main() { return 0; }\n')
    subprocess.run(
        ["c++", "-Wall", "-Wextra", "-Werror", f"-I{include_dir()}", "-c", "m.cc"], cwd=tmp_path, check=True
    )


def test_through_the_module_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, npu())
    write(compiled(chain("Relu"), tmp_path, "npu,c", library=Options(interfaces=("module",))), tmp_path)
    (tmp_path / "npu.h").write_text(DRIVER_H)
    (tmp_path / "npu.c").write_text(DRIVER)
    subprocess.run(
        [
            "cc",
            *STRICT,
            "-O1",
            "-fPIC",
            "-shared",
            f"-I{include_dir()}",
            "npu.c",
            "m.c",
            "-lm",
            "-o",
            "libm_.so",
        ],
        cwd=tmp_path,
        check=True,
    )
    module = aot_model.load(tmp_path / "libm_.so", "m")

    class Context(ctypes.Structure):
        _fields_ = (("log", ctypes.c_char_p), ("fails", ctypes.c_int))

    log = ctypes.create_string_buffer(64)
    context = Context(ctypes.cast(log, ctypes.c_char_p), -60)
    with pytest.raises(ModelError, match=r"\(-1\)"):
        module(X)
    with pytest.raises(ModelError, match=r"\(-1\)"):
        module.set_devices()
    module.set_devices(ctypes.addressof(context))
    np.testing.assert_array_equal(module(X)[0], np.maximum(X, 0))
    assert log.value == b"AOrCD"
    context.fails = 0
    with pytest.raises(ModelError, match=r"\(1\)"):
        module(X)


def test_a_model_without_devices_takes_none(tmp_path: Path) -> None:
    write(compiled(chain("Relu"), tmp_path, "c", library=Options(interfaces=("module",))), tmp_path)
    subprocess.run(
        ["cc", *STRICT, "-fPIC", "-shared", f"-I{include_dir()}", "m.c", "-o", "libm_.so"],
        cwd=tmp_path,
        check=True,
    )
    with pytest.raises(ValueError, match="has no devices"):
        aot_model.load(tmp_path / "libm_.so", "m").set_devices(0)


@pytest.mark.parametrize(("change", "said"),
                         [({"name": "n p u"}, "the name 'n p u' is not a C identifier"),
                          ({"header": 'a"b'}, "not the name of a header"),
                          ({"open": "open()"}, "a function 'open()' is not a C identifier"),
                          ({"context": "int *"}, "neither a type name nor")])  # fmt: skip
def test_wrong_devices(
    change: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, npu(replace(NPU, **change)))  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="target 'npu'") as error:
        compiled(chain("Relu"), tmp_path, "npu,c")
    assert error.value.problems[0].code == "E502" and said in str(error.value)


def test_two_devices_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        monkeypatch,
        npu(),
        unit("other", patterns=(elementwise("Tanh"),), lower=lower, device=replace(NPU, header="other.h")),
    )
    with pytest.raises(CompileError, match="two devices are called 'npu'") as error:
        compiled(chain("Relu", "Tanh"), tmp_path, "npu,other,c")
    assert error.value.problems[0].code == "E502"


def test_test_programs_take_the_devices_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aot_model.emit.runner import Tolerance, benchmark_main, test_main

    install(monkeypatch, npu())
    write(compiled(chain("Relu"), tmp_path, "npu,c"), tmp_path)
    np.savez(tmp_path / "v.npz", in_0=X[None], out_0=np.maximum(X, 0)[None])
    (tmp_path / "npu.h").write_text(DRIVER_H)
    (tmp_path / "npu.c").write_text(
        DRIVER
        + '#include "m.h"\nstatic char log[4096];\nstatic npu_context context = { log, -4000 };\nconst '
        "m_devices m_test_devices = { &context };\n"
    )
    for name, (text, _) in {
        "test": test_main(tmp_path / "m.json", tmp_path / "v.npz", Tolerance()),
        "bench": benchmark_main(tmp_path / "m.json", 3),
    }.items():
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run(
            [
                "cc",
                "-std=c99",
                "-Wall",
                "-Werror",
                f"-I{include_dir()}",
                f"{name}.c",
                "npu.c",
                "m.c",
                "-lm",
                "-o",
                name,
            ],
            cwd=tmp_path,
            check=True,
        )
        assert subprocess.run([f"./{name}"], cwd=tmp_path).returncode == 0
