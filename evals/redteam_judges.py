"""Judges weaker than ours, to prove that an attack works: a naive in-process grader, and GPU MODE's own ``eval.py``.

Both run as programs in a throw-away folder. Where bubblewrap works they see the machine read-only and have no network;
elsewhere only limits on files hold them, and an attack that must never run so is not given to them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from evals.redteam_corpus import Specimen
from problems.load import ROOT, folder, load, work
from problems.spec import Case, Frozen, Problem
from sandbox.isolation import Limits, works
from sandbox.isolation.program import limited, start

REPOSITORY = ROOT.parent
DEADLINE_S = 30.0
MOST_FLOPS = 3e7
"""What Triton's interpreter does in seconds: cases above it are left out on a CPU."""
CASES = 3
_CONFINED = (
    *("bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"),
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"),
)


class Weak(Frozen):
    """What a weak judge made of an attack. `skipped` says why it was not asked; empty where it was."""

    judge: str
    accepted: bool = False
    late: bool = False
    """It was still busy at its deadline: nothing but we would have ended it."""
    time_us: float | None = None
    """The time it took down, if it came that far."""
    baseline_us: float | None = None
    """What it took the reference for beside the submission, where it takes one."""
    skipped: str = ""
    tail: str = ""


def judge_weakly(
    name: Literal["naive", "eval"], specimen: Specimen, place: Literal["cpu", "gpu"], evaluators: Path | None
) -> Weak:
    """Have one weak judge judge a specimen. `evaluators` holds a folder with ``eval.py`` for each problem."""
    held = place == "cpu" and works("bubblewrap")
    if specimen.unconfined == "never" and not held:
        return Weak(judge=name, skipped="never run unconfined, and bubblewrap does not work here")
    problem = load(specimen.problem)
    source = folder(problem, ROOT) if name == "naive" else evaluator_of(problem, evaluators)
    if source is None:
        return Weak(judge=name, skipped=f"no folder for {problem.name} holds an eval.py")
    with tempfile.TemporaryDirectory(prefix="kernelwright-weak-") as place_of_work:
        workplace = Path(place_of_work)
        for path in source.glob("*.py"):
            shutil.copy(path, workplace)
        (workplace / "submission.py").write_text(specimen.source)
        return _driven(name, _plan(name, problem, place), workplace, held)


def evaluator_of(problem: Problem, evaluators: Path | None) -> Path | None:
    """The folder of this problem that holds an ``eval.py``: named as the board or an alias names the problem."""
    if evaluators is None:
        return None
    names = (problem.name, problem.board, *problem.aliases)
    places = [evaluators, *(evaluators / name.rpartition("/")[2] for name in names)]
    return next((place for place in places if (place / "eval.py").is_file()), None)


def _plan(name: str, problem: Problem, place: str) -> dict[str, Any]:
    chosen = [_as_pair(case) for case in _cases(problem, place)]
    plan = {"judge": name, "device": "cuda" if place == "gpu" else "cpu", "deadline_s": DEADLINE_S, "cases": chosen}
    return plan | {"pythonpath": str(REPOSITORY), "seed": random.SystemRandom().randrange(1 << 31)}


def _cases(problem: Problem, place: str) -> tuple[Case, ...]:
    """Published cases, the last one timed: on a GPU long enough that launching does not hide the kernel."""
    if place == "gpu":
        return (*problem.tests[: CASES - 1], problem.benchmarks[-1])
    known = [case for case in (*problem.tests, *problem.small) if case.fill == "published"]
    return tuple(case for case in known if sum(work(problem, case).flops.values()) <= MOST_FLOPS)[:CASES]


def _as_pair(case: Case) -> tuple[dict[str, Any], int]:
    params = dict(case.params)
    return params, case.seed if case.seed is not None else 4242


def _driven(name: str, plan: dict[str, Any], workplace: Path, held: bool) -> Weak:
    driver = REPOSITORY / "tests/exploits/judges/drive.py"
    argv = [sys.executable, str(driver), json.dumps(plan)]
    limits = Limits(file_bytes=1 << 33)
    if held:
        argv = [*_CONFINED, "--bind", str(workplace), str(workplace), "--chdir", str(workplace), *argv]
    argv = limited(["/bin/sh", "-c", 'cd "$0"; exec "$@" 0<&3', str(workplace), *argv], limits, count_processes=False)
    program = start(argv, {name: value for name, value in os.environ.items() if name in _PASSED})
    try:
        said = _said(program.sock, time.monotonic() + plan["deadline_s"] + 20.0)
    finally:
        program.close()
    try:
        return Weak.model_validate({"judge": name} | json.loads(said))
    except ValueError:
        return Weak(judge=name, late=True, tail=f"its driver said nothing: {said[:200]!r} {program.output()[-400:]}")


_PASSED = ("PATH", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "TRITON_PTXAS_PATH", "CC")


def _said(sock: Any, until_s: float) -> bytes:
    """All that comes until the other side is done, or the moment has passed."""
    parts = b""
    with contextlib.suppress(OSError):
        while (left_s := until_s - time.monotonic()) > 0:
            sock.settimeout(left_s)
            data = sock.recv(1 << 16)
            if not data:
                break
            parts += data
    return parts
