"""`run` and `verify` with compilers, flags and emulators of the user; `--target host` is what the compiler
compiles for.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.cli import main
from aot_model.host.compiler import HostCompiler
from aot_model.installation import include_dir, rules_dir
from aot_model.targets.detect import dot_for, parse_macros, target_for, vector_for
from aot_model.targets.registry import parse_target, targets

Captured = pytest.CaptureFixture[str]

AARCH64 = ("aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
X86 = pytest.mark.skipif(
    "__x86_64__" not in (HostCompiler.find()._macros(()) or ""), reason="needs an x86-64 machine"
)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A product with enough columns for vectors, and its vectors: the arguments of verify."""
    folder = tmp_path_factory.mktemp("product")
    rng = np.random.default_rng(1)
    x, w = (
        rng.standard_normal((3, 4, 16)).astype(np.float32),
        rng.standard_normal((16, 24)).astype(np.float32),
    )
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 24])],
        [numpy_helper.from_array(w, "w")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        folder / "product.onnx",
    )
    np.savez(folder / "v.npz", in_0=x, out_0=x @ w)
    return [str(folder / "product.onnx"), "--vectors", str(folder / "v.npz")]


def _recorder(folder: Path, compiler: str) -> Path:
    """A compiler that writes its arguments down."""
    script = folder / "recording-cc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls.txt\nexec {compiler} "$@"\n')
    script.chmod(0o755)
    return script


def _build(folder: Path) -> list[str]:
    """The words of the last build."""
    return [line for line in (folder / "calls.txt").read_text().splitlines() if " -o " in line][-1].split()


@pytest.mark.parametrize("cflags", ["-O3", "-O1 -funroll-loops", "-Os -flto"])
def test_flags_of_the_user_replace_ours(cflags: str, given: list[str], tmp_path: Path) -> None:
    script = _recorder(tmp_path, "gcc")
    assert main(["verify", *given, "--cc", str(script), "--cflags", cflags]) == 0
    build = _build(tmp_path)
    assert [w for w in build if w.startswith(("-O", "-f", "-march"))] == cflags.split()
    assert main(["verify", *given, "--target", "c", "--cc", str(script)]) == 0
    build = _build(tmp_path)
    assert "-O2" in build and not [w for w in build if w.startswith("-march")]


def test_paths_in_flags_are_those_of_the_user(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.h").write_text("#define SEEN 1\n")
    _recorder(tmp_path, "gcc")
    assert main(["verify", *given, "--cc", "./recording-cc", "--cflags", "-O1 -include more.h"]) == 0


@pytest.mark.skipif(
    shutil.which(AARCH64[0]) is None or shutil.which("qemu-aarch64") is None,
    reason="needs gcc and qemu-user for AArch64",
)
@pytest.mark.parametrize("target", ["host", "c", "host,vector=neon"])
def test_a_compiler_that_crosses(target: str, given: list[str]) -> None:
    """`host` is NEON there, without -march=native, which such a compiler does not know."""
    assert main(["verify", *given, "--target", target, "--cc", AARCH64[0], "--runner", AARCH64[1]]) == 0


@pytest.mark.skipif(shutil.which(AARCH64[0]) is None, reason="needs gcc for AArch64")
def test_what_does_not_fit_says_so(given: list[str], capsys: Captured) -> None:
    """Code for another processor: our words come before those about a header that is missing."""
    assert main(["verify", *given, "--target", "host,vector=v8", "--cc", AARCH64[0]]) == 1
    text = capsys.readouterr().err
    assert "host,vector=neon" in text and text.index("was made for host") < text.index(
        "immintrin.h: No such file"
    )
    assert main(["verify", *given, "--cc", AARCH64[0]]) == 1
    assert "[E602]" in (text := capsys.readouterr().err) and "--runner" in text


@X86
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_firmware_is_refused_with_a_way_out(target: str, given: list[str], capsys: Captured) -> None:
    assert main(["verify", *given, "--target", target]) == 1
    text = capsys.readouterr().err
    assert (
        "[E601]" in text and "--target c" in text and "aot_model_test()" in text and "Traceback" not in text
    )


@pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs gcc and QEMU for Arm",
)
def test_firmware_in_an_emulator(given: list[str]) -> None:
    """Semihosting carries the arrays."""
    board = rules_dir("toolchains") / "qemu"
    flags = [
        *targets()["cortex-m4"].c_flags,
        "-O2",
        "--specs=rdimon.specs",
        "-nostartfiles",
        f"-T{board}/mps2.ld",
        f"-L{board}",
        "-Wl,--no-warn-rwx-segments",
        f"{board}/startup.c",
    ]
    runner = (
        "qemu-system-arm -machine mps2-an386 -nographic -monitor none -serial none -semihosting-config "
        "enable=on,target=native -kernel"
    )
    assert (
        main(
            [
                "verify",
                *given,
                "--target",
                "cortex-m4",
                "--cc",
                "arm-none-eabi-gcc",
                "--cflags",
                " ".join(flags),
                "--runner",
                runner,
            ]
        )
        == 0
    )


