"""Lines of a disassembly as instructions: which kind a mnemonic is, and which operands it reads early,
late, or writes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from aot_model.cycles.instruction import FLAGS, FPSCR, LR, NONE, SP, Instruction, among, operands, registers
from aot_model.cycles.vectors import is_vector, vector

CONDITIONS = "eq ne cs hs cc lo mi pl vs vc hi ls ge lt gt le".split()
_OPPOSITE = dict(
    zip("eq ne cs hs cc lo mi pl vs vc hi ls ge lt gt le al".split(),
        "ne eq cc lo cs hs pl mi vc vs ls hi lt ge le gt al".split(),
        strict=True))  # fmt: skip

_KINDS = {
    "compare": "cmp cmn tst teq",
    "alu": "add addw sub subw rsb adc sbc and orr eor bic orn mov movw movt mvn neg adr bfi bfc "
    "csel csinc csinv csneg cset csetm cinc cinv cneg",
    "shift": "lsl lsr asr ror rrx lsll lsrl asrl sqrshrl uqrshll sqshll urshrl srshrl uqshll sqrshr uqrshl sqshl "  # noqa: E501
    "urshr srshr uqshl",
    "simd": "sxtb sxth uxtb uxth sxtb16 uxtb16 sxtab sxtah uxtab uxtah sxtab16 uxtab16 pkhbt pkhtb ssat usat ssat16 "  # noqa: E501
    "usat16 qadd qsub qdadd qdsub sadd16 ssub16 sadd8 ssub8 uadd8 usub8 uadd16 usub16 shadd16 shsub16 shadd8 "
    "shsub8 uhadd8 uhsub8 qadd16 qsub16 qadd8 qsub8 uqadd8 uqsub8 sel usad8 usada8 rev rev16 revsh rbit clz "
    "sbfx ubfx sasx ssax",
    "multiply": "mul smulbb smulbt smultb smultt smulwb smulwt smuad smuadx smusd smusdx smmul smmulr",
    "multiply_long": "smull umull",
    "mac": "mla mls smlabb smlabt smlatb smlatt smlawb smlawt smlad smladx smlsd smlsdx smmla smmlar smmls smmlsr",  # noqa: E501
    "mac_long": "smlal umlal smlald smlaldx smlsld smlsldx umaal smlalbb smlalbt smlaltb smlaltt",
    "divide": "sdiv udiv",
    "system": "nop dsb dmb isb bkpt udf svc cpsid cpsie msr mrs wfi wfe sev yield csdb",
    "fp": "vadd vsub vmul vnmul vcvt vcvtr vcvta vcvtn vcvtm vcvtp vcvtb vcvtt vrintz vrintr vrinta vrintn vrintp "  # noqa: E501
    "vrintm vrintx vmaxnm vminnm vabs vneg vseleq vselge vselgt vselvs",
    "fp_mac": "vmla vmls vnmla vnmls vfma vfms vfnma vfnms",
    "fp_divide": "vdiv vsqrt",
    "fp_compare": "vcmp vcmpe",
    "fp_move": "vmov vmrs vmsr",
}
_KIND = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_ONE_SOURCE = set(
    "mov mvn movw neg uxtb uxth sxtb sxth sxtb16 uxtb16 rev rev16 revsh rbit clz adr ssat usat ssat16 "
    "usat16 sbfx ubfx cset csetm vcvt vabs vneg vsqrt".split())  # fmt: skip
"""Of which two operands are not a source twice: destination and source."""
_READS_DESTINATION = {"bfi", "bfc", "movt"}
_READS_FLAGS = {"adc", "sbc", "rrx", "sel"}
_WRITES_FLAGS = {"uadd8", "usub8", "sadd8", "ssub8", "sadd16", "ssub16", "uadd16", "usub16"}
_MANY = re.compile(r"(ldm|stm|vldm|vstm)(ia|db|fd|ea)?$|(v?pop|v?push)$")
_SINGLE = re.compile(r"(ldr|str)(b|h|sb|sh|t|bt|ht|sbt|sht|ex|exb|exh)?$|(lda|stl)(b|h|ex|exb|exh)?$")


def decode(address: int, size: int, text: str, suffix: str = "") -> Instruction:
    """An instruction from its text. suffix: the condition that its IT block gives it, which the mnemonic
    ends with.
    """
    mnemonic, _, rest = text.strip().lower().replace("\t", " ").partition(" ")
    args = operands(re.sub(r"<[^>]*>|[@;].*", "", rest).strip())
    name, *types = mnemonic.split(".")
    dtype = ".".join(t for t in types if t not in ("n", "w"))
    name = name.removesuffix(suffix) if suffix else name
    one = Instruction(address, size, text, name, "unknown")
    found = (
        _control(one, args, suffix)
        or (vector(one, args, dtype) if is_vector(name, rest) else None)
        or _memory(one, args)
        or (_floating(one, args) if name.startswith("v") else _integer(one, args))
    )
    if suffix and found.kind != "it":
        found = replace(found, reads=found.reads | {FLAGS}, conditional=True)
    return found


def block_of_it(text: str) -> list[str]:
    """The conditions of the instructions behind an IT."""
    mnemonic, condition = text.lower().split()[:2]
    return [condition if letter == "t" else _OPPOSITE[condition] for letter in mnemonic[1:]]


def _control(one: Instruction, args: list[str], suffix: str) -> Instruction | None:
    """Branches, loops, IT."""
    name = one.name
    conditional = name[:1] == "b" and name[1:] in CONDITIONS
    if name == "b" or conditional:
        kind = "branch_if" if conditional or suffix else "branch"
        reads = frozenset({FLAGS}) if kind == "branch_if" else NONE
        return replace(one, name="b", kind=kind, reads=reads, conditional=kind == "branch_if")
    if name in ("cbz", "cbnz"):
        return replace(one, kind="branch_if", reads=among(args[:1]), conditional=True)
    if name == "bl":
        return replace(one, kind="call", writes=frozenset({LR}))
    if name in ("bx", "blx", "bxns", "blxns"):
        writes = frozenset({LR}) if "l" in name else NONE
        return replace(one, kind="jump", reads=among(args), writes=writes)
    if name in ("tbb", "tbh"):
        return replace(
            one, kind="table", reads=among([args[0].strip("[]")]), early=among([args[0].strip("[]")])
        )
    if name in ("le", "letp"):
        return replace(one, kind="loop_end", reads=frozenset({LR}), writes=frozenset({LR}), conditional=True)
    if name in ("dls", "dlstp", "wls", "wlstp", "lctp"):
        return replace(one, kind="loop", reads=among(args[1:2]), writes=frozenset({LR}))
    if re.fullmatch(r"it[te]{0,3}", name):
        return replace(one, kind="it", reads=frozenset({FLAGS}))
    return None


def _memory(one: Instruction, args: list[str]) -> Instruction | None:
    """Loads and stores of core and FPU registers."""
    name = one.name
    if many := _MANY.match(name):
        stack = many[3] is not None
        data = among(args[-1:])
        base = frozenset({SP}) if stack else among(args[:1])
        loads = "ld" in name or "pop" in name
        moved = base if stack or args[0].endswith("!") else NONE
        words = len(data)
        kind = ("vload" if loads else "vstore") if name[0] == "v" else "load" if loads else "store"
        return replace(one,
                       kind=f"{kind}_many",
                       writes=(data if loads else NONE) | moved,
                       words=words,
                       reads=base | (NONE if loads else data),
                       early=base,
                       late=NONE if loads else data,
                       writeback=bool(moved))  # fmt: skip
    pair, float_ = name in ("ldrd", "strd"), name in ("vldr", "vstr")
    if not (pair or float_ or _SINGLE.match(name)):
        return replace(one, kind="load", reads=among(args), early=among(args)) if name == "pld" else None
    status = 1 if "ex" in name and name.startswith("st") else 0  # of a store that may fail
    count = 2 if pair else 1
    data = among(args[status : status + count])
    where = args[status + count] if len(args) > status + count else ""
    inner = (
        [part.strip() for part in where[1:].partition("]")[0].split(",")] if where.startswith("[") else ["pc"]
    )
    after = args[status + count + 1 :]
    base = among(inner[:1])
    offset = among(inner[1:2]) | among(after[:1])
    writeback = where.endswith("!") or bool(after)
    moved = base if writeback else NONE
    early = base | offset
    loads = name.startswith(("ld", "vld"))
    kind = ("load" if loads else "store") + ("_pair" if pair else "")
    return replace(one,
                   kind=f"v{kind}" if float_ else kind,
                   writes=(data if loads else among(args[:status])) | moved,
                   reads=early | (NONE if loads else data),
                   early=early,
                   late=NONE if loads else data,
                   words=len(data) if float_ else count,
                   register_offset=bool(offset),
                   writeback=writeback,
                   )  # fmt: skip


def _floating(one: Instruction, args: list[str]) -> Instruction:
    """The FPU's arithmetic and moves."""
    name = one.name
    kind = _KIND.get(name, "unknown")
    first, others = among(args[:1]), among(args[1:])
    if name == "vmrs":
        flags = args and "apsr" in args[0]
        return replace(
            one, kind=kind, writes=frozenset({FLAGS}) if flags else first, reads=frozenset({FPSCR})
        )
    if name == "vmsr":
        return replace(one, kind=kind, reads=others, writes=frozenset({FPSCR}))
    if kind == "fp_move":
        if len(args) > 2:  # two registers one way or the other
            half = 1 if len(registers(args[0])) == 2 else 2
            return replace(one, kind=kind, writes=among(args[:half]), reads=among(args[half:]), words=2)
        return replace(one, kind=kind, writes=first, reads=others)
    if kind == "fp_compare":
        return replace(one, kind=kind, reads=first | others, writes=frozenset({FPSCR}))
    if kind == "fp_mac":
        return replace(one, kind=kind, writes=first, reads=first | others, late=first)
    reads = others | (
        first
        if len(args) == 2 and name not in _ONE_SOURCE and not name.startswith(("vcvt", "vrint"))
        else NONE
    )
    reads |= {FLAGS} if name.startswith("vsel") else NONE
    return replace(one, kind=kind, writes=first, reads=reads)


