"""Small SCons projects for the tests of the tool."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cmake_project import ROOT

SCONS = (sys.executable, "-m", "SCons")
TOOLS = ROOT / "compiler/aot_model/scons"
TOOLCHAINS = ROOT / "toolchains/scons"


def has_scons() -> bool:
    return subprocess.run([*SCONS, "--version"], capture_output=True).returncode == 0


def compiled_models(log: str) -> set[str]:
    """Names of the models that the compiler was run for, in the log of a build."""
    return set(re.findall(r"^Compiling model (\w+) for ", log, re.MULTILINE))


def compiled_objects(log: str) -> set[str]:
    return {Path(file).name for file in re.findall(r" -c .*?(\w+\.c)\b", log)}


@dataclass
class Project:
    """An SCons project in a folder; `script` becomes its SConstruct behind the line that makes `env`."""

    folder: Path
    script: str
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        head = (
            f"env = Environment(tools=['default', 'aot_model'], toolpath=[{str(TOOLS)!r}, "
            f"{str(TOOLCHAINS)!r}])\n"
        )
        self.write("SConstruct", f"{head}{self.script}")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def build(self, *arguments: str, ok: bool = True) -> str:
        """Output of scons, both streams; a status that is not the expected one fails the test."""
        python = self.environment.get("AOT_MODEL_PYTHON", sys.executable)
        environment = os.environ | self.environment | {"AOT_MODEL_PYTHON": python}
        command = [*SCONS, *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
        )
        output = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, f"status {done.returncode} of {' '.join(command)}\n{output}"
        return output

    def run(self, program: str) -> str:
        return subprocess.run(
            [self.folder / program], capture_output=True, text=True, check=True, timeout=60
        ).stdout
