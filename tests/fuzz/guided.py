"""Mutated models, guided by coverage: models that reach code of the frontends that no other reached are
mutated further.

    python tests/fuzz/campaign.py --engine atheris --seconds 600 --seed 3 --keep failed     (needs: pip
        install atheris)

libFuzzer chooses which model to mutate and keeps those that reach something new, in memory; the mutations and
what counts as a failure are those of campaign.py, in this process. Models are written to --keep once for each
place that raises.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

import atheris  # type: ignore[import-not-found, unused-ignore]

with atheris.instrument_imports(include=["aot_model.frontends"]):
    import aot_model.frontends.onnx
    import aot_model.frontends.read
    import aot_model.frontends.tflite  # noqa: F401

import onnx
from campaign import SECONDS, Case, _compile
from mutations import mutated_onnx, mutated_tflite
from seeds import seeds

SUFFIXES = (".onnx", ".tflite")
MAX_BYTES = 64 << 10
SEEDS = 150
"""Models that a run begins with: others for every seed."""


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """The first byte says which format the others are of."""
    rng = random.Random(seed)
    if not data or data[0] >= len(SUFFIXES):
        name, model = rng.choice(seeds())
        data = bytes([name.endswith(".tflite")]) + model
    if data[0] == 1:
        return (data[:1] + mutated_tflite(data[1:], rng))[:most]
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data[1:])
        return (data[:1] + mutated_onnx(proto, rng))[:most]
    except Exception:  # bytes that are no model any more
        return data[:1] + seeds()[0][1]


class Target:
    """What libFuzzer calls with each model."""

    def __init__(self, folder: Path, keep: Path | None, began: float) -> None:
        self.folder, self.keep, self.began = folder, keep, began
        self.cases = self.compiled = 0
        self.places: set[str] = set()

    def __call__(self, data: bytes) -> None:
        if not data or data[0] >= len(SUFFIXES):
            return
        self.cases += 1
        case = Case(f"case{SUFFIXES[data[0]]}", data[1:])
        try:
            self.compiled += _compile(case, self.folder, "m") is not None
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}"
            if place not in self.places:
                self.places.add(place)
                print(f"FAILED {place}\n{traceback.format_exc()[-1500:]}", flush=True)
                if self.keep is not None:
                    self.keep.mkdir(parents=True, exist_ok=True)
                    (
                        self.keep / f"{hashlib.sha256(case.data).hexdigest()[:12]}{SUFFIXES[data[0]]}"
                    ).write_bytes(case.data)
        if self.cases % 1000 == 0:
            self.tell()

    def tell(self) -> None:
        seconds = time.monotonic() - self.began
        print(
            f"{self.cases:,} cases, {self.compiled:,} compiled, {len(self.places)} failed, "
            f"{self.cases / seconds:.1f} a second",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=-1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--keep", type=Path)
    arguments, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="aot-model-guided-") as name:
        corpus = Path(name) / "seeds"
        corpus.mkdir()
        chosen = sorted({(f.endswith(".tflite"), data) for f, data in seeds() if len(data) < MAX_BYTES})
        for tflite, data in random.Random(arguments.seed).sample(chosen, min(SEEDS, len(chosen))):
            (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(bytes([tflite]) + data)
        target = Target(Path(name), arguments.keep, time.monotonic())
        number = int(hashlib.sha256(arguments.seed.encode()).hexdigest()[:7], 16) + 1
        options = [
            f"-runs={arguments.cases}",
            f"-max_total_time={int(arguments.seconds)}",
            f"-seed={number}",
            f"-max_len={MAX_BYTES}",
            f"-timeout={SECONDS * 10}",
            "-rss_limit_mb=4096",
            "-verbosity=0",
            f"-artifact_prefix={name}/",
        ]
        atheris.Setup([sys.argv[0], *options, str(corpus)], target, custom_mutator=mutated)
        import atexit

        atexit.register(target.tell)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
