"""The target onednn with the library itself: layers and networks against the reference, and who owns what."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from float_layers import ALL, CONVOLUTIONS, NETWORKS, Case
from vector_unit import compiled

from aot_model.host.program import SANITIZE, STRICT, build
from aot_model.installation import include_dir
from aot_model.pipeline import Compiled, Request, compile_model
from corpus import MODELS, REASON, vectors

_CONTEXT = """#include "aot_model/onednn.h"
#include "m.h"
extern const m_devices m_test_devices;
static struct aot_model_onednn context;
const m_devices m_test_devices = { &context };
__attribute__((destructor)) static void release(void) { aot_model_onednn_release(&context); }
"""


def _installed() -> bool:
    if shutil.which("cc") is None:
        return False
    done = subprocess.run(
        ["cc", "-x", "c", "-E", "-"],
        input="#include <dnnl.h>\n#if DNNL_VERSION_MAJOR != 2\n#error\n#endif\n",
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


pytestmark = pytest.mark.skipif(not _installed(), reason="oneDNN 2 is not installed (Debian: libdnnl-dev)")


def _run(result: Compiled, folder: Path, *vectors: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Under sanitizers, so that what is not released is found."""
    program = build(
        result.view,
        {**result.texts, "context.c": _CONTEXT},
        folder / "onednn",
        ("-O1", *SANITIZE, str(folder / "onednn" / "context.c"), "-Wl,--no-as-needed", "-ldnnl"),
    )
    return program.run(list(vectors))


LAYERS = [c for c in ALL if c.name not in ("prelu", "mean", "reshape", "transpose", "concatenate")]


@pytest.mark.parametrize("case", LAYERS, ids=lambda c: c.name)
def test_same_as_the_reference(case: Case, tmp_path: Path) -> None:
    result = compiled(case.proto(), tmp_path, "onednn,c")
    assert any(a.target == "onednn" for a in result.assignments)
    for got in _run(result, tmp_path, case.inputs(), case.inputs()):
        for a, b in zip(got, case.expected(), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: c.name)
def test_bias_and_activation_are_in_the_primitive(case: Case, tmp_path: Path) -> None:
    taken = [
        a
        for a in compiled(case.proto(), tmp_path, "onednn,c").assignments
        if a.operator in ("Convolution", "Add", "Relu")
    ]
    assert {a.pattern for a in taken} == {"convolution"}


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("name", ["kws_f32.onnx", "resnet8_f32.onnx", "digits_mbv3.onnx"])
def test_network_of_the_corpus(name: str, tmp_path: Path) -> None:
    assert MODELS is not None
    result = compile_model(Request(MODELS / name, "m", "onednn,c"))
    inputs, expected = vectors(MODELS / name, 1, 1, 2)
    for got, wanted in zip(_run(result, tmp_path, *inputs), expected, strict=True):
        np.testing.assert_allclose(got[0].reshape(-1), wanted[0].reshape(-1), atol=2e-5)


_LIFE = """#include <stdio.h>
#include "aot_model/onednn.h"
#include "m.h"

static int entries(const struct aot_model_onednn *context)
{
    int count = 0;
    for (const aot_model_onednn_entry *e = context->entries; e != NULL; e = e->next) {
        ++count;
    }
    return count;
}

int main(void)
{
    static float x[192], y[6];
    struct aot_model_onednn context = { 0 };
    const m_devices devices = { &context };
    const m_inputs inputs = { x };
    const m_outputs outputs = { y };
    for (int turn = 0; turn < 3; ++turn) {
        if (m_run(&inputs, &outputs, &devices) != AOT_MODEL_OK) {
            return 1;
        }
        printf("%d ", entries(&context));
    }
    aot_model_onednn_release(&context);
    printf("%d ", entries(&context));
    if (m_run(&inputs, &outputs, &devices) != AOT_MODEL_OK) {
        return 2;
    }
    printf("%d ", entries(&context));
    aot_model_onednn_release(&context);
    aot_model_onednn_release(&context);
    return 0;
}
"""


def test_primitives_are_created_once_and_released(tmp_path: Path) -> None:
    """As many as there are layers after the first run and any other; none after the release; LeakSanitizer
    has no objection.
    """
    result = compiled(NETWORKS[0].proto(), tmp_path, "onednn,c")
    for name, text in {**result.texts, "life.c": _LIFE}.items():
        (tmp_path / name).write_text(text)
    command = [
        "cc",
        *STRICT,
        "-O1",
        *SANITIZE,
        f"-I{include_dir()}",
        "life.c",
        "m.c",
        "-ldnnl",
        "-lm",
        "-o",
        "life",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./life"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    counts = [int(v) for v in done.stdout.split()]
    layers = sum(1 for c in result.view.program.calls() if c.function.name.startswith("onednn"))
    assert counts == [layers, layers, layers, 0, layers] and layers >= 5
