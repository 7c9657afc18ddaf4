"""Compiled models in Python: `aot_model.load("libkws.so")`, for libraries built with --interface module.

    kws = load("libkws.so")
    probabilities, = kws(samples)            # arrays in, arrays out
    kws.set_input_zero_copy("input", samples); kws.set_output_zero_copy(0, result); kws.run()

Arrays are numpy's, or anything with __dlpack__ in the CPU's memory (torch, jax), which is used where it is.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.ir.strings import encoded, is_text
from aot_model.library.binary import Process, decode
from aot_model.library.facts import Layer, Tensor
from aot_model.library.metadata import Metadata

_ERRORS = {
    -1: "an input or output is not set",
    -2: "memory is not aligned",
    -3: "the parameters are missing, damaged or of another model",
    -4: "an operator of an external library failed",
    -12: "a string is too long",
    -13: "an element is none of the categories that the model knows",
}

MAX_DEVICES = 64
"""Contexts that are not given are NULL, which the model refuses."""
_CPU = 1
"""DLPack's number of the memory of the CPU."""
Array = np.ndarray
Key = int | str
_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_TICKS = ctypes.CFUNCTYPE(ctypes.c_uint32)


class _Module(ctypes.Structure):
    """aot_model_module of module.h."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("caller_pools", ctypes.c_uint32),
        ("metadata", ctypes.c_void_p),
        ("run", ctypes.CFUNCTYPE(ctypes.c_int32, _POINTERS, _POINTERS)),
        ("reset", ctypes.CFUNCTYPE(None, _POINTERS)),
        ("set_params", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32)),
        ("profile", ctypes.POINTER(ctypes.c_uint32)),
        ("ticks", ctypes.POINTER(ctypes.c_void_p)),
    )


class ModelError(Exception):
    """A model returned an error; `status` is its code, one of AOT_MODEL_ERROR_… of model.h."""

    def __init__(self, model: str, status: int) -> None:
        self.status = status
        super().__init__(f"{model}: {_ERRORS.get(status, 'error')} ({status})")


@dataclass(frozen=True)
class Timing:
    """Seconds of one run, for each repetition."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)

    @property
    def deviation(self) -> float:
        """Of the repetitions; 0 for a single one."""
        return statistics.stdev(self.seconds) if len(self.seconds) > 1 else 0.0

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)


