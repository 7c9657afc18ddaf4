"""Files appear whole or not at all: written beside their place and moved there; and the depfile."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aot_model.errors import fail


@dataclass(frozen=True)
class Product:
    """What a compilation is made of: contents by file name, the C first, and what they were made from."""

    files: Mapping[str, bytes]
    report: str
    notes: tuple[str, ...]
    inputs: tuple[Path, ...]
    """The model, and files that it refers to."""
    own: tuple[Path, ...]
    """Modules and templates of this compiler."""

    def write(self, folder: Path, *, depfile_path: Path | None = None, report_path: Path | None = None, keep_unchanged: bool = False) -> None:
        """Write all files or none, as write_bytes() does."""
        contents = {folder / name: data for name, data in self.files.items()}
        if report_path is not None:
            contents[report_path] = self.report.encode()
        if depfile_path is not None:
            contents[depfile_path] = rule([folder / next(iter(self.files))], [*self.inputs, *self.own]).encode()
        write_bytes(contents, keep_unchanged=keep_unchanged)


def write_files(texts: Mapping[Path, str], *, keep_unchanged: bool = False) -> None:
    """write_bytes for texts, as UTF-8."""
    write_bytes({path: text.encode("utf-8") for path, text in texts.items()}, keep_unchanged=keep_unchanged)


def write_bytes(contents: Mapping[Path, bytes], *, keep_unchanged: bool = False) -> None:
    """Write all files or none. With keep_unchanged a file that has the content already keeps its time stamp.

    CompileError E105 when a folder or file cannot be written; nothing is left behind then.
    """
    staged: list[tuple[str, Path]] = []
    try:
        for path, data in contents.items():
            if keep_unchanged and path.is_file() and path.read_bytes() == data:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
            staged.append((name, path))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(name, 0o666 & ~_umask())
        for _, path in staged:
            if path.is_dir():
                raise IsADirectoryError(21, "is a directory", str(path))
        for name, path in staged:
            os.replace(name, path)
    except OSError as error:
        where = str(error.filename or next(iter(contents)))
        raise fail("E105", f"cannot write: {error.strerror or error}", where=where, hint="check the folder's permissions and free space") from None
    finally:
        for name, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def depfile(outputs: Iterable[Path], inputs: Iterable[Path]) -> str:
    """A Makefile rule that names everything the outputs were made from: the model and this compiler's own files."""
    return rule(outputs, [*inputs, *own_files()])


def own_files() -> tuple[Path, ...]:
    """The modules of this compiler that are loaded, and its templates."""
    loaded = sorted((n, m.__file__) for n, m in sys.modules.items() if n.split(".")[0] == "aot_model")
    package = Path(__file__).resolve().parent.parent
    return (*(Path(file) for _, file in loaded if file), *sorted(package.rglob("*.j2")))


def rule(outputs: Iterable[Path], inputs: Iterable[Path]) -> str:
    """A Makefile rule."""
    needed = dict.fromkeys(_escape(p) for p in inputs)
    return " ".join(_escape(o) for o in outputs) + ": " + " \\\n  ".join(needed) + "\n"


def _escape(path: Path) -> str:
    text = os.path.abspath(path).replace(os.sep, "/")
    return text.replace("\\", "/").replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
