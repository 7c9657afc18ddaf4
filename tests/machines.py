"""Where the code of a set of vector instructions is compiled and run: on this machine where it has them, or
emulated.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    name: str
    compiler: str = "gcc"
    flags: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """What /proc/cpuinfo must have among the processor's flags."""

    def missing(self) -> str:
        """Why it cannot be used here; empty when it can."""
        tools = [t for t in (self.compiler, *self.runner[:1]) if shutil.which(t) is None]
        info = Path("/proc/cpuinfo")
        flags = info.read_text().split() if self.needs and info.exists() else []
        return " ".join(
            [
                *(f"needs {t};" for t in tools),
                *(f"the processor lacks {n};" for n in self.needs if n not in flags),
            ]
        )


MACHINES = {
    m.name: m
    for m in (
        Machine("avx2", flags=("-mavx2", "-mfma"), needs=("avx2",)),
        Machine(
            "vnni",
            flags=("-mavx2", "-mfma", "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512vnni"),
            needs=("avx512_vnni", "avx512bw"),
        ),
        Machine(
            "sdot",
            "aarch64-linux-gnu-gcc",
            ("-march=armv8.2-a+dotprod", "-static"),
            ("qemu-aarch64", "-cpu", "max"),
        ),
    )
}
