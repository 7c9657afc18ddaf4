"""The taps of an output pixel as int16, one behind the other: C functions that gather a kernel's row."""

from __future__ import annotations

from collections.abc import Callable

from aot_model.c.words import counted
from aot_model.kernels.base import ConvShape
from aot_model.kernels.int16.elements import Elements


def gather(s: ConvShape, x: Elements, mve: bool, step: int) -> tuple[str, str]:
    """(name, text) of name(image, row, column, to): the taps of a kernel's row that begins there.

    Those of a group of channels lie together, `step` elements behind those of the group before. mve: by
    Helium's functions, of one group.
    """
    return _gather_row(s, x, mve) if s.groups == 1 else _gather_groups(s, x, step)


def _gather_row(s: ConvShape, x: Elements, mve: bool) -> tuple[str, str]:
    """(name, text): the taps of a kernel's row at (row, column) of the image, as int16."""
    outside, run = x.zero - x.shift, s.kernel_w * s.in_c
    key = f"{s.in_h}x{s.in_w}x{s.in_c}_k{s.kernel_w}_d{s.dilation_w}_z{x.zero}".replace("-", "n")
    name = f"taps_{x.dtype}_{key}{'_mve' if mve else ''}"
    _, sy, sx, _ = s.strides
    fast = ""
    if s.dilation_w == 1 and s.kernel_w <= s.in_w:
        copy = (
            f"    memcpy(to, from, {2 * run}u);"
            if x.size == 2 and x.shift == 0
            else f"""\
        for (int32_t k = 0; k < {run}; k++) {{
            to[k] = {x.narrowed("from[k]")};
        }}"""
        )
        if mve:
            copy = f"    aot_model_take_{x.dtype}(to, from, {x.shift}, {run});"
        fast = f"""    if (row >= 0 && row < {s.in_h} && column >= 0 && column <= {s.in_w - s.kernel_w}) {{
        const {x.dtype}_t *const from = x + row * {sy} + column * {sx};
    {copy}
        return;
    }}
"""
    at = f"row * {sy} + column * {sx}"
    each = (
        f"""\
        for (int32_t c = 0; c < {s.in_c}; c++) {{
            *to++ = (int16_t)(inside ? {x.narrowed(f"x[{at} + c]")} : {outside});
        }}
"""
        if not mve or s.in_c == 1
        else f"""\
        if (inside) {{
            aot_model_take_{x.dtype}(to, x + {at}, {x.shift}, {s.in_c});
        }} else {{
            aot_model_fill_int16(to, {outside}, {s.in_c});
        }}
        to += {s.in_c};
"""
    )
    if mve and s.dilation_w == 1:
        return name, _clipped_gather(s, x, name, outside)
    text = f"""/* {s.kernel_w} x {s.in_c} taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static void {name}(const {x.dtype}_t *x, int32_t row, int32_t column, int16_t *to)
{{
{fast}    for (int32_t tap = 0; tap < {s.kernel_w}; tap++, column += {s.dilation_w}) {{
        const int inside = row >= 0 && row < {s.in_h} && column >= 0 && column < {s.in_w};
{each}    }}
}}
"""
    return name, text


def _gather_groups(s: ConvShape, x: Elements, step: int) -> tuple[str, str]:
    """(name, text): the same of several groups; `step` elements are from the taps of one to those of the
    next.
    """
    outside, own = x.zero - x.shift, s.group_in
    key = f"{s.in_h}x{s.in_w}x{s.in_c}_g{s.groups}_k{s.kernel_w}_d{s.dilation_w}_z{x.zero}_{step}"
    name = f"taps_{x.dtype}_{key}".replace("-", "n")
    _, sy, sx, _ = s.strides
    turns = next(n for n in range(min(s.groups, max(1, 8 // own)), 0, -1) if s.groups % n == 0)

    def copied(text: Callable[[int], str]) -> list[str]:
        """Statements for all channels of some groups."""
        if own > 8:
            return [f"for (int32_t c = 0; c < {own}; c++) {{", f"    at[c] = {text(-1)};", "}"]
        return [f"at[{g * step + c}] = {text(g * own + c)};" for g in range(turns) for c in range(own)]

    inside = copied(lambda k: x.narrowed("from[c]" if k < 0 else f"from[{k}]"))
    if x.size == 2 and x.shift == 0 and own % 2 == 0:  # words at any even address
        inside = [f"memcpy(at + {g * step}, from + {g * own}, {2 * own}u);" for g in range(turns)]
    taps = counted(s.kernel_w, "tap")
    loop = f"for (int32_t g = 0; g < {s.groups}; g += {turns}, at += {turns * step}"
    text = "\n".join([
        f"/* {taps} of {s.groups} groups of {own} at (row, column); outside: the zero point. */",
        f"AOT_MODEL_OPAQUE static void {name}(const {x.dtype}_t *x, int32_t row, int32_t column, "
        "int16_t *to)", "{",
        f"    for (int32_t tap = 0; tap < {s.kernel_w}; tap++, column += {s.dilation_w}) {{",
        f"        int16_t *at = to + tap * {own};",
        f"        if (row >= 0 && row < {s.in_h} && column >= 0 && column < {s.in_w}) {{",
        f"            const {x.dtype}_t *from = x + row * {sy} + column * {sx};",
        f"            {loop}, from += {turns * own}) {{", *(f"                {t}" for t in inside),
        "            }", "        } else {", f"            {loop}) {{",
        *(f"                {t}" for t in copied(lambda k: str(outside))),
        "            }", "        }", "    }", "}", ""])  # fmt: skip
    return name, text


def _clipped_gather(s: ConvShape, x: Elements, name: str, outside: int) -> str:
    """The same of neighbouring taps: what lies left of the image, in it, and right of it."""
    _, sy, sx, _ = s.strides
    run, width = s.kernel_w * s.in_c, s.kernel_w
    whole = f"""\
    }} else if (column >= 0 && column <= {s.in_w - width}) {{
        aot_model_take_{x.dtype}(to, x + (row * {sy} + column * {sx}), {x.shift}, {run});
"""
    return f"""/* {width} x {s.in_c} taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static void {name}(const {x.dtype}_t *x, int32_t row, int32_t column, int16_t *to)
{{
    if (row < 0 || row >= {s.in_h}) {{
        aot_model_fill_int16(to, {outside}, {run});
{whole if width <= s.in_w else ""}    }} else {{
        const int32_t left = column >= 0 ? 0 : column < -{width} ? {width} : -column;
        const int32_t inside = {s.in_w} - column;
        const int32_t end = inside < left ? left : inside > {width} ? {width} : inside;
        aot_model_fill_int16(to, {outside}, left * {s.in_c});
        if (end > left) {{
            const {x.dtype}_t *const from = x + (row * {sy} + (column + left) * {sx});
            aot_model_take_{x.dtype}(to + left * {s.in_c}, from, {x.shift}, (end - left) * {s.in_c});
        }}
        aot_model_fill_int16(to + end * {s.in_c}, {outside}, ({width} - end) * {s.in_c});
    }}
}}
"""
