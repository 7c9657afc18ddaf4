"""One quantisation from beginning to end: read, calibrate, plan, score, choose."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from aot_model.errors import CompileError, fail, named
from aot_model.host.compiler import HostCompiler
from aot_model.quantise.automatic import Automatic, Row, Simulation, first
from aot_model.quantise.candidates import Calibration, Candidate, without_data
from aot_model.quantise.cost import Budget, Cost, Platform, cost_of
from aot_model.quantise.data import Samples, doubts, read_samples, split
from aot_model.quantise.mixed import Search, frontier, table
from aot_model.quantise.network import is_quantised, ports
from aot_model.quantise.plan import Plan
from aot_model.quantise.prepare import prepared, read_float
from aot_model.quantise.runtime import FloatModel
from aot_model.quantise.score import Array, Built, Score, built, metric, score, snr, usual
from aot_model.quantise.statistics import doubts_of_biases, doubts_of_training

POOR = 0.5
"""A float model that is right less often than so (in shares of the calibration's labels) was not trained on
such data."""
MOST_COMPARED = 64
"""Samples that ONNX Runtime's answers are compared on."""
FAR = 15
"""Decibels: outputs that are worse than so are told of."""


@dataclass(frozen=True)
class Job:
    """What the user asks for."""

    model: Path
    calibration: Path | None
    dims: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    holdout: str = "0.25"
    """A share of the calibration data, or a file or folder."""
    metric: str = ""
    """Empty: by what the model gives (score.usual)."""
    method: str = "auto"
    seed: int = 0
    plan: Path | None = None
    mixed: bool = False
    """Whether layers may be of other types than int8."""
    platform: Platform = field(default_factory=Platform)
    """What costs are of, with `mixed`."""
    budget: Budget = field(default_factory=Budget)
    max_drop: float | None = None
    """More worse by the metric than the float model is an error."""
    powers: bool = False
    """Whether scales are powers of two."""
    wide: float = 0.25
    """What tensors of 16 bits may cost where they help, as a share of the network's work. Not with `mixed`,
    where costs are known."""


@dataclass
class Result:
    """A quantised model and what is known of it."""

    model: bytes
    plan: Plan | None
    rows: list[Row] = field(default_factory=list)
    """Those that were built."""
    simulated: int = 0
    """How many plans were compared before anything was built."""
    chosen: int = 0
    float_value: float = float("nan")
    calibrated: Score | None = None
    """On the calibration data."""
    library: Built | None = None
    frontier: str | None = None
    """Of mixed precision, as JSON."""
    points: str = ""
    notes: list[str] = field(default_factory=list)
    files: tuple[Path, ...] = ()
    """All that it was made from."""
    metric: str = ""
    """What was chosen by."""
    compilers: tuple[str, ...] = ()
    """Whose builds of the library agree; one where there is no second."""


def quantise(job: Job, folder: Path, say: Callable[[str], None] = lambda text: None) -> Result:
    """Do the job; `folder` is for what is built on the way. CompileError with what is wrong."""
    model, sources = read_float(job.model, job.dims, job.constants)
    if is_quantised(model):
        note = f"{job.model.name} is quantised already: it is passed through as it is"
        return Result(job.model.read_bytes(), None, notes=[note], files=sources)
    where = str(job.model)
    ready = prepared(model, folder, where)
    if job.max_drop is not None and job.calibration is None:
        raise fail("E501", "--max-drop without --calibration: there is nothing to measure it on")
    if job.budget.times is not None and job.calibration is None:
        raise fail("E501", "--within without --calibration: there are no 8 bits to be measured beside")
    if job.plan is not None and job.calibration is None:
        plan = Plan.read(job.plan)
        result = Result(serialised(without_data(ready, plan, where).model(where)), plan)
        result.files = (*sources, job.plan)
        return result
    if job.calibration is None:
        raise fail(
            "E501", "--calibration is missing", hint="give samples of what the model will see, or a --plan"
        )
    return _Session(job, folder, say, model, ready, sources).run()


def doubts_of_result(metric: str, lost: float, near: float) -> list[str]:
    """What makes a quantised model suspect: it loses much of `top1` (a share), or its outputs are not near
    (dB) to those of the float model, whatever their metric says.
    """
    if metric == "top1" and lost > 0.1:
        return [f"the quantised model loses {lost:.0%}: are the calibration data what the model sees in use?"]
    if near < FAR:
        return [
            f"the quantised model's outputs are only {near:.0f} dB near to the float model's: `compare` says "
            "where they part"
        ]
    return []


class _Session:
    def __init__(
        self,
        job: Job,
        folder: Path,
        say: Callable[[str], None],
        model: onnx.ModelProto,
        ready: onnx.ModelProto,
        sources: tuple[Path, ...],
    ) -> None:
        assert job.calibration is not None
        self.job, self.folder, self.say, self.ready = job, folder, say, ready
        self.where = str(job.model)
        whole = read_samples(job.calibration, ports(model))
        self.notes = [f"calibration: {text}" for text in doubts(whole)]
        self.samples, self.held = self._held_back(whole, model)
        odd = doubts_of_training(model, self.samples, self.where)
        odd = odd or doubts_of_biases(ready, self.samples, self.where)
        self.notes += [f"calibration: {text}" for text in odd]
        self.float_model = FloatModel(model, [o.name for o in model.graph.output], self.where)
        self.reference = self.float_model.stacked(self.held)
        self.name = job.metric or usual(self.held, self.reference)
        self.metric, files = metric(self.name)
        self.files = (*sources, *whole.files, *self.held.files, *files)
        self.compiler = HostCompiler.find()
        self.libraries: dict[bytes, Built] = {}
        """Of this compiler, by model."""

    def _held_back(self, whole: Samples, model: onnx.ModelProto) -> tuple[Samples, Samples]:
        try:
            share = float(self.job.holdout)
        except ValueError:
            held = read_samples(Path(self.job.holdout), ports(model))
            self.notes += [f"held-back data: {text}" for text in doubts(held)]
            self._compare_ranges(whole, held)
            return whole, held
        if not 0 <= share < 1:
            raise fail("E501", f"--holdout {self.job.holdout} is neither a file nor a share between 0 and 1")
        return split(whole, share, self.job.seed)

    def _compare_ranges(self, whole: Samples, held: Samples) -> None:
        """Inputs that were scaled otherwise: by the spread of their numbers, which outliers do not decide."""
        for name, array in whole.inputs.items():
            if array.dtype.kind != "f":
                continue
            a, b = (
                float(np.sqrt(np.mean(np.square(v, dtype=np.float64)))) for v in (array, held.inputs[name])
            )
            if not 0.5 < a / max(b, 1e-30) < 2:
                self.notes.append(
                    f"calibration: the numbers of input '{name}' are {a / max(b, 1e-30):.2g} times as large "
                    "as those held back: is one of them not scaled as in use?"
                )

    def run(self) -> Result:
        simulated = 0
        calibration = Calibration(self.ready, self.samples, self.job.model, self.job.powers)
        simulation = Simulation(calibration.plain.network, self.held, self.metric, self.where)
        search = Automatic(calibration, simulation, self._ram, self.say)
        self._doubt_labels()
        if self.job.plan is not None:
            rows = [self._row(without_data(self.ready, Plan.read(self.job.plan), self.where))]
            self.files = (*self.files, self.job.plan)
        else:
            wide = 0.0 if self.job.mixed else self.job.wide
            rows = [self._row(candidate) for candidate in search.run(self.job.method, wide)]
            simulated = len(search.rows)
        best = first(rows)
        text, points = None, ""
        if self.job.plan is not None and self.job.budget.times is not None:
            self._check_plan(calibration, rows[best].candidate)
        elif self.job.mixed:
            bases = [row.candidate for row in search.rows if not row.candidate.learnt]
            row, text, points = self._mixed(calibration, rows[best].candidate, bases, simulation)
            rows.append(row)
            best = len(rows) - 1
        library, data = self._built(rows[best].candidate)
        compilers = self._trusted(rows[best], library)
        outputs = library.outputs(self.samples, self.float_model.wanted)
        known = self.float_model.stacked(self.samples)
        result = Result(data, rows[best].candidate.plan, rows, chosen=best)
        result.files, result.notes, result.library = self.files, self.notes, library
        result.frontier, result.points, result.simulated = text, points, simulated
        result.compilers, result.metric = compilers, self.name
        result.calibrated = score(outputs, known, self.samples.labels, self.metric)
        result.float_value = self.metric(self.reference, self.reference, self.held.labels)
        self._doubt_result(result)
        lost = result.float_value - rows[best].score.value
        if self.job.max_drop is not None and lost > self.job.max_drop + 1e-12:
            raise fail(
                "E402",
                f"the integers lose {lost:.2%} ({self.name}), and {self.job.max_drop:.2%} are allowed",
                where=self.where,
                hint="calibrate with more samples of what the model sees in use, or plan a layer as int16 or "
                "float",
            )
        return result

    def _built(self, candidate: Candidate, compiler: HostCompiler | None = None) -> tuple[Built, bytes]:
        data = serialised(candidate.model(self.where))
        library = None if compiler is not None else self.libraries.get(data)
        if library is None:
            path = Path(tempfile.mkdtemp(dir=self.folder)) / "model.onnx"
            path.write_bytes(data)
            with named(path, self.where):
                library = built(path, path.parent, compiler or self.compiler, self.job.bounds)
        if compiler is None:
            self.libraries[data] = library
        return library, data

    def _ram(self, candidate: Candidate) -> int:
        path = Path(tempfile.mkdtemp(dir=self.folder)) / "model.onnx"
        path.write_bytes(serialised(candidate.model(self.where)))
        with named(path, self.where):
            return cost_of(path, path.parent, self.job.platform, self.job.bounds, None).ram

    def _trusted(self, row: Row, library: Built) -> tuple[str, ...]:
        """The compilers whose builds give the same answers. CompileError E602 when they do not."""
        self._beside_runtime(row.candidate, library)
        first, second = Path(self.compiler.command[0]).name, self.compiler.second()
        if second is None:
            return (first,)
        other, _ = self._built(row.candidate, second)
        names = first, Path(second.command[0]).name
        wanted = self.float_model.wanted
        if disagree(library.outputs(self.held, wanted), other.outputs(self.held, wanted), row.score.snr):
            raise fail(
                "E602",
                f"what {names[0]} and {names[1]} build gives other answers on the held-back samples",
                where=self.where,
                hint="one of the compilers is wrong, or there is a bug in aot-model: please report it",
            )
        return names

    def _beside_runtime(self, candidate: Candidate, library: Built) -> None:
        """A note where ONNX Runtime's answers are far from the library's."""
        some = self.held.take(np.arange(min(self.held.count, MOST_COMPARED)))
        wanted = self.float_model.wanted
        try:
            simulated = FloatModel(candidate.model(self.where), wanted, self.where).stacked(some)
        except CompileError:
            return  # it cannot run the model
        built = library.outputs(some, wanted)
        if [a.shape for a in built] == [a.shape for a in simulated] and strays(
            built, simulated, self.float_model.stacked(some)
        ):
            self.notes.append(
                "the generated library is far from what ONNX Runtime computes with the same integers, which "
                "may be a bug in aot-model: `aot-model compare` says where they part; please report it"
            )

    def _row(self, candidate: Candidate) -> Row:
        library, _ = self._built(candidate)
        found = self._scored(library)
        self.say(
            f"{candidate.plan.method}: {found.value:.4f}, {found.changed:.2%} changed, {found.snr:.1f} dB"
        )
        return Row(candidate, found)

    def _mixed(
        self, calibration: Calibration, base: Candidate, others: list[Candidate], simulation: Simulation
    ) -> tuple[Row, str, str]:
        """The best of mixed precision that keeps the budgets."""
        if not base.method:
            raise fail(
                "E501", "a plan that is given is carried out: budgets and a frontier are of what is searched"
            )
        whole = self.metric(self.reference, self.reference, self.held.labels)

        def evaluate(candidate: Candidate) -> tuple[Score, Cost]:
            library, _ = self._built(candidate)
            path = library.program.executable.parent / "model.onnx"
            return self._scored(library), self._cost(path)

        simulate = partial(simulation.row, where=self.where)
        search = Search(calibration, base, evaluate, self.say, others, simulate, self._ram)
        best = search.run(self.job.budget, whole, self.job.max_drop)
        facts = {
            "model": self.job.model.name,
            "target": self.job.platform.target,
            "metric": self.name,
            "float": whole,
        }
        text = frontier(search.points, best, facts)
        return Row(best.candidate, best.score), text, table(search.points, whole)

    def _cost(self, path: Path) -> Cost:
        """Of a model in a folder of its own."""
        wants = self.held if self.job.platform.has_cycles else None
        with named(path, self.where):
            return cost_of(path, path.parent, self.job.platform, self.job.bounds, wants)

    def _check_plan(self, calibration: Calibration, candidate: Candidate) -> None:
        """CompileError E402 when a plan that is given needs more than it may beside 8 bits alone."""
        plain = calibration.candidate("minmax", False)
        assert plain is not None
        costs = []
        for made in (plain, candidate):
            library, _ = self._built(made)
            costs.append(self._cost(library.program.executable.parent / "model.onnx"))
        int8, own = costs
        if not self.job.budget.allows(own, int8):
            raise fail(
                "E402",
                f"the plan needs more than {self.job.budget.factors()} 8 bits alone: RAM {own.ram:,} of "
                f"{int8.ram:,} bytes, flash {own.flash:,} of {int8.flash:,}"
                + (f", cycles {own.cycles:,} of {int8.cycles:,}" if own.cycles and int8.cycles else ""),
                where=str(self.job.plan),
                hint="allow more, or have fewer tensors of 16 bits in the plan",
            )

    def _scored(self, library: Built) -> Score:
        outputs = library.outputs(self.held, self.float_model.wanted)
        return score(outputs, self.reference, self.held.labels, self.metric)

    def _doubt_labels(self) -> None:
        """A float model that is wrong on the data tells of other data than those that it was trained on."""
        if self.samples.labels is None or self.name != "top1":
            return
        own = self.metric(outputs := self.float_model.stacked(self.samples), outputs, self.samples.labels)
        held = (
            self.metric(self.reference, self.reference, self.held.labels)
            if self.held.labels is not None
            else own
        )
        if own < POOR or own < held - 0.15:
            aside = f", in {held:.0%} of those held back" if held != own else ""
            self.notes.append(
                f"calibration: the float model is right in only {own:.0%} of the samples{aside}: "
                "are they scaled as in training, and are the labels theirs?"
            )

    def _doubt_result(self, result: Result) -> None:
        chosen = result.rows[result.chosen].score
        assert result.calibrated is not None
        result.notes += doubts_of_result(self.name, result.float_value - chosen.value, chosen.snr)
        if self.name == "top1" and self.samples.labels is None and self.samples.count >= 8:
            answers = {int(v) for v in np.asarray(self._answers()).reshape(-1)}
            if len(answers) == 1:
                result.notes.append("calibration: the float model gives the same answer for all samples")

    def _answers(self) -> Array:
        from aot_model.quantise.score import classes

        return classes(self.float_model.stacked(self.samples)[0])


def disagree(one: list[Array], other: list[Array], known: float) -> bool:
    """Whether two builds differ by more than how compilers round the floats that are left, which may turn a
    tie of integers here and there: by half of what the integers lose, `known` dB."""
    return not snr(one, other) >= min(known + 3, 100)


def strays(built: list[Array], simulated: list[Array], reference: list[Array]) -> bool:
    """Whether a library's floats are farther from those simulated with its integers than these are from the
    float model's: four times the noise. Ties that are rounded otherwise are not as much."""
    several = [k for k, array in enumerate(reference) if array.dtype.kind == "f"]
    one, two, three = ([arrays[k] for k in several] for arrays in (built, simulated, reference))
    known = snr(two, three) if several else 0.0
    return known > FAR and not snr(one, two) >= min(known, 60) - 6


def serialised(model: onnx.ModelProto) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))
