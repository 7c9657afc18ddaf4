"""Random networks on any target against runtimes that share no code with ours.

    python tests/random_networks/network_campaign.py tflite --seed 1 --count 200
    python tests/random_networks/network_campaign.py qdq --seed 1 --count 200 --targets cortex-m4 cortex-m55
    python tests/random_networks/network_campaign.py float --only 17 --targets c        # one of them

tflite: integers, equal to those of LiteRT or TensorFlow Lite Micro. tffloat: TFLite networks of float32,
every other one with weights of 8 bits, against LiteRT. float: ONNX networks of float32 against
ONNX Runtime. qdq: the same, quantised in parts, against the standard's evaluator with floats of 64 bits
and, where that says otherwise, against ONNX Runtime: a number on the edge between two steps tips with the
last bit of a float, so that few may differ by few steps.

ort: float networks quantised by ONNX Runtime itself, in all its formats. half: networks of float16 against
the evaluator with floats of 64 bits and, where that says otherwise, against ONNX Runtime.

Networks are numbered: number k is the same one whatever is asked for. Options (what to
optimise for, where inputs and outputs lie, the memory of a Cortex-M, the vectors of the host, pools, the
planner, room for speed) follow from the number, too. Targets with cmsis-nn link the stand-in for CMSIS-NN, or
the library where AOT_MODEL_CMSIS_NN_DIR names it. What differs is listed; --keep FOLDER takes its models.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "random_networks"), str(TESTS / "targets")]

import derived  # noqa: E402
import onnx_layers  # noqa: E402, F401  (adds layers)
import random_onnx  # noqa: E402
import random_tflite  # noqa: E402
from cmsis_nn_library import library  # noqa: E402

from aot_model.emit.budgets import Budgets  # noqa: E402
from aot_model.memory.blocks import Pool  # noqa: E402
from batch import Case, Outcome, run_cases  # noqa: E402
from layouts import scattered  # noqa: E402
from qemu import BOARDS, COMPILER  # noqa: E402
from red_zones import generate_guarded  # noqa: E402
from tflite_reference import litert, tflm  # noqa: E402

TARGETS = {
    "c": None,
    "host": None,
    "cortex-m0": "m0",
    "cortex-m3": "m3",
    "cortex-m4": "m4",
    "cortex-m7": "m7",
    "cortex-m33": "m33",
    "cortex-m55": "m55",
    "cmsis-nn,c": None,
    "cmsis-nn,cortex-m4": "m4",
    "cmsis-nn,cortex-m55": "m55",
}
"""And the boards that they run on."""


STEPS, SHARE = 3 / 256, 0.03
"""Of a quantised output: how far a number may be, of the range, and how many may be off (one always) by
more than NOISE steps, by the output's bits: floats of 32 bits have no more than 8 bits behind the point of
one of 16, functions of 16 bits are within one step, and one tipped number of 8 bits moves many of 16 behind
it.
"""
NOISE = {8: 0, 16: 16}
FLOAT_ERROR, QUANTISED_ERROR = 1e-4, 0.05
"""Of float outputs, of the largest number: without anything quantised before, and with."""


@dataclass(frozen=True)
class Network:
    """A network, what its outputs are by each of its oracles, and the names of its operators. steps: scales
    and bits of outputs that are quantised, by their places; rounds: whether anything is.
    """

    number: int
    case: Case
    wanted: tuple[tuple[np.ndarray, ...], ...]
    kinds: tuple[str, ...]
    steps: dict[int, tuple[float, int]]
    rounds: bool


def _options(number: int) -> dict[str, str]:
    return {} if number % 3 else {"optimize": "size" if number % 2 else "speed"}


MEMORIES = ("", "l4-art", "0ws", "f4-art", "", "m7-cache", "tcm", "nrf53")
VECTORS = ("auto", "scalar", "auto", "v4")


def options_for(target: str, number: int) -> dict[str, str]:
    """Of one target, drawn by the network's number: what a Cortex-M's code is in, the vectors of the host."""
    if "cortex" in target and MEMORIES[number % len(MEMORIES)]:
        return {"memory": MEMORIES[number % len(MEMORIES)]}
    return {"vector": VECTORS[number % len(VECTORS)]} if target == "host" else {}


PLANNERS = (None, "greedy", "best-fit", "local-search", "optimal", None)
POOLS = (Pool("fast", 2048, 8, 1), Pool("middle", 6000, 4), Pool("rest", align=32))
BUDGETS = (None, 1 << 20, None, None, 1 << 18)


def _asked(number: int) -> dict[str, Any]:
    """Of memory, drawn by the network's number: pools, who plans, and how much there is for speed."""
    pools = {"pools": POOLS} if number % 7 == 3 else {}
    ram = BUDGETS[number // 3 % len(BUDGETS)]
    return {**pools, "algorithm": PLANNERS[number % len(PLANNERS)], "budgets": Budgets(ram=ram)}


def _library(number: int) -> dict[str, Any]:
    """Of the library, likewise."""
    given = {"constant_pools": (Pool("near", 1500, 16, 1), Pool("far"))} if number % 11 == 5 else {}
    return {**given, "io": "workspace" if number % 5 == 0 else "caller"}


def case_of(
    number: int, name: str, model: onnx.ModelProto | bytes, fed: Iterable[np.ndarray], **more: str
) -> Case:
    """A model with options that its number draws."""
    return Case(
        name,
        model,
        tuple(fed),
        options=_options(number) | more,
        asked=_asked(number),
        library=_library(number),
        stirred=True,
    )


def _is_noise(floats: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> bool:
    """Whether floats are as far from doubles as a third of what ours may be from floats; what is much further
    is an error of the evaluator that computes doubles.
    """
    for a, b in zip(floats, exact, strict=True):
        if a.dtype.kind == "f" and a.size == b.size and np.isfinite(a).all() and np.isfinite(b).all():
            off = float(np.abs(a.reshape(-1) - b.reshape(-1)).max(initial=0))
            if FLOAT_ERROR / 3 < off / max(float(np.abs(a).max(initial=0)), 1e-3) < 100 * FLOAT_ERROR:
                return True
    return False


def onnx_network(number: int, quantised: bool) -> Network | None:
    """None where ONNX Runtime does not take it, or of floats itself is far from doubles: a normalisation of
    what is one number everywhere.
    """
    try:
        model, fed, scales, kinds = random_onnx.random_network(number, quantised)
        wanted = [tuple(random_onnx.runtime(model, fed))]
        exact = random_onnx.in_doubles(model, fed)
        if quantised and exact is not None:
            wanted.insert(0, tuple(exact))
        elif exact is not None and _is_noise(wanted[0], exact):
            return None
    except Exception as error:  # its exceptions have no common class
        if "onnxruntime" not in type(error).__module__:
            raise
        return None
    case = case_of(number, f"network {number}", model, fed.values())
    steps = {k: scales[o.name] for k, o in enumerate(model.graph.output) if o.name in scales}
    return Network(number, case, tuple(wanted), tuple(kinds), steps, quantised)


def quantised_network(number: int) -> Network | None:
    """A float network quantised by ONNX Runtime. None where that does not take it."""
    model, fed, _, _ = random_onnx.random_network(number, False)
    try:
        model = derived.quantised(model, fed, number)
        wanted = [tuple(random_onnx.runtime(model, fed))]
    except Exception:  # of any class: its quantiser fails in many ways
        return None
    if (exact := random_onnx.in_doubles(model, fed)) is not None:
        wanted.insert(0, tuple(exact))
    case = case_of(number, f"network {number}", model, fed.values())
    found = derived.scales(model)
    steps = {k: found[o.name] for k, o in enumerate(model.graph.output) if o.name in found}
    return Network(number, case, tuple(wanted), tuple(n.op_type for n in model.graph.node), steps, True)


def half_network(number: int) -> Network | None:
    """A network of float16. None where ONNX Runtime does not take it."""
    model, fed, _, kinds = random_onnx.random_network(number, False)
    model, fed = derived.halved(model, fed)
    try:
        wanted = [tuple(random_onnx.runtime(model, fed))]
    except Exception as error:  # its exceptions have no common class
        if "onnxruntime" not in type(error).__module__:
            raise
        return None
    if (exact := random_onnx.in_doubles(model, fed)) is not None:
        wanted.insert(0, tuple(v.astype(np.float16) for v in exact))
    case = case_of(number, f"network {number}", model, fed.values())
    return Network(number, case, tuple(wanted), tuple(kinds), {}, True)


def tflite_network(number: int, floats: bool = False) -> Network | None:
    """None where no runtime takes it. Every other one has the arithmetic of TensorFlow Lite Micro, if that
    has its operators. Floats are always as LiteRT has them.
    """
    model, fed, made = random_tflite.random_network(number, floats)
    kinds = tuple(op.kind for op in made.operators)
    # TensorFlow Lite Micro pads SPACE_TO_BATCH_ND with 0 in the place of the zero point
    oracle = "tflm" if number % 2 and not floats and "SPACE_TO_BATCH_ND" not in kinds else "litert"
    try:
        first = litert(model, fed)
    except (RuntimeError, ValueError):
        return None
    if "SUM" in kinds:  # LiteRT 2.3's reference kernel of SUM reads what nothing wrote
        other = litert(model, fed, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
        if any((a != b).any() for a, b in zip(first, other, strict=True)):
            return None
    wanted, others = first, ()
    if floats:  # the reference kernel of LOCAL_RESPONSE_NORMALIZATION leaves the last neighbour out
        others = (tuple(litert(model, fed, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")),)
    if oracle == "tflm":
        try:
            wanted = tflm(model, [fed], len(first))[0]
        except (RuntimeError, ValueError, IndexError):
            oracle = "litert"
    arithmetic = "tflm" if oracle == "tflm" else "litert-ref"
    case = case_of(number, f"network {number} ({oracle})", model, fed, arithmetic=arithmetic)
    case = replace(case, stirred=not made.remembers)
    return Network(number, case, (tuple(wanted), *others), kinds, {}, made.hybrid or not floats)


def verdict(network: Network, outcome: Outcome) -> str:
    """What is wrong with an outcome by all oracles; empty when it is right."""
    if outcome.status == "same":  # it has no workspace that could be laid out otherwise
        return ""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.message[:600]}"
    problems = [_unlike(network, outcome, wanted) for wanted in network.wanted]
    return "; ".join(problems) if all(problems) else ""


def _unlike(network: Network, outcome: Outcome, wanted: tuple[np.ndarray, ...]) -> str:
    for k, (got, want) in enumerate(zip(outcome.outputs, wanted, strict=True)):
        if got.size != want.size or got.dtype != want.dtype:
            return f"output {k} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        problem = _difference(got.reshape(-1), want.reshape(-1), network.steps.get(k), network.rounds)
        if problem:
            return f"output {k} of {want.shape}: {problem}"
    return ""


def _difference(got: np.ndarray, want: np.ndarray, step: tuple[float, int] | None, rounds: bool) -> str:
    if got.dtype.kind in "iu":
        off = np.abs(got.astype(np.int64) - want.astype(np.int64))
        return (
            f"{int((off > 0).sum())} of {off.size} numbers differ, by up to {int(off.max())}"
            if off.any()
            else ""
        )
    if not (np.isfinite(want) == np.isfinite(got)).all():
        return "infinite or not a number"
    error = np.abs(np.where(np.isfinite(want), got.astype(np.float64) - want, 0))
    if step is None:
        largest = max(float(np.abs(want[np.isfinite(want)]).max(initial=0)), 1e-3)
        return (
            ""
            if error.max(initial=0) <= (QUANTISED_ERROR if rounds else FLOAT_ERROR) * largest
            else (f"{error.max():g} of {largest:g}")
        )
    scale, bits = step
    off = np.round(error / scale)
    if off.max() > STEPS * 2**bits or (off > NOISE[bits]).sum() > max(1, SHARE * off.size):
        return (
            f"{int((off > NOISE[bits]).sum())} of {off.size} numbers differ, by up to {int(off.max())} steps"
        )
    return ""


def run(
    networks: Sequence[Network],
    target: str,
    jobs: int = 2,
    flags: Sequence[str] = (),
    sanitize: bool = False,
    memory: str | int = "planned",
) -> list[str]:
    """The verdict on each, compiled as users do, or with other flags and sanitizers. memory: "planned";
    "apart" for buffers with red zones between them; or the seed of a layout that is drawn within what calls
    say of their buffers, inputs and outputs among them.
    """
    flags = flags or (("-O2", "-march=native") if target == "host" else ("-O2",))
    if target.startswith("cmsis-nn"):
        board = TARGETS[target]
        linked = library(*BOARDS[board].flags, compiler=COMPILER) if board else library()
        flags = (*flags, *linked.flags, linked.object)
    cases = [replace(n.case, options=n.case.options | options_for(target, n.number)) for n in networks]
    if isinstance(memory, int):
        cases = [replace(c, library=c.library | {"io": "workspace"}, asked={}) for c in cases]
    with scattered(memory) if isinstance(memory, int) else nullcontext():
        found = run_cases(
            cases,
            target,
            sanitize=sanitize,
            flags=flags,
            board=TARGETS[target],
            jobs=jobs,
            make=generate_guarded if memory == "apart" else None,
        )
    return [verdict(n, o) for n, o in zip(networks, found, strict=True)]


MAKERS: dict[str, Callable[[int], Network | None]] = {
    "tflite": tflite_network,
    "tffloat": lambda k: tflite_network(k, True),
    "float": lambda k: onnx_network(k, False),
    "qdq": lambda k: onnx_network(k, True),
    "ort": quantised_network,
    "half": half_network,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=MAKERS)
    parser.add_argument("--seed", type=int, default=0, help="networks from seed * 1,000,000 on")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, help="the network of this number")
    parser.add_argument(
        "--targets", nargs="+", default=["c", "host", "cortex-m4", "cortex-m55"], choices=TARGETS
    )
    parser.add_argument("--flags", default="", help="of the C compiler, instead of those that users have")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument(
        "--memory",
        default="planned",
        type=lambda text: int(text) if text.isdecimal() else text,
        help="planned (default), apart: red zones between buffers, or the seed of a layout to draw",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for models that are not right")
    options = parser.parse_args()
    first = options.seed * 1_000_000
    numbers = [options.only] if options.only is not None else range(first, first + options.count)
    networks = {k: n for k in numbers if (n := MAKERS[options.kind](k)) is not None}
    print(
        f"{len(networks)} of {len(numbers)} networks, {sum(len(n.kinds) for n in networks.values())} layers:",
        *Counter(kind for n in networks.values() for kind in n.kinds).most_common(),
    )
    wrong = 0
    for target in options.targets:
        verdicts = run(
            list(networks.values()),
            target,
            options.jobs,
            options.flags.split(),
            options.sanitize,
            options.memory,
        )
        for (number, n), problem in zip(networks.items(), verdicts, strict=True):
            if problem:
                wrong += 1
                given = n.case.options | options_for(target, number)
                print(f"{target}: {n.case.name} {given} {n.case.library} {n.case.asked}: {problem}")
                print(f"    {' '.join(n.kinds)}")
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    model = n.case.model
                    content = model if isinstance(model, bytes) else model.SerializeToString()
                    suffix = "tflite" if isinstance(model, bytes) else "onnx"
                    (options.keep / f"{number}.{suffix}").write_bytes(content)
        print(f"{target}: {sum(not v for v in verdicts)} of {len(verdicts)} right", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
