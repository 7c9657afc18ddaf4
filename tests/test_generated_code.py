"""What generated code may ask of its surroundings: symbols, warnings, C++, several models in one program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aot_model.emit.view import Options
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import save, small_cnn

OPTIONS = [
    Options(w, i, m) for w in ("static", "caller") for i in ("caller", "workspace") for m in ("none", "full")
]
MATHS = frozenset(
    "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf floor ceil trunc rint "
    "log1p expm1 pow fmod fma fabs fmax fmin round nearbyint".split()
)


def generated(folder: Path, name: str = "cnn", target: str = "c", options: Options | None = None) -> Path:
    """The folder with the files of small_cnn."""
    model = save(small_cnn(), folder / "cnn.onnx")
    write(compile_model(Request(model, name, target, library=options or Options())), folder)
    return folder


def cc(folder: Path, *arguments: str, compiler: str = "gcc") -> None:
    done = subprocess.run(
        [compiler, f"-I{include_dir()}", "-I.", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.workspace}-{o.io}-{o.metadata}")
@pytest.mark.parametrize("target", ["c", "host"])
def test_only_libm_and_memory_functions_are_needed(target: str, options: Options, tmp_path: Path) -> None:
    generated(tmp_path, target=target, options=options)
    cc(
        tmp_path,
        *STRICT,
        "-O2",
        *(["-march=native"] if target == "host" else []),
        "-c",
        "cnn.c",
        "-o",
        "cnn.o",
    )
    symbols = subprocess.run(
        ["nm", "-g", "cnn.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    undefined = {line.split()[-1] for line in symbols.splitlines() if " U " in line} - {
        "_GLOBAL_OFFSET_TABLE_"
    }
    assert {u.removesuffix("f") for u in undefined} <= MATHS | {"memcpy", "memset"}
    defined = {line.split()[-1] for line in symbols.splitlines() if " U " not in line}
    assert defined and all(d.startswith("cnn_") for d in defined)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.workspace}-{o.io}-{o.metadata}")
def test_cplusplus_takes_the_header(options: Options, tmp_path: Path) -> None:
    generated(tmp_path, options=options)
    (tmp_path / "main.cpp").write_text(
        '#include "cnn.h"\n#include "cnn.h"\ntemplate <class F> int missing(F *f) { return f == nullptr; '
        "}\nint main() { return missing(cnn_run); }\n"
    )
    cc(tmp_path, "-std=c99", "-c", "cnn.c", "-o", "cnn.o")
    cc(
        tmp_path,
        "-std=c++11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "main.cpp",
        "cnn.o",
        "-lm",
        "-o",
        "a",
        compiler="g++",
    )


@pytest.mark.parametrize("standard", ["c99", "c11", "gnu99", "gnu17"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_standard_without_warnings(standard: str, compiler: str, tmp_path: Path) -> None:
    import shutil

    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    generated(tmp_path, target="host")
    cc(
        tmp_path,
        *STRICT[1:],
        f"-std={standard}",
        "-march=native",
        "-c",
        "cnn.c",
        "-o",
        "cnn.o",
        compiler=compiler,
    )


def test_two_models_in_one_program(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generated(tmp_path, name)
    (tmp_path / "main.c").write_text(
        '#include "one.h"\n#include "two.h"\nint main(void) { return one_run(NULL, NULL) + two_run(NULL, '
        "NULL) != 2 * AOT_MODEL_ERROR_NULL; }\n"
    )
    cc(tmp_path, *STRICT, "main.c", "one.c", "two.c", "-lm", "-o", "a")
    subprocess.run(["./a"], cwd=tmp_path, check=True)


def test_no_metadata_costs_nothing(tmp_path: Path) -> None:
    text = (generated(tmp_path, options=Options(metadata="none")) / "cnn.c").read_text()
    assert "metadata" not in text
