"""How far the result may lie over the input, from the order in which a kernel reads and writes."""

from __future__ import annotations

import numpy as np

MANY_OUTPUTS, MANY_COLUMNS = 1 << 24, 1 << 16
"""Beyond so many outputs the order is not followed: the result lies clear of the input."""


def slack(reads: np.ndarray, ends: np.ndarray, *, reread: bool, size: int) -> int:
    """Largest address(y) - address(x) in bytes at which no block overwrites what it or a later one still reads.

    reads: lowest element of x that each block reads, in the order of the blocks (`size` where it reads none).
    ends: the element of y after the last one that each block writes. reread: a block still reads after its first
    write; otherwise all its reads come before. size: elements of x.
    """
    future = np.minimum.accumulate(reads[::-1])[::-1]
    if not reread:
        future = np.append(future[1:], size)
    return 4 * int(min((future - ends).min(initial=size), size))
