"""A stand-alone archive of compiled models, for projects without this compiler: C, headers, metadata, build
files.

The same models and options give the same archive. That holds for the bytes of .tar anywhere; those of
.tar.gz, .zip and .pack are the same where zlib is.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aot_model.emit.metadata import metadata_of
from aot_model.emit.render import environment
from aot_model.emit.report import report
from aot_model.emit.runner import Library
from aot_model.emit.view import ModelView
from aot_model.errors import fail
from aot_model.installation import include_dir, licence

BUILD_FILES = {
    "CMakeLists.txt": "CMakeLists.txt",
    "BUILD.bazel": "BUILD.bazel",
    "SConscript": "SConscript",
    "README.md": "README.md",
    "meson.build": "meson.build",
    "folder.mk": "{folder}.mk",
    "idf_component.yml": "idf_component.yml",
    "module.yml": "zephyr/module.yml",
    "library.properties": "library.properties",
}
"""Template: the file in the folder. They do not conflict, so all are always there."""
KINDS = {"tar.gz": (".tar.gz", ".tgz"), "tar": (".tar",), "zip": (".zip",), "pack": (".pack",)}
"""What --format says: the endings that say so too. A pack of CMSIS is a zip without a folder."""


@dataclass(frozen=True)
class Package:
    """What the package managers want to know of an archive."""

    folder: str
    """Its name, and of the folder that everything is in."""
    version: str = "1.0.0"
    vendor: str = ""
    """For a pack of CMSIS; empty: no .pdsc."""
    url: str = ""

    def __post_init__(self) -> None:
        """CompileError E501 for what package managers refuse."""
        if not re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?", self.version):
            raise fail("E501", f"--package-version: '{self.version}' is not of the form 1.2.3")
        if self.vendor and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", self.vendor):
            raise fail(
                "E501", f"--cmsis-pack: '{self.vendor}' is not the name of a vendor: letters, digits, - and _"
            )


def kind_of(path: Path, said: str | None) -> str:
    """The kind of an archive: as is said, or as the file's name ends. CompileError E105 where that is no
    kind.
    """
    found = said or next((kind for kind, endings in KINDS.items() if path.name.endswith(endings)), None)
    if found is None:
        endings = ", ".join(e for kind in KINDS.values() for e in kind)
        raise fail(
            "E105",
            f"not a kind of archive: '{path.name}'",
            hint=f"end it with one of: {endings}; or say --format",
        )
    return found


def archive(package: Package, libraries: Sequence[tuple[ModelView, Mapping[str, bytes]]], kind: str) -> bytes:
    """The content of an archive of a kind of KINDS. libraries: each with its generated files by name."""
    files = {
        f"{package.folder}/{name}" if kind != "pack" else name: data
        for name, data in sorted(_files(package, libraries).items())
    }
    if kind in ("zip", "pack"):
        return _zip(files)
    tar = _tar(files)
    if kind == "tar":
        return tar
    compressed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as stream:
        stream.write(tar)
    return compressed.getvalue()


def _files(package: Package, libraries: Sequence[tuple[ModelView, Mapping[str, bytes]]]) -> dict[str, bytes]:
    """All files. C and headers are in src/, where Arduino looks for them: one folder for -I."""
    views = [view for view, _ in libraries]
    files = {
        f"src/{name}" if name.endswith((".c", ".h")) else name: data
        for _, generated in libraries
        for name, data in generated.items()
    }
    for view in views:
        files[f"{view.name}.report.txt"] = report(view).encode("utf-8")
    texts = {}
    given = {
        "folder": package.folder,
        "version": package.version,
        "vendor": package.vendor,
        "url": package.url,
        "views": views,
        "headers": _headers(),
        "description": _description(views),
    }
    for template, name in BUILD_FILES.items():
        texts[name.format(folder=package.folder)] = _rendered(template, given)
    if package.vendor:
        texts[f"{package.vendor}.{package.folder}.pdsc"] = _rendered("package.pdsc", given)
    texts["library.json"] = json.dumps(_platformio(package, views), indent=2) + "\n"
    for view in views:
        if not (view.external or view.devices):  # a sketch has neither
            library = Library(metadata_of(view), None, ())
            texts[f"examples/{view.name}_zeros/{view.name}_zeros.ino"] = _rendered(
                "sketch.ino", {"library": library}
            )
    files.update((name, text.encode("utf-8")) for name, text in texts.items())
    for header in _headers():
        files[f"src/{header}"] = (include_dir() / header).read_bytes()
    files["LICENSE"] = licence().encode("utf-8")
    return files


def _rendered(template: str, given: Mapping[str, Any]) -> str:
    return environment().get_template(f"export/{template}.j2").render(**given)


def _description(views: Sequence[ModelView]) -> str:
    what = "A trained network as a C library" if len(views) == 1 else "Trained networks as C libraries"
    return f"{what}: {', '.join(view.name for view in views)}"


def _platformio(package: Package, views: Sequence[ModelView]) -> dict[str, Any]:
    """library.json."""
    return {
        "name": package.folder,
        "version": package.version,
        "description": _description(views),
        "headers": [f"{view.name}.h" for view in views],
        "frameworks": "*",
        "platforms": "*",
        "build": {"srcDir": "src", "includeDir": "src", "flags": ["-lm"]},
    }


def _headers() -> list[str]:
    return sorted(p.relative_to(include_dir()).as_posix() for p in include_dir().rglob("*.h*"))


def _tar(files: Mapping[str, bytes]) -> bytes:
    """No times, no users, no modes of this machine."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    """As _tar()."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # 1980, where the time of a zip begins
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, data)
    return content.getvalue()
