"""From a region to program functions: what a target's hooks `lower` and `compile_region` give, checked.

Every buffer of a region is the planner's, what is between its functions and their scratch included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from aot_model.ir.operator import Inputs, Operator
from aot_model.ir.program import Access, Buffer, Call, Device, Function, Once, Overlap, Role
from aot_model.ir.strided import Strided
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, bound, shapes_of, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.site import Site
from aot_model.kernels.target import Target
from aot_model.lowering.memory_plan import PLANNED
from aot_model.ops.registry import operator
from aot_model.partition.hooks import check_device, checked, header_of, identifier_of, wrong
from aot_model.partition.offload import Blob, Offload, Source
from aot_model.partition.region import Match, Region

if TYPE_CHECKING:
    from aot_model.kernels.site import Site
    from aot_model.kernels.target import Target


class RegionSite:
    """Where a region is put: what the hook `lower` adds its calls to, in the order in which they run.

    Values of the region's graph have memory: its inputs and outputs where the rest of the model has them,
    what is between in the workspace, constants in flash.
    """

    def __init__(self, site: Site, region: Region) -> None:
        self._site = site
        self.region = region
        self.calls: list[Call] = []
        self._offload = _offload(region.target)
        self._buffers: dict[Value, Buffer] = {}
        self._given: set[Buffer] = set()
        self._first: set[Call] = set()
        """Calls that are made once."""
        if self._offload.device is not None:
            check_device(region.target, self._offload.device)
        for inner, outer in zip(region.graph.inputs, site.node.inputs, strict=True):
            assert outer is not None
            self._buffers[inner] = site.buffer(outer)
            self._given.add(self._buffers[inner])
        for inner, outer in zip(region.graph.outputs, site.node.outputs, strict=True):
            self._buffers[inner] = site.buffer(outer)

    @property
    def target(self) -> Target:
        """The region's target, with its options."""
        return self.region.target

    @property
    def processor(self) -> Target:
        """The target that computes the rest of the model."""
        return self._site.target

    def buffer(self, value: Value) -> Buffer:
        """The memory of a value of the region; of a constant as it is given, see constant()."""
        if value.data is not None:
            return self._pack(value.name, Packed(value.name, value.data))
        if value not in self._buffers:
            if all(value not in n.outputs for n in self.region.nodes):
                raise ValueError(f"value '{value.name}' is not one of the region")
            self._buffers[value] = Buffer(
                value.name, value.type, Role.WORKSPACE, quantisation=value.quantisation
            )
        return self._buffers[value]

    def align(self, value: Value, nbytes: int) -> bool:
        """Have the memory of a value at a multiple of `nbytes`, a power of two: cache lines, bursts.

        False where it is not for us to say: inputs and outputs of the caller, constants (see Packed), and
        pieces of a larger value that begin elsewhere.
        """
        check_memory(0, nbytes)
        buffer = self.buffer(value)
        owner, offset = buffer.root()
        if owner.role not in PLANNED or offset % nbytes:
            return False
        owner.align, buffer.align = max(owner.align, nbytes), max(buffer.align, nbytes)
        return True

    def constant(self, value: Value) -> Value:
        """A constant of the region as it is in memory: what update_constants made of it."""
        replaced = self.region.constants.get(value, value)
        if replaced is None:
            raise ValueError(f"constant '{value.name}' was taken over by update_constants")
        return replaced

    def call(
        self,
        name: str,
        body: str,
        arguments: Sequence[Argument],
        *,
        match: Match | None = None,
        includes: Iterable[str] = (),
        helpers: tuple[str, ...] = (),
        overlaps: tuple[Overlap, ...] = (),
        macs: int | None = None,
        note: str = "",
        fails: bool = False,
        device: bool = True,
    ) -> None:
        """Add a call of a function with this C body, whose parameters are the arguments.

        Memory of an argument is a value of the region, Packed data or Scratch. match: what it computes, for
        comments and reports. includes: headers; those of other libraries as written between the quotes of an
        #include. fails: the body returns an int32_t, 0 when all is well. device: with a device, open it
        before and close it after the call; the body has its context under the device's name. overlaps:
        outputs that may lie over inputs, by position.
        """
        function = Function(
            name,
            (),
            body,
            frozenset(header_of(self.target, f"region {self.region.name}", h) for h in includes),
            helpers,
            note,
            fails=fails,
            device=self._offload.device if device else None,
            owner=self.target.name if self._offload.emit is not None else "",
        )
        self._add(function, arguments, overlaps, match, macs)

    def external(
        self,
        name: str,
        arguments: Sequence[Argument],
        *,
        header: str,
        match: Match | None = None,
        macs: int | None = None,
        fails: bool = False,
        device: bool = True,
    ) -> None:
        """Add a call of a function that `header` declares: pointers in this order, then the context of the
        device.
        """
        headers = frozenset((header_of(self.target, f"region {self.region.name}", header),))
        self._add(
            Function(
                name,
                (),
                "",
                headers,
                external=True,
                fails=fails,
                device=self._offload.device if device else None,
            ),
            arguments,
            (),
            match,
            macs,
        )

    def once(self, name: str, arguments: Sequence[Argument], *, header: str) -> None:
        """Have a function that `header` declares called before the calls of the region that follow, the first
        time that they are reached.

        It gets constants (of the region, or Packed data), returns an int32_t, 0 when all is well, and is
        called again after an error, and after external parameters have been replaced. What it makes of them
        is the program's to keep: one for each call of the region.
        """
        self.external(name, arguments, header=header, macs=0, fails=True, device=False)
        self._first.add(self.calls[-1])

    def _add(
        self,
        function: Function,
        arguments: Sequence[Argument],
        overlaps: tuple[Overlap, ...],
        match: Match | None,
        macs: int | None,
    ) -> None:
        """Add a call of a function that has no parameters yet."""
        arguments = [self._argument(a) for a in arguments]
        params, buffers = bound(
            arguments, self._memory, self._pack, match.result.name if match else self.region.name
        )
        op = f"{self.target.name}:{match.pattern if match else self.region.name}"
        layer = match.result.name if match else self._site.node.name
        work = macs if macs is not None else sum(m.macs for m in ([match] if match else self.region.matches))
        self.calls.append(
            Call(
                replace(function, params=params),
                buffers,
                overlaps,
                layer,
                op,
                work,
                shapes_of(arguments),
                self.target.name,
            )
        )

    def _argument(self, argument: Argument) -> Argument:
        """The argument, a constant as update_constants left it."""
        memory = argument.memory
        if not isinstance(memory, (Value, Packed, Scratch)):
            raise TypeError(f"an argument is a {type(memory).__name__}, not a value, Packed or Scratch")
        if isinstance(memory, Scratch):
            check_memory(memory.nbytes, memory.align)
        elif isinstance(memory, Packed):
            check_memory(np.asarray(memory.data).nbytes, memory.align)
        return (
            replace(argument, memory=self.constant(memory))
            if isinstance(memory, Value) and memory.is_const
            else argument
        )

    def _memory(self, memory: Value | Strided) -> Buffer:
        assert isinstance(memory, Value)
        return self.buffer(memory)

    def _pack(self, name: str, packed: Packed) -> Buffer:
        return self._site.lowering.constant_buffer(name, packed)

    def finish(self) -> None:
        """Check the calls and add them to the program. CompileError E502."""
        where = f"lower of region {self.region.name} ({self._site.node.name})"
        filled = set(self._given)
        for call in self.calls:
            self._check_call(where, call, filled)
            filled.update(call.buffers(Access.WRITE))
        for value in self.region.graph.outputs:
            if self._buffers[value] not in filled:
                raise wrong(self.target, where, f"no call writes the output '{value.name}'")
        for call in self.calls:
            self._site.add(Once(call) if call in self._first else call)

    def _check_call(self, where: str, call: Call, filled: set[Buffer]) -> None:
        f = call.function
        identifier_of(self.target, where, "the name of a function,", f.name)
        names = [identifier_of(self.target, where, f"a parameter of '{f.name}',", p.name) for p in f.params]
        if f.device is not None and f.device.context is not None:
            names.append(f.device.name)
        if len(set(names)) != len(names):
            raise wrong(self.target, where, f"two parameters of '{f.name}' have one name: {', '.join(names)}")
        if call in self._first:
            if not all(b.root()[0].role is Role.CONSTANT for b in call.arguments) or any(
                p.access is not Access.READ for p in f.params
            ):
                raise wrong(
                    self.target, where, f"'{f.name}' is called once, and gets something else than constants"
                )
        elif not any(p.access is Access.WRITE for p in f.params):
            raise wrong(self.target, where, f"'{f.name}' writes nothing")
        if any(not 0 <= k < len(f.params) for o in call.overlaps for k in (o.input, o.output)):
            raise wrong(
                self.target, where, f"an overlap of '{f.name}' is between parameters that it does not have"
            )
        for param, buffer in zip(f.params, call.arguments, strict=True):
            constant = buffer.root()[0].role is Role.CONSTANT
            if param.access is Access.READ and not constant and buffer not in filled:
                raise wrong(self.target, where, f"'{f.name}' reads '{buffer.name}' before anything writes it")
            if param.access is Access.WRITE and (constant or buffer in self._given):
                raise wrong(
                    self.target, where, f"'{f.name}' writes '{buffer.name}', which is an input or a constant"
                )


