"""How many problems from elsewhere load, and how many judge their own reference as right, on this machine.

``python -m tests.bench.imports --gpu-mode DIR --kernelbench DIR --out FILE``: one line of JSON a problem, appended as
it is known, so that a run that was stopped goes on where it was. ``--gpu`` judges the published sizes on the first
GPU. Prints progress, then the count of each outcome and the reason of each that did not pass.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from problems.elsewhere import pointers
from problems.spec import Problem, ProblemError
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode, Runner, RunnerError, Unsupported
from sandbox.verdict import Passed

OWN = "from reference import ref_kernel\n\n\ndef custom_kernel(data):\n    return ref_kernel(data)\n"


def own_reference(problem: Problem) -> Candidate:
    """The problem's reference as a candidate for itself."""
    assert problem.origin is not None
    modelled = problem.origin.kind == "kernelbench"
    source = Path(problem.origin.path).read_text(encoding="utf-8") + "\n\nModelNew = Model\n" if modelled else OWN
    return Candidate(source=source, language="triton")


def outcome(path: Path, runner: Runner, deadline_s: float) -> dict[str, Any]:
    """What comes of one problem file: ``broken``, ``not here``, ``passed`` or a verdict's kind; and why."""
    try:
        problem = pointers.describe(path)[1]
    except ProblemError as error:
        return {"name": str(path), "loaded": False, "outcome": "broken", "reason": str(error)}
    told: dict[str, Any] = {"name": problem.name, "loaded": True}
    try:
        judgement = runner.judge(problem, own_reference(problem), Mode.TEST, deadline_s)
    except Unsupported as error:
        return told | {"outcome": "not here", "reason": str(error)}
    except (ProblemError, RunnerError) as error:
        return told | {"outcome": type(error).__name__, "reason": str(error)}
    verdict = judgement.verdict
    checks = verdict.cases if isinstance(verdict, Passed) else ()
    ratio = max((check.error.worst_ratio for check in checks), default=None)
    reason = "" if isinstance(verdict, Passed) else getattr(verdict, "reason", "")
    flags = [flag for flag in judgement.flags if flag.startswith(("judged", "not judged"))]
    return told | {
        "outcome": verdict.kind, "reason": reason, "board": judgement.board_accepts, "worst_ratio": ratio,
        "cases": len(checks), "flags": flags, "machine": judgement.machine.chip, "torch": judgement.machine.torch,
    }  # fmt: skip


def files(arguments: argparse.Namespace) -> Iterator[Path]:
    """Every problem file of both sets."""
    for folder in (arguments.gpu_mode, arguments.kernelbench):
        if folder is not None:
            yield from (path.resolve() for path in pointers.found(folder))


def main() -> None:
    """Judge what is not in the file yet, then count."""
    parser = argparse.ArgumentParser(prog="tests.bench.imports")
    parser.add_argument("--gpu-mode", type=Path)
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--budget-s", type=float, default=float("inf"), help="start no problem after so many seconds")
    parser.add_argument("--every", type=int, default=1, help="one in so many of those that are left")
    parser.add_argument("--deadline-s", type=float, default=60.0, help="the candidate's own time for each problem")
    arguments = parser.parse_args()
    done = _read(arguments.out)
    todo = [path for path in files(arguments) if str(path) not in done][:: arguments.every]
    start_s, runner = time.monotonic(), GpuRunner() if arguments.gpu else CpuRunner()
    try:
        for index, path in enumerate(todo):
            if time.monotonic() - start_s > arguments.budget_s:
                print(f"stopped with {len(todo) - index} left", flush=True)
                break
            began_s = time.monotonic()
            row = outcome(path, runner, arguments.deadline_s) | {"path": str(path)}
            row["wall_s"] = round(time.monotonic() - began_s, 1)
            with arguments.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            done[str(path)] = row
            print(f"{len(done)} {row['name']}: {row['outcome']} {row['reason'][:160]} ({row['wall_s']} s)", flush=True)
    finally:
        runner.close()
    _count(list(done.values()))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Rows by file; a torn last line is taken for one that is not there."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[row["path"]] = row
    return found


def _count(rows: list[dict[str, Any]]) -> None:
    for kind in ("reference-kernels", "KernelBench"):
        mine = [row for row in rows if ("kernelbench" in row["name"]) == (kind == "KernelBench")]
        print(f"{kind}: {len(mine)} files, {sum(row['loaded'] for row in mine)} load; {dict(_outcomes(mine))}")
    for row in rows:
        if row["outcome"] != "passed":
            print(f"  {row['name']}: {row['outcome']}: {row['reason'][:300]}")


def _outcomes(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["outcome"] for row in rows)


if __name__ == "__main__":
    main()