def _integer(one: Instruction, args: list[str]) -> Instruction:
    """Arithmetic of core registers."""
    name = one.name
    sets_flags = name not in _KIND and name.endswith("s") and name[:-1] in _KIND
    name = name[:-1] if sets_flags else name
    kind = _KIND.get(name, "unknown")
    flags = frozenset({FLAGS}) if sets_flags or name in _WRITES_FLAGS else NONE
    first, others = among(args[:1]), among(args[1:])
    one = replace(one, name=name, immediate=any("#" in a for a in args))
    if kind == "compare":
        return replace(one, kind=kind, writes=frozenset({FLAGS}), reads=first | others, early=_shifted(args))
    if kind == "system":
        return replace(one, kind=kind, writes=first if name == "mrs" else NONE)
    if kind in ("multiply_long", "mac_long"):
        both = among(args[:2])
        sums = both if kind == "mac_long" else NONE
        return replace(one, kind=kind, writes=both, reads=among(args[2:]) | sums, late=sums)
    if kind == "mac":
        return replace(one, kind=kind, writes=first, reads=others, late=among(args[3:4]))
    if name.endswith("l") and kind == "shift" and len(args) == 3 and name != "lsl":  # MVE's shifts of 64 bits
        return replace(one, kind=kind, writes=among(args[:2]), reads=among(args))
    reads = others | (
        first if name in _READS_DESTINATION or (len(args) == 2 and name not in _ONE_SOURCE) else NONE
    )
    reads |= {FLAGS} if name in _READS_FLAGS or name.startswith("cs") or name.startswith("ci") else NONE
    early = among(args[1:2] if len(args) > 2 else args[:1]) if kind == "shift" else _shifted(args)
    return replace(one, kind=kind, writes=first | flags, reads=reads, early=early)


def _shifted(args: list[str]) -> frozenset[int]:
    """The register of an operand that is shifted first: `add r0, r1, r2, lsl #4`."""
    return among(args[-2:-1]) if len(args) >= 3 and re.match(r"(lsl|lsr|asr|ror|rrx)\b", args[-1]) else NONE
