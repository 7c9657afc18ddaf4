"""Compiled models in Python: `aot_model.load("libkws.so")`, for libraries built with --interface module.

    kws = load("libkws.so")
    probabilities, = kws(samples)            # arrays in, arrays out
    kws.set_input_zero_copy("input", samples); kws.set_output_zero_copy(0, result); kws.run()

Arrays are numpy's, or anything with __dlpack__ in the CPU's memory (torch, jax), which is used where it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.ir.strings import encoded
from aot_model.ir.types import DType, Quantisation

# In the order of aot_model_dtype in model.h, from 1 on.
_DTYPES = """FLOAT32 FLOAT64 FLOAT16 BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL FLOAT8E4M3FN FLOAT8E4M3FNUZ
    FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT6E2M3 FLOAT6E3M2 FLOAT4E2M1 INT4 INT2 UINT4 UINT2 STRING16 STRING32 STRING64 STRING128
    STRING256 STRING512 STRING1024""".split()
_ERRORS = {
    -1: "an input or output is not set", -2: "memory is not aligned", -3: "the parameters are missing, damaged or of another model",
    -4: "an operator of an external library failed", -12: "a string is too long", -13: "an element is none of the categories that the model knows",
}  # fmt: skip

MAX_DEVICES = 64
"""Contexts that are not given are NULL, which the model refuses."""
Array = np.ndarray
Key = int | str


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("c_name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int32)), ("scales", ctypes.POINTER(ctypes.c_float)),
        ("zero_points", ctypes.POINTER(ctypes.c_int32)), ("bytes", ctypes.c_uint32), ("quantised", ctypes.c_uint16), ("axis", ctypes.c_int8),
        ("rank", ctypes.c_uint8), ("dtype", ctypes.c_uint8),
    )  # fmt: skip


class _Pool(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("bytes", ctypes.c_uint32), ("align", ctypes.c_uint32))


class _Metadata(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32), ("name", ctypes.c_char_p), ("compiler", ctypes.c_char_p), ("target", ctypes.c_char_p),
        ("model_sha256", ctypes.c_char_p), ("inputs", ctypes.POINTER(_Tensor)), ("outputs", ctypes.POINTER(_Tensor)), ("pools", ctypes.POINTER(_Pool)),
        ("num_inputs", ctypes.c_uint16), ("num_outputs", ctypes.c_uint16), ("num_pools", ctypes.c_uint16), ("constant_bytes", ctypes.c_uint32),
        ("input_bytes", ctypes.c_uint32), ("output_bytes", ctypes.c_uint32), ("macs", ctypes.c_uint64),
    )  # fmt: skip


_POINTERS = ctypes.POINTER(ctypes.c_void_p)


class _Module(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32), ("caller_pools", ctypes.c_uint32), ("metadata", ctypes.POINTER(_Metadata)),
        ("run", ctypes.CFUNCTYPE(ctypes.c_int32, _POINTERS, _POINTERS)), ("reset", ctypes.CFUNCTYPE(None, _POINTERS)),
        ("set_params", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32)),
    )  # fmt: skip


class ModelError(Exception):
    """A model returned an error; `status` is its code, one of AOT_MODEL_ERROR_… of model.h."""

    def __init__(self, model: str, status: int) -> None:
        self.status = status
        super().__init__(f"{model}: {_ERRORS.get(status, 'error')} ({status})")


@dataclass(frozen=True)
class Port:
    """An input or output: its names in the model and in C, shape, element type and quantisation."""

    name: str
    c_name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    quantisation: Quantisation | None


@dataclass(frozen=True)
class Pool:
    """Memory that the model works in, bytes."""

    name: str
    size: int
    align: int


class Module:
    """A model of a shared library in use. Each has pools of its own when the library was built with --workspace caller."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        """ValueError when the library has no model of that name, or one of another version."""
        try:
            self._module = _Module.in_dll(library, f"{name}_module")
        except ValueError:
            raise ValueError(f"the library has no model '{name}' that was compiled with --interface module") from None
        if self._module.version != 1 or self._module.metadata.contents.version != 1:
            raise ValueError(f"the model '{name}' was compiled by another version of aot-model")
        self._library = library
        facts = self._module.metadata.contents
        self.name = facts.name.decode()
        self.target, self.compiler, self.model_sha256 = facts.target.decode(), facts.compiler.decode(), facts.model_sha256.decode()
        self.macs, self.constant_bytes = int(facts.macs), int(facts.constant_bytes)
        self.inputs = tuple(_port(facts.inputs[k]) for k in range(facts.num_inputs))
        self.outputs = tuple(_port(facts.outputs[k]) for k in range(facts.num_outputs))
        self.pools = tuple(Pool(p.name.decode(), p.bytes, p.align) for p in facts.pools[: facts.num_pools])
        self._arrays: list[Array | None] = [None] * (len(self.inputs) + len(self.outputs))
        self._memory = [_aligned(p.size, p.align) if self._module.caller_pools else None for p in self.pools]
        self._bases = (ctypes.c_void_p * max(len(self.pools), 1))(*(m.ctypes.data if m is not None else None for m in self._memory))
        self._parameters: Array | None = None
        self.reset()

    def reset(self) -> None:
        """Start afresh, when the model keeps state from run to run."""
        if self._module.reset:
            self._module.reset(self._bases)

    def set_params(self, data: bytes | Array) -> None:
        """Give the content of <name>.params, which is copied once. ModelError when it is not that of this model."""
        if not self._module.set_params:
            raise ValueError(f"the parameters of '{self.name}' are part of its code")
        raw = np.frombuffer(data, np.uint8)
        memory = _aligned(raw.size, 4096)
        memory[:] = raw
        self._check(self._module.set_params(memory.ctypes.data, raw.size))
        self._parameters = memory

    def set_devices(self, *contexts: int) -> None:
        """Give the addresses of what its devices' drivers work on, in the order of <name>_devices. ModelError when one is missing."""
        try:
            function = self._library[f"{self.name}_set_devices"]
        except AttributeError:
            raise ValueError(f"the model '{self.name}' has no devices") from None
        self._check(function((ctypes.c_void_p * MAX_DEVICES)(*contexts)))

    def input_index(self, key: Key) -> int:
        """By index, name in the model, or name in C. KeyError when there is none."""
        return _index(self.inputs, key)

    def output_index(self, key: Key) -> int:
        """By index, name in the model, or name in C. KeyError when there is none."""
        return _index(self.outputs, key)

    def set_input(self, key: Key, value: Any) -> None:
        """Copy an input; other element types are converted where numpy does it safely. ValueError, TypeError."""
        k = self.input_index(key)
        port, given = self.inputs[k], _array(value)
        if given.shape != port.shape:
            raise ValueError(f"input '{port.name}' has shape {list(port.shape)}, not {list(given.shape)}")
        if port.dtype.kind == "S" and given.dtype.kind in "SUO":
            given = encoded(given, DType.of(port.dtype))
        self._arrays[k] = np.array(given.astype(port.dtype, casting="same_kind", copy=False), order="C", copy=True)

    def set_input_zero_copy(self, key: Key, value: Any) -> None:
        """Use an array where it is. TypeError for another element type, ValueError for shape, strides or alignment."""
        k = self.input_index(key)
        self._arrays[k] = _fitting(self.inputs[k], _array(value))

    def set_output_zero_copy(self, key: Key, value: Any) -> None:
        """Have an output written to an array, which must be writable. TypeError, ValueError."""
        k = self.output_index(key)
        array = _fitting(self.outputs[k], _array(value))
        if not array.flags.writeable:
            raise ValueError(f"the array for output '{self.outputs[k].name}' is read-only")
        self._arrays[len(self.inputs) + k] = array

    def run(self) -> None:
        """Run once. ModelError when an input is not set or the model fails."""
        if any(a is None for a in self._arrays[: len(self.inputs)]):
            raise ModelError(self.name, -1)
        for k, port in enumerate(self.outputs, len(self.inputs)):
            if self._arrays[k] is None:
                self._arrays[k] = np.empty(port.shape, port.dtype)
        pointers = [a.ctypes.data for a in self._arrays if a is not None]
        self._check(self._module.run((ctypes.c_void_p * max(len(pointers), 1))(*pointers), self._bases))

    def get_output(self, key: Key) -> Array:
        """An output of the last run, where it is: the next run writes it again. ValueError before the first."""
        found = self._arrays[len(self.inputs) + self.output_index(key)]
        if found is None:
            raise ValueError("there is no output before the first run")
        return found

    def __call__(self, *inputs: Any) -> list[Array]:
        """Outputs for inputs, in the order of the model; the arrays are the caller's."""
        if len(inputs) != len(self.inputs):
            raise TypeError(f"'{self.name}' has {len(self.inputs)} inputs, not {len(inputs)}")
        for k, value in enumerate(inputs):
            self.set_input(k, value)
        self.run()
        return [self.get_output(k).copy() for k in range(len(self.outputs))]

    def _check(self, status: int) -> None:
        if status != 0:
            raise ModelError(self.name, status)


