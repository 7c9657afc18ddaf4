"""The statements of <name>_run(): the calls in order, loops and branches around them, devices opened and
closed.

A call that can fail is checked at once and stops the run. A device is activated before the first call and
deactivated after the last, opened before and closed after each of its calls; what was activated or opened is
always given back, in the reverse order, and the first error is the one that counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aot_model.c.names import comment_text
from aot_model.emit.trace_text import statements
from aot_model.ir.program import Branch, Call, Device, Loop, Once, Step

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView

_INDENT = "    "


def _opens(call: Call) -> bool:
    device = call.function.device
    return device is not None and (device.open is not None or device.close is not None)


def layers(view: ModelView) -> str:
    """All calls of a run."""
    declared = (
        [f"{_INDENT}int32_t status;", ""]
        if any(c.function.fails or _opens(c) for c in view.program.calls())
        else []
    )
    if not view.options.trace:
        return "\n".join([*declared, *_steps(view, view.program.body, 1)])
    return "\n".join(
        [
            *declared,
            *(
                line
                for step in view.program.body
                for line in (*_steps(view, [step], 1), *statements(view, step))
            ),
        ]
    )


def bracket(view: ModelView, call: str) -> str:
    """`status = <call>;` with all devices activated around it."""

    def around(devices: list[Device], depth: int) -> list[str]:
        pad = _INDENT * depth
        if not devices:
            return [f"{pad}status = {call};"]
        first, *rest = devices
        inner = around(rest, depth + 1 if first.activate else depth)
        if first.deactivate:
            inner.append(
                f"{_INDENT * (depth + 1 if first.activate else depth)}{_ended(view, first, first.deactivate)}"
            )
        if first.activate:
            return [
                f"{pad}status = {_hook(first, first.activate)};",
                f"{pad}if (status == AOT_MODEL_OK) {{",
                *inner,
                f"{pad}}}",
            ]
        return inner

    return "\n".join(around(view.devices, 1))


def _ended(view: ModelView, device: Device, function: str) -> str:
    """Something is given back whatever happened; an error before counts more than one of this."""
    return f"status = {view.name}_first_error(status, {_hook(device, function)});"


def _hook(device: Device, function: str) -> str:
    """The call of a function of a driver."""
    return f"{function}({f'devices->{device.name}' if device.context is not None else ''})"


def _steps(view: ModelView, steps: list[Step], depth: int) -> list[str]:
    pad = _INDENT * depth
    lines: list[str] = []
    for step in steps:
        if isinstance(step, Call):
            lines.append(f"{pad}/* step {view.steps[step]}: {comment_text(step.layer)} */")
            lines += [pad + line for line in _call(view, step)]
        elif isinstance(step, Once):
            ready = f"{view.name}_ready[{view.once.index(step)}]"
            lines += [
                f"{pad}if (!{ready}) {{",
                *_steps(view, [step.call], depth + 1),
                f"{pad}    {ready} = true;",
                f"{pad}}}",
            ]
        elif isinstance(step, Branch):
            lines += [
                f"{pad}if (*{view.argument(step.condition, 'bool')}) {{",
                *_steps(view, step.then, depth + 1),
            ]
            lines += [f"{pad}}} else {{", *_steps(view, step.otherwise, depth + 1), f"{pad}}}"]
        else:
            lines += _loop(view, step, depth)
    return lines


def _call(view: ModelView, call: Call) -> list[str]:
    """One call, checked; with --profile, between two readings of the clock."""
    f = call.function
    text = view.call_text(call)
    lines = [f"status = {text}" if f.fails else text]
    if view.options.profile:
        counter = f"{view.name}_profile[{view.call_numbers[call]}]"
        lines = [
            "{",
            f"    const uint32_t begin = {view.name}_now();",
            f"    {lines[0]}",
            f"    {counter} += {view.name}_now() - begin;",
            "}",
        ]
    if f.device is not None and _opens(call):
        lines = _opened(view, f.device, lines, f.fails)
    elif not f.fails:
        return lines
    return [*lines, "if (status != AOT_MODEL_OK) {", "    return status;", "}"]


def _opened(view: ModelView, device: Device, lines: list[str], fails: bool) -> list[str]:
    """A call between opening and closing its device."""
    if device.close:
        lines = [
            *lines,
            _ended(view, device, device.close) if fails else f"status = {_hook(device, device.close)};",
        ]
    if not device.open:
        return lines
    return [
        f"status = {_hook(device, device.open)};",
        "if (status == AOT_MODEL_OK) {",
        *(f"    {line}" for line in lines),
        "}",
    ]


def _loop(view: ModelView, step: Loop, depth: int) -> list[str]:
    pad = _INDENT * depth
    turn = f"turn{depth}"
    limit = f"INT64_C({step.limit})"
    lines = []
    if step.limit_from is not None:
        lines.append(f"{pad}const int64_t limit{depth} = *{view.argument(step.limit_from, 'int64_t')};")
        limit = (
            f"limit{depth}" if step.limit >= 2**62 else (f"(limit{depth} < {limit} ? limit{depth} : {limit})")
        )
    condition = f" && *{view.argument(step.condition, 'bool')}" if step.condition is not None else ""
    lines.append(f"{pad}for (int64_t {turn} = 0; {turn} < {limit}{condition}; {turn}++) {{")
    if step.counter is not None:
        lines.append(f"{pad}    *{view.argument(step.counter, 'int64_t')} = {turn};")
    return [f"{pad}{{", *lines, *_steps(view, step.body, depth + 1), f"{pad}}}", f"{pad}}}"]
