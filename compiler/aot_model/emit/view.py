"""What the templates see of a compiled model: names, sizes and texts, worked out once for C, header and
JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from aot_model import __version__
from aot_model.c.function import CFunction
from aot_model.c.names import comment_text, identifiers, library_name, string_literal
from aot_model.emit import parameters
from aot_model.emit.constant_pools import ConstantPool, place
from aot_model.emit.constants import is_bulky, state_fill
from aot_model.emit.functions import collect_functions, emitted_by_targets
from aot_model.emit.standard_headers import missing_headers, uses_double
from aot_model.emit.trace import Traced, traced
from aot_model.errors import fail
from aot_model.ir.program import Access, Branch, Buffer, Call, Device, Loop, Once, Program, Role, Step
from aot_model.ir.strings import DEFAULT_WIDTH
from aot_model.ir.types import Quantisation
from aot_model.kernels.target import LITTLE_ENDIAN, Target
from aot_model.lowering.fetch import FETCH
from aot_model.lowering.memory_plan import Addresses, step_numbers
from aot_model.memory import Pool

ABI = 1
"""AOT_MODEL_ABI of runtime/include/aot_model/model.h."""


@dataclass(frozen=True)
class Options:
    """What the user asked of the generated library."""

    workspace: str = "static"
    io: str = "caller"
    metadata: str = "full"
    sections: Mapping[str, str] = field(default_factory=dict)
    """By pool: the linker section of its array."""
    params: str = "linked"
    interfaces: tuple[str, ...] = ()
    """Of "module", "positional", "packed" and "tvm-ffi"."""
    profile: bool = False
    """Whether ticks of each layer are counted."""
    string_bytes: int = DEFAULT_WIDTH
    """Size of an element of tensors of strings."""
    constant_pools: tuple[Pool, ...] = ()
    """Where the constants of the code are; none: where the linker puts constants."""
    trace: bool = False
    """Whether each tensor is told to the program as soon as it is complete: by its number and name."""
    fetch: int = 0
    """Bytes of the workspace that copies of weights ahead of their layers take at most; 0: there are none."""


@dataclass(frozen=True)
class WorkPool:
    """Memory that the model works in. A single pool is "the workspace"; several are called by their names."""

    name: str
    macro: str
    """<NAME>_<macro>_SIZE and _ALIGN."""
    field: str
    """Of the array, and of the struct of pointers."""
    at: str
    """Macro: address of an offset."""
    size: int
    align: int
    section: str | None


def work_pools(addresses: Addresses, options: Options) -> tuple[WorkPool, ...]:
    """The pools as C has them, in the order of preference."""
    plans = addresses.plan.pools.items()
    if len(plans) == 1:
        return tuple(
            WorkPool(n, "WORKSPACE", "workspace", "AT", p.size, p.align, options.sections.get(n))
            for n, p in plans
        )
    labels = identifiers([n for n, _ in plans], "pool")
    return tuple(
        WorkPool(n, f"{c.upper()}_POOL", c, f"AT_{c}", p.size, p.align, options.sections.get(n))
        for (n, p), c in zip(plans, labels, strict=True)
    )


@dataclass(frozen=True)
class Port:
    """An input or output of the generated library."""

    buffer: Buffer
    c_name: str
    macro: str
    """The part of its macros' names that is its own."""
    pool: WorkPool | None = None
    """Where it is, with --io workspace."""
    offset: int | None = None

    @property
    def quantisation(self) -> Quantisation | None:
        return self.buffer.quantisation