def load(path: str | Path, name: str | None = None) -> Module:
    """A model of a shared library; its name is `kws` for libkws.so unless given. OSError, ValueError."""
    file = Path(path)
    return Module(ctypes.CDLL(str(file.resolve())), name or file.name.split(".")[0].removeprefix("lib"))


def _port(tensor: _Tensor) -> Port:
    n = tensor.quantised
    scales, zeros = (tuple(tensor.scales[:n]), tuple(tensor.zero_points[:n])) if n else ((), ())
    quantisation = Quantisation(scales, zeros, None if tensor.axis < 0 else tensor.axis) if n else None
    shape = tuple(tensor.shape[: tensor.rank]) if tensor.rank else ()
    return Port(tensor.name.decode(), tensor.c_name.decode(), shape, DType[_DTYPES[tensor.dtype - 1]].numpy, quantisation)


def _index(ports: Sequence[Port], key: Key) -> int:
    if isinstance(key, str):
        for names in ([p.name for p in ports], [p.c_name for p in ports]):
            if key in names:
                return names.index(key)
    elif 0 <= key < len(ports):
        return int(key)
    raise KeyError(f"there is no {key!r}; there are {', '.join(repr(p.name) for p in ports)}")


def _array(value: Any) -> Array:
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray) else np.asarray(value)


def _fitting(port: Port, array: Array) -> Array:
    if array.dtype != port.dtype:
        raise TypeError(f"'{port.name}' has elements of type {port.dtype}, not {array.dtype}")
    if array.shape != port.shape:
        raise ValueError(f"'{port.name}' has shape {list(port.shape)}, not {list(array.shape)}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"the array for '{port.name}' is not compact, row-major and aligned: it cannot be used where it is")
    return array


def _aligned(size: int, align: int) -> Array:
    memory = np.zeros(size + align, np.uint8)
    start = -memory.ctypes.data % align
    return memory[start : start + size]
