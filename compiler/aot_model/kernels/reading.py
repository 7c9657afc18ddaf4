"""How a kernel's constants are read, and what copies of them to RAM save."""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.cycles.rules import Memory

COPY = 3
"""Cycles of a word that is copied, beside those that it waits for."""
LEAST_SAVING = 2_000
"""Estimated cycles of a layer that are worth the code of a copy."""


@dataclass(frozen=True)
class Reading:
    """How constants are read: what the target's option `memory` says, and the core."""

    memory: Memory | None = None
    """Where they are; None: nothing is known, and no memory is given for speed."""
    overlaps: bool = True
    """Whether neighbouring loads of a word overlap on the core, so that four channels for two pixels are
    faster where weights do not wait."""
    room: int = 0
    """Bytes of scratch memory that the layer may take."""
    compact: bool = False
    """Whether code is to be small: `optimize=size`."""
    common: bool = False
    """Whether other calls have the same weights."""

    @property
    def code_is_fast(self) -> bool:
        """Whether code is known to be read without waiting, however long a loop is."""
        return self.memory is not None and self.memory.code is None

    def waits(self, nbytes: int) -> bool:
        """Whether constants of so many bytes, read again and again, make the core wait, as RAM would not."""
        m = self.memory
        return m is not None and m.data is not None and m.flash_only and nbytes > m.data.bytes

    def saving(self, nbytes: int, times: int) -> float:
        """Estimated cycles less where they are copied to RAM, not read so often."""
        if not self.waits(nbytes):
            return 0
        assert self.memory is not None and self.memory.data is not None
        once = nbytes / self.memory.data.line * self.memory.load_miss
        return (times - 1) * once - nbytes / 4 * COPY


UNKNOWN = Reading()
