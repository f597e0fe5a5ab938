"""Seconds from a request to the first kernel call, and whole candidates a minute, beside GPU MODE's ``eval.py``.

``python -m tests.bench.warm_start [--runner cpu|gpu] [--problem NAME] [--n 20] [--stream 6] [--eval-dir FOLDER] ...``

First calls: the candidate raises in its first call and says the time on the machine's one monotonic clock, so nothing
is instrumented. Measured after a pause, as while a model writes, and without one.

A stream: candidates that follow one another at once, each with kernels of its own name, so that no cache of compiled
code serves two of them. Ours are judged in modes benchmark and leaderboard, each told which comes next; the first one's
time is left out. With ``--eval-dir`` (a problem's own folder, which holds ``eval.py`` and its modules) the same stream
goes through its modes test, benchmark and leaderboard, as the board does it, one fresh process each; a candidate's
three processes share a cache of compiled code that was empty before.
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
from dataclasses import asdict, dataclass
from itertools import pairwise
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
FIRST_ELSEWHERE = r"""
import os, signal, time
def custom_kernel(data):
    open("first", "w").write(repr(time.monotonic()))
    # The evaluator's pool would wait for ever for a worker that is gone.
    if b"\0eval.py\0" in open(f"/proc/{os.getppid()}/cmdline", "rb").read():
        os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
"""
SEEDS = {"pmpp/vectoradd": "pmpp/vectoradd/flat", "amd/fp8-mm": "amd/fp8-mm/block_scaled"}
KERNELS = Path(__file__).parents[2] / "seed_kernels"
EVAL_MODES = ("test", "benchmark", "leaderboard")
WIDE = 2 * 1.96
"""A 95 % interval of a mean is so many standard errors wide."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Whole candidates, one after the other."""

    name: str
    samples_s: list[float]
    """Seconds for each candidate."""
    widths: list[float]
    """Of every case: the 95 % interval of its mean, as a share of it."""

    @property
    def per_minute(self) -> float:
        return 60 * len(self.samples_s) / sum(self.samples_s)

    def told(self) -> dict[str, object]:
        """As a row of the file, and printed."""
        width = f"{statistics.median(self.widths):.2%}" if self.widths else "none"
        taken = f"{self.per_minute:6.2f} candidates a minute, median {statistics.median(self.samples_s):6.2f} s"
        count = len(self.samples_s)
        print(f"{self.name:44} {taken}, n {count}; median width of a case's 95 % interval {width}", flush=True)
        return {**asdict(self), "per_minute": self.per_minute}


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


def distinct(source: str, number: int) -> str:
    """The same submission with every kernel under another name: Triton compiles all of them anew."""
    names = re.findall(r"^@triton\.jit(?:\(.*\))?\ndef (\w+)\(", source, re.MULTILINE)
    assert names, "no kernel to rename"
    return re.sub(rf"\b({'|'.join(names)})\b", rf"\1_{number}", source)


def ours(runner: Runner, problem: Problem, source: str, mode: Mode, count: int, ahead: bool = True) -> Rate:
    """A stream of `count` candidates after a first one; with `ahead` the runner is told which is behind each."""
    first = 1000 * (2 * list(Mode).index(mode) + ahead)
    stream = [Candidate(source=distinct(source, first + number)) for number in range(count + 2)]
    times, widths = [], []
    for candidate, following in pairwise(stream):
        start_s = time.monotonic()
        judgement = runner.judge(problem, candidate, mode, following=following if ahead else None)
        times.append(time.monotonic() - start_s)
        assert isinstance(judgement.verdict, Passed), judgement.verdict
        timed = [timing.samples_us for timing in judgement.verdict.timings if isinstance(timing, Measured)]
        errors = [statistics.stdev(all_us) / len(all_us) ** 0.5 / statistics.fmean(all_us) for all_us in timed]
        widths += [WIDE * error for error in errors]
    return Rate(f"ours, mode {mode}{'' if ahead else ', nothing ahead'}", times[1:], widths)


def line(case: Case) -> str:
    """A case as ``eval.py`` reads it."""
    seed = {} if "seed" in case.params else {"seed": 4242}
    return "; ".join(f"{name}: {value}" for name, value in {**case.params, **seed}.items()) + "\n"