class Module:
    """A model of a shared library in use. Each has pools of its own when the library was built with
    --workspace caller.
    """

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        """ValueError when the library has no model of that name, or one of another version."""
        try:
            self._module = _Module.in_dll(library, f"{name}_module")
        except ValueError:
            raise ValueError(
                f"the library has no model '{name}' that was compiled with --interface module"
            ) from None
        if self._module.version != 2:
            raise ValueError(f"the model '{name}' was compiled by another version of aot-model")
        self._library = library
        self.metadata = Metadata(*decode(Process(), self._module.metadata))
        told = self.metadata
        self.name, self.inputs, self.outputs, pools = told.name, told.inputs, told.outputs, told.pools
        self._arrays: list[Array | None] = [None] * (len(self.inputs) + len(self.outputs))
        self._memory = [_aligned(p.size, p.align) if self._module.caller_pools else None for p in pools]
        self._bases = (ctypes.c_void_p * max(len(pools), 1))(
            *(m.ctypes.data if m is not None else None for m in self._memory)
        )
        self._parameters: Array | None = None
        self.reset()

    def reset(self) -> None:
        """Start afresh, when the model keeps state from run to run."""
        if self._module.reset:
            self._module.reset(self._bases)

    def set_params(self, data: bytes | Array) -> None:
        """Give the content of <name>.params, which is copied once. ModelError when it is not that of this
        model.
        """
        if not self._module.set_params:
            raise ValueError(f"the parameters of '{self.name}' are part of its code")
        raw = np.frombuffer(data, np.uint8)
        memory = _aligned(raw.size, 4096)
        memory[:] = raw
        self._check(self._module.set_params(memory.ctypes.data, raw.size))
        self._parameters = memory

    def set_devices(self, *contexts: int) -> None:
        """Give the addresses of what its devices' drivers work on, in the order of <name>_devices. ModelError
        when one is missing.
        """
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
        """Copy an input; other element types are converted where numpy does it safely. ValueError,
        TypeError.
        """
        k = self.input_index(key)
        port, given = self.inputs[k], _array(value)
        if given.shape != port.shape:
            raise ValueError(f"input '{port.name}' has shape {list(port.shape)}, not {list(given.shape)}")
        if port.dtype.kind == "S" and is_text(given):
            given = encoded(given, port.type.dtype)
        self._arrays[k] = np.array(
            given.astype(port.dtype, casting="same_kind", copy=False), order="C", copy=True
        )

    def set_input_zero_copy(self, key: Key, value: Any) -> None:
        """Use an array where it is. TypeError for another element type, ValueError for shape, strides or
        alignment.
        """
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
        self._check(self._module.run(self._pointers(), self._bases))

    def _pointers(self) -> ctypes.Array[ctypes.c_void_p]:
        """Addresses of inputs and outputs; outputs that are not set get memory. ModelError when an input is
        not set.
        """
        if any(a is None for a in self._arrays[: len(self.inputs)]):
            raise ModelError(self.name, -1)
        for k, port in enumerate(self.outputs, len(self.inputs)):
            if self._arrays[k] is None:
                self._arrays[k] = np.empty(port.shape, port.dtype)
        pointers = [a.ctypes.data for a in self._arrays if a is not None]
        return (ctypes.c_void_p * max(len(pointers), 1))(*pointers)

    def evaluate_time(self, repeat: int = 5, number: int = 10, min_seconds: float = 0.0) -> Timing:
        """Time of a run with the inputs that are set: `repeat` times the mean of `number` runs, or of as many
        as take `min_seconds`.

        A call from Python, about a microsecond, is part of it. One run goes before and is not measured.
        """
        if repeat < 1 or number < 1:
            raise ValueError(f"repeat and number must be at least 1, not {repeat} and {number}")
        self.run()
        pointers, run, bases = self._pointers(), self._module.run, self._bases
        found: list[float] = []
        while len(found) < repeat:
            start = time.perf_counter()
            for _ in range(number):
                run(pointers, bases)
            taken = time.perf_counter() - start
            if taken < min_seconds:
                number = max(2 * number, int(1.1 * number * min_seconds / max(taken, 1e-9)))
            else:
                found.append(taken / number)
        return Timing(tuple(found))

    def profile(self, runs: int = 10) -> tuple[tuple[Layer, float], ...]:
        """Layers with the mean seconds of each in `runs` runs. ValueError unless the library was compiled
        with --profile.

        Each reading of the clock, about a microsecond, is part of the layer's time.
        """
        if not self._module.ticks:
            raise ValueError(f"'{self.name}' was compiled without --profile")
        count = len(self.metadata.layers)
        previous = self._module.ticks[0]
        clock = _TICKS(lambda: time.perf_counter_ns() & 0xFFFFFFFF)
        self._module.ticks[0] = ctypes.cast(clock, ctypes.c_void_p)
        try:
            totals = [0] * count
            for _ in range(runs):  # one by one: the counters wrap at 4.29 seconds
                before = self._module.profile[:count]
                self.run()
                after = self._module.profile[:count]
                totals = [t + ((b - a) & 0xFFFFFFFF) for t, a, b in zip(totals, before, after, strict=True)]
        finally:
            self._module.ticks[0] = previous
        return tuple((layer, t * 1e-9 / runs) for layer, t in zip(self.metadata.layers, totals, strict=True))

    def get_output(self, key: Key) -> Array:
        """An output of the last run, where it is: the next run writes it again. ValueError before the
        first.
        """
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
    """A model of a shared library: the one of that name, or `kws` of libkws.so, or the only one. OSError,
    ValueError.
    """
    file = Path(path)
    library = ctypes.CDLL(str(file.resolve()))
    if name is None:
        name = file.name.split(".")[0].removeprefix("lib")
        if not hasattr(library, f"{name}_module"):
            found = models(path)
            name = found[0] if len(found) == 1 else name
    return Module(library, name)


def models(path: str | Path) -> tuple[str, ...]:
    """Names of the models in a shared library; see Metadata.read_all() for what is known of them.
    CompileError E101, E102.
    """
    return tuple(m.name for m in Metadata.read_all(path))


def _index(ports: Sequence[Tensor], key: Key) -> int:
    if isinstance(key, str):
        for names in ([p.name for p in ports], [p.c_name for p in ports]):
            if key in names:
                return names.index(key)
    elif 0 <= key < len(ports):
        return int(key)
    raise KeyError(f"there is no {key!r}; there are {', '.join(repr(p.name) for p in ports)}")


def _array(value: Any) -> Array:
    """The value's memory as an array. ValueError when it is not the CPU's."""
    device = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else (_CPU, 0)
    if device[0] != _CPU:
        raise ValueError(f"the tensor is on device {int(device[0])} of DLPack, not in the memory of the CPU")
    return (
        np.from_dlpack(value)
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
        else np.asarray(value)
    )


def _fitting(port: Tensor, array: Array) -> Array:
    if array.dtype != port.dtype:
        raise TypeError(f"'{port.name}' has elements of type {port.dtype}, not {array.dtype}")
    if array.shape != port.shape:
        raise ValueError(f"'{port.name}' has shape {list(port.shape)}, not {list(array.shape)}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(
            f"the array for '{port.name}' is not compact, row-major and aligned: it cannot be used where it "
            "is"
        )
    return array


def _aligned(size: int, align: int) -> Array:
    memory = np.zeros(size + align, np.uint8)
    start = -memory.ctypes.data % align
    return memory[start : start + size]
