"""The report: where the bytes and the multiply-accumulates are, layer by layer; and the budgets."""

from __future__ import annotations

from aot_model.emit.view import ModelView
from aot_model.errors import CompileError, Problem


def report(view: ModelView) -> str:
    """Sizes of the model, a table by layer, and the memory plan."""
    rows = [("layer", "operator", "MACs", "constants", "scratch", "output")]
    for call in view.program.calls():
        constants = sum(b.nbytes for b in call.arguments if b in view.constants)
        out = call.arguments[-1].nbytes
        rows.append((call.layer[:48], call.op, f"{call.macs:,}", f"{constants:,}", f"{view.scratch_bytes(call):,}", f"{out:,}"))
    widths = [max(len(r[k]) for r in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip() for r in rows]
    head = (
        f"{view.name} for {view.target.label}: {view.macs:,} MACs, {view.constant_bytes:,} bytes of constants, "
        f"{view.workspace_size:,} bytes of workspace\n"
    )
    return f"{head}\n" + "\n".join(lines) + f"\n\n{view.addresses.plan.report()}"


def check_budgets(view: ModelView, max_ram: int | None, max_flash: int | None) -> None:
    """CompileError E402 with the table by layer when the workspace or the constants exceed a budget."""
    problems = []
    for what, have, limit, hint in (
        ("RAM", view.workspace_size, max_ram, "a smaller input, --io caller, or `--option optimize=size` would help"),
        ("flash for constants", view.constant_bytes, max_flash, "quantised weights (int8) take a quarter"),
    ):
        if limit is not None and have > limit:
            problems.append(Problem("E402", f"needs {have:,} bytes of {what}, the budget is {limit:,}", view.source_name, hint))
    if problems:
        raise CompileError([*problems[:-1], Problem("E402", f"{problems[-1].message}\n{report(view)}", problems[-1].where, problems[-1].hint)])