class Elsewhere:
    """One candidate in a folder of its own beside ``eval.py`` and its modules, with an empty cache."""

    def __init__(self, folder: Path, problem: Problem, source: str, place: Path) -> None:
        self._problem, self._place = problem, place
        for path in folder.glob("*.py"):
            shutil.copy(path, place)
        (place / "submission.py").write_text(source)

    def evaluated(self, mode: str) -> dict[str, str]:
        """What a fresh process says, by its own names."""
        cases = self._problem.tests if mode == "test" else self._problem.benchmarks
        (self._place / "cases.txt").write_text("".join(map(line, cases)))
        reading, writing = os.pipe()
        command = [sys.executable, "eval.py", mode, "cases.txt"]
        environment = {**os.environ, "POPCORN_FD": str(writing), "POPCORN_SEED": "4242"}
        environment["TRITON_CACHE_DIR"] = str(self._place / "triton")
        null = subprocess.DEVNULL
        with subprocess.Popen(command, cwd=self._place, env=environment, pass_fds=[writing], stdout=null, stderr=null):
            os.close(writing)
            with os.fdopen(reading) as pipe:
                return dict(row.split(": ", 1) for row in pipe.read().splitlines() if ": " in row)

    def first_call_s(self) -> float:
        """From a fresh process's start to its first call."""
        begun_s = time.monotonic()
        self.evaluated("test")
        noted = self._place / "first"
        assert noted.exists(), "eval.py never called the kernel: does it run here?"
        return float(noted.read_text()) - begun_s

    def whole(self, mode: str) -> tuple[float, list[float]]:
        """Seconds for one mode, and the width of each of its cases' intervals."""
        begun_s = time.monotonic()
        told = self.evaluated(mode)
        taken_s = time.monotonic() - begun_s
        assert told.get("check") == "pass", {name: value for name, value in told.items() if "error" in name} or told
        means = {name[:-4]: float(value) for name, value in told.items() if name.endswith(".mean")}
        return taken_s, [WIDE * float(told[f"{name}err"]) / mean for name, mean in means.items()]


def beside(
    folder: Path, problem: Problem, source: str, firsts: int, count: int
) -> tuple[dict[str, object], list[Rate]]:
    """The evaluator's own figures: first calls, then the stream, up to mode benchmark and as a board has it."""
    times = []
    for _ in range(firsts):
        with tempfile.TemporaryDirectory() as name:
            times.append(Elsewhere(folder, problem, FIRST_ELSEWHERE, Path(name)).first_call_s())
    taken: dict[str, list[float]] = {mode: [] for mode in EVAL_MODES}
    widths: dict[str, list[float]] = {mode: [] for mode in EVAL_MODES}
    for number in range(count):
        with tempfile.TemporaryDirectory() as name:
            candidate = Elsewhere(folder, problem, distinct(source, 9000 + number), Path(name))
            for mode in EVAL_MODES:
                taken_s, found = candidate.whole(mode)
                taken[mode].append(taken_s)
                widths[mode] += found
    two = [sum(both) for both in zip(taken["test"], taken["benchmark"], strict=True)]
    three = [sum(both) for both in zip(two, taken["leaderboard"], strict=True)]
    rates = [Rate("eval.py, test and benchmark", two, widths["benchmark"])]
    rates.append(Rate("eval.py, all three modes", three, widths["leaderboard"]))
    return said("a fresh process of eval.py", times), rates


def compared(mine: list[Rate], theirs: list[Rate]) -> list[dict[str, object]]:
    """Each of ours beside each of theirs, printed: the ratio means little without both intervals' widths."""
    rows: list[dict[str, object]] = []
    for one in mine:
        for other in theirs:
            ratio = one.per_minute / other.per_minute
            widths = [statistics.median(rate.widths) if rate.widths else float("nan") for rate in (one, other)]
            name = f"{one.name} / {other.name}"
            print(f"{name:64} {ratio:6.2f} times as many; widths {widths[0]:.2%} and {widths[1]:.2%}", flush=True)
            rows.append({"name": name, "ratio": ratio, "widths": widths})
    return rows


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--problem", choices=sorted(SEEDS), default="pmpp/vectoradd")
    parser.add_argument("--n", type=int, default=20, help="first calls of each kind; 0 for none")
    parser.add_argument("--stream", type=int, default=6, help="candidates of each stream; 0 for none")
    parser.add_argument("--mode", choices=("benchmark", "leaderboard"), action="append", help="of the streams; both")
    parser.add_argument("--alone", action="store_true", help="a stream too whose runner is not told what comes next")
    parser.add_argument("--pause-s", type=float, default=4.0)
    parser.add_argument("--eval-dir", type=Path)
    parser.add_argument("--isolation")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    problem = load(options.problem)
    source = (KERNELS / SEEDS[options.problem] / "submission.py").read_text()
    runner = (CpuRunner if options.runner == "cpu" else GpuRunner)(isolation=options.isolation)
    rows: list[dict[str, object]] = []
    mine: list[Rate] = []
    try:
        first_call_s(runner, problem, -1)  # starts the checker
        if options.n:
            rows.append(said(f"ours, {options.pause_s:g} s apart", series(runner, problem, options.n, options.pause_s)))
            rows.append(said("ours, without a pause", series(runner, problem, options.n, 0.0)))
        if options.alone and options.stream:
            rows.append(ours(runner, problem, source, Mode.BENCHMARK, options.stream, ahead=False).told())
        for mode in (options.mode or ("benchmark", "leaderboard")) if options.stream else ():
            mine.append(ours(runner, problem, source, Mode(mode), options.stream))
            rows.append(mine[-1].told())
        machine = runner.machine().model_dump(mode="json")
    finally:
        runner.close()
    if options.eval_dir is not None:
        first, theirs = beside(options.eval_dir, problem, source, max(1, options.n), max(1, options.stream))
        rows += [first, *(rate.told() for rate in theirs), *compared(mine, theirs)]
    if options.out is not None:
        options.out.write_text(json.dumps({"problem": problem.name, "machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
