"""A stand-alone archive of compiled models, for projects without this compiler: C, headers, metadata, build files.

The same models and options give the same archive. That holds for the bytes of .tar anywhere; those of .tar.gz are the same
where zlib is.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from aot_model.emit.render import environment
from aot_model.emit.report import report
from aot_model.emit.view import ModelView
from aot_model.errors import fail
from aot_model.installation import include_dir, licence

BUILD_FILES = ("CMakeLists.txt", "BUILD.bazel", "SConscript", "README.md")
SUFFIXES = (".tar.gz", ".tgz", ".tar")


def archive(folder: str, libraries: Sequence[tuple[ModelView, Mapping[str, bytes]]], path: Path) -> bytes:
    """The content of an archive whose kind is that of `path`; everything is in `folder`.

    libraries: each with its generated files by name. CompileError E105 for another kind of archive.
    """
    if not path.name.endswith(SUFFIXES):
        raise fail("E105", f"not a kind of archive: '{path.name}'", hint=f"end it with one of: {', '.join(SUFFIXES)}")
    views = [view for view, _ in libraries]
    files = {name: data for _, generated in libraries for name, data in generated.items()}
    for view in views:
        files[f"{view.name}.report.txt"] = report(view).encode("utf-8")
    for name in BUILD_FILES:
        files[name] = environment().get_template(f"export/{name}.j2").render(folder=folder, views=views, headers=_headers()).encode("utf-8")
    for header in _headers():
        files[f"include/{header}"] = (include_dir() / header).read_bytes()
    files["LICENSE"] = licence().encode("utf-8")
    tar = _tar({f"{folder}/{name}": data for name, data in sorted(files.items())})
    if path.name.endswith(".tar"):
        return tar
    compressed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as stream:
        stream.write(tar)
    return compressed.getvalue()


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