def lower_region(site: Site, region: Region) -> None:
    """Add the calls of a region to the program. CompileError E502 when the target's hooks fail."""
    offload = _offload(region.target)
    where = f"lower of region {region.name} ({site.node.name})"
    build = RegionSite(site, region)
    if offload.lower is not None:
        lower = offload.lower
        checked(region.target, where, lambda: lower(region, build))
    elif offload.compile_region is not None:
        compile_region = offload.compile_region
        hook = f"compile_region of region {region.name} ({site.node.name})"
        made = checked(region.target, hook, lambda: compile_region(region), Source, Blob)
        if made is None:
            raise wrong(region.target, hook, "returned None, not a Source or a Blob")
        _check_artifact(region.target, hook, made)
        checked(region.target, hook, lambda: _artifact(build, made, offload.device))
    else:
        raise wrong(region.target, "offload", "has neither lower nor compile_region")
    build.finish()


def _offload(target: Target) -> Offload:
    found: Offload | None = target.offloads
    assert found is not None
    return found


def _ports(build: RegionSite) -> list[Argument]:
    graph = build.region.graph
    inputs = [Argument(f"x{k}", v) for k, v in enumerate(graph.inputs)]
    return [*inputs, *(written(f"y{k}", v) for k, v in enumerate(graph.outputs))]


