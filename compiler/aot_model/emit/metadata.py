"""The facts of a compiled model, from which the metadata in C and <name>.json are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aot_model.emit import parameters
from aot_model.emit.parameters_file import checks, structure, structure_hash
from aot_model.library import facts
from aot_model.library.metadata import Metadata
from aot_model.lowering.memory_plan import live_bytes

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView, Port


def metadata_of(view: ModelView) -> Metadata:
    o, target = view.options, view.target
    asked = {
        "workspace": o.workspace,
        "io": o.io,
        "metadata": o.metadata,
        "params": o.params,
        "interfaces": list(o.interfaces),
        "profile": o.profile,
        "string_bytes": o.string_bytes,
        **({"fetch": o.fetch} if o.fetch else {}),
    }
    external = None
    if view.external:
        external = facts.Parameters(
            parameters.file_size(view.parameters),
            parameters.alignment(view.parameters),
            structure_hash(view).hex(),
            f"{view.name}.params",
            tuple(structure(view)),
            tuple(checks(view)),
        )
    layers = (
        facts.Layer(
            c.layer,
            c.op,
            c.macs,
            used,
            sum(b.nbytes for b in c.arguments if b in view.constants),
            view.scratch_bytes(c),
            view.calls[c].name,
        )
        for c, (_, used) in zip(view.program.calls(), live_bytes(view.program, view.addresses), strict=True)
    )
    return Metadata(
        view.name,
        view.version,
        target.specification,
        view.source_name,
        view.sha256,
        tuple(map(_tensor, view.inputs)),
        tuple(map(_tensor, view.outputs)),
        tuple(
            facts.Pool(p.name, p.field, p.size, p.align, p.section, q.speed, q.targets)
            for p, q in zip(view.pools, view.addresses.pools, strict=True)
        ),
        tuple(layers),
        view.constant_bytes,
        sum(b.nbytes for b in view.program.states),
        view.addresses.plan.lower_bound,
        view.macs,
        o.workspace == "caller",
        o.io == "workspace",
        external,
        {**asked, **{k: target.values[k] for k in sorted(target.values)}},
        tuple(view.program.notes),
        tuple(facts.Device(d.name, d.header, d.context) for d in view.devices),
        tuple(
            facts.Pool(p.name, p.name, p.size, p.align, p.section, q.speed)
            for p, q in zip(view.constant_pools, o.constant_pools, strict=True)
        ),
        _told(view) if o.trace else (),
    )


def _told(view: ModelView) -> tuple[facts.Told, ...]:
    numbers = view.call_numbers
    return tuple(
        facts.Told(
            tuple(dict.fromkeys([t.name, *(s.name for s in t.tensors)])),
            t.type,
            tuple(numbers[c] for c in t.calls),
            t.axes,
        )
        for t in view.traced
    )


def _tensor(port: Port) -> facts.Tensor:
    b = port.buffer
    return facts.Tensor(
        b.name, port.c_name, b.type, port.quantisation, port.pool.name if port.pool else None, port.offset
    )
