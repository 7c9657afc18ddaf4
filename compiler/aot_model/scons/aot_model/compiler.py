"""What the tool asks the compiler, and the C compiler of an environment."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from SCons.Errors import UserError
from SCons.Node.Python import Value
from SCons.Util import CLVar

PACKAGE = Path(__file__).resolve().parents[2]

Environment = Any  # SCons has no types
Node = Any

_answers: dict[tuple[str, ...], dict[str, Any]] = {}
_macros: dict[tuple[str, ...], str] = {}
_model_files: dict[tuple[str, int, int], list[str]] = {}


def python(env: Environment) -> str:
    """The interpreter that runs the compiler: SCons itself may run in one without the compiler's packages."""
    if given := env.get("AOT_MODEL_PYTHON") or os.environ.get("AOT_MODEL_PYTHON"):
        return str(given)
    # <prefix>/lib/python3.x/site-packages
    installed_in = PACKAGE.parents[3] if PACKAGE.parent.name == "site-packages" else None
    for candidate in (
        installed_in / "bin" / "python3" if installed_in else None,
        shutil.which("python3"),
        sys.executable,
    ):
        if candidate and os.path.exists(candidate):
            return str(candidate)
    return sys.executable


def describe(env: Environment) -> dict[str, Any]:
    """What the compiler says of its installation, asked once in a run of SCons. UserError when it cannot
    work.
    """
    command = tuple(map(str, env["AOT_MODEL"]))
    if command in _answers:
        return _answers[command]
    try:
        done = subprocess.run([*command, "--version", "--json"], capture_output=True, text=True)
        answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        complaint = done.stderr.strip()
    except (OSError, ValueError) as error:
        answer, complaint = {}, str(error)
    if not answer:
        raise UserError(
            f"aot_model: the compiler does not run: {shlex.join(command)} --version --json\n{complaint}\n"
            "Say which Python has it with AOT_MODEL_PYTHON=<file>, or set AOT_MODEL to the command."
        )
    if missing := " ".join(answer.get("missing", ())):
        raise UserError(
            f"aot_model: {answer['executable']} lacks packages that the compiler needs: {missing}\n"
            f"Install them:\n    {answer['install']}\n"
            "or choose a Python that has them with AOT_MODEL_PYTHON=<file>."
        )
    _answers[command] = answer
    return answer


def identity(env: Environment) -> Node:
    """A node that changes when the compiler does: its files, its Python, the packages that it uses."""
    answer = describe(env)
    return Value(
        json.dumps({k: answer.get(k) for k in ("version", "python", "packages", "digest")}, sort_keys=True)
    )


def scan_model(node: Node, env: Environment, path: object) -> list[Node]:
    """Files that a model refers to; the compiler reads them, so they are inputs."""
    file = node.rfile()  # with duplicate=False the node itself is in the build directory, and not there
    if not file.exists():
        return []  # made by the build: scanned again when it is there
    state = os.stat(file.get_abspath())
    key = (file.get_abspath(), state.st_mtime_ns, state.st_size)
    if key not in _model_files:
        found: list[str] = []
        # External data has the key "location" literally in the file: without it there is no need to start a
        # process.
        if b"location" in file.get_contents():
            done = subprocess.run(
                [*map(str, env["AOT_MODEL"]), "inputs", file.get_abspath()], capture_output=True, text=True
            )
            folder = os.path.dirname(file.get_abspath())
            found = [os.path.relpath(line, folder) for line in done.stdout.splitlines()[1:]]
        _model_files[key] = found
    return [node.dir.File(location) for location in _model_files[key] if not location.startswith("..")]


def _predefined(env: Environment) -> str:
    """The macros that the environment's C compiler predefines with its flags; empty when it is not like
    GCC.
    """
    command = tuple(shlex.split(env.subst("$CC $CCFLAGS $CFLAGS")))
    if command not in _macros:
        try:
            done = subprocess.run(
                [*command, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, env=env["ENV"]
            )
            _macros[command] = done.stdout if done.returncode == 0 else ""
        except OSError:
            _macros[command] = ""
    return _macros[command]


def is_native(env: Environment) -> bool:
    """Whether programs of the environment run on this machine."""
    macros = _predefined(env)
    if not macros:
        return True
    system = {"Linux": "__linux__", "Darwin": "__APPLE__", "Windows": "_WIN32"}.get(
        platform.system(), "__unix__"
    )
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return f"#define {system} " in macros and (
        f"#define __{machine}__ " in macros or machine not in ("x86_64", "aarch64")
    )


def probe_object(env: Environment, path: str) -> Node:
    """The object that says what the environment's C compiler and flags are for: of the probe, compiled as the
    library is.
    """
    source = env.File(describe(env)["probe"])
    flags = {
        name: [flag for flag in CLVar(env.subst(f"${name}")) if not flag.startswith("-flto")]
        for name in ("CCFLAGS", "CFLAGS")
    }
    return env.Object(path, source, **flags)[0]


def compiler_option(env: Environment) -> str:
    """The option --compiler: the compiler, with the flags that choose a processor."""
    flags = re.findall(r"(?<!\S)-m\S+", env.subst("$CCFLAGS $CFLAGS"))
    return "--compiler=" + " ".join([env.subst("$CC"), *flags])
