"""Capital and small letters."""

from __future__ import annotations

from aot_model.text import letter_case


def test_letters_are_those_of_unicode() -> None:
    """One to one in the blocks that are covered; every other letter stays."""
    covered = {
        c
        for first, last, step, offset in letter_case.PAIRS
        for k in range(first, last + 1, step)
        for c in (k, k + offset)
    }
    for code in sorted(covered):
        assert (
            letter_case.lower(chr(code)) == chr(code).lower()
            and letter_case.upper(chr(code)) == chr(code).upper()
        )
        assert len(letter_case.lower(chr(code)).encode()) == len(chr(code).encode())
    others = "".join(chr(c) for c in range(1, 0x2000) if c not in covered)
    assert letter_case.lower(others) == others == letter_case.upper(others)
