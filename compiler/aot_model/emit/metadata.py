"""<name>.json: the same facts as aot_model_metadata, and the layers, for build systems and tools."""

from __future__ import annotations

import json
from typing import Any

from aot_model.emit import parameters
from aot_model.emit.view import ModelView, Port

SCHEMA = 1


def metadata(view: ModelView) -> dict[str, Any]:
    """The facts as plain data."""
    plan = view.addresses.plan
    facts = {
        "schema": SCHEMA,
        "name": view.name,
        "c_name": view.name,
        "compiler": view.version,
        "model": {"file_name": view.source_name, "sha256": view.sha256},
        "target": view.target.specification,
        "options": {"workspace": view.options.workspace, "io": view.options.io, "metadata": view.options.metadata, "params": view.options.params, "interfaces": list(view.options.interfaces), "profile": view.options.profile, "string_bytes": view.options.string_bytes,
                    **{k: view.target.values[k] for k in sorted(view.target.values)}},
        "inputs": [_port(p) for p in view.inputs],
        "outputs": [_port(p) for p in view.outputs],
        "workspace": {"pools": [{"name": p.name, "c_name": p.field, "bytes": p.size, "align": p.align, "section": p.section} for p in view.pools]},
        "lower_bound": plan.lower_bound,
        "state_bytes": sum(b.nbytes for b in view.program.states),
        "constants_bytes": view.constant_bytes,
        "macs": view.macs,
        "layers": [
            {"name": c.layer, "op": c.op, "function": view.calls[c].name, "macs": c.macs, "scratch_bytes": view.scratch_bytes(c),
             "constant_bytes": sum(b.nbytes for b in c.arguments if b in view.constants)}
            for c in view.program.calls()
        ],
        "notes": list(view.program.notes),
    }  # fmt: skip
    if view.devices:
        facts["devices"] = [{"name": d.name, "header": d.header, "context": d.context} for d in view.devices]
    if view.external:
        facts["parameters"] = {
            "file": f"{view.name}.params", "bytes": parameters.file_size(view.constants), "align": parameters.alignment(view.constants),
            "hash": parameters.structure_hash(view).hex(), "structure": parameters.structure(view),
        }  # fmt: skip
    return facts


def _port(port: Port) -> dict[str, Any]:
    b, q = port.buffer, port.quantisation
    result: dict[str, Any] = {
        "name": b.name, "c_name": port.c_name, "dtype": b.type.dtype.label, "shape": list(b.type.shape), "bytes": b.nbytes,
        "quantisation": None if q is None else {"scale": list(q.scale), "zero_point": list(q.zero_point), "axis": q.axis},
    }  # fmt: skip
    if port.offset is not None:
        result["offset"] = port.offset
        result["pool"] = port.pool.name if port.pool else None
    return result


def metadata_text(view: ModelView) -> str:
    return json.dumps(metadata(view), indent=1, ensure_ascii=True, sort_keys=False) + "\n"
