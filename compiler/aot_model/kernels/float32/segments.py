"""The segments of an axis in C: a table and expressions of the current entry, or literals where all entries
are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.text import CText
from aot_model.kernels.float32.axis import Axis

_FIELDS = ("out", "count", "first", "tap", "taps", "area")
_TITLES = ("first output", "outputs", "first input", "first tap", "taps", "elements of an average")


@dataclass(frozen=True)
class Segments:
    """The table `name`, whose current entry has the index `var`. The properties are C expressions."""

    name: str
    var: str
    axis: Axis
    averages: bool = False
    """Whether the field `area` is needed."""

    @property
    def number(self) -> int:
        return len(self.axis.segments)

    def declare(self, text: CText) -> None:
        if self.number < 2:
            return
        fields = _FIELDS if self.averages else _FIELDS[:-1]
        rows = [[int(getattr(g, field)) for field in fields] for g in self.axis.segments]
        ctype = f"{np.promote_types(np.int16, np.min_scalar_type(-1 - max(map(max, rows))))}_t"
        text.line(f"/* {self.name}: {', '.join(_TITLES[: len(fields)])} */")
        text.line(f"static const struct {{ {ctype} {', '.join(fields)}; }} {self.name}[{len(rows)}] = {{")
        for row in rows:
            text.line("    {" + ", ".join(map(str, row)) + "},")
        text.line("};")

    def _field(self, field: str) -> str:
        values = {getattr(g, field) for g in self.axis.segments}
        if len(values) == 1:
            return str(values.pop())
        return f"{self.name}[{self.var}].{field}"

    @property
    def out(self) -> str:
        return self._field("out")

    @property
    def count(self) -> str:
        return self._field("count")

    @property
    def first(self) -> str:
        return self._field("first")

    @property
    def tap(self) -> str:
        return self._field("tap")

    @property
    def taps(self) -> str:
        return self._field("taps")

    @property
    def area(self) -> str:
        return self._field("area")

    @property
    def repeated(self) -> bool:
        """Whether any segment has several outputs."""
        return any(g.count > 1 for g in self.axis.segments)
