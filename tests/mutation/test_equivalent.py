"""The list of mutants that no test can notice, and how they are found again in files that changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from change import mutants_of
from places import PACKAGE, Place, equivalents, place_of

LISTED = equivalents()
SOURCE = '''"""Text."""


def f(a, b):
    return g(a * 2, b * 2) + 1  # a * 2


def h(a):
    return g(
        a * 2,
        f"{a};\\n  int x = y + 2;",
    )
'''


@pytest.mark.parametrize("place", LISTED, ids=[p.key for p in LISTED])
def test_an_entry_is_a_mutant_of_the_sources(place: Place) -> None:
    """Whoever changes the line says anew whether a change of it can be noticed."""
    found = place.mutants(PACKAGE)
    assert place.reason and found, "no such token, or it does not become that: take the entry out"
    assert place.file == "*" or len(found) == 1, "the fragment is found more than once: make it longer"


def test_no_entry_stands_twice() -> None:
    assert len({p.key for p in LISTED}) == len(LISTED)


def test_a_place_is_found_by_its_text(tmp_path: Path) -> None:
    """Every mutant has a fragment of its own, which finds it alone, and in the same file written
    otherwise."""
    (tmp_path / "a.py").write_text(SOURCE)
    other_form = "g(\n        a * 2,\n        b * 2,\n    ) + 1"
    (tmp_path / "b.py").write_text(SOURCE.replace("g(a * 2, b * 2) + 1", other_form))
    mutants = mutants_of(tmp_path / "a.py")
    assert len(mutants) > 10 and any(m.before == " + " for m in mutants)
    for mutant in mutants:
        place = place_of(mutant, tmp_path)
        assert place.mutants(tmp_path) == [mutant] and place.fits(mutant, tmp_path)
        (other,) = Place("b.py", place.code, place.after).mutants(tmp_path)
        assert (other.before, other.after) == (mutant.before, mutant.after)
        assert len(Place("*", place.code, place.after).mutants(tmp_path)) == 2


@pytest.mark.parametrize("code", ["g(a * «3»", "«a» * 2", "(a «*» 3"])
def test_what_is_not_there_is_not_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    assert not Place("a.py", code, "+").mutants(tmp_path)
