"""Ways to find AotModel (environment, source tree), and libraries of models installed for others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from cmake_project import ROOT, Project, has_tools, program, write_model

pytestmark = pytest.mark.skipif(not has_tools("cmake", "ninja", "cc"), reason="needs cmake, ninja and cc")

PROGRAM = (
    "aot_model_library(kws MODEL m.onnx)\nadd_executable(app main.c)\ntarget_link_libraries(app "
    "PRIVATE kws)\n"
)


def assert_it_builds(project: Project, *arguments: str) -> None:
    write_model(project.folder / "m.onnx")
    project.write("main.c", program("kws"))
    project.configure(*arguments)
    project.build()
    assert project.run(project.build_folder / "app") == "kws 0 6 8\n"


def test_add_subdirectory(tmp_path: Path) -> None:
    find = f'add_subdirectory("{ROOT}" aot-model)\nset(CMAKE_C_STANDARD 11)'
    project = Project(tmp_path / "p", PROGRAM, find=find)
    project.hints = (f"-DPython3_EXECUTABLE={sys.executable}",)
    assert_it_builds(project)


def test_fetch_content(tmp_path: Path) -> None:
    """Also for a part of the project that says find_package() itself."""
    find = f"""
    include(FetchContent)
    FetchContent_Declare(AotModel SOURCE_DIR "{ROOT}" OVERRIDE_FIND_PACKAGE)
    find_package(AotModel REQUIRED)
    find_package(AotModel REQUIRED)
    """
    project = Project(tmp_path / "p", PROGRAM, find=find)
    project.hints = (f"-DPython3_EXECUTABLE={sys.executable}",)
    assert_it_builds(project)


@pytest.fixture(scope="session")
def source_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a wheel is made of: building leaves files in the source tree."""
    copy = tmp_path_factory.mktemp("source") / "aot-model"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("compiler", "cmake", "toolchains"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return copy


def environment_with(folder: Path, *pip_arguments: str | Path) -> dict[str, str]:
    """A virtual environment with this project installed, its dependencies borrowed; what activating it would
    set.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    Path(own, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        *pip_arguments,
    ]
    if find_spec("setuptools.command.bdist_wheel"):
        install.append("--no-build-isolation")
    done = subprocess.run(list(map(str, install)), capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"pip cannot build here: {done.stderr.strip().splitlines()[-1]}")
    return {"VIRTUAL_ENV": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": ""}


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_an_active_environment_is_found_without_a_flag(tmp_path: Path, source_copy: Path, kind: str) -> None:
    where = ["--editable", source_copy] if kind == "editable" else [source_copy]
    project = Project(tmp_path / "p", PROGRAM + 'message(STATUS "found in ${AotModel_DIR}.")\n')
    project.environment = environment_with(tmp_path / "venv", *where)
    project.hints = ()

    said = {option: project.run("aot-model", option).strip() for option in ("--cmake-dir", "--include-dir")}
    installed = source_copy if kind == "editable" else tmp_path / "venv"
    assert all(Path(folder).is_relative_to(installed) for folder in said.values())
    assert (Path(said["--cmake-dir"]) / "AotModelConfig.cmake").is_file()
    assert (Path(said["--cmake-dir"]) / "../toolchains/qemu/mps2.ld").is_file()

    assert_it_builds(project)
    depfile = (project.build_folder / "kws.aot/kws.d").read_text()
    assert str(installed) in depfile, "a newer compiler compiles the models again"

    if kind == "editable":  # what is edited in the source tree is what runs, not the copy in share/
        library = source_copy / "cmake/AotModelLibrary.cmake"
        text = library.read_text()
        library.write_text(text + 'message(STATUS "edited rules")\n')
        assert "edited rules" in project.configure()
        library.write_text(text)

    if has_tools("arm-none-eabi-gcc"):
        toolchain = Path(said["--cmake-dir"]).parent / "toolchains/cortex-m4.cmake"
        for name, hints in (("environment", ()), ("flag", (f"-DAotModel_DIR={said['--cmake-dir']}",))):
            project.run(
                "cmake", "-S", ".", "-B", f"cross-{name}", "-G", "Ninja", "--toolchain", toolchain, *hints
            )
            project.run("cmake", "--build", f"cross-{name}", "--target", "kws")


def test_install_and_export(tmp_path: Path) -> None:
    """The installed library needs neither the compiler nor Python."""
    lists = """
    aot_model_library(kws MODEL m.onnx)
    install(TARGETS kws EXPORT networks FILE_SET HEADERS)
    install(EXPORT networks NAMESPACE networks:: DESTINATION lib/cmake/networks FILE networks-config.cmake)
    """
    producer = Project(tmp_path / "producer", lists)
    write_model(producer.folder / "m.onnx")
    producer.configure()
    producer.build()
    prefix = tmp_path / "prefix"
    producer.run("cmake", "--install", producer.build_folder, "--prefix", prefix)
    exported = (prefix / "lib/cmake/networks/networks-config.cmake").read_text()
    assert str(producer.folder) not in exported and str(ROOT) not in exported
    shutil.rmtree(producer.folder)

    lists = (
        "find_package(networks REQUIRED)\nadd_executable(app main.c)\ntarget_link_libraries(app "
        "networks::kws)\n"
    )
    consumer = Project(tmp_path / "consumer", lists, find="")
    consumer.hints = (f"-DCMAKE_PREFIX_PATH={prefix}",)
    consumer.write("main.c", program("kws"))
    consumer.configure()
    consumer.build()
    assert consumer.run(consumer.build_folder / "app") == "kws 0 6 8\n"
