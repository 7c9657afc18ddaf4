"""What the values of options look like: functions for argparse, which raise ArgumentTypeError."""

from __future__ import annotations

import argparse
import re

MOST_INPUTS = 10_000


def pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=VALUE")
    return key, value


def section(text: str) -> tuple[str, str]:
    pool, name = pair(text)
    if not re.fullmatch(r"[A-Za-z0-9_.,$]+", name):
        raise argparse.ArgumentTypeError(f"'{name}' is not the name of a section")
    return pool, name


def speed(text: str) -> tuple[str, int]:
    name, number = pair(text)
    return name, whole(number, 0)


def whole(text: str, least: int = 1) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least {least}")
    return number


def drawn(text: str) -> int:
    """How many inputs are drawn and run: memory holds all of them."""
    number = whole(text)
    if number > MOST_INPUTS:
        raise argparse.ArgumentTypeError(f"'{text}' is more than {MOST_INPUTS:,}")
    return number


def not_negative(text: str) -> int:
    return whole(text, 0)


def dimension(text: str) -> tuple[str, int]:
    key, equals, value = text.rpartition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=EXTENT")
    return key, whole(value)


def elements(text: str) -> tuple[str, tuple[float, ...]]:
    key, equals, given = text.rpartition("=")
    try:
        numbers = tuple(
            int(v) if v.strip().lstrip("+-").isdigit() else float(v) for v in given.split(",") if v.strip()
        )
    except ValueError:
        equals = ""
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form INPUT=NUMBER,…")
    return key, numbers


def tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least 0")
    return number


def share(text: str) -> float:
    """A part of 1: `0.005`, `0.5%`."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share such as 0.5%")
    return number


def byte_count(text: str) -> int:
    """A number of bytes; `k` and `m` are binary multiples."""
    factor = {"k": 1024, "m": 1024**2, "g": 1024**3}.get(text[-1:].lower(), 1)
    try:
        number = int(text[:-1] if factor > 1 else text, 0) * factor
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of bytes")
    return number


def pool(text: str) -> tuple[str, int | None, int]:
    """NAME[:SIZE[:ALIGN]]"""
    name, *numbers = text.split(":")
    if not name.isidentifier() or not name.isascii() or len(numbers) > 2:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME[:SIZE[:ALIGN]]")
    size = byte_count(numbers[0]) if numbers and numbers[0] else None
    align = whole(numbers[1]) if len(numbers) > 1 else 16
    if align & (align - 1):
        raise argparse.ArgumentTypeError(f"'{text}': the alignment is not a power of two")
    return name, size, align


def times(text: str) -> dict[str, float]:
    """Factors of 1 and more for cycles, ram and flash: 1.3x for all of them, or cycles=1.3x,ram=2x."""
    names = ("cycles", "ram", "flash")
    found = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        if (equals and name not in names) or name in found:
            raise argparse.ArgumentTypeError(f"'{part}' is not one of {', '.join(names)}, each once")
        try:
            factor = float(number.removesuffix("x"))
        except ValueError:
            factor = 0.0
        if not 1 <= factor < 1000:
            raise argparse.ArgumentTypeError(f"'{part}' is not a factor of 1 or more, such as 1.3x")
        found[name] = factor
    if "" in found and len(found) > 1:
        raise argparse.ArgumentTypeError(f"'{text}' is one factor for all, and others")
    return dict.fromkeys(names, found[""]) if "" in found else found


def quantity(text: str) -> float:
    """A number of cycles or hertz; `k`, `M` and `G` are decimal multiples."""
    factor = {"k": 1e3, "m": 1e6, "g": 1e9}.get(text[-1:].lower(), 1.0)
    try:
        number = round(float(text[:-1] if factor > 1 else text) * factor, 6)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e15:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0, such as 120M")
    return number