@dataclass(frozen=True)
class ModelView:
    """A compiled model, ready to be written."""

    name: str
    program: Program
    addresses: Addresses
    target: Target
    options: Options
    source_name: str
    sha256: str
    calls: dict[Call, CFunction] = field(default_factory=dict)
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    pools: tuple[WorkPool, ...] = ()
    constants: dict[Buffer, str] = field(default_factory=dict)

    @staticmethod
    def of(
        name: str,
        program: Program,
        addresses: Addresses,
        target: Target,
        options: Options,
        source_name: str,
        sha256: str,
    ) -> ModelView:
        name = library_name(name, Path(name))
        pools = work_pools(addresses, options)
        by_name = {p.name: p for p in pools}

        def ports(buffers: list[Buffer], names: list[str], macros: list[str]) -> tuple[Port, ...]:
            found = [addresses.of.get(b) if options.io == "workspace" else None for b in buffers]
            places = [(by_name[at[0]], at[1]) if at else (None, None) for at in found]
            return tuple(
                Port(b, n, m.upper(), *at) for b, n, m, at in zip(buffers, names, macros, places, strict=True)
            )

        ins = identifiers([b.name for b in program.inputs], "input")
        outs = identifiers([b.name for b in program.outputs], "output")
        macros = identifiers(
            [*ins, *(f"{n}_output" if n in ins else n for n in outs)],
            taken=(
                "workspace",
                "params",
                "profile",
                "trace",
                *(p.macro for p in pools),
                *(f"{p.name}_constants" for p in options.constant_pools),
            ),
        )
        constants = program.constants()
        labels = identifiers([b.name for b in constants], "constant")
        return ModelView(
            name,
            program,
            addresses,
            target,
            options,
            source_name,
            sha256,
            collect_functions(program, addresses.of, name),
            ports(program.inputs, ins, macros[: len(ins)]),
            ports(program.outputs, outs, macros[len(ins) :]),
            pools,
            {b: f"{name}_c_{n}" for b, n in zip(constants, labels, strict=True)},
        )

    # --- sizes ----------------------------------------------------------------------------------------------

    @property
    def upper(self) -> str:
        return self.name.upper()

    @property
    def version(self) -> str:
        return __version__

    @property
    def workspace_size(self) -> int:
        return sum(p.size for p in self.pools)

    @property
    def workspace_align(self) -> int:
        return max((p.align for p in self.pools), default=1)

    @cached_property
    def constant_bytes(self) -> int:
        return sum(b.nbytes for b in self.constants)

    @property
    def macs(self) -> int:
        return sum(c.macs for c in self.program.calls())

    @property
    def functions(self) -> list[CFunction]:
        return list(dict.fromkeys(self.calls.values()))

    @cached_property
    def includes(self) -> list[str]:
        headers = {"stdint.h", "stdbool.h"}.union(*(f.function.includes for f in self.functions))
        headers |= {"string.h"} if self.program.states or self.fetches else set()
        headers |= {"aot_model/parameters.h"} if self.external else set()
        headers |= {"aot_model/tvm_ffi.h"} if "tvm-ffi" in self.options.interfaces else set()
        headers |= {f'"{d.header}"' for d in self.devices}
        data = [b.data for b in (*self.linked_constants, *self.program.states) if b.data is not None]
        headers |= missing_headers(
            headers, [t for f in self.own_functions for t in (f.function.body, *f.function.helpers)], data
        )
        return sorted(
            headers - {"stdint.h", "stdbool.h"},
            key=lambda h: (h.startswith('"'), h.startswith("aot_model/"), h),
        )

    @property
    def doubles(self) -> bool:
        """Whether it computes in double, which has 32 bits with some compilers."""
        return any(
            uses_double(t)
            for f in self.own_functions
            for t in (f.function.body, *f.function.helpers, *(p.element for p in f.function.params))
        )

    @cached_property
    def devices(self) -> list[Device]:
        """In the order of first use. CompileError E502 when two have one name."""
        found = list(
            dict.fromkeys(f.function.device for f in self.functions if f.function.device is not None)
        )
        names = [d.name for d in found]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise fail(
                "E502",
                f"targets {self.target.label}: two devices are called '{twice}'",
                hint="targets that share a device declare it alike",
            )
        return found

    @property
    def contexts(self) -> list[Device]:
        """Devices whose context the program hands to a run."""
        return [d for d in self.devices if d.context is not None]

    @property
    def can_fail(self) -> bool:
        """Whether a run can stop with an error of something that is not part of this code."""
        return bool(self.devices) or any(c.function.fails for c in self.program.calls())

    @property
    def own_functions(self) -> list[CFunction]:
        """Functions whose text is in this file, as the lowering wrote it."""
        return [f for f in self.functions if not f.function.external and not f.function.owner]

    @cached_property
    def emitted(self) -> list[tuple[str, str]]:
        """(target, C text) of the functions that targets write themselves."""
        return emitted_by_targets(self.target, self.functions)

    @property
    def foreign_headers(self) -> list[str]:
        """Headers of libraries and drivers that the code includes."""
        return [h.strip('"') for h in self.includes if h.startswith('"')]

    @property
    def helpers(self) -> list[str]:
        return list(dict.fromkeys(h for f in self.functions for h in f.function.helpers))

    @cached_property
    def traced(self) -> tuple[Traced, ...]:
        """What is told of a run with Options.trace, in the order of the run."""
        return traced(self.program)

    @property
    def fetches(self) -> bool:
        """Whether a run copies weights ahead."""
        return any(c.op == FETCH for c in self.program.calls())

    @cached_property
    def once(self) -> list[Once]:
        """The calls that are made the first time only."""

        def found(steps: list[Step]) -> Iterator[Once]:
            for step in steps:
                if isinstance(step, Once):
                    yield step
                elif isinstance(step, Loop):
                    yield from found(step.body)
                elif isinstance(step, Branch):
                    yield from (*found(step.then), *found(step.otherwise))

        return list(found(self.program.body))

    @cached_property
    def constant_pools(self) -> tuple[ConstantPool, ...]:
        return (
            place(self.constants, self.options.constant_pools, self.options.sections)
            if self.options.constant_pools
            else ()
        )

    def bulky(self, constant: Buffer) -> bool:
        """Whether an array is written as strings."""
        return is_bulky(constant, self.constant_bytes)

    @cached_property
    def either_order(self) -> bool:
        """Whether elements of several bytes are written byte by byte, for processors of either order."""
        if any(LITTLE_ENDIAN in t.c_checks for t in self.target.lineage()):
            return False
        return any(self.bulky(b) and b.type.dtype.size > 1 for b in self.linked_constants)

    def attributes(self, constant: Buffer) -> str:
        """C text behind the declarator of an array of constants."""
        pool = next((p for p in self.constant_pools if constant in p.buffers), None)
        asked = next(
            (p.align for p in self.options.constant_pools if pool is not None and p.name == pool.name), 1
        )
        align = max(constant.align, asked)
        text = f" AOT_MODEL_ALIGNED({align})" if align > constant.type.dtype.alignment else ""
        return text + (
            f" AOT_MODEL_SECTION({string_literal(pool.section)})" if pool is not None and pool.section else ""
        )

    def member_attributes(self, constant: Buffer) -> str:
        """... of one in a union, which compilers pack where -fpack-struct asks for it."""
        alignment = constant.type.dtype.alignment
        return f" AOT_MODEL_ALIGNED({alignment})" if alignment > 1 else ""

    # --- external parameters --------------------------------------------------------------------------------

    @property
    def external(self) -> bool:
        """Whether the constants are not part of the code."""
        return self.options.params == "external"

    @cached_property
    def parameters(self) -> dict[Buffer, str]:
        """The constants that are not part of the code."""
        return {b: n for b, n in self.constants.items() if self.external and not b.code}

    @cached_property
    def linked_constants(self) -> dict[Buffer, str]:
        """The constants that are part of the code."""
        return {b: n for b, n in self.constants.items() if b not in self.parameters}

    @cached_property
    def parameter_offsets(self) -> dict[Buffer, int]:
        """By constant: its place behind the header of the parameters."""
        return parameters.offsets(self.parameters)

    # --- memory ---------------------------------------------------------------------------------------------

    @property
    def used_pools(self) -> list[WorkPool]:
        """Pools in which something lies."""
        used = {pool for pool, _ in self.addresses.of.values()}
        return [p for p in self.pools if p.name in used]

    @property
    def workspace_parameter(self) -> str:
        """Declaration of the parameter for the caller's memory; empty when the library owns it."""
        if self.options.workspace != "caller":
            return ""
        return "void *workspace" if len(self.pools) == 1 else f"const {self.name}_pools *pools"

    def base(self, pool: WorkPool) -> str:
        """C text of the address of a pool, a pointer to bytes."""
        if self.options.workspace != "caller":
            return f"{self.name}_{pool.field}" if len(self.pools) == 1 else f"{self.name}_pool_{pool.field}"
        return "(uint8_t *)workspace" if len(self.pools) == 1 else f"(uint8_t *)pools->{pool.field}"

    def address(self, buffer: Buffer, element: str) -> str:
        """C text of a pointer to a buffer in a pool."""
        pool, offset = self.addresses.of[buffer]
        return f"{next(p.at for p in self.pools if p.name == pool)}({element}, {offset})"

    # --- texts ----------------------------------------------------------------------------------------------

    def argument(self, buffer: Buffer, element: str) -> str:
        """C text of the pointer that a call passes."""
        owner, offset = buffer.root()
        if owner.role is Role.CONSTANT:
            if owner in self.parameters:
                return f"PARAM({element}, {self.parameter_offsets[owner] + offset})"
            name = self.constants[owner] + (".values" if self.bulky(owner) else "")
            return name if offset == 0 else f"&{name}[{offset // owner.type.dtype.size}]"
        if buffer in self.addresses.of:
            return self.address(buffer, element)
        ports = self.inputs if owner.role is Role.INPUT else self.outputs
        struct = "inputs" if owner.role is Role.INPUT else "outputs"
        name = next(p.c_name for p in ports if p.buffer is owner)
        same = element == owner.type.dtype.c_type
        base = f"{struct}->{name}" + (f" + {offset // owner.type.dtype.size}" if offset else "")
        return (
            base
            if same
            else (
                f"({'const ' if owner.role is Role.INPUT else ''}{element} "
                f"*)({'const ' if owner.role is Role.INPUT else ''}void *)({base})"
            )
        )

    def call_text(self, call: Call) -> str:
        f = self.calls[call]
        arguments = [self.argument(call.arguments[k], f.element(k)) for k in f.kept]
        if f.context is not None:
            arguments.append(f"devices->{f.context.name}")
        return f"{f.name}({', '.join(arguments)});"

    @cached_property
    def steps(self) -> dict[Call, int]:
        """The number of each call's step, as in the live ranges of the memory plan."""
        return step_numbers(self.program)

    @cached_property
    def call_numbers(self) -> dict[Call, int]:
        """Index of each call in "layers" of the metadata."""
        return {call: k for k, call in enumerate(self.program.calls())}

    def resets(self) -> list[str]:
        """C statements that give every state its first content."""
        lines = []
        for k, buffer in enumerate(self.program.states):
            place = self.address(buffer, "void")
            fill = state_fill(buffer)
            if fill is not None:
                lines.append(f"memset({place}, {fill}, {buffer.nbytes}u); /* {comment_text(buffer.name)} */")
            else:
                lines.append(
                    f"memcpy({place}, {self.name}_state{k}, {buffer.nbytes}u); /* "
                    f"{comment_text(buffer.name)} */"
                )
        return lines

    def initial_states(self) -> list[tuple[int, Buffer]]:
        """States whose first content is a constant array: (number, buffer)."""
        return [(k, b) for k, b in enumerate(self.program.states) if state_fill(b) is None]

    def scratch_bytes(self, call: Call) -> int:
        return sum(b.nbytes for b in call.buffers(Access.SCRATCH))
