"""What kernels decide and plan where limits are near, against what is recorded; and, of forms that are exact,
against the rules.

Recorded is a sum over what each function of decisions.py gives for a hundred draws. Whether a choice is a
good one is seen elsewhere: a limit, a form or an estimate that moves changes what is recorded. After a change
that is meant: python -m pytest tests/kernels/test_drawn_decisions.py --update-golden.
"""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import arithmetic
import numpy as np
import pytest
from decisions import SUBJECTS, Draw, planned, said

FILE = Path(__file__).with_name("decisions.json")
TOGETHER = 100


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_decided_at_limits(name: str, request: pytest.FixtureRequest) -> None:
    count = SUBJECTS[name][1]
    now = [
        f"{crc32(chr(10).join(said(name, range(k, k + TOGETHER))).encode()):08x}"
        for k in range(0, count, TOGETHER)
    ]
    recorded = json.loads(FILE.read_text()) if FILE.is_file() else {}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(dict(sorted({**recorded, name: now}.items())), indent=0) + "\n")
        return
    other = [k for k, (a, b) in enumerate(zip(now, recorded[name], strict=True)) if a != b]
    assert not other, f"{name}: the draws {', '.join(f'{TOGETHER * k} and on' for k in other)} differ"


def test_planned_forms_equal_the_rule() -> None:
    """At both ends, beside every step near zero, and wherever else; whatever the model's numbers are."""
    forms = dict.fromkeys(("affine", "short", "halved"), 0)
    for number in range(1500):
        draw = Draw(number)
        one = planned(draw)
        rq, quant = one.found, one.quant
        if rq.form not in forms:
            continue
        forms[rq.form] += 1
        (lo, hi), (m, s) = one.ends, quant.channels(one.ends[0].size)
        low, high = quant.out_range
        for c in range(lo.size):
            some = draw.rng.integers(lo[c], hi[c], 200, endpoint=True)
            near = np.array([lo[c], lo[c] + 1, hi[c] - 1, hi[c], *range(-40, 41)])
            acc = np.unique(np.clip(np.concatenate([some, near]), lo[c], hi[c]))
            want = [arithmetic.rescale(int(v), int(m[c]), int(s[c]), quant.rounding) for v in acc]
            expected = np.clip(np.array(want) + quant.out_zero_point, quant.act_min, quant.act_max)
            align = 0 if one.align is None else int(one.align[c])
            total = (acc + int(rq.bias_shift[c])) << align
            if rq.form == "halved":
                places = int(rq.shift[c])
                value = ((total >> align) + ((total >> align >> places) & 1) - int(rq.offset[c])) >> places
            else:
                half = 1 << 31 if one.rounded and rq.form == "affine" else 0
                word = ((total << rq.lift) * int(rq.multiplier[c]) + half) >> 32
                value = (word + int(rq.offset[c])) >> int(rq.shift[c]) + align
            least = low if rq.clamp_low is None else rq.clamp_low
            most = high if rq.clamp_high is None else rq.clamp_high
            found = np.clip(np.clip(value, low, high), least, most)
            assert (found == expected).all(), (number, rq.form, c)
    assert min(forms.values()) > 15, forms
