"""C identifiers from the names of a model: legal, unique, and nothing that a name could smuggle in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from aot_model.errors import fail

_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while _Bool _Complex _Imaginary asm typeof bool
    true false NULL main alignas alignof class new delete this template namespace operator
    private protected public virtual try catch throw using friend explicit export mutable
    typename and or not xor bitand bitor compl and_eq or_eq xor_eq not_eq static_assert
    thread_local nullptr constexpr noexcept decltype concept requires wchar_t char8_t
    char16_t char32_t static_cast dynamic_cast const_cast reinterpret_cast typeid""".split()
)
_HEADERS = frozenset(
    """assert complex ctype errno fenv float inttypes iso646 limits locale math memory regex
    search setjmp signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib
    stdnoreturn string strings tgmath threads time uchar unistd wchar wctype arm_acle
    arm_mve arm_neon arm_math immintrin alloca dirent dlfcn endian fcntl features getopt
    malloc newlib pthread reent sched semaphore syslog termios""".split()
)
"""Names of headers that other C code includes, by itself or through others: `<name>.h` in the include path
would hide them.
"""
RESERVED_NAMES = tuple(sorted(_HEADERS))
"""Names that no library has; a build rule adds `_model` to the name of a target that is one of them."""
_MACROS = frozenset(
    "NULL EOF NAN INFINITY HUGE_VAL errno unix linux i386 arm near far interface small I".split()
)
"""Macros of standard headers, and of compilers outside their strict modes, that are spelt like ordinary
names.
"""
_MACRO_FORM = re.compile(
    r"(U?INT(_LEAST|_FAST)?\d+|U?INTPTR|U?INTMAX|PTRDIFF|SIZE|SIG_ATOMIC|WCHAR|WINT|FP|M)_\w+|AOT_MODEL_\w+"
)
MAX_LENGTH = 60
MAX_GIVEN_LENGTH = 200


def identifier(text: str, fallback: str = "value") -> str:
    """A C identifier that looks like the text: other characters become '_', digits do not lead, keywords get
    a '_'.
    """
    clean = re.sub(r"[^A-Za-z0-9_]+", "_", text)[:MAX_LENGTH].strip("_")
    if not clean or not re.search(r"[A-Za-z0-9]", clean):
        clean = fallback
    if clean[0].isdigit():
        clean = f"{fallback[0]}{clean}"
    return f"{clean}_" if clean in _KEYWORDS or clean in _MACROS or _MACRO_FORM.fullmatch(clean) else clean


def library_name(given: str | None, model: Path) -> str:
    """The name of a library, with which its files and symbols begin: what the user says, or one made from the
    file's name.

    A keyword of C will do, as `int_run` is none. CompileError E501 when the given name will not do.
    """
    if given is None:
        clean = re.sub(r"[^A-Za-z0-9_]+", "_", model.stem)[:MAX_LENGTH].strip("_")
        return free_name(clean) if re.search(r"[A-Za-z0-9]", clean) else "model"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", given) or len(given) > MAX_GIVEN_LENGTH:
        hint = f"'{library_name(None, Path(given[:MAX_LENGTH] + '.onnx'))}' would do"
        raise fail("E501", f"--name '{printable(given)}' is not a name for C functions and files", hint=hint)
    if given.lower() in _HEADERS:
        raise fail(
            "E501",
            f"--name '{given}' would hide the header <{given}.h>",
            hint=f"'{free_name(given)}' would do",
        )
    if free_name(given) != given:
        raise fail(
            "E501",
            f"--name '{given}': what begins with aot_model is of the compiler's own headers",
            hint=f"'{free_name(given)}' would do",
        )
    return given


def free_name(name: str) -> str:
    """A name as it is, if it begins with a letter and is neither that of a header nor in the name space of
    the runtime.

    The build rules do the same to the names of targets: tests/build/test_ordinary_names.py has them side by
    side.
    """
    if not name[:1].isalpha() or re.match(r"aot_model(_|$)", name.lower()):
        name = f"m{name}" if name[0].isdigit() else f"m_{name.lstrip('_')}"
    return f"{name}_model" if name.lower() in _HEADERS else name


def identifiers(texts: Iterable[str], fallback: str = "value", taken: Iterable[str] = ()) -> list[str]:
    """Identifiers for several texts; those that collide get a suffix."""
    used = {t.lower() for t in taken}
    counts: dict[str, int] = {}
    result = []
    for text in texts:
        name = base = identifier(text, fallback)
        while name.lower() in used:
            counts[base] = counts.get(base, 1) + 1
            name = f"{base}_{counts[base]}"
        used.add(name.lower())
        result.append(name)
    return result


def printable(text: str, width: int = 80) -> str:
    """A name from the model made safe to show: printable characters, not more than `width` of them."""
    clean = "".join(c if c.isprintable() else "?" for c in text[: width + 1])
    return clean if len(clean) <= width else clean[: width - 3] + "..."


def comment_text(text: str, width: int = 80) -> str:
    """A name from the model made safe inside a C comment: no end of comment, line splice or trigraph."""
    clean = "".join(c if c.isascii() and c != "\\" else "|" for c in printable(text, width))
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", clean)


def string_literal(text: str) -> str:
    """A C string literal with the text's UTF-8 bytes; C99 promises 4095 of them, a longer text is cut."""
    return bytes_literal(
        text.encode("utf-8", "surrogatepass")[:4000].decode("utf-8", "ignore").encode("utf-8")
    )


def bytes_literal(data: bytes) -> str:
    """A C string literal. Octal escapes: a hexadecimal one would swallow digits behind it."""
    return (
        '"' + "".join(f"\\{b:03o}" if chr(b) in '"\\?' or not 32 <= b < 127 else chr(b) for b in data) + '"'
    )


def snake_case(kind: str) -> str:
    """The name of an operator as part of a C identifier: ReduceMax is reduce_max."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
