"""examples/accelerator: a target in one file, its driver, and the network on it, here and on a Cortex-M4."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from aot_model.cli import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/accelerator"
DIGITS = ROOT / "examples/digits/digits.onnx"
PLUGIN = ("--target-plugin", str(EXAMPLE / "tiny_npu.py"))


def cmake(build: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "aot_model", "--cmake-dir"]
    rules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    configure = [
        "cmake",
        "-S",
        str(EXAMPLE),
        "-B",
        str(build),
        "-G",
        "Ninja",
        f"-DAotModel_DIR={rules}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        *arguments,
    ]
    done = subprocess.run(configure, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["cmake", "--build", str(build)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def all_right(output: str) -> None:
    digits = re.findall(r"a handwritten (\d): classified as (\d)", output)
    assert len(digits) == 10 and all(is_ == said for is_, said in digits) and "all right" in output


def test_on_this_machine(tmp_path: Path) -> None:
    """The program, and the test with vectors; a change of the plug-in compiles the model again."""
    cmake(
        tmp_path,
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all",
    )
    all_right(subprocess.run([tmp_path / "digits_npu"], capture_output=True, text=True, check=True).stdout)
    subprocess.run(["ctest", "--test-dir", tmp_path, "--output-on-failure"], check=True)
    depfile = next(tmp_path.rglob("digits.d")).read_text()
    assert "tiny_npu.py" in depfile


@pytest.mark.skipif(
    not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-system-arm"),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
def test_on_cortex_m4(tmp_path: Path) -> None:
    cmake(tmp_path, "--toolchain", str(ROOT / "toolchains/cortex-m4.cmake"), "-DCMAKE_BUILD_TYPE=MinSizeRel")
    assert "tiny-npu,cortex-m4" in next(tmp_path.rglob("digits.h")).read_text()
    done = subprocess.run(
        ["cmake", "--build", tmp_path, "--target", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    all_right(done.stdout)


def test_verify_with_the_driver(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same outputs as the processor's, without a build system."""
    glue = tmp_path / "glue.c"
    glue.write_text(
        f'#include "{EXAMPLE}/tiny_npu.h"\n#include "digits.h"\nstatic tiny_npu npu;\nconst digits_devices '
        f"digits_test_devices = {{ &npu }};\n"
    )
    arguments = [
        "verify",
        str(DIGITS),
        "--vectors",
        str(ROOT / "examples/digits/digits.npz"),
        "--target=tiny-npu,c",
        *PLUGIN,
        "--sanitize",
    ]
    assert main([*arguments, "--with", str(EXAMPLE / "tiny_npu.c"), "--with", str(glue)]) == 0, (
        capsys.readouterr().err
    )


def test_an_exported_archive_says_what_it_needs(tmp_path: Path) -> None:
    assert (
        main(["export", str(DIGITS), "-o", str(tmp_path / "digits.tar"), "--target=tiny-npu,c", *PLUGIN]) == 0
    )
    with tarfile.open(tmp_path / "digits.tar") as archive:
        file = archive.extractfile(next(n for n in archive.getnames() if n.endswith("README.md")))
        assert file is not None and "must find `tiny_npu.h`" in file.read().decode()


def test_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    for seed in ("0", "1", "7"):
        command = [
            sys.executable,
            "-m",
            "aot_model",
            "compile",
            str(DIGITS),
            "-o",
            str(tmp_path / seed),
            "--target=tiny-npu,c",
            *PLUGIN,
        ]
        subprocess.run(
            command,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "compiler"), "PATH": "/usr/bin:/bin"},
            check=True,
        )
    for file in ("digits.c", "digits.h", "digits.json"):
        assert len({(tmp_path / seed / file).read_bytes() for seed in ("0", "1", "7")}) == 1, file


def test_what_does_not_fit_stays_with_the_processor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(DIGITS), "--target=tiny-npu,channels=12,host", *PLUGIN]) == 0
    assert "24 channels are more than the device's 12" in capsys.readouterr().out


def test_it_is_one_file_with_strict_types() -> None:
    assert [t.name for t in runpy.run_path(str(EXAMPLE / "tiny_npu.py"))["TARGETS"]] == ["tiny-npu"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(EXAMPLE / "tiny_npu.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
