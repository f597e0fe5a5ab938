"""Judging a candidate for a problem from elsewhere: on the CPU in small sizes, on a GPU in the published ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from problems.spec import Case, Origin, ParamValue, Problem
from sandbox.checker.answer import legible
from sandbox.checker.cases import judge_cases, worst
from sandbox.checker.foreign import Reference, TooLarge, sources
from sandbox.checker.foreign_bench import ForeignBench
from sandbox.checker.guest import Guest
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Outcome, Progress, Refuted, Request
from sandbox.checker.trial import Share
from sandbox.defences import Defences
from sandbox.harness import harness_sha256
from sandbox.runner import Mode, Unsupported
from sandbox.verdict import Passed, Role, Untimed

SMALL_BYTES, SMALL_FLOPS = 32 << 20, 1_000_000_000
"""What one run of a problem may move and compute on a CPU: a fraction of a second of one core."""
MOST_BYTES, MOST_FLOPS = 3 << 30, 16_000_000_000
"""Up to these it is still judged, where its sizes go no smaller."""
SMALL_STEP_S, SMALL_TOTAL_S = 30.0, 45.0
"""What one step of a reference may take on a CPU, and after how long no further case is begun."""
UNCOUNTED = "no estimate: its problem file does not say what operations and bytes a call needs"
UNTIMED = "imported problems are checked here, not timed"
OWN_CHECK = "imported: accepted by the problem's own check, which is untrusted code run in a guest of its own"
FLOAT64 = "imported: held against its Model run in float64, in a guest of its own"


@contextmanager
def opened(problem: Problem, guest: Guest, device: str, step_s: float) -> Iterator[Reference]:
    """The reference at work in `guest`, which ends with it; `Unsupported` where no machine of this judge can run it."""
    assert problem.origin is not None
    try:
        refuse(problem)
        reference = Reference(problem, guest, device, step_s)
        try:
            yield reference
        finally:
            reference.close()
    finally:
        guest.close()


def refuse(problem: Problem) -> None:
    """`Unsupported`, with the reason, where nobody here can run it."""
    if problem.origin is not None and problem.origin.unmet:
        raise Unsupported(f"{problem.name} cannot be judged: {problem.origin.unmet}")


def cases(reference: Reference, gpu: bool) -> tuple[tuple[tuple[Role, Case], ...], list[str]]:
    """What to check on this machine, and what a reader must know of it; `TooLarge` where nothing fits."""
    problem = reference.problem
    if gpu:
        more = (case for case in problem.benchmarks if case not in problem.tests)
        return tuple(("test", case) for case in (*problem.tests, *more)), []
    if reference.origin.kind == "gpu-mode":
        return tuple(("small", case) for case in sorted(problem.small, key=volume)), []
    case, said = reduced(reference, problem.tests[0])
    return (("small", case),), said


def volume(case: Case) -> int:
    """The product of a case's sizes: which case is smaller than another of the same problem."""
    return math.prod(abs(size) or 1 for value in case.params.values() for size in _whole(value))


def _whole(value: ParamValue) -> tuple[int, ...]:
    if isinstance(value, tuple):
        return value
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else ()


def reduced(reference: Reference, case: Case) -> tuple[Case, list[str]]:
    """The case itself, or one with smaller sizes that a CPU can run, and what was changed."""
    told = reference.sized(case, SMALL_BYTES, SMALL_FLOPS)
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in told["params"].items()}
    changed = {name: value for name, value in params.items() if value != case.params[name]}
    if told["bytes"] > MOST_BYTES or told["flops"] > MOST_FLOPS:
        least = (
            f"{told['bytes'] / 2**30:.2f} GiB and {told['flops'] / 1e9:.0f} GFLOP with its sizes as small as they go"
        )
        full = f"one run moves {told['full_bytes'] / 2**30:.1f} GiB, {least}"
        raise TooLarge(f"{reference.origin.path}: too large for this machine: {full}; judge it on a GPU")
    if told["bytes"] < 0:
        why = legible(str(told.get("why"))[:200])
        return case, [f"judged at its published sizes: what they cost is not known beforehand ({why})"]
    if not changed:
        return case, []
    smaller = ", ".join(f"{name} {case.params[name]} -> {value}" for name, value in changed.items())
    return case.model_copy(update={"params": params}), [
        f"judged at reduced sizes: {smaller}; what has the published ones written into it fails"
    ]


def judge(
    problem: Problem,
    request: Request,
    guest: Guest,
    reference: Reference,
    progress: Progress,
    defences: Defences,
    gpu: bool,
    share: Share = HostMemory,
    settle: Callable[[], None] = lambda: None,
) -> Outcome:
    """Judge one candidate; the reference is at work in another guest."""
    todo, said = cases(reference, gpu)
    matched = reference.origin.kind == "kernelbench"
    progress.flags += [*said, FLOAT64 if matched else OWN_CHECK]
    files, content = sources(reference.origin)
    guest.ask({"op": "problem", "kind": reference.origin.kind, "files": files, "run": False}, "problem", content)

    def run() -> None:
        skipped: list[Exception] = []
        until_s = time.monotonic() + (math.inf if gpu else SMALL_TOTAL_S)
        for role, case in todo:
            if time.monotonic() > until_s and progress.checks:
                progress.flags.append(f"not judged on this CPU, for time: {case.label()} and larger cases")
                break
            try:
                _check(reference, case, role, guest, progress, defences, share, settle)
            except TooLarge as error:
                skipped.append(error)
                if not gpu:
                    break  # the cases that come are larger
                progress.flags.append(f"not judged: {error}")
        progress.case = None
        if skipped and not progress.checks:
            raise skipped[0]

    verdict = judge_cases(request, progress, guest, run)
    if verdict is None:
        timed = request.mode is not Mode.TEST
        reason = UNTIMED if gpu else UNCOUNTED
        none = tuple(Untimed(case=case, reason=reason) for case in problem.benchmarks) if timed else ()
        verdict = Passed(cases=tuple(progress.checks), timings=none)
    return Outcome(verdict)


def _check(
    reference: Reference,
    case: Case,
    role: Role,
    guest: Guest,
    progress: Progress,
    defences: Defences,
    share: Share,
    settle: Callable[[], None],
) -> None:
    """Two calls on fresh inputs. `Refuted` where one is wrong."""
    progress.case = case
    bench = ForeignBench(reference, case, role, guest, defences, share)
    try:
        trials = [bench.run(before=settle)]
        if trials[0].check.passed:
            trials.append(bench.run(before=settle))
    finally:
        bench.close()
    progress.checks.append(worst([trial.check for trial in trials]))
    progress.seeds += [trial.check.seed for trial in trials]
    if not trials[-1].check.passed:
        raise Refuted(f"{case.label()}: {trials[-1].reason}")


def judge_sha256(origin: Origin) -> str:
    """sha256, in hex, over the judge's sources and the problem's."""
    import hashlib

    digest = hashlib.sha256(harness_sha256().encode())
    for path in sorted({origin.path, *origin.sources.values()}):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()
