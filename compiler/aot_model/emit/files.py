"""Files appear whole or not at all: written beside their place and moved there, the C last; and the depfile.

A build may be killed at any moment. Build systems ask the C whether everything is up to date (it is the first
output of their rules), so it is moved to its place when all the others are: a run that was killed before
looks like one that never was, and is made again. What such a run leaves behind is swept by the next one that
writes there.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aot_model.errors import fail

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed anyway
    fcntl = None  # type: ignore[assignment]


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

    def write(
        self,
        folder: Path,
        *,
        depfile_path: Path | None = None,
        depfile_target: str | None = None,
        report_path: Path | None = None,
        keep_unchanged: bool = False,
    ) -> None:
        """Write all files or none, as write_bytes() does; the first, which is the C, as the last."""
        first, *others = ((folder / name, data) for name, data in self.files.items())
        contents = dict(others)
        if report_path is not None:
            contents[report_path] = self.report.encode()
        if depfile_path is not None:
            contents[depfile_path] = rule([first[0]], [*self.inputs, *self.own], depfile_target)
        contents[first[0]] = first[1]
        write_bytes(contents, keep_unchanged=keep_unchanged)


def is_page(path: Path | None) -> bool:
    """Whether a report with this name is the page, and not the table."""
    return path is not None and path.suffix.lower() in (".html", ".htm")


def write_files(texts: Mapping[Path, str], *, keep_unchanged: bool = False) -> None:
    """write_bytes for texts, as UTF-8."""
    write_bytes({path: text.encode("utf-8") for path, text in texts.items()}, keep_unchanged=keep_unchanged)


def write_bytes(contents: Mapping[Path, bytes], *, keep_unchanged: bool = False) -> None:
    """Write all files or none, moved to their places in the order given. With keep_unchanged a file that has
    the content already keeps its time stamp.

    CompileError E105 when a folder or file cannot be written; nothing is left behind then.
    """
    staged: list[tuple[int, str, Path]] = []
    try:
        for path, data in contents.items():
            if keep_unchanged and path.is_file() and path.read_bytes() == data:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = _stage(path)
            staged.append((handle, name, path))
            _write_all(handle, data)
            os.chmod(name, 0o666 & ~_umask())
        for _, _, path in staged:
            if path.is_dir():
                raise IsADirectoryError(21, "is a directory", str(path))
        for handle, name, path in staged:
            if fcntl is None:
                os.close(handle)
            os.replace(name, path)
        _sweep(contents)
    except OSError as error:
        where = str(error.filename or next(iter(contents)))
        raise fail(
            "E105",
            f"cannot write: {error.strerror or error}",
            where=where,
            hint="check the folder's permissions and free space",
        ) from None
    finally:
        for handle, name, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(name)
            with contextlib.suppress(OSError):
                os.close(handle)


_SUFFIX = ".part"


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}."


def _stage(path: Path) -> tuple[int, str]:
    """An empty file beside `path`, open and locked: nobody but a run that was killed leaves one without a
    lock.
    """
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path), suffix=_SUFFIX)
        if fcntl is None or (_lock(handle) and os.fstat(handle).st_nlink):
            return handle, name
        os.close(handle)  # another run swept it before it was locked
        with contextlib.suppress(OSError):
            os.unlink(name)


def _lock(handle: int) -> bool:
    """False when another process has the lock. Where there are no locks, as on some network file systems:
    true.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sweep(paths: Iterable[Path]) -> None:
    """Remove what runs that were killed left beside these files."""
    if fcntl is None:
        return
    for folder, names in _by_folder(paths):
        pattern = re.compile(f"(?:{'|'.join(map(re.escape, names))})[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
        with contextlib.suppress(OSError):
            for entry in [e.path for e in os.scandir(folder) if pattern.fullmatch(e.name)]:
                with contextlib.suppress(OSError):
                    _remove_unlocked(entry)


def _by_folder(paths: Iterable[Path]) -> Iterator[tuple[Path, list[str]]]:
    paths = list(paths)
    for folder in dict.fromkeys(path.parent for path in paths):
        yield folder, [_prefix(path) for path in paths if path.parent == folder]


def _remove_unlocked(path: str) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def depfile(outputs: Iterable[Path], inputs: Iterable[Path], target: str | None = None) -> bytes:
    """A Makefile rule that names everything the outputs were made from: the model and this compiler's own
    files.
    """
    return rule(outputs, [*inputs, *own_files()], target)


def own_files() -> tuple[Path, ...]:
    """The modules of this compiler that are loaded, and its templates."""
    loaded = sorted((n, m.__file__) for n, m in sys.modules.items() if n.split(".")[0] == "aot_model")
    package = Path(__file__).resolve().parent.parent
    return (*(Path(file) for _, file in loaded if file), *sorted(package.rglob("*.j2")))


def rule(outputs: Iterable[Path], inputs: Iterable[Path], target: str | None = None) -> bytes:
    """A Makefile rule. Paths keep their bytes, whatever their encoding. CompileError E105 for one that no
    rule can name.

    target: in place of the outputs, as it is: Make compares texts, so a rule for a relative path needs just
    that. An input that is gone later is no error then, as with gcc's -MP.
    """
    needed = dict.fromkeys(_escape(p) for p in inputs)
    made = b" ".join(_escape(o) for o in outputs) if target is None else os.fsencode(target)
    gone = b"".join(n + b":\n" for n in needed) if target is not None else b""
    return made + b": " + b" \\\n  ".join(needed) + b"\n" + gone


def _escape(path: Path) -> bytes:
    text = os.path.abspath(path).replace(os.sep, "/")
    if "\n" in text or "\r" in text:
        raise fail(
            "E105",
            "a depfile cannot name a file with a line feed in its path",
            where=ascii(text),
            hint="rename it, or build without a depfile",
        )
    return os.fsencode(text.replace("\\", "/").replace("$", "$$").replace("#", "\\#").replace(" ", "\\ "))
