"""A few hundred mutated models in every run of the tests, what failed once, and that the campaign would see a
fault.

AOT_MODEL_FUZZ=10000 for more, AOT_MODEL_FUZZ_SEED moves the whole set; campaign.py is the command that goes
on.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path

import campaign
import pytest
from seeds import seeds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and limits of Linux")
CASES = int(os.environ.get("AOT_MODEL_FUZZ", "200"))
SEED = os.environ.get("AOT_MODEL_FUZZ_SEED", "0")
CORPUS = sorted(p for p in (Path(__file__).parent / "corpus").iterdir() if p.suffix in (".onnx", ".tflite"))


def told(tally: campaign.Tally) -> str:
    return "\n\n".join(f"{c.name}: {c.why[-1500:]}" for c in tally.failed)


def test_mutated_models() -> None:
    tally = campaign.campaign(None, SEED, CASES, 10**9, None)
    assert not tally.failed, told(tally)
    assert tally.cases == CASES and tally.compiled > CASES // 10


def test_what_failed_once() -> None:
    cases = campaign.of_files(CORPUS)
    tally = campaign.campaign(cases, SEED, len(cases), 10**9, None)
    assert not tally.failed, told(tally)
    assert tally.cases == len(CORPUS) * len(campaign.TARGETS)


def test_seeds_compile(tmp_path: Path) -> None:
    """Mutations begin at models that compile: of every kind, and most of them."""
    targets = itertools.cycle(campaign.TARGETS)
    chosen = [
        campaign.Case(n, data, target) for (n, data), target in zip(seeds()[::12], targets, strict=False)
    ]
    tally = campaign.campaign(chosen, SEED, len(chosen), 10**9, None)
    assert not tally.failed, told(tally)
    assert tally.compiled > len(chosen) * 0.9 and tally.ran
    assert {Path(name).suffix for name, _ in seeds()} == {".onnx", ".tflite"}


def _broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str | None, what: object = None
) -> list[campaign.Case]:
    """Three cases of which compiling the second does something that it must not."""
    right = campaign._compile

    def compile_(case: campaign.Case, folder: Path, name: str) -> object:
        compiled = right(case, folder, name)
        if case.name == "bad.onnx":
            if callable(what):
                what()
            assert compiled is not None and source is not None
            compiled.texts[f"{name}.c"] += source  # type: ignore[index]
        return compiled

    monkeypatch.setattr(campaign, "_compile", compile_)
    data = seeds()[0][1]
    cases = [campaign.Case(name, data) for name in ("first.onnx", "bad.onnx", "last.onnx")]
    campaign.run_batch(cases, tmp_path)
    assert [c.status for c in cases] == ["ok", "failed", "ok"]
    return cases


def test_an_exception_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "ZeroDivisionError" in _broken(monkeypatch, tmp_path, None, lambda: 1 // 0)[1].why


def test_a_crash_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "SIGKILL" in _broken(monkeypatch, tmp_path, None, lambda: os.kill(os.getpid(), 9))[1].why


def test_a_hang_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hang() -> None:
        while True:
            pass

    monkeypatch.setattr(campaign, "SECONDS", 2)
    assert "took more than" in _broken(monkeypatch, tmp_path, None, hang)[1].why


def test_a_warning_of_the_compiler_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (
        "conversion"
        in _broken(
            monkeypatch, tmp_path, "\nint8_t narrow(int32_t x);\nint8_t narrow(int32_t x) { return x; }\n"
        )[1].why
    )


def test_the_same_seed_is_the_same_case() -> None:
    assert campaign.case_of("s", 5).data == campaign.case_of("s", 5).data != campaign.case_of("t", 5).data


def test_the_engine_that_coverage_guides(tmp_path: Path) -> None:
    """It says how to get what it needs; where that is there, it runs."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("campaign.py")),
        "--engine",
        "atheris",
        "--cases",
        "20",
        "--seconds",
        "20",
        "--keep",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if importlib.util.find_spec("atheris") is None:
        assert done.returncode == 2 and "pip install atheris" in done.stderr
        pytest.skip("atheris is not installed")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "cases" in done.stdout and not list(tmp_path.iterdir())
