"""Names of helpers in a file: short ones, which never meet."""

from aot_model.c.helpers import named_by_text, numbered


def test_short_names_in_order() -> None:
    a, b, c = (named_by_text("aot_mve_sum", text) for text in "abc")
    text = f"void {a}(x); void {b}(x); void aot_mve_sum_2(int); use({b}, {a}); {c}(1); {c[:-1]}(2);"
    expected = (
        f"void aot_mve_sum(x); void aot_mve_sum_3(x); void aot_mve_sum_2(int); "
        f"use(aot_mve_sum_3, aot_mve_sum); aot_mve_sum_4(1); {c[:-1]}(2);"
    )
    assert numbered(text, "aot_mve_") == expected


def test_others_stay() -> None:
    """A name that looks alike is not a helper's: another prefix, or no function."""
    text = '#include "aot_mve_net_x0123af.h"\nnet_x0123af(aot_mve_net_x0123af);'
    assert numbered(text, "aot_mve_") == text
