"""CMake, SCons and Bazel as classes with the same methods, for tests that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import bazel_project
import cmake_project
import scons_project
from bazel_project import Workspace
from cmake_project import ROOT


@dataclass(frozen=True)
class Case:
    """A library: the model's file and the arguments, by the names that they have in SCons and Bazel."""

    model: str
    arguments: dict[str, object] = field(default_factory=dict)
    data: tuple[str, ...] = ()


Cases = dict[str, Case]
Programs = dict[str, tuple[str, ...]]
Arenas = dict[str, tuple[tuple[str, ...], dict[str, str]]]


class System:
    """Builds cases. `folder` is empty at first; the models are written into it."""

    touch_is_change: ClassVar[bool] = False
    """Whether a model with a new time and the old content is compiled again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(
        self,
        cases: Cases,
        ok: bool = True,
        programs: Programs | None = None,
        core: str = "",
        arenas: Arenas | None = None,
    ) -> str:
        """The log. programs: names of their libraries; the C of one is <program>.c. core: of a Cortex-M.
        arenas: libraries, sections.
        """
        raise NotImplementedError

    def install(self, name: str, case: Case, prefix: Path) -> None:
        """Puts a library into lib/ and its headers into include/ of a folder."""
        raise NotImplementedError

    def compiled(self, log: str) -> set[str]:
        """Names of the models that were compiled."""
        raise NotImplementedError

    def objects(self, log: str) -> set[str]:
        """Names of the C files that were compiled, but for what asks the compiler for its processor."""
        raise NotImplementedError

    def generated(self, library: str) -> Path:
        raise NotImplementedError

    def program(self, name: str) -> Path:
        raise NotImplementedError

    def library(self, name: str) -> Path:
        raise NotImplementedError


class CMake(System):
    generator: ClassVar[str] = "Ninja"
    touch_is_change = True

    def build(
        self,
        cases: Cases,
        ok: bool = True,
        programs: Programs | None = None,
        core: str = "",
        arenas: Arenas | None = None,
    ) -> str:
        calls = []
        for name, case in cases.items():
            words = [f'aot_model_library({name} MODEL "{case.model}"']
            for key, value in case.arguments.items():
                keyword = {"model_name": "NAME"}.get(key, key.upper())
                values = (
                    [f"{k}={v}" for k, v in value.items()]
                    if isinstance(value, dict)
                    else value
                    if isinstance(value, list)
                    else [value]
                )
                words.append(keyword if value is True else f"{keyword} {' '.join(map(str, values))}")
            calls.append(" ".join(words) + ")\n")
        for name, (libraries, sections) in (arenas or {}).items():
            given = " ".join(f"{pool}={section}" for pool, section in sections.items())
            calls.append(f"aot_model_arena({name} LIBRARIES {' '.join(libraries)} POOL_SECTIONS {given})\n")
        for name, libraries in (programs or {}).items():
            calls.append(
                f"add_executable({name} {name}.c)\ntarget_link_libraries({name} PRIVATE "
                f"{' '.join(libraries)})\n"
            )
        self.project = cmake_project.Project(self.folder, "".join(calls), generator=self.generator)
        if not self.project.build_folder.exists():
            self.project.configure(*(["--toolchain", str(ROOT / f"toolchains/{core}.cmake")] if core else []))
        go_on = {"Unix Makefiles": ("--", "-k")}.get(self.generator, ("--", "-k0"))
        return self.project.build(*go_on, ok=ok)

    def install(self, name: str, case: Case, prefix: Path) -> None:
        lists = f'aot_model_library({name} MODEL "{case.model}")\ninstall(TARGETS {name} FILE_SET HEADERS)\n'
        project = cmake_project.Project(self.folder, lists, generator=self.generator)
        project.configure("-DCMAKE_INSTALL_LIBDIR=lib")
        project.build()
        project.run("cmake", "--install", project.build_folder, "--prefix", prefix, "--config", "Debug")

    def compiled(self, log: str) -> set[str]:
        return cmake_project.compiled_models(log)

    def objects(self, log: str) -> set[str]:
        return cmake_project.compiled_objects(log) - {"probe.c"}

    def generated(self, library: str) -> Path:
        folder = self.project.build_folder / f"{library}.aot"
        return next((f for f in folder.glob("Debug") if f.is_dir()), folder)

    def program(self, name: str) -> Path:
        return self.project.executable(name)

    def library(self, name: str) -> Path:
        return self.project.executable(f"lib{name}.a")


class SCons(System):
    def build(
        self,
        cases: Cases,
        ok: bool = True,
        programs: Programs | None = None,
        core: str = "",
        arenas: Arenas | None = None,
    ) -> str:
        calls = []
        if core:
            tools = (
                "tools=['default', 'arm_none_eabi_gcc', 'aot_model'], "
                f"toolpath=[{str(scons_project.TOOLS)!r}, {str(scons_project.TOOLCHAINS)!r}]"
            )
            calls.append(f"env = Environment({tools}, AOT_MODEL_CPU={core!r})\n")
        calls.append("libraries = {}\n")
        for name, case in cases.items():
            given = ", ".join(f"{k}={v!r}" for k, v in case.arguments.items())
            calls.append(f"libraries[{name!r}] = env.AotModelLibrary({name!r}, {case.model!r}, {given})\n")
        for name, (names, sections) in (arenas or {}).items():
            calls.append(
                f"libraries[{name!r}] = env.AotModelArena({name!r}, [libraries[n] for n in {names!r}], "
                f"pool_sections={sections!r})\n"
            )
        for name, names in (programs or {}).items():
            calls.append(f"used = [libraries[name] for name in {names!r}]\n")
            calls.append(
                f"env.Program({name!r}, '{name}.c', LIBS=[*used, 'm'], CPPPATH=[d for u in used for d in "
                "u.include_dirs])\n"
            )
        return scons_project.Project(self.folder, "".join(calls)).build("-k", ok=ok)

    def install(self, name: str, case: Case, prefix: Path) -> None:
        lines = [
            f"made = env.AotModelLibrary({name!r}, {case.model!r})",
            "own, runtime = made.include_dirs",
            f"prefix = {str(prefix)!r}",
        ]
        lines += [
            "env.Install(prefix + '/lib', made.library)",
            "env.Install(prefix + '/include', [made.header, runtime.Dir('aot_model')])",
        ]
        scons_project.Project(self.folder, "\n".join(lines)).build(str(prefix))

    def compiled(self, log: str) -> set[str]:
        return scons_project.compiled_models(log)

    def objects(self, log: str) -> set[str]:
        return scons_project.compiled_objects(log) - {"probe.c"}

    def generated(self, library: str) -> Path:
        return self.folder / f"{library}.aot"

    def program(self, name: str) -> Path:
        return self.folder / name

    def library(self, name: str) -> Path:
        return self.folder / f"lib{name}.a"


class Bazel(System):
    def __init__(self, workspace: Workspace, package: str) -> None:
        super().__init__(workspace.folder / package)
        self.workspace = workspace
        self.package = package

    def build(
        self,
        cases: Cases,
        ok: bool = True,
        programs: Programs | None = None,
        core: str = "",
        arenas: Arenas | None = None,
    ) -> str:
        calls = []
        for name, case in cases.items():
            arguments = case.arguments | ({"data": list(case.data)} if case.data else {})
            given = ", ".join(f"{k} = {v!r}" for k, v in arguments.items())
            calls.append(f"aot_model_library(name = {name!r}, model = {case.model!r}, {given})\n")
        for name, (names, sections) in (arenas or {}).items():
            calls.append(
                f"aot_model_arena(name = {name!r}, libraries = {list(names)!r}, pool_sections = "
                f"{sections!r})\n"
            )
        for name, names in (programs or {}).items():
            calls.append(f"cc_binary(name = {name!r}, srcs = ['{name}.c'], deps = {list(names)!r})\n")
        self.workspace.write(f"{self.package}/BUILD.bazel", bazel_project.LOAD + "".join(calls))
        platform = [f"--platforms=@aot_model//toolchains/bazel:{core}"] if core else []
        return self.workspace.build("-k", *platform, f"//{self.package}:all", ok=ok)

    def compiled(self, log: str) -> set[str]:
        return bazel_project.compiled_models(log)

    def objects(self, log: str) -> set[str]:
        return bazel_project.compiled_objects(log) - {"probe.c"}

    def generated(self, library: str) -> Path:
        return self.workspace.output(f"{self.package}/{library}_sources")

    def program(self, name: str) -> Path:
        return self.workspace.output(f"{self.package}/{name}")

    def library(self, name: str) -> Path:
        return self.workspace.output(f"{self.package}/lib{name}.a")
