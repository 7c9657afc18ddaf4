"""The CMake rules: what is built, what is built again, in which generators and layouts of projects."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path

import pytest
from cmake_project import (
    GENERATORS,
    ROOT,
    Project,
    compiled_models,
    compiled_objects,
    has_tools,
    program,
    write_model,
    write_vectors,
)

pytestmark = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "make", "cc"), reason="needs cmake, ninja, make and cc"
)

TWO_MODELS = """
aot_model_library(kws MODEL models/kws.onnx)
aot_model_library(vad MODEL models/vad.onnx)
add_executable(app main.c)
target_link_libraries(app PRIVATE kws vad)
"""


def two_models(tmp_path: Path, generator: str) -> Project:
    """Two models in one program; one has its weights in a file of its own; the folder's name has a space."""
    project = Project(tmp_path / "my project", TWO_MODELS, generator=generator)
    write_model(project.folder / "models/kws.onnx")
    write_model(project.folder / "models/vad.onnx", bias=1, external_data="vad.weights")
    project.write("main.c", program("kws", "vad"))
    return project


@pytest.mark.parametrize("generator", GENERATORS)
def test_builds_again_exactly_what_depends_on_a_change(tmp_path: Path, generator: str) -> None:
    project = two_models(tmp_path, generator)
    models = project.folder / "models"
    project.configure()
    assert project.rebuilt() == {"kws", "vad"}
    assert project.run(project.executable("app")) == "kws 0 6 8\nvad 1 7 9\n"

    def assert_nothing_to_do() -> None:
        log = project.build()
        assert compiled_models(log) | compiled_objects(log) == set()

    assert_nothing_to_do()

    os.utime(models / "kws.onnx")
    assert project.rebuilt() == {"kws"}
    assert_nothing_to_do()

    os.utime(models / "vad.weights")
    assert project.rebuilt() == {"vad"}
    assert_nothing_to_do()

    write_model(models / "vad.onnx", bias=2, external_data="vad.weights")
    assert project.rebuilt() == {"vad"}
    assert project.run(project.executable("app")) == "kws 0 6 8\nvad 2 8 10\n"
    assert_nothing_to_do()


def test_depfile_names_model_external_data_and_compiler(tmp_path: Path) -> None:
    project = two_models(tmp_path, "Ninja")
    project.configure()
    project.build()
    text = (project.build_folder / "vad.aot/vad.d").read_text().replace("\\\n", " ").replace("\\ ", "\0")
    files = {Path(word.replace("\0", " ")) for word in text.partition(": ")[2].split()}
    assert {project.folder / "models/vad.onnx", project.folder / "models/vad.weights"} <= files
    assert ROOT / "compiler/aot_model/__init__.py" in files
    assert any(file.suffix == ".j2" for file in files), "templates"
    assert all(file.is_file() for file in files)
    assert not any("site-packages" in file.parts for file in files), "only the compiler's own files"


def test_unchanged_c_is_not_compiled_again(tmp_path: Path) -> None:
    """Ninja stops where the generated files are the same as before."""
    project = two_models(tmp_path, "Ninja")
    project.configure()
    project.build()
    os.utime(project.folder / "models/kws.onnx")
    log = project.build()
    assert compiled_models(log) == {"kws"}
    assert compiled_objects(log) == set()


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_library_of_one_directory_in_the_program_of_another(tmp_path: Path, generator: str) -> None:
    """The functions work where find_package() was not called, and targets find the header of a sister
    directory.
    """
    lists = "add_subdirectory(app)\nadd_subdirectory(network)\n"
    project = Project(tmp_path / "p", lists, generator=generator)
    project.write("network/CMakeLists.txt", "aot_model_library(kws MODEL kws.onnx)\n")
    write_model(project.folder / "network/kws.onnx")
    project.write(
        "app/CMakeLists.txt", "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE app::kws)\n"
    )
    project.write("app/main.c", program("kws"))
    project.configure()
    project.build("--parallel", "2")
    assert project.run(project.build_folder / "app/app") == "kws 0 6 8\n"


def test_find_package_in_a_subdirectory_only(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "add_subdirectory(a)\nadd_subdirectory(b)\n", find="")
    for name in "ab":
        lists = f"find_package(AotModel 0.1 REQUIRED)\naot_model_library({name} MODEL ../m.onnx)\n"
        project.write(f"{name}/CMakeLists.txt", lists)
    write_model(project.folder / "m.onnx")
    project.configure()
    assert project.rebuilt() == {"a", "b"}


def test_two_libraries_with_one_name(tmp_path: Path) -> None:
    """Each has a folder of its own, so that one project can have variants of a model."""
    lists = """
    aot_model_library(first MODEL first.onnx NAME net)
    aot_model_library(second MODEL second.onnx NAME net)
    foreach (variant IN ITEMS first second)
        add_executable(app_${variant} main.c)
        target_link_libraries(app_${variant} PRIVATE ${variant})
    endforeach ()
    """
    project = Project(tmp_path / "p", lists)
    write_model(project.folder / "first.onnx")
    write_model(project.folder / "second.onnx", bias=1)
    project.write("main.c", program("net"))
    project.configure()
    project.build()
    assert project.run(project.build_folder / "app_first") == "net 0 6 8\n"
    assert project.run(project.build_folder / "app_second") == "net 1 7 9\n"


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_model_that_the_build_makes(tmp_path: Path, generator: str) -> None:
    lists = """
    add_custom_command(OUTPUT made.onnx COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/trained.onnx made.onnx
                       DEPENDS trained.onnx)
    aot_model_library(kws MODEL made.onnx)
    """  # noqa: E501
    project = Project(tmp_path / "p", lists, generator=generator)
    write_model(project.folder / "trained.onnx")
    project.configure()
    assert project.rebuilt() == {"kws"}
    write_model(project.folder / "trained.onnx", bias=1)
    assert project.rebuilt() == {"kws"}


