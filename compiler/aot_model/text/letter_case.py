"""Capital and small letters, one code point for one: no locale, no context, and the UTF-8 keeps its length.

Letters of Latin (with Latin-1, Extended-A and Extended Additional), Greek, Cyrillic and Armenian; what has no
partner in these blocks, or one of another length (ß, İ, ı, ς, µ), stays as it is. Source: UnicodeData.txt,
simple case mappings.
"""

from __future__ import annotations

PAIRS: tuple[tuple[int, int, int, int], ...] = (
    # first and last capital, step from one to the next, distance from a capital to its small letter
    (0x41, 0x5A, 1, 32),
    (0xC0, 0xD6, 1, 32),
    (0xD8, 0xDE, 1, 32),
    (0x100, 0x12E, 2, 1),
    (0x132, 0x136, 2, 1),
    (0x139, 0x147, 2, 1),
    (0x14A, 0x176, 2, 1),
    (0x178, 0x178, 1, -121),
    (0x179, 0x17D, 2, 1),
    (0x386, 0x386, 1, 38),
    (0x388, 0x38A, 1, 37),
    (0x38C, 0x38C, 1, 64),
    (0x38E, 0x38F, 1, 63),
    (0x391, 0x3A1, 1, 32),
    (0x3A3, 0x3AB, 1, 32),
    (0x400, 0x40F, 1, 80),
    (0x410, 0x42F, 1, 32),
    (0x460, 0x480, 2, 1),
    (0x48A, 0x4BE, 2, 1),
    (0x4C0, 0x4C0, 1, 15),
    (0x4C1, 0x4CD, 2, 1),
    (0x4D0, 0x52E, 2, 1),
    (0x531, 0x556, 1, 48),
    (0x1E00, 0x1E94, 2, 1),
    (0x1EA0, 0x1EFE, 2, 1),
)

_SMALL = {
    capital: capital + offset
    for first, last, step, offset in PAIRS
    for capital in range(first, last + 1, step)
}


def lower(text: str) -> str:
    """The text in small letters."""
    return text.translate(_SMALL)


def upper(text: str) -> str:
    """The text in capitals."""
    return text.translate({small: capital for capital, small in _SMALL.items()})


_FUNCTION = """\
/* Change the letters of `length` bytes of UTF-8 to capitals or to small ones; bytes that are not UTF-8 stay. Rows: first and
 * last capital, step, distance to the small letter. */
AOT_MODEL_OPAQUE static void aot_model_change_case(char *text, int32_t length, bool to_capitals)
{
    static const int32_t pairs[COUNT][4] = {
ROWS
    };
    int32_t k = 0;

    while (k < length) {
        const uint32_t lead = (unsigned char)text[k];
        const int32_t bytes = lead < 0xC2u || lead > 0xEFu ? 1 : lead < 0xE0u ? 2 : 3;
        int32_t code = (int32_t)(bytes == 1 ? lead : bytes == 2 ? lead & 0x1Fu : lead & 0x0Fu);
        int32_t n = 1;

        while (n < bytes && k + n < length && ((unsigned char)text[k + n] & 0xC0u) == 0x80u) {
            code = code * 64 + (int32_t)((unsigned char)text[k + n] & 0x3Fu);
            ++n;
        }
        for (int32_t p = 0; n == bytes && p < COUNT; p++) {
            const int32_t capital = to_capitals ? code - pairs[p][3] : code;
            if (capital >= pairs[p][0] && capital <= pairs[p][1] && (capital - pairs[p][0]) % pairs[p][2] == 0) {
                code = to_capitals ? capital : capital + pairs[p][3];
                for (int32_t j = bytes - 1; j > 0; --j) {
                    text[k + j] = (char)(0x80 | (code & 0x3F));
                    code /= 64;
                }
                text[k] = (char)(bytes == 1 ? code : bytes == 2 ? 0xC0 | code : 0xE0 | code);
                break;
            }
        }
        k += n;
    }
}"""  # noqa: E501


def change_case_function() -> str:
    """C of aot_model_change_case()."""
    rows = [f"{{{', '.join(map(str, row))}}}" for row in PAIRS]
    lines = ["        " + ", ".join(rows[k : k + 5]) for k in range(0, len(rows), 5)]
    return _FUNCTION.replace("COUNT", str(len(rows))).replace("ROWS", ",\n".join(lines))
