"""The generated texts, from the templates beside this file."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Any

import jinja2

from aot_model.c.helpers import numbered
from aot_model.c.layout import layout
from aot_model.c.literal import int_literal
from aot_model.c.names import comment_text, identifiers, string_literal
from aot_model.c.single_turn import without_single_turns
from aot_model.emit import body, parameters
from aot_model.emit.constants import bulk_initialiser, bulk_members, initialiser
from aot_model.emit.metadata import metadata_of
from aot_model.emit.overview import layer_comment, overview
from aot_model.emit.parameters_file import checks, structure_hash
from aot_model.emit.view import ABI, ModelView, Port
from aot_model.ir.types import DType, Quantisation
from aot_model.kernels.float32.dialects import DIALECTS


@cache
def environment() -> jinja2.Environment:
    """The templates, and the filters that they use."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("aot_model", "emit/templates"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.filters.update(
        without_single_turns=without_single_turns,
        c_string=string_literal,
        comment=comment_text,
        negated=_negated,
        initialiser=initialiser,
        bulk_members=bulk_members,
    )
    return made


def _negated(condition: str) -> str:
    """The opposite of a condition of the preprocessor; of a single macro without double negation."""
    macro = re.fullmatch(r"(!?)\(?(defined\(\w+\))\)?", condition)
    if macro is None:
        return f"!({condition})"
    return macro[2] if macro[1] else f"!{macro[2]}"


def _float_list(quantisation: Quantisation) -> str:
    from aot_model.c.literal import float_literal

    return ", ".join(float_literal(s, DType.FLOAT32) for s in quantisation.scale)


