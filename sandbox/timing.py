"""A time and where it came from: measured on a chip, estimated from compiled code, or none at all."""

from __future__ import annotations

import statistics
from typing import Annotated, Literal

from pydantic import Field

from problems.spec import Case, Frozen
from sandbox.clock import Agreement


class Measured(Frozen):
    """Times taken on a chip: every sample, in microseconds, and how they were taken."""

    kind: Literal["measured"] = "measured"
    case: Case
    chip: str
    clock: str
    samples_us: tuple[float, ...]
    """Device-event time of each call, less `pair_us`."""
    wall_us: tuple[float, ...]
    """The checker's own clock round the same calls, hand-over included."""
    warmup_calls: int
    empty_us: tuple[float, ...] = ()
    """The checker's clock round the empty call paired with each of them, in a guest that never held a candidate."""
    pair_us: float = 0.0
    """What device events said of a kernel that does nothing, median of the empty calls; 0 where there were none."""
    burst_us: tuple[float, ...] = ()
    """The checker's clock over bursts of `burst_calls` calls behind a gate, a call, less bursts of empty kernels."""
    burst_calls: int = 0
    interval_us: tuple[float, float] | None = None
    """Where the median of `decided_us` lies, with 95 % confidence."""
    agreement: Agreement = "not compared"
    """Whether `samples_us` and `checker_us` tell the same; where they disagree, the latter decide."""
    bound_us: float | None = None
    """The checker's clock alone: the median is no larger than this, whatever the candidate did to its own."""

    @property
    def decided_us(self) -> tuple[float, ...]:
        """The samples that count: the device events', or the checker's where the two clocks disagree."""
        return self.checker_us if self.agreement == "disagree" else self.samples_us

    @property
    def checker_us(self) -> tuple[float, ...]:
        """The checker's own clock: over bursts, or less the paired empty calls; empty where there were none."""
        if self.burst_us:
            return self.burst_us
        return tuple(wall - empty for wall, empty in zip(self.wall_us, self.empty_us, strict=False))

    @property
    def us(self) -> float:
        """Median of the samples that count."""
        return statistics.median(self.decided_us)


class BoardTime(Frozen):
    """One ranked case timed the way the problem's board times it. Published times compare with this one only."""

    case: Case
    chip: str
    how: str
    """The evaluator it follows: its clock, flush, calls a sample, and what differs here."""
    samples_us: tuple[float, ...]

    @property
    def us(self) -> float:
        """Mean of the samples, as every GPU MODE board takes it."""
        return statistics.fmean(self.samples_us)


class Estimated(Frozen):
    """A time computed from compiled code and a chip's data sheet. Nothing ran on that chip."""

    kind: Literal["estimated"] = "estimated"
    case: Case
    chip: str
    us: float
    bound: str
    """What limits it: ``mfma``, ``valu``, ``lds``, ``hbm``, ``latency`` or ``launch``."""
    parts_us: dict[str, float]
    """The model's terms, so that two candidates' estimates can be told apart."""


class Untimed(Frozen):
    """No time, and why."""

    kind: Literal["none"] = "none"
    case: Case
    reason: str


Timing = Annotated[Measured | Estimated | Untimed, Field(discriminator="kind")]
