"""Seconds from a request to the candidate's first kernel call, beside a fresh process of GPU MODE's ``eval.py``.

``python -m tests.bench.warm_start [--runner cpu|gpu] [--n 20] [--pause-s 4] [--eval-dir FOLDER] [--out FILE]``

The candidate raises in its first call and says the time on the machine's one monotonic clock: nothing is instrumented.
Measured twice: after a pause, as while a model writes, and without one. With ``--eval-dir`` (a folder that holds a
problem's ``eval.py`` and its modules) the same for a fresh process, and whole candidates per minute side by side:
ours in mode leaderboard, theirs as the board does it, modes test, benchmark and leaderboard one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from problems.load import load
from problems.spec import Case, Problem
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode, Runner
from sandbox.verdict import Measured, Passed

FIRST = """
import time
def custom_kernel(data):
    raise RuntimeError(f"first call at {time.monotonic()!r} nonce {NONCE}")
"""
FIRST_ELSEWHERE = """
import os, time
def custom_kernel(data):
    open("first", "w").write(repr(time.monotonic())); os._exit(0)
"""
SEEDS = {"pmpp/vectoradd": "pmpp/vectoradd/flat", "amd/fp8-mm": "amd/fp8-mm/block_scaled"}
KERNELS = Path(__file__).parents[2] / "seed_kernels"
EVAL_MODES = ("test", "benchmark", "leaderboard")


def first_call_s(runner: Runner, problem: Problem, nonce: int) -> float:
    """From the request to the first call."""
    candidate = Candidate(source=FIRST.replace("NONCE", str(nonce)))
    start_s = time.monotonic()
    judgement = runner.judge(problem, candidate, Mode.TEST)
    found = re.search(r"first call at ([0-9.e+]+) nonce", judgement.verdict.model_dump_json())
    assert found is not None, judgement.verdict
    return float(found[1]) - start_s


def series(runner: Runner, problem: Problem, count: int, pause_s: float) -> list[float]:
    """`count` requests, `pause_s` apart."""
    times = []
    for nonce in range(count):
        time.sleep(pause_s)
        times.append(first_call_s(runner, problem, nonce))
    return times


def said(name: str, times: list[float]) -> dict[str, object]:
    """Median, p95 and n, printed."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    print(f"{name:44} median {statistics.median(times):6.3f} s  p95 {p95:6.3f} s  n {len(times)}", flush=True)
    return {"name": name, "median_s": statistics.median(times), "p95_s": p95, "samples_s": times}


def rate(name: str, act: Callable[[], list[float]], count: int) -> dict[str, object]:
    """Whole candidates per minute, and the relative width of their intervals, printed."""
    start_s = time.monotonic()
    widths = [width for _ in range(count) for width in act()]
    per_minute = count * 60 / (time.monotonic() - start_s)
    width = statistics.median(widths) if widths else None
    precision = "" if width is None else f", median standard error {width:.2%}"
    print(f"{name:44} {per_minute:6.2f} candidates a minute{precision}, n {count}", flush=True)
    return {"name": name, "per_minute": per_minute, "standard_error": width, "n": count}


def ours(runner: Runner, problem: Problem, source: str) -> list[float]:
    """Judge once; the relative standard error of each case's samples."""
    judgement = runner.judge(problem, Candidate(source=source), Mode.LEADERBOARD)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    timed = [timing.samples_us for timing in judgement.verdict.timings if isinstance(timing, Measured)]
    return [statistics.stdev(all_us) / len(all_us) ** 0.5 / statistics.fmean(all_us) for all_us in timed]


def line(case: Case) -> str:
    """A case as ``eval.py`` reads it."""
    seed = {} if "seed" in case.params else {"seed": 4242}
    return "; ".join(f"{name}: {value}" for name, value in {**case.params, **seed}.items()) + "\n"


def evaluated(folder: Path, problem: Problem, source: str, mode: str) -> tuple[float, float | None, list[float]]:
    """One fresh process: when it began, when the first call came if it was noted, its relative standard errors."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for path in folder.glob("*.py"):
            shutil.copy(path, place)
        (place / "submission.py").write_text(source)
        cases = problem.tests if mode == "test" else problem.benchmarks
        (place / "cases.txt").write_text("".join(map(line, cases)))
        reading, writing = os.pipe()
        begun_s = time.monotonic()
        command = [sys.executable, "eval.py", mode, "cases.txt"]
        environment = {**os.environ, "POPCORN_FD": str(writing), "POPCORN_SEED": "4242"}
        devnull = subprocess.DEVNULL
        with subprocess.Popen(command, cwd=place, env=environment, pass_fds=[writing], stdout=devnull, stderr=devnull):
            os.close(writing)
            with os.fdopen(reading) as pipe:
                told = dict(row.split(": ", 1) for row in pipe.read().splitlines() if ": " in row)
        noted = place / "first"
        first_s = float(noted.read_text()) if noted.exists() else None
        means = {key: float(value) for key, value in told.items() if key.endswith(".mean")}
        return begun_s, first_s, [float(told[key[:-4] + "err"]) / mean for key, mean in means.items()]


def beside(folder: Path, problem: Problem, source: str, count: int) -> list[dict[str, object]]:
    """The fresh process's own figures."""
    firsts = []
    for _ in range(count):
        begun_s, first_s, _ = evaluated(folder, problem, FIRST_ELSEWHERE, "test")
        assert first_s is not None, "eval.py never called the kernel: does it run here?"
        firsts.append(first_s - begun_s)

    def whole() -> list[float]:
        return [evaluated(folder, problem, source, mode)[2] for mode in EVAL_MODES][-1]

    return [said("a fresh process of eval.py", firsts), rate("eval.py, three modes", whole, max(2, count // 4))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--problem", choices=sorted(SEEDS), default="pmpp/vectoradd")
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--pause-s", type=float, default=4.0)
    parser.add_argument("--eval-dir", type=Path)
    parser.add_argument("--isolation")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    problem = load(options.problem)
    source = (KERNELS / SEEDS[options.problem] / "submission.py").read_text()
    runner = (CpuRunner if options.runner == "cpu" else GpuRunner)(isolation=options.isolation)
    try:
        first_call_s(runner, problem, -1)  # starts the checker
        rows = [said(f"ours, {options.pause_s:g} s apart", series(runner, problem, options.n, options.pause_s))]
        rows.append(said("ours, without a pause", series(runner, problem, options.n, 0.0)))
        rows.append(rate("ours, mode leaderboard", lambda: ours(runner, problem, source), max(2, options.n // 2)))
        if options.eval_dir is not None:
            rows += beside(options.eval_dir, problem, source, options.n)
        machine = runner.machine().model_dump(mode="json")
    finally:
        runner.close()
    if options.out is not None:
        options.out.write_text(json.dumps({"problem": problem.name, "machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