def check_memory(nbytes: int, align: int) -> None:
    """ValueError when that is no size or no alignment."""
    if not isinstance(nbytes, int) or nbytes < 0:
        raise ValueError(f"{nbytes!r} is not a number of bytes")
    if not isinstance(align, int) or align < 1 or align & (align - 1):
        raise ValueError(f"{align!r} is not an alignment: a power of two")


def _check_artifact(target: Target, hook: str, made: Source | Blob) -> None:
    """CompileError E502 when what compile_region made cannot be called."""
    identifier_of(target, hook, "the function", made.function)
    checked(target, hook, lambda: check_memory(made.scratch, made.align))
    if isinstance(made, Blob) and not made.data:
        raise wrong(target, hook, "the blob is empty")
    if isinstance(made, Source) and not (
        re.search(rf"\b{made.function}\s*\(", made.text) if made.text else made.includes
    ):
        raise wrong(target, hook, f"its text does not define '{made.function}'")


def _artifact(build: RegionSite, made: Source | Blob, device: Device | None) -> None:
    """The call of what compile_region made."""
    arguments = _ports(build)
    if made.scratch:
        arguments.append(Argument("scratch", Scratch("scratch", made.scratch, made.align, "uint8_t")))
    if isinstance(made, Blob):
        body = _interpreter(build, made, device)
        blob = Packed("blob", np.frombuffer(made.data, np.uint8), made.align, code=True)
        build.call(
            build.region.name,
            body,
            [Argument("blob", blob), *arguments],
            includes=(made.header,),
            fails=True,
            note=f"{len(made.data):,} bytes for {made.function}()",
        )
        return
    extra = [device.name] if device is not None and device.context is not None else []
    body = (
        "    "
        f"{'return ' if made.fails else ''}{made.function}("
        f"{', '.join([*(a.name for a in arguments), *extra])});"
    )
    build.call(
        build.region.name,
        body,
        arguments,
        includes=made.includes,
        helpers=(made.text,) if made.text else (),
        fails=made.fails,
    )


def _interpreter(build: RegionSite, made: Blob, device: Device | None) -> str:
    graph = build.region.graph
    lines = [
        f"    const void *const inputs[] = {{ "
        f"{', '.join(f'x{k}' for k in range(len(graph.inputs))) or 'NULL'} }};",
        f"    void *const outputs[] = {{ {', '.join(f'y{k}' for k in range(len(graph.outputs)))} }};",
        "",
    ]
    context = f", {device.name}" if device is not None and device.context is not None else ""
    lines.append(
        f"    return {made.function}(blob, {len(made.data)}u, inputs, outputs, "
        f"{'scratch' if made.scratch else 'NULL'}{context});"
    )
    return "\n".join(lines)


def update_constants(region: Region) -> None:
    """Let the region's target take its constants over. CompileError E502 when what it returns is not that."""
    hook = _offload(region.target).update_constants
    if hook is None:
        return
    where = f"update_constants of region {region.name}"
    answer = checked(region.target, where, lambda: dict(hook(region)))
    known = set(region.constant_values())
    for old, new in answer.items():
        if old not in known:
            raise wrong(
                region.target,
                where,
                f"replaces {getattr(old, 'name', old)!r}, which is not a constant of the region",
            )
        if new is not None and (not isinstance(new, Value) or new.data is None):
            raise wrong(region.target, where, f"gives {new!r} for '{old.name}', which is not a constant")
    region.constants.update(answer)


@operator("Region", domain="aot", stores_itself=True)
class RegionCall(Operator):
    """Outputs of a region for its inputs."""

    region: Region

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [v.type for v in self.region.graph.outputs]

    def lower(self, site: Site) -> None:
        lower_region(site, self.region)
