"""Board times against GPU MODE's own ``eval.py``, leaderboard mode, same machine, same kernel. Needs a GPU.

``python -m tests.bench.board_against_eval --eval-dir DIR [--out FILE]``

DIR holds a folder for each problem, named as the problem or its board is, with that problem's ``eval.py``,
``utils.py``, ``task.py`` and ``reference.py`` side by side (as in gpu-mode/reference-kernels).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evals.redteam_judges import evaluator_of
from problems.load import load
from problems.spec import Problem
from sandbox.candidate import Candidate
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed
from tests.bench.place import leave, seed_source

SEEDS = {
    "pmpp/vectoradd": "pmpp/vectoradd/flat",
    "pmpp/matmul": "pmpp/matmul/grouped",
    "amd/fp8-mm": "amd/fp8-mm/block_scaled",
    "pmpp/conv2d": "pmpp/conv2d/implicit",
    "pmpp/grayscale": "pmpp/grayscale/flat",
    "pmpp/vectorsum": "pmpp/vectorsum/two_pass",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval-dir", type=Path, required=True)
    parser.add_argument("--problem", choices=sorted(SEEDS), action="append", help="all, if left out")
    parser.add_argument("--cases", type=int, default=4, help="ranked cases of each problem, the last ones")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    start_s, rows, runner = time.monotonic(), list[dict[str, object]](), GpuRunner()
    try:
        for name in options.problem or sorted(SEEDS):
            problem = load(name)
            folder = evaluator_of(problem, options.eval_dir)
            if folder is None:
                print(f"{name}: no folder under {options.eval_dir} holds its eval.py")
                continue
            rows += beside(runner, problem, folder, options.cases)
        machine = runner.machine().model_dump(mode="json")
    finally:
        runner.close()
    within = sum(abs(float(str(row["off"]))) <= 0.03 for row in rows)
    print(f"{within} of {len(rows)} within 3 %; {time.monotonic() - start_s:.0f} s")
    leave(options.out, {"machine": machine, "rows": rows})


def beside(runner: GpuRunner, problem: Problem, folder: Path, last: int) -> list[dict[str, object]]:
    """The last ranked cases of one problem, by both."""
    source = seed_source(SEEDS[problem.name])
    judgement = runner.judge(problem, Candidate(source=source), Mode.LEADERBOARD, 300)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    ours = judgement.verdict.board_us[-last:]
    theirs = evaluated(folder, problem, source, last)
    rows: list[dict[str, object]] = []
    for time_taken, theirs_us in zip(ours, theirs, strict=True):
        off = time_taken.us / theirs_us - 1
        label = f"{problem.name} {time_taken.case.spec()}"
        print(f"{label:48} board time {time_taken.us:9.2f} us  eval.py {theirs_us:9.2f} us  {off:+.2%}", flush=True)
        rows.append({"case": label, "ours_us": time_taken.samples_us, "theirs_us": theirs_us, "off": off})
    return rows


def evaluated(folder: Path, problem: Problem, source: str, last: int) -> list[float]:
    """Means of the last ranked cases, in microseconds, by ``eval.py leaderboard``."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for path in folder.glob("*.py"):
            shutil.copy(path, place)
        (place / "submission.py").write_text(source)
        cases = [f"{case.spec()}; seed: {case.seed or 4242}\n" for case in problem.ranked()[-last:]]
        (place / "cases.txt").write_text("".join(cases))
        reading, writing = os.pipe()
        environment = {**os.environ, "POPCORN_FD": str(writing), "POPCORN_SEED": "4242"}
        command = [sys.executable, "eval.py", "leaderboard", "cases.txt"]
        with subprocess.Popen(command, cwd=place, env=environment, pass_fds=[writing], stdout=sys.stderr):
            os.close(writing)
            with os.fdopen(reading) as pipe:
                told = dict(row.split(": ", 1) for row in pipe.read().splitlines() if ": " in row)
    assert told.get("check") == "pass", told
    return [float(told[f"benchmark.{index}.mean"]) / 1e3 for index in range(len(cases))]


if __name__ == "__main__":
    main()
