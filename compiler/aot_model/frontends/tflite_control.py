"""TFLite: resource variables, and operators that run other sub-graphs."""

from __future__ import annotations

from aot_model.frontends.tflite_site import Site, rule
from aot_model.frontends.tflite_variables import Key
from aot_model.ir.graph import Value
from aot_model.ir.types import DType
from aot_model.ops.registry import OperatorError


@rule("VAR_HANDLE")
def var_handle(n: Site) -> Value:
    """The handle is a placeholder; what matters is the variable's name."""
    container, name = ((n.operator.options.get("VarHandleOptions", k) or b"") for k in ("Container", "SharedName"))
    handle = n.constant(0, DType.INT32)
    n.variables.handles[handle] = (container, name)
    return handle


def _variable(n: Site) -> tuple[Key, str]:
    found = n.variables.handles.get(n.x(0))
    if found is None:
        raise OperatorError("the first input is not the handle of a variable")
    return ("resource", found), found[1].decode("utf-8", "replace") or "variable"


@rule("READ_VARIABLE")
def read_variable(n: Site) -> Value:
    key, name = _variable(n)
    return n.variables.read(key, name, n.out())


@rule("ASSIGN_VARIABLE")
def assign_variable(n: Site) -> list[Value]:
    key, name = _variable(n)
    n.variables.assign(key, name, n.x(1))
    return []


@rule("CALL_ONCE")
def call_once(n: Site) -> list[Value]:
    """Initial values of variables."""
    n.host.once(int(n.operator.options.get("CallOnceOptions", "InitSubgraphIndex")))
    return []
