"""Where this installation keeps what build systems need, and whether it can work.

The SCons tool is Python and in the package. The other build rules and the toolchain files are not. In a
source tree (and in an editable install, which points at one) they are in `cmake/`, `toolchains/` … beside
`compiler/`; a wheel puts them into `<prefix>/share/AotModel/`, where CMake's find_package() looks by itself
when the prefix's bin/ is on PATH.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata, util
from pathlib import Path

from aot_model import __version__

PACKAGE = Path(__file__).resolve().parent

REQUIREMENTS = {
    "numpy": "numpy",
    "onnx": "onnx",
    "onnx_ir": "onnx-ir",
    "ml_dtypes": "ml-dtypes",
    "tflite": "tflite",
    "flatbuffers": "flatbuffers",
    "jinja2": "jinja2",
}
"""Module to import: distribution to install. The same as the dependencies of pyproject.toml."""


def include_dir() -> Path:
    """The folder for the C compiler's -I that has `aot_model/*.h`."""
    return PACKAGE / "runtime" / "include"


def probe() -> Path:
    """The C file whose object says what the compiler's flags are for (targets/detect.py)."""
    return PACKAGE / "runtime" / "probe.c"


def rules_dir(system: str) -> Path:
    """The folder with the rules of a build system: `cmake`, `bazel`, `scons`; also `toolchains`.

    Raises FileNotFoundError when this installation has none.
    """
    for candidate in _candidates(system):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"this installation of aot-model has no {system} files: {PACKAGE}")


def _source_tree() -> Path | None:
    """The folder of this project's sources that the package is in, and not installed from."""
    tree = PACKAGE.parents[1]
    return tree if PACKAGE.parent.name == "compiler" and (tree / "pyproject.toml").is_file() else None


def _candidates(system: str) -> Iterator[Path]:
    yield PACKAGE / system  # the SCons tool, which is Python
    if tree := _source_tree():
        yield tree / system
    shared = Path("share", "AotModel", system)
    try:
        installed = metadata.files("aot-model") or []
    except metadata.PackageNotFoundError:
        installed = []
    # RECORD: the only witness of where pip put the data files (prefix, --user, --prefix)
    for file in installed:
        if file.parent.parts[-len(shared.parts) :] == shared.parts:
            yield Path(str(file.locate())).resolve().parent
    yield PACKAGE.parent / shared  # pip install --target


def licence() -> str:
    """The text of this project's licence. FileNotFoundError when the installation has none."""
    if tree := _source_tree():
        return (tree / "LICENSE").read_text(encoding="utf-8")
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.files("aot-model") or []:
            if file.name == "LICENSE":
                return Path(str(file.locate())).read_text(encoding="utf-8")
    raise FileNotFoundError(f"this installation of aot-model has no LICENSE: {PACKAGE}")


def missing_packages() -> list[str]:
    """Distributions that the compiler imports and this Python does not have."""
    return [distribution for module, distribution in REQUIREMENTS.items() if util.find_spec(module) is None]


def how_to_install(distributions: Iterable[str]) -> str:
    """The command that brings distributions to this Python; where the system manages it (PEP 668), one that
    makes a virtual environment and installs everything there.
    """
    managed = (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").exists()
    if managed and sys.prefix == sys.base_prefix:
        source = shlex.quote(str(_source_tree() or "aot-model"))
        return f"{sys.executable} -m venv .venv && . .venv/bin/activate && pip install {source}"
    return f"{sys.executable} -m pip install {' '.join(distributions)}"


def package_versions() -> dict[str, str]:
    """Versions of the distributions in REQUIREMENTS that are installed: they are part of what decides the
    output.
    """
    found = {}
    for distribution in REQUIREMENTS.values():
        try:
            found[distribution] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest() -> str:
    """SHA-256 of the compiler's own files, for build systems that decide by content whether to run it
    again.
    """
    result = hashlib.sha256()
    for file in sorted(p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".j2", ".h", ".hpp")):
        result.update(
            file.relative_to(PACKAGE).as_posix().encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest()
        )
    return result.hexdigest()


def describe() -> dict[str, object]:
    """What `aot-model --version --json` prints; the build rules read it once, when they configure.

    Imports nothing but the standard library, so that it can say which package is missing.
    """
    try:
        cmake_dir = rules_dir("cmake").as_posix()
    except FileNotFoundError:
        cmake_dir = ""
    missing = missing_packages()
    return {
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "cmake_dir": cmake_dir,
        "include_dir": include_dir().as_posix(),
        "probe": probe().as_posix(),
        "missing": missing,
        "install": how_to_install(missing) if missing else "",
        "packages": package_versions(),
        "digest": digest(),
    }
