"""An opt-in cache of compilations in the folder AOT_MODEL_CACHE_DIR, for clean builds and other checkouts.

Keys are content: the model's bytes and those of its external data, every option, the compiler's own files,
the versions of the packages that it uses and the files of its plug-ins. Two steps, because what else belongs
to a model is known only when it has been read: the entry of (compiler, options, model) names its external
data; with their content that is the key of the entry that has the generated files. Entries are written beside
their place and moved there, so that builds may share the folder; each begins with its SHA-256, and one that
is damaged, or has another structure than what is written here, is not there. Who can write to the folder
decides what is built from it: see docs/build-systems.md.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from aot_model import installation
from aot_model.emit.files import Product, is_page
from aot_model.errors import fail

DIRECTORY = "AOT_MODEL_CACHE_DIR"
SIZE = "AOT_MODEL_CACHE_SIZE"
DEFAULT_SIZE = 1 << 30
SUFFIX = ".aot-model"
PLUG_INS = ("aot_model.targets", "aot_model.planners")

_WHERE = (
    "output",
    "depfile",
    "depfile_target",
    "report",
    "keep_unchanged",
    "debug",
    "handler",
    "model",
    "dump_after",
    "explain",
    "answer",
    "json",
    "target_probe",
    "quiet",
)
"""Arguments that do not decide what is in the files."""


@dataclass(frozen=True)
class Cache:
    """Entries in a folder that are together at most `limit` bytes; those not used for longest go first."""

    folder: Path
    limit: int

    def find(self, arguments: argparse.Namespace) -> Product | None:
        """The result of an earlier compilation with the same arguments; None when there is none."""
        try:
            first = _first_key(arguments)
            names = self._read(first)
            external = None if names is None else _texts(names.get("external"))
            entry = None if external is None else self._read(_second_key(first, arguments.model, external))
        except (OSError, UnicodeError):
            return None  # the compiler will say what is wrong with the model
        except ValueError:
            return None  # names that no file can have
        return None if entry is None or external is None else _unpack(entry, arguments, external)

    def store(self, arguments: argparse.Namespace, product: Product, began: int) -> None:
        """Keep a result. A folder that cannot be written is a note for the user, not an error.

        began: when the compilation did, in nanoseconds. What a file that has changed since then was, nobody
        knows.
        """
        model = arguments.model
        external = [os.path.relpath(path, model.parent) for path in product.inputs if path != model]
        try:
            if any(path.stat().st_mtime_ns >= began for path in product.inputs):
                return
            first = _first_key(arguments)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(first, {"external": external})
            self._write(_second_key(first, model, external), _pack(product))
            self._shrink()
        except OSError as error:
            print(f"note: the cache {self.folder} cannot be used: {error.strerror or error}", file=sys.stderr)

    def _read(self, key: str) -> dict[str, Any] | None:
        path = self.folder / (key + SUFFIX)
        try:
            digest, _, data = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if digest != hashlib.sha256(data).hexdigest().encode():
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        try:
            entry = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return entry if isinstance(entry, dict) else None

    def _write(self, key: str, entry: Mapping[str, Any]) -> None:
        data = json.dumps(entry).encode()
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=SUFFIX)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
            os.chmod(name, 0o644)
            os.replace(name, self.folder / (key + SUFFIX))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _shrink(self) -> None:
        found = []
        for entry in os.scandir(self.folder):
            if entry.name.endswith(SUFFIX):
                with contextlib.suppress(FileNotFoundError):  # another build was faster
                    state = entry.stat()
                    found.append((state.st_mtime_ns, state.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


def from_environment() -> Cache | None:
    """The cache that the user asked for. CompileError E501 for a size that is none."""
    folder = os.environ.get(DIRECTORY)
    if not folder:
        return None
    from aot_model.cli.values import byte_count

    try:
        limit = byte_count(os.environ[SIZE]) if os.environ.get(SIZE) else DEFAULT_SIZE
    except argparse.ArgumentTypeError as error:
        raise fail("E501", f"{SIZE}: {error}", hint="such as 500m or 2g") from None
    return Cache(Path(folder), limit)


def _first_key(arguments: argparse.Namespace) -> str:
    said = {name: value for name, value in sorted(vars(arguments).items()) if name not in _WHERE}
    facts = {
        "compiler": installation.digest(),
        "python": sys.version_info[:3],
        "packages": installation.package_versions(),
        "calibrates": _version("onnxruntime") if arguments.quantise else None,
        "plug_ins": dict(_plug_ins()),
        "arguments": said,
        "page": is_page(arguments.report),
        "name": arguments.model.name,
    }
    return hashlib.sha256(
        json.dumps(facts, sort_keys=True, default=_content).encode() + b"\0" + arguments.model.read_bytes()
    ).hexdigest()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _content(value: object) -> str:
    """An argument that is a file stands for what is in it."""
    if not isinstance(value, Path):
        return str(value)
    files = sorted(p for p in value.rglob("*") if p.is_file()) if value.is_dir() else [value]
    texts = [f"{p.relative_to(value)}:{hashlib.sha256(p.read_bytes()).hexdigest()}" for p in files]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _second_key(first: str, model: Path, external: Sequence[str]) -> str:
    result = hashlib.sha256(f"{first}\0".encode())
    for name in external:
        result.update(name.encode() + b"\0" + hashlib.sha256((model.parent / name).read_bytes()).digest())
    return result.hexdigest()


def _plug_ins() -> Iterator[tuple[str, str]]:
    """Name and content of every package that registers something with the compiler."""
    for group in PLUG_INS:
        for point in metadata.entry_points(group=group):
            try:
                spec = util.find_spec(point.value.partition(":")[0].partition(".")[0])
            except (ImportError, ValueError):
                spec = None  # the compiler will say so
            folders = spec.submodule_search_locations if spec else None
            files = (
                [
                    p
                    for folder in folders
                    for p in Path(folder).rglob("*")
                    if p.is_file() and p.suffix != ".pyc"
                ]
                if folders
                else []
            )
            if spec and spec.origin and not folders:
                files = [Path(spec.origin)]
            contents = [f"{p.name}:{hashlib.sha256(p.read_bytes()).hexdigest()}" for p in sorted(files)]
            yield (
                f"{group}:{point.name}={point.value}",
                hashlib.sha256("\n".join(contents).encode()).hexdigest(),
            )


def _pack(product: Product) -> dict[str, Any]:
    return {
        "files": {name: base64.b64encode(data).decode() for name, data in product.files.items()},
        "report": product.report,
        "notes": product.notes,
        "own": [
            path.relative_to(installation.PACKAGE).as_posix()
            for path in product.own
            if path.is_relative_to(installation.PACKAGE)
        ],
        "external": [os.path.relpath(path, product.inputs[0].parent) for path in product.inputs[1:]],
    }


def _unpack(
    entry: Mapping[str, Any], arguments: argparse.Namespace, external: Sequence[str]
) -> Product | None:
    """None for an entry that another than _pack() wrote: it may have any structure, and name any file."""
    encoded, report = entry.get("files"), _texts([entry.get("report")])
    notes, own = _texts(entry.get("notes")), _texts(entry.get("own"))
    if (
        not isinstance(encoded, dict)
        or report is None
        or notes is None
        or own is None
        or entry.get("external") != list(external)
    ):
        return None
    if set(encoded) != {f"{_library(arguments)}{suffix}" for suffix in _suffixes(arguments)}:
        return None  # it would have us write elsewhere
    try:
        files = {name: base64.b64decode(encoded[name], validate=True) for name in sorted(encoded)}
    except (TypeError, ValueError):
        return None
    own_files = tuple(installation.PACKAGE / name for name in own)
    if any(
        "\0" in name
        or ".." in Path(name).parts
        or Path(name).is_absolute()
        or not (installation.PACKAGE / name).is_file()
        for name in own
    ):
        return None  # a build would wait for files that nobody makes
    return Product(
        files,
        report[0],
        notes,
        (arguments.model, *(arguments.model.parent / name for name in external)),
        own_files,
    )


def _texts(value: object) -> tuple[str, ...] | None:
    """A list of strings that can be written; None for anything else."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return None
    try:
        "".join(value).encode()
    except UnicodeError:
        return None
    return tuple(value)


def _library(arguments: argparse.Namespace) -> str:
    from aot_model.c.names import library_name

    return library_name(arguments.name, arguments.model)


def _suffixes(arguments: argparse.Namespace) -> tuple[str, ...]:
    return (".c", ".h", ".json", *((".params",) if arguments.params == "external" else ()))