def test_no_such_compiler(given: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "none")
    assert main(["verify", *given]) == 1
    assert "'none'" in (text := capsys.readouterr().err) and "[E601]" in text and "Traceback" not in text
    monkeypatch.setenv("CC", " ")
    assert main(["verify", *given]) == 1
    assert "[E601]" in capsys.readouterr().err
    monkeypatch.delenv("CC")
    for more, code in (
        (["--cc", "gcc '"], "E501"),
        (["--runner", "none"], "E601"),
        (["--cflags", "-O2 '"], "E501"),
        (["--cflags", "-no-such-flag"], "E601"),
    ):
        assert main(["verify", *given, *more]) == 1
        assert f"[{code}]" in capsys.readouterr().err


def test_vectors_are_those_of_the_compiler() -> None:
    def vectors(text: str) -> str:
        return vector_for(parse_macros(text))

    avx2 = "#define __GNUC__ 12\n#define __AVX2__ 1\n"
    assert vectors(avx2 + "#define __FMA__ 1\n") == "v8"
    assert vectors(avx2 + "#define __FMA4__ 1\n#define __SSE2__ 1\n") == "v4"
    assert vectors("#define __GNUC__ 12\n#define __powerpc__ 1\n") == "scalar"
    assert vectors("#define __GNUC__ 12\n#define __ARM_NEON 1\n#define __aarch64__ 1\n") == "neon"
    assert vectors("#define __GNUC__ 12\n#define __ARM_NEON 1\n") == "v4"
    assert vectors("") == "scalar"


def test_products_of_bytes_are_those_of_the_compiler() -> None:
    """Only where every instruction that the kernels use is allowed."""
    avx2 = "#define __GNUC__ 12\n#define __x86_64__ 1\n#define __AVX2__ 1\n#define __FMA__ 1\n"
    avx512 = avx2 + "".join(f"#define __AVX512{part}__ 1\n" for part in ("F", "VL", "BW"))
    neon = "#define __GNUC__ 12\n#define __ARM_NEON 1\n#define __aarch64__ 1\n"
    wanted = {
        avx2: "none",
        avx512: "none",
        avx512 + "#define __AVX512VNNI__ 1\n": "vnni",
        avx2 + "#define __AVX512VNNI__ 1\n": "none",
        neon: "none",
        neon + "#define __ARM_FEATURE_DOTPROD 1\n": "sdot",
    }
    assert {text: dot_for(parse_macros(text)) for text in wanted} == wanted
    assert target_for(parse_macros(avx512 + "#define __AVX512VNNI__ 1\n")) == "host,vector=v8,dot=vnni"
    assert target_for(parse_macros(avx2)) == "host,vector=v8"


@X86
@pytest.mark.parametrize(("target", "flags", "vector"), [("host", "-march=x86-64-v3", "v8"),
                                                         ("host", "-O2", "v4"),
                                                         ("host,vector=scalar", "-march=x86-64-v3", "scalar"),
                                                         ("c", "-O2", None)])  # fmt: skip
def test_only_auto_is_resolved(target: str, flags: str, vector: str | None) -> None:
    options = HostCompiler.find("gcc", flags).fitted(target, {})
    assert options.get("vector", "scalar" if "scalar" in target else None) == vector
    assert HostCompiler.find("gcc", flags).fitted("host", {"vector": "v16"}) == {"vector": "v16"}


@pytest.mark.parametrize(
    ("macros", "added"),
    [
        ("#define __clang_major__ 22\n#define __AVX512BW__ 1\n", True),
        ("#define __clang_major__ 20\n#define __AVX512BW__ 1\n", True),
        ("#define __clang_major__ 19\n#define __AVX512BW__ 1\n", False),
        ("#define __clang_major__ 22\n#define __AVX2__ 1\n", False),
        ("#define __GNUC__ 12\n#define __AVX512BW__ 1\n", False),
    ],
)
def test_a_clang_that_stores_a_byte_as_four(
    macros: str, added: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The flags that we choose keep it away; generated code is an error where the user's do not."""
    monkeypatch.setattr(HostCompiler, "_macros", lambda self, flags: macros)
    flags = HostCompiler(("clang",)).flags(parse_target("host"))
    assert ("-mno-avx512bw" in flags) is added
    source = tmp_path / "a.c"
    clang = "#undef __AVX512BW__\n" + ("#define __clang__ 1\n" if "clang" in macros else "")
    source.write_text(
        f'{clang}{macros.replace("#define __GNUC__ 12", "")}#include "aot_model/precise_math.h"\n'
    )
    done = subprocess.run(["gcc", f"-I{include_dir()}", "-E", str(source)], capture_output=True, text=True)
    assert (done.returncode != 0) is added and ("-mno-avx512bw" in done.stderr) is added