def _quantised(port: Port) -> str:
    """= scale * (q - zero point), for a comment."""
    q = port.quantisation
    if q is None or len(q.scale) != 1:
        return ""
    zero = q.zero_point[0]
    return f", real = {q.scale[0]:.9g} * " + (f"(q {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "q")


def _run_parameters(view: ModelView) -> str:
    ports = (
        [f"const {view.name}_inputs *inputs", f"const {view.name}_outputs *outputs"]
        if view.options.io != "workspace"
        else []
    )
    return ", ".join([*ports, *_run_rest(view)]) or "void"


def _run_rest(view: ModelView) -> list[str]:
    """Parameters of a run that are not inputs or outputs."""
    return [
        *([view.workspace_parameter] if view.workspace_parameter else []),
        *([f"const {view.name}_devices *devices"] if view.contexts else []),
    ]


def _positional(view: ModelView) -> list[str]:
    """Parameters of <name>_run_positional(): inputs, outputs, and what a run takes beside them."""
    ports = [*view.inputs, *view.outputs]
    names = identifiers([p.c_name for p in ports], taken=("workspace", "pools", "devices"))
    constness = ["const "] * len(view.inputs) + [""] * len(view.outputs)
    return [
        *(f"{c}{p.buffer.type.dtype.c_type} *{n}" for c, p, n in zip(constness, ports, names, strict=True)),
        *_run_rest(view),
    ]


NO_MIXED_DOT = """\
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif"""
"""The first thing that a compiler reads: docs/compilers.md, mixed signs."""
KEEP_VNNI = """\
#ifdef __AVX512VNNI__
#define AOT_MODEL_VNNI /* for assembly, whatever the pragma below says */
#endif
"""


def _no_mixed_dot(view: ModelView) -> str:
    """Nothing where the checks of flags leave only Cortex-M, which has no such instructions."""
    conditions = [condition for t in view.target.lineage() for condition, _ in t.c_checks]
    if any("__ARM_FEATURE_DSP" in c or "__ARM_FEATURE_MVE" in c for c in conditions):
        return ""
    target = view.target
    # without such a kernel, too: another model of the target may follow in the same unit
    vnni = target.has_option("dot") and target.option("dot") == "vnni"
    return (KEEP_VNNI if vnni or "aot_model/int8_vnni.h" in view.includes else "") + NO_MIXED_DOT


def _parameter_checks(view: ModelView) -> list[str]:
    """Rows of the table of what is checked when parameters are opened."""
    kinds = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
    turned = {"uint64": 1 << 63}  # as signed numbers, in the same order
    rows = []
    for c in checks(view):
        low, high = (int_literal(v - turned.get(c.kind, 0), DType.INT64) for v in (c.low, c.high))
        rows.append(
            f"{{{c.offset}u, {c.count}u, {c.step}u, {kinds.index(c.kind)}u, {low}, {high}, {c.rise}}}"
        )
    return rows


def _guards(view: ModelView) -> str:
    """Checks of the pointers that a caller gives."""
    given = []
    if view.options.io != "workspace":
        fields = [
            f"{side}->{p.c_name}"
            for side, ports in (("inputs", view.inputs), ("outputs", view.outputs))
            for p in ports
            if p.buffer.nbytes
        ]
        given = ["inputs", "outputs", *fields]
    given += ["devices", *(f"devices->{d.name}" for d in view.contexts)] if view.contexts else []
    parameter, bases = view.workspace_parameter.rpartition("*")[2], []
    if parameter:
        bases = [
            (p, "workspace" if len(view.pools) == 1 else f"pools->{p.field}") for p in view.pools if p.size
        ]
        given += [*([parameter] if len(view.pools) > 1 and bases else []), *(base for _, base in bases)]
    lines = []
    if given:
        lines += [
            f"    if ({' || '.join(f'{g} == NULL' for g in given)}) {{",
            "        return AOT_MODEL_ERROR_NULL;",
            "    }",
        ]
    crooked = [
        f"((uintptr_t){base} & ({view.upper}_{p.macro}_ALIGN - 1u)) != 0u" for p, base in bases if p.align > 1
    ]
    if crooked:
        lines += [f"    if ({' || '.join(crooked)}) {{", "        return AOT_MODEL_ERROR_ALIGNMENT;", "    }"]
    if parameter and not bases:
        lines.append(f"    (void){parameter};")
    return "\n".join(lines)


def _names(view: ModelView) -> str:
    """The arguments that hand all parameters of a run on."""
    return "" if _run_parameters(view) == "void" else ", ".join(re.findall(r"\*(\w+)", _run_parameters(view)))


def _layers(view: ModelView) -> str:
    """The calls; where devices are, in a function of their own that may not need all of its parameters."""
    text = body.layers(view)
    if not view.devices:
        return text
    unused = [
        f"    (void){name};"
        for name in re.findall(r"\w+", _names(view))
        if not re.search(rf"\b{name}\b", text)
    ]
    return "\n".join([text, *unused])


def render(template: str, view: ModelView, **more: Any) -> str:
    """Text of a template for a model."""
    checks = [
        c for chosen in (*view.target.before, view.target) for t in chosen.lineage() for c in t.c_checks
    ]
    dialect = DIALECTS[view.target.dialect()]
    if dialect.check is not None and dialect.includes & set(view.includes):
        checks.append(dialect.check)
    return (
        environment()
        .get_template(template)
        .render(
            m=view,
            abi=ABI,
            metadata_of=metadata_of,
            parameters=parameters,
            structure_hash=structure_hash,
            parameter_checks=_parameter_checks,
            float_list=_float_list,
            quantised=_quantised,
            overview=overview,
            layer_comment=layer_comment,
            bulk_initialiser=bulk_initialiser,
            run_parameters=_run_parameters(view),
            run_rest=_run_rest(view),
            positional=_positional(view),
            guards=_guards(view),
            layers=lambda: _layers(view),
            bracket=lambda: body.bracket(view, f"{view.name}_layers({_names(view)})"),
            mixed_dot=_no_mixed_dot(view),
            checks=list(dict.fromkeys(checks)),
            advice=view.target.c_advice,
            **more,
        )
    )


_UNKNOWN = f"0x{'_' * 16}u"
"""In the place of the number of the build, which is made from all the rest."""


def header_and_source(view: ModelView) -> tuple[str, str]:
    """The header, and the C file, which insists on it.

    The number of the build is part of the SHA-256 of both: a C file fits no header but that which was made
    with it, also where nothing but the weights is different.
    """
    values = render("constants.c.j2", view) if view.linked_constants else ""
    source = numbered(layout(render("model.c.j2", view, build=_UNKNOWN)), "aot_mve_")
    texts = render("model.h.j2", view, build=_UNKNOWN), source + values
    build = f"0x{hashlib.sha256(chr(0).join(texts).encode('utf-8')).hexdigest()[:16]}u"
    header, source = (text.replace(_UNKNOWN, build) for text in texts)
    return header, source
