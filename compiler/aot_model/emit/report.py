"""The report: where the bytes and the multiply-accumulates are, layer by layer."""

from __future__ import annotations

from aot_model.emit.view import ModelView


def report(view: ModelView) -> str:
    """Sizes of the model, a table by layer, and the memory plan."""
    rows = [("layer", "operator", "MACs", "constants", "scratch", "output")]
    for call in view.program.calls():
        constants = sum(b.nbytes for b in call.arguments if b in view.constants)
        out = call.arguments[-1].nbytes
        rows.append(
            (
                call.layer[:48],
                call.op,
                f"{call.macs:,}",
                f"{constants:,}",
                f"{view.scratch_bytes(call):,}",
                f"{out:,}",
            )
        )
    widths = [max(len(r[k]) for r in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(
            c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(r, widths, strict=True))
        ).rstrip()
        for r in rows
    ]
    head = (
        f"{view.name} for {view.target.label}: {view.macs:,} MACs, {view.constant_bytes:,} bytes of "
        "constants, "
        f"{view.workspace_size:,} bytes of workspace\n"
    )
    return f"{head}\n" + "\n".join(lines) + f"\n\n{view.addresses.plan.report()}"
