"""Helium (MVE) instructions: on which pipe of a Cortex-M55 they run, and when their results are there.

Pipes and latencies are those of LLVM's schedule model of the Cortex-M55 (ARMScheduleM55.td).
"""

from __future__ import annotations

import re
from dataclasses import replace

from aot_model.cycles.instruction import NONE, VPR, Instruction, among, registers

_PIPES = ((r"vctp|vpnot|vpst|vpt", "control", 1), (r"vcmp", "float", 1), (
    r"v(movn|qmovu?n|q?r?shru?n)[bt]", "integer", 3
), (r"v(adc|sbc)i?|v(q|r|qr)shlu?|vrshr|v(max|min)a?v|vabav", "integer", 2), (
    r"v(abd|abs|add|and|bic|brsr|cadd|cls|clz|d?i?w?dup|ddup|idup|dwdup|iwdup|eor|hadd|hcadd|hsub|maxa?|"
    r"mina?|movl[bt]|"
    r"mvn|neg|orn|orr|psel|qabs|qadd|qneg|shl|shr|shll[bt]|qsub|rev\d\d|rhadd|sli|sri|sub)", "integer", 1),
          )  # fmt: skip
"""The first that matches the whole name; products, sums and everything else are on `float` (multiply and
float).
"""
_ACCUMULATES = re.compile(
    r"vmla|vmls|vfma|vfms|vqr?dmla|vrml|vaddl?va|vabav|v(movn|qmovu?n|q?r?shru?n)[bt]|vsli|vsri|v(max|min)a?v"
)
_TWO_SUMS = re.compile(r"vr?ml[as]ldava?|vaddlv|vmlalv")
_LETTERS = {"b": 16, "h": 8, "w": 4, "d": 2}


def is_vector(name: str, rest: str) -> bool:
    """Whether an instruction is of the vector unit; `rest` are its operands."""
    return bool(re.search(r"\bq\d", rest) or re.match(r"v(pst|pt|ctp|pnot)", name))


def vector(one: Instruction, args: list[str], dtype: str) -> Instruction:
    """The instruction, decoded."""
    name = one.name
    if memory := re.match(r"v(ld|st)(r[bhwd]|[24]\d)", name):
        return _memory(one, args, memory[1] == "ld", dtype, memory[2])
    predicated = (
        _pipe(name) is None and name[-1:] in ("t", "e") and name not in ("vcvtt", "vmullt", "vqdmullt")
    )
    name = name[:-1] if predicated else name
    first = args[:2] if _TWO_SUMS.match(name) else args[:1]
    to_core = any(r < 16 for r in among(first))
    pipe, latency = _pipe(name) or ("float", 2)
    if name == "vmov":
        pipe, latency = ("float", 1) if to_core or len(args) == 3 else ("integer", 1)
    elif dtype.startswith("f") and re.match(r"v(add|sub|abs|neg|abd|cadd|maxnm|minnm|max|min|cmp)", name):
        pipe, latency = "float", 2 if any(r < 16 for r in among(args)) else 1
    if name.startswith(("vcmp", "vpt", "vctp", "vpnot", "vpst")):
        writes, late = frozenset({VPR}), NONE
        reads = among(args) | (frozenset({VPR}) if name == "vpnot" else NONE)
    else:
        writes = among(first)
        late = writes if _ACCUMULATES.match(name) or (name == "vmov" and "[" in args[0]) else NONE
        reads = among(args[len(first) :]) | late
    if len(args) == 3 and name == "vmov" and len(registers(args[0])) == 1 and len(registers(args[1])) == 1:
        writes, reads = among(args[:2]), among(args[2:])
    return replace(one,
                   name=name,
                   kind="vector",
                   writes=writes,
                   reads=reads | (frozenset({VPR}) if predicated else NONE),
                   late=late,
                   pipe=pipe,
                   latency=latency)  # fmt: skip


def _pipe(name: str) -> tuple[str, int] | None:
    return next(((pipe, latency) for pattern, pipe, latency in _PIPES if re.fullmatch(pattern, name)), None)


def _memory(one: Instruction, args: list[str], loads: bool, dtype: str, form: str) -> Instruction:
    data = among(args[:1])
    where = args[1]
    inner = [part.strip() for part in where[1:].partition("]")[0].split(",")]
    gathers = any(part.startswith("q") for part in inner)
    writeback = where.endswith("!") or len(args) > 2
    early = among(inner) | among(args[2:])
    base = frozenset(r for r in among(inner[:1]))
    wide = re.search(r"(\d+)$", dtype)
    elements = (128 // int(wide[1]) if wide else _LETTERS.get(form[-1], 4)) if gathers else 0
    return replace(one,
                   kind="vector_load" if loads else "vector_store",
                   pipe="load",
                   words=4,
                   elements=elements,
                   writeback=writeback,
                   writes=(data if loads else NONE) | (base if writeback else NONE),
                   reads=early | (NONE if loads else data),
                   early=early,
                   late=NONE if loads else data,
                   )  # fmt: skip
