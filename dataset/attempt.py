"""The records of a run's journal. Each carries its schema version; a reader refuses a newer one by name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from problems.spec import Frozen
from sandbox.comparison import Difference
from sandbox.verdict import Judgement

SCHEMA_VERSION = 1


class RecordError(Exception):
    """The journal cannot be read or written: damaged, locked by another process, disk full, or too new."""


class MoveRecord(Frozen):
    """The decision that led to an attempt, as plain data."""

    kind: Literal["seed", "tune", "draft", "repair", "optimise", "crossover", "port"]
    knobs: dict[str, int | str | bool] = Field(default={})
    """The whole knob assignment, for a tuned seed."""
    seed_kernel: str | None = None
    """Name of the seed kernel it starts from: ``amd/fp8-mm/block_scaled``."""


class Source(Frozen):
    """Something an attempt was made from: a seed kernel, a human submission, a problem text."""

    what: str
    url: str | None = None
    commit: str | None = None
    licence: str


class ModelCall(Frozen):
    """One reply bought from a model. Texts are blobs, named by sha256."""

    model: str
    base_url: str
    prompt_sha256: str
    reply_sha256: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = None
    """None where the price is not known."""
    latency_s: float


class Judged(Frozen):
    """The candidate was judged."""

    kind: Literal["judged"] = "judged"
    judgement: Judgement
    score_us: float | None
    """What the board would rank by; `judgement.time_kind` says where it came from."""


class Unusable(Frozen):
    """The reply held no candidate."""

    kind: Literal["unusable"] = "unusable"
    reason: str


Outcome = Annotated[Judged | Unusable, Field(discriminator="kind")]


class RunStarted(Frozen):
    """A run's first record: its settings, whole, and what it stands on."""

    kind: Literal["run_started"] = "run_started"
    schema_version: int = SCHEMA_VERSION
    run_id: str
    problem: str
    problem_sha256: str
    strategy: str
    settings: dict[str, str | int | float | bool | None]
    """Every setting of the run. Never a secret: keys stay in the environment."""
    seed: int
    commit: str
    """Commit of Kernelwright, or its version where there is no checkout."""
    started: str
    """UTC, ISO 8601."""


class Intent(Frozen):
    """Written before a call that costs money or time, so that after a kill the calls in flight are known."""

    kind: Literal["intent"] = "intent"
    schema_version: int = SCHEMA_VERSION
    seq: int
    call: Literal["model", "judge"]
    about: str
    """sha256 of the prompt or of the candidate."""


class Replied(Frozen):
    """A model's reply, durable before anything is done with it: it is never bought again."""

    kind: Literal["replied"] = "replied"
    schema_version: int = SCHEMA_VERSION
    seq: int
    model_call: ModelCall


class Attempt(Frozen):
    """One candidate, from decision to outcome."""

    kind: Literal["attempt"] = "attempt"
    schema_version: int = SCHEMA_VERSION
    attempt_id: str
    """``<run_id>.<seq>``."""
    run_id: str
    seq: int
    problem: str
    parents: tuple[str, ...]
    move: MoveRecord
    hypothesis: str
    model_call: ModelCall | None
    candidate_sha256: str | None
    """Blob of the source; None where the reply held no candidate."""
    language: str | None
    outcome: Outcome
    licence: str
    """SPDX of the generated text."""
    derived_from: tuple[Source, ...]
    taint: tuple[str, ...] = ()
    started: str
    ended: str
    overhead_s: float
    """Time spent on everything but drafting and judging."""


class RunnerFault(Frozen):
    """The place of work failed while judging; the candidate is judged again, and nothing is held against it."""

    kind: Literal["runner_fault"] = "runner_fault"
    schema_version: int = SCHEMA_VERSION
    seq: int
    message: str


class Contender(Frozen):
    """One of a run's best, or its seed, judged once more."""

    attempt_id: str
    judgement: Judgement
    score_us: float | None


class Remeasured(Frozen):
    """The end of a measured run: its best candidates and its seed, judged again on fresh seeds before one is named.

    The best of many noisy times is too good on average; these times were not chosen for being good. An estimated run
    has none: its times come out the same again.
    """

    kind: Literal["remeasured"] = "remeasured"
    schema_version: int = SCHEMA_VERSION
    contenders: tuple[Contender, ...]
    """In the order in which the run had ranked them; the seed kernel comes last where it was not among them."""
    seed_attempt_id: str | None
    winner_attempt_id: str | None
    """None where none of them was accepted again."""
    over_seed: Difference | None = None
    """The winner against the seed, by interleaved pairs; None where it is the seed, or nothing could compare them."""


class RunEnded(Frozen):
    """Why a run stopped. A run without one was interrupted, and can be resumed."""

    kind: Literal["run_ended"] = "run_ended"
    schema_version: int = SCHEMA_VERSION
    reason: str
    best_attempt_id: str | None
    ended: str


Record = Annotated[
    RunStarted | Intent | Replied | Attempt | RunnerFault | Remeasured | RunEnded, Field(discriminator="kind")
]
