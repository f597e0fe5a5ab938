"""Each problem's right answers and its wrong ones, judged one by one: a table, and a status that says whether it holds.

``python -m tests.bench.variants --runner cpu|gpu [--problem NAME ...] [--out FILE] [--jobs N] [--record FILE]``
``python -m tests.bench.variants --of CPU.json --of GPU.json --record FILE``

A right one must pass; a wrong one must be refused for its answer, not for a crash. The CPU judges small cases, a GPU
the published test cases and hidden ones of their size. What a machine cannot judge (too few GPUs, too little memory) is
told apart and is no miss. ``--out`` is written anew after each candidate. ``--record`` writes the table as a page;
``--of`` takes earlier results instead of judging; those of one kind of machine, some problems each, make one column.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from problems.load import load, names
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode, Runner, RunnerError
from sandbox.verdict import CaseCheck, Judgement, WrongAnswer
from tests.bench.place import leave
from tests.bench.variants_page import joined, page
from tests.problems.wrong import named, sources

DEADLINE_S = 300.0
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", choices=("cpu", "gpu"), default="cpu")
    known = [name for name in named() if name in names()]
    parser.add_argument("--problem", choices=known, action="append", help="all, if left out")
    parser.add_argument("--jobs", type=int, default=1, help="judges side by side")
    parser.add_argument("--out", type=Path, help="the results as JSON")
    parser.add_argument("--of", type=Path, action="append", help="results to record, instead of judging")
    parser.add_argument("--record", type=Path, help="the results as a page")
    options = parser.parse_args()
    if options.of:
        found = joined([json.loads(path.read_text()) for path in options.of])
    else:
        found = [judged(options.runner, options.problem or known, options.jobs, options.out)]
    if options.record is not None:
        options.record.write_text(page(found))
    sys.exit(any(row["said"] == "MISS" for one in found for row in one["rows"]))


def judged(kind: str, problems: list[str], jobs: int, out: Path | None) -> dict[str, Any]:
    """All candidates of `problems`, by `jobs` runners, with where and when; in `out` too, as far as they are judged."""
    start_s, runners = time.monotonic(), [(CpuRunner if kind == "cpu" else GpuRunner)() for _ in range(jobs)]
    free: SimpleQueue[Runner] = SimpleQueue()
    for runner in runners:
        free.put(runner)
    todo = [(name, *one) for name in problems for one in texts(name)]
    rows: list[Row] = []
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "commit": commit(), "rows": rows}
    try:
        found["machine"] = runners[0].machine().model_dump(mode="json")
        with ThreadPoolExecutor(jobs) as pool:
            for row in pool.map(lambda one: judge(free, *one), todo):
                rows.append(row)
                print(line(row, len(rows), len(todo)), flush=True)
                leave(out, found)
    finally:
        for runner in runners:
            runner.close()
    print(summary(rows), f"{time.monotonic() - start_s:.0f} s", sep="; ")
    return found


def texts(problem: str) -> Iterator[tuple[bool, str, str]]:
    """(right, what it is, text) of each candidate."""
    found = sources(problem)
    yield from ((True, what, text) for what, text in found.right.items())
    yield from ((False, what, text) for what, text in found.wrong.items())


def judge(free: SimpleQueue[Runner], problem: str, right: bool, what: str, text: str) -> Row:
    """One candidate by whichever runner is free."""
    runner, start_s = free.get(), time.monotonic()
    try:
        judgement = runner.judge(load(problem), Candidate(source=text, language="torch"), Mode.TEST, DEADLINE_S)
    except RunnerError as error:
        row: Row = {"said": "not judged", "kind": "not judged", "why": str(error)}
    else:
        row = told(judgement, right)
    finally:
        free.put(runner)
    return {"problem": problem, "right": right, "what": what, **row, "wall_s": time.monotonic() - start_s}


def told(judgement: Judgement, right: bool) -> Row:
    """What a judgement comes to: as it should be, or a miss; and what it says."""
    verdict = judgement.verdict
    said = "ok" if (verdict.kind == "passed" if right else isinstance(verdict, WrongAnswer)) else "MISS"
    row: Row = {"said": said, "kind": verdict.kind, "why": getattr(verdict, "reason", "")}
    checks: tuple[CaseCheck, ...] = getattr(verdict, "cases", ())
    if checks:
        worst = max(checks, key=lambda check: (not check.passed, check.error.worst_ratio))
        row |= {"case": worst.case.label(), "cases": len(checks), "board_accepts": worst.board_accepts}
        row |= {"times_allowed": worst.error.worst_ratio, "max_abs": worst.error.max_abs}
        row |= {"mismatches": worst.error.mismatches, "elements": worst.error.elements}
    return row


def line(row: Row, number: int, total: int) -> str:
    """One row for a terminal."""
    what = f"{row['problem']:23} {'right' if row['right'] else 'wrong'}: {row['what']}"
    return f"{number:3}/{total} {row['said']:4} {what:80} {row['kind']:12} {row['why'][:120]} ({row['wall_s']:.1f} s)"


def summary(rows: list[Row]) -> str:
    """How many were judged as they should be."""
    right, wrong = (
        [row for row in rows if row["right"] is side and row["said"] != "not judged"] for side in (True, False)
    )
    passed, refused = (sum(row["said"] == "ok" for row in side) for side in (right, wrong))
    problems, left = len({row["problem"] for row in rows}), len(rows) - len(right) - len(wrong)
    return (
        f"{problems} problems: {passed} of {len(right)} right ones pass, {refused} of {len(wrong)} wrong ones refused"
        + (f", {left} not judged" if left else "")
    )


def commit() -> str:
    """The checkout's commit, with a mark where files differ from it; empty outside git."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parent).stdout.strip()


if __name__ == "__main__":
    main()
