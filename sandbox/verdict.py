"""What a judgement can say. A verdict holds only what its outcome can know; numbers say where they came from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from problems.ranking import geomean, ranked_us
from problems.spec import Case, Frozen, Problem
from sandbox.inspection import Advice as Advice
from sandbox.inspection import LoopCost as LoopCost
from sandbox.profile import Profile as Profile
from sandbox.timing import BoardTime as BoardTime
from sandbox.timing import Estimated as Estimated
from sandbox.timing import Measured as Measured
from sandbox.timing import Timing as Timing
from sandbox.timing import Untimed as Untimed

Role = Literal["test", "small", "hidden", "benchmark"]


class ErrorFigures(Frozen):
    """How far an output is from the float64 result."""

    max_abs: float
    max_rel: float
    worst_ratio: float
    """Largest error over its allowance; at most 1 passes, infinity where the output is not finite."""
    mismatches: int
    elements: int


class CaseCheck(Frozen):
    """One case, checked. `board_accepts` is None where the board's own rule was not run."""

    case: Case
    role: Role
    seed: int
    """Drawn by the judge after the candidate was loaded, revealed here afterwards."""
    passed: bool
    error: ErrorFigures
    board_accepts: bool | None = None


class IsaReport(Frozen):
    """What the compiler made of one kernel for one target. Evidence from the guest: it ranks and explains only."""

    kernel: str
    target: str
    """``gfx942`` or ``gfx950``."""
    vgpr: int
    agpr: int
    sgpr: int
    vgpr_spills: int
    sgpr_spills: int
    scratch_bytes: int
    lds_bytes: int
    waves_per_workgroup: int
    occupancy_waves: int
    """Waves resident on a SIMD, with registers and LDS both counted."""
    occupancy_limit: str
    """What limits it: ``vgpr``, ``lds``, ``workgroups`` or ``waves``."""
    mfma: dict[str, int]
    memory: dict[str, int]
    """Global and LDS accesses by mnemonic, so that their widths show."""
    waits: int
    barriers: int
    instructions: int
    code_bytes: int
    language: Literal["triton", "hip"] = "triton"
    threads: int = 0
    """Of one workgroup; 0 in records from before it was kept."""
    bank_conflict: float = 1.0
    """Passes that the LDS accesses take over those without bank conflicts; of those whose addresses can be followed."""
    loops: tuple[LoopCost, ...] = ()
    advice: tuple[Advice, ...] = ()


class KernelRecord(Frozen):
    """One kernel a candidate launched, as its guest recorded it."""

    name: str
    target: str
    launches: int
    isa: IsaReport | None = None
    error: str | None = None
    """The compiler's message where it did not build for this target."""


class Finding(Frozen):
    """A place in the source worth a look."""

    line: int
    rule: str
    message: str
    convicts: bool = False


class Rejected(Frozen):
    """Refused before it ran: not a submission, or a construct that has no honest use."""

    kind: Literal["rejected"] = "rejected"
    reason: str
    findings: tuple[Finding, ...] = ()


class BuildFailed(Frozen):
    """Did not import, or a kernel did not compile for the target."""

    kind: Literal["build_failed"] = "build_failed"
    reason: str
    log: str


class Crashed(Frozen):
    """Raised or died while running a case."""

    kind: Literal["crashed"] = "crashed"
    reason: str
    case: Case | None
    log: str


class TimedOut(Frozen):
    """Passed its deadline; its whole process group was killed."""

    kind: Literal["timed_out"] = "timed_out"
    reason: str
    deadline_s: float
    case: Case | None


class WrongAnswer(Frozen):
    """Returned something other than what the case asks for."""

    kind: Literal["wrong_answer"] = "wrong_answer"
    reason: str
    cases: tuple[CaseCheck, ...]


class Cheated(Frozen):
    """Caught at something that only an attack on the judge needs."""

    kind: Literal["cheated"] = "cheated"
    reason: str
    evidence: str


class Passed(Frozen):
    """Right on every case."""

    kind: Literal["passed"] = "passed"
    cases: tuple[CaseCheck, ...]
    timings: tuple[Timing, ...] = ()
    """One per published benchmark case, in the board's order; empty in test mode."""
    board_us: tuple[BoardTime, ...] = ()
    """One per ranked case, in the board's order; empty where none was taken: test mode, or no GPU."""


Verdict = Annotated[
    Rejected | BuildFailed | Crashed | TimedOut | WrongAnswer | Cheated | Passed, Field(discriminator="kind")
]


class Machine(Frozen):
    """Where a judgement was made. A CPU emulation says so."""

    kind: Literal["gpu", "cpu-emulation", "fake"]
    chip: str
    """The chip that was measured, or the one whose code was compiled and estimated."""
    arch: str
    driver: str
    runtime: str
    """``cuda 13.0``, ``rocm 6.4`` or ``none``."""
    torch: str
    triton: str
    python: str
    harness: str
    """Content hash of the judge's own source."""


class Judgement(Frozen):
    """A verdict with everything needed to read it later."""

    verdict: Verdict
    machine: Machine
    sandbox: str
    """Where the guest ran, and which caps were in force: ``bubblewrap+seccomp+cgroup``."""
    seeds: tuple[int, ...]
    kernels: tuple[KernelRecord, ...] = ()
    flags: tuple[str, ...] = ()
    """Things a reader should know that do not change the verdict."""
    profiles: tuple[Profile, ...] = ()
    """One per tool, in profile mode; taken after the verdict, in guests of their own."""
    wall_s: float

    @property
    def accepted(self) -> bool:
        """Whether our rule accepts the candidate."""
        return isinstance(self.verdict, Passed)

    @property
    def board_accepts(self) -> bool | None:
        """Whether the board's own check would pass on every case it was run on; None where it was not run."""
        match self.verdict:
            case Passed(cases=cases) | WrongAnswer(cases=cases):
                answers = [case.board_accepts for case in cases if case.board_accepts is not None]
                return all(answers) if answers else None
            case _:
                return None

    @property
    def time_kind(self) -> Literal["measured", "estimated", "none"]:
        """Where the times came from; one judgement never mixes kinds, a missing one makes the whole ``none``."""
        kinds = {timing.kind for timing in self._timings()}
        return kinds.pop() if len(kinds) == 1 else "none"

    @property
    def geomean_us(self) -> float | None:
        """Geometric mean over all published benchmark cases, or None where any of them has no time."""
        times = [timing.us for timing in self._timings() if not isinstance(timing, Untimed)]
        if not times or self.time_kind == "none":
            return None
        return geomean(times)

    def _timings(self) -> tuple[Timing, ...]:
        return self.verdict.timings if isinstance(self.verdict, Passed) else ()


def score_us(problem: Problem, judgement: Judgement) -> float | None:
    """What the problem's board would rank by, in microseconds, from whatever times there are; None without them.

    The times keep their kind: a score is measured or estimated as `judgement.time_kind` says.
    """
    if not isinstance(judgement.verdict, Passed) or judgement.geomean_us is None:
        return None
    return ranked_us(problem.board_timing, [None if t.kind == "none" else t.us for t in judgement.verdict.timings])


def board_score_us(problem: Problem, judgement: Judgement) -> float | None:
    """What the board itself would have shown for this candidate on this chip, in microseconds; None if not taken."""
    if not isinstance(judgement.verdict, Passed) or not judgement.verdict.board_us:
        return None
    return ranked_us(problem.board_timing, [time.us for time in judgement.verdict.board_us])
