"""Generated C as a reviewer of safety-critical software reads it: nothing beyond what docs/misra.md
states.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aot_model.emit.view import Options
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from corpus import MODELS
from emit_models import FAMILIES
from onnx_models import save, small_cnn
from qemu import BOARDS

DOC = (Path(__file__).parents[2] / "docs" / "misra.md").read_text()
RULES = set(re.findall(r"^\| (\d+\.\d+) \|", DOC, re.MULTILINE))
CHECKS = {
    c for row in re.findall(r"^\| ((?:bugprone|cert)[^|]*) \|", DOC, re.MULTILINE) for c in row.split(", ")
}
REAL = ("digits_mlp.onnx", "digits_mlp_qdq.onnx", "k_lstm_f32.tflite", "kws_int8.tflite")
FETCH = {"digits_mlp.onnx": 8192}
"""Bytes for copies of weights that the program makes."""
SAMPLES = [(family, core) for family in FAMILIES for core in ("c", "cortex-m4")] + [
    (model, "c") for model in REAL
]


def generated(sample: str, target: str, folder: Path, options: Options | None = None) -> Path:
    """The C of a sample without the values of its constants, which are numbers and take long to read."""
    if sample in FAMILIES:
        path = save(FAMILIES[sample](), folder / "m.onnx")
    else:
        if MODELS is None:
            pytest.skip("no folder of models")
        path = MODELS / sample
    write(
        compile_model(Request(path, "m", target, library=options or Options(fetch=FETCH.get(sample, 0)))),
        folder,
    )
    file = folder / "m.c"
    file.write_text(file.read_text().split("\n/* ---- values of")[0] + "\n")
    return file


@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="no cppcheck")
@pytest.mark.parametrize(("sample", "target"), SAMPLES)
def test_misra(sample: str, target: str, tmp_path: Path) -> None:
    file = generated(sample, target, tmp_path)
    command = [
        "cppcheck",
        "--addon=misra",
        "--std=c99",
        "--quiet",
        f"-I{include_dir()}",
        "-D__STDC_VERSION__=199901L",
        "--max-configs=1",
    ]
    command += ["-D__ARM_FEATURE_DSP=1", "-D__ARM_FEATURE_SIMD32=1"] if target == "cortex-m4" else []
    done = subprocess.run(
        [*command, "--template={id}|{file}:{line}|{message}", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"^(?:misra-c2012-(\d+\.\d+)|(\w+))\|(.*)", done.stderr, re.MULTILINE)
    assert found, done.stderr or "nothing found: the addon did not run"
    assert [
        (rule or other, where) for rule, other, where in found if rule not in RULES and other != "information"
    ] == []


@pytest.mark.skipif(shutil.which("clang-tidy") is None, reason="no clang-tidy")
@pytest.mark.parametrize(("sample", "target"), [s for s in SAMPLES if s[1] == "c"])
def test_clang_tidy(sample: str, target: str, tmp_path: Path) -> None:
    file = generated(sample, target, tmp_path)
    checks = ",".join(["-*", "bugprone-*", "cert-*", *(f"-{c}" for c in sorted(CHECKS))])
    done = subprocess.run(
        [
            "clang-tidy",
            "--quiet",
            f"--checks={checks}",
            "--header-filter=.*",
            str(file),
            "--",
            "-std=c99",
            f"-I{include_dir()}",
            "-DAOT_MODEL_NO_ADVICE",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.findall(r"(?:warning|error): .*", done.stdout) == [] and done.returncode == 0, done.stderr


CAREFUL = """-Wall -Wextra -Wpedantic -Wconversion -Warith-conversion -Wshadow -Wundef -Wdouble-promotion
-Wfloat-equal -Wcast-align=strict -Wcast-qual -Wbad-function-cast -Wpointer-arith -Wwrite-strings -Wvla
-Wmissing-prototypes -Wmissing-declarations -Wstrict-prototypes -Wold-style-definition -Wredundant-decls
-Wnested-externs -Wswitch-default -Wswitch-enum -Wnull-dereference -Wlogical-op -Wduplicated-cond
-Wduplicated-branches -Wformat=2 -Winit-self -Wstrict-overflow=2 -Wunused-macros -Wdate-time
-Werror""".split()
"""What projects turn on beyond our own flags."""
COMPILERS = {
    "c": ["gcc", "-std=c99"],
    "host": ["gcc", "-std=c99", "-mavx2", "-mfma"],
    **{core: ["arm-none-eabi-gcc", "-std=c99", *BOARDS[core.removeprefix("cortex-")].flags]
       for core in ("cortex-m4", "cortex-m55")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("sample", "target"), [(s, t) for s in dict.fromkeys(s for s, _ in SAMPLES) for t in COMPILERS]
)
def test_warnings_of_careful_projects(sample: str, target: str, tmp_path: Path) -> None:
    compiler = COMPILERS[target]
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no {compiler[0]}")
    file = generated(sample, target, tmp_path)
    flags = [*CAREFUL, "-O2", "-DAOT_MODEL_NO_ADVICE", f"-I{include_dir()}"]
    done = subprocess.run(
        [*compiler, *flags, "-c", str(file), "-o", "m.o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("io", ["caller", "workspace"])
@pytest.mark.parametrize("metadata", ["none", "full"])
def test_headers_are_c90(io: str, metadata: str, tmp_path: Path) -> None:
    options = Options(io=io, metadata=metadata, profile=True, trace=True, fetch=4096)
    write(compile_model(Request(save(small_cnn(), tmp_path / "m.onnx"), "m", "c", library=options)), tmp_path)
    (tmp_path / "main.c").write_text('#include "m.h"\nint main(void) { return 0; }\n')
    subprocess.run(
        [
            "gcc",
            "-std=c90",
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{include_dir()}",
            "-c",
            "main.c",
            "-o",
            "m.o",
        ],
        cwd=tmp_path,
        check=True,
    )