def test_model_of_another_directory_by_depends(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "add_subdirectory(training)\nadd_subdirectory(app)\n")
    project.write(
        "training/CMakeLists.txt",
        "add_custom_target(training COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/t.onnx "
        "${CMAKE_BINARY_DIR}/m.onnx\n"
        "  BYPRODUCTS ${CMAKE_BINARY_DIR}/m.onnx)\n",
    )
    project.write(
        "app/CMakeLists.txt", "aot_model_library(kws MODEL ${CMAKE_BINARY_DIR}/m.onnx DEPENDS training)\n"
    )
    write_model(project.folder / "t.onnx")
    project.configure()
    assert project.rebuilt() == {"kws"}


def test_the_projects_own_flags_compile_the_generated_code(tmp_path: Path) -> None:
    """A real target: warnings, sanitizers, the standard and compile_commands.json are the project's."""
    project = Project(tmp_path / "p", TWO_MODELS)
    write_model(project.folder / "models/kws.onnx")
    write_model(project.folder / "models/vad.onnx")
    project.write("main.c", program("kws", "vad"))
    flags = "-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror -fsanitize=undefined"
    project.configure(
        f"-DCMAKE_C_FLAGS={flags}", "-DCMAKE_C_STANDARD=11", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
    )
    output = project.build()
    lines = [line for line in output.splitlines() if " -c " in line and "kws.c" in line]
    assert lines and all(flags in line and "-std=gnu11" in line for line in lines)
    assert "kws.aot/kws.c" in (project.build_folder / "compile_commands.json").read_text()


def test_the_codegen_target(tmp_path: Path) -> None:
    """`cmake --build . --target codegen` (CMake 3.31) makes the generated files and compiles none: for
    clangd, linters.
    """
    project = Project(tmp_path / "p", "aot_model_library(kws MODEL m.onnx)\n")
    version = re.search(r"(\d+)\.(\d+)", project.run("cmake", "--version"))
    if not version or (int(version[1]), int(version[2])) < (3, 31):
        pytest.skip("needs CMake 3.31")
    write_model(project.folder / "m.onnx")
    project.configure("-DCMAKE_POLICY_DEFAULT_CMP0171=NEW")
    log = project.build("--target", "codegen")
    assert compiled_models(log) == {"kws"} and compiled_objects(log) == set()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86-64")
@pytest.mark.parametrize(
    ("flags", "vector"), [("-march=x86-64", "v4"), ("-mavx2 -mfma", "v8"), ("-mavx2", "v4")]
)
def test_host_vectors_follow_the_flags(tmp_path: Path, flags: str, vector: str) -> None:
    """A build without -march is for any processor of the family, and its generated code is too."""
    project = Project(
        tmp_path / "p",
        "aot_model_library(kws MODEL m.onnx)\naot_model_library(vad MODEL m.onnx TARGET host)\n",
    )
    write_model(project.folder / "m.onnx")
    project.configure(f"-DCMAKE_C_FLAGS={flags}")
    project.build()
    for name in ("kws", "vad"):
        metadata = json.loads((project.build_folder / f"{name}.aot/{name}.json").read_text())
        assert (metadata["target"], metadata["options"]["vector"]) == ("host", vector)


def test_cxx_program(tmp_path: Path) -> None:
    project = Project(
        tmp_path / "p",
        "aot_model_library(kws MODEL m.onnx)\nadd_executable(app main.cpp)\ntarget_link_libraries(app kws)\n",
        languages="C CXX",
    )
    write_model(project.folder / "m.onnx")
    project.write(
        "main.cpp",
        '#include "kws.h"\nint main() { float x[4] = {}, y[3]; kws_inputs in = {x}; kws_outputs out = {y};'
        " return kws_run(&in, &out); }\n",
    )
    project.configure()
    project.build()
    project.run(project.build_folder / "app")


def test_vectors(tmp_path: Path) -> None:
    """aot_model_test() passes on right vectors, fails on wrong ones and says where."""
    lists = """
    aot_model_library(kws MODEL m.onnx)
    aot_model_test(right LIBRARY kws VECTORS right.npz LABELS networks)
    aot_model_test(wrong LIBRARY kws VECTORS wrong.npz LABELS networks)
    aot_model_test(loose LIBRARY kws VECTORS wrong.npz ATOL 1.5 RTOL 0)
    aot_model_benchmark(bench LIBRARY kws RUNS 3)
    """
    project = Project(tmp_path / "p", lists)
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "right.npz")
    write_vectors(project.folder / "wrong.npz", bias=1)
    project.configure()
    project.build()
    project.ctest("-R", "right")
    project.ctest("-R", "loose")
    output = project.ctest("-L", "networks", ok=False)
    assert re.search(r"vector 0: y\[\d\] is \S+, should be \S+", output) and "50% tests passed" in output
    assert not project.executable("bench").exists(), "a benchmark is built on demand"
    project.build("--target", "bench")
    assert "ns per inference" in project.run(project.executable("bench"))

    write_vectors(project.folder / "wrong.npz", bias=0)
    project.build()
    project.ctest()
    assert compiled_objects(project.build()) == set()
