"""The CMake rules where one build folder has several configurations, and with properties that change what is
compiled together.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from cmake_project import IN_TURN, Project, compiled_models, has_tools, program, write_model, write_vectors

pytestmark = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "make", "cc"), reason="needs cmake, ninja, make and cc"
)


def test_a_folder_for_each_configuration_where_they_may_differ(tmp_path: Path) -> None:
    """With options that name configurations, and with a processor that follows from the flags."""
    lists = """
    aot_model_library(kws MODEL m.onnx TARGET c METADATA kws_json
                      OPTIONS $<$<CONFIG:Release>:--metadata=none>)
    aot_model_library(vad MODEL m.onnx TARGET c)
    aot_model_library(wake MODEL m.onnx)
    file(GENERATE OUTPUT $<CONFIG>.txt CONTENT "${kws_json}")
    add_executable(app main.c)
    target_link_libraries(app PRIVATE kws vad wake)
    """
    project = Project(tmp_path / "p", lists, generator="Ninja Multi-Config")
    write_model(project.folder / "m.onnx")
    project.write("main.c", program("kws", "vad", "wake"))
    project.configure()
    for configuration in ("Debug", "Release"):
        project.build("--config", configuration)
        output = project.run(project.build_folder / configuration / "app")
        assert "vad 0 6 8" in output and "wake 0 6 8" in output
        assert Path((project.build_folder / f"{configuration}.txt").read_text()).is_file()
        for name in ("kws", "wake"):
            assert (project.build_folder / f"{name}.aot/{configuration}/{name}.h").is_file()
    assert (project.build_folder / "vad.aot/vad.h").is_file()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86-64")
def test_flags_that_differ_between_configurations(tmp_path: Path) -> None:
    """Each configuration has code for its own processor, and compiles nothing again when it is built in turn
    with others. What reads a library (a test, an arena, a benchmark) reads the one of its configuration.
    """
    lists = """
    aot_model_library(kws MODEL m.onnx WORKSPACE caller MAX_STACK 4096)
    aot_model_library(vad MODEL m.onnx WORKSPACE caller PARAMS external COUNT_CODE)
    aot_model_arena(both LIBRARIES kws vad)
    aot_model_test(kws_test LIBRARY kws VECTORS v.npz)
    aot_model_benchmark(kws_bench LIBRARY kws RUNS 1)
    target_link_libraries(kws_test PRIVATE both)
    """
    project = Project(tmp_path / "my project", lists, generator="Ninja Multi-Config")
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "v.npz")
    project.configure("-DCMAKE_C_FLAGS_RELEASE=-O2 -mavx2 -mfma")
    for configuration, vector in (("Debug", "v4"), ("Release", "v8")):
        assert compiled_models(project.build("--config", configuration)) == {"kws", "vad"}
        metadata = project.build_folder / f"kws.aot/{configuration}/kws.json"
        assert json.loads(metadata.read_text())["options"]["vector"] == vector
        assert (project.build_folder / f"both.aot/{configuration}/both.h").is_file()
        project.build("--config", configuration, "--target", "kws_bench")
    project.ctest()
    for configuration in ("Debug", "Release"):
        assert "no work to do" in project.build("--config", configuration)


@pytest.mark.parametrize(
    "options",
    [
        ["-DCMAKE_UNITY_BUILD=ON"],
        ["-DBUILD_SHARED_LIBS=ON", "-DCMAKE_C_VISIBILITY_PRESET=hidden"],
        ["-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON", "-DCMAKE_BUILD_TYPE=Release"],
        ["-DCMAKE_C_STANDARD=90", "-DCMAKE_C_STANDARD_REQUIRED=ON", "-DCMAKE_C_EXTENSIONS=OFF"],
        ["-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", "-DCMAKE_C_FLAGS=-Wall -Wextra", "-DCMAKE_C_STANDARD=23"],
        ["-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DCMAKE_BUILD_TYPE=MinSizeRel"],
    ],
    ids=lambda options: options[0].removeprefix("-D"),
)
def test_properties_of_the_project(tmp_path: Path, options: list[str]) -> None:
    """Two models, one of them in a library of the project, with what projects set for all targets."""
    lists = """
    aot_model_library(kws MODEL m.onnx)
    aot_model_library(vad MODEL m.onnx)
    add_library(detector detector.c)
    target_link_libraries(detector PRIVATE vad)
    add_executable(app main.c)
    target_link_libraries(app PRIVATE kws detector)
    """
    project = Project(tmp_path / "p", lists, generator=IN_TURN)
    write_model(project.folder / "m.onnx")
    if "-DBUILD_SHARED_LIBS=ON" in options:  # what a shared library takes in has to be made for it
        options = [*options, "-DCMAKE_POSITION_INDEPENDENT_CODE=ON"]
    project.write(
        "main.c", "int detector(void);\n" + program("kws").replace("return 0;", "return detector();")
    )
    visible = 'int detector(void);\n__attribute__((visibility("default"))) int detector(void)'
    project.write("detector.c", program("vad").replace("int main(void)", visible))
    project.configure(*options)
    project.build()
    output = project.run(project.executable("app"))
    assert "kws 0 6 8" in output and "vad 0 6 8" in output
