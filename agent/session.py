"""What a run works with, and its two boundary calls, each with the record that must be durable before and after it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent import drafting
from agent.extract import candidate, hypothesis
from agent.interrupt import Interrupt
from agent.knobs import SeedKernel
from agent.limits import Limits
from agent.model import Model
from agent.move import ModelMove, SeedMove
from agent.policy import Policy
from agent.progress import Faulted, Progress, Working
from agent.state import RunState
from dataset.attempt import Intent, Judged, ModelCall, Outcome, Replied, RunnerFault, Source, Unusable
from dataset.blobs import Blobs
from dataset.journal import Journal
from problems.chips import Chip
from problems.spec import Problem
from sandbox.candidate import Candidate
from sandbox.runner import Mode, Runner, RunnerError, Unsupported
from sandbox.verdict import score_us

JUDGE_TRIES = 3


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a move brought: a candidate or the reason why there is none, and where it comes from."""

    result: Candidate | Unusable
    hypothesis: str
    derived_from: tuple[Source, ...]
    taint: tuple[str, ...] = ()
    model_call: ModelCall | None = None
    waited_s: float = 0.0
    """Time spent waiting for the model in this session."""


@dataclass(frozen=True, slots=True)
class Session:
    """One process's work on one run. `replies` holds what was bought before a kill and not used yet, by number."""

    run_id: str
    problem: Problem
    chip: Chip
    seeds: dict[str, SeedKernel]
    policy: Policy
    limits: Limits
    mode: Mode
    deadline_s: float
    licence: str
    runner: Runner
    model: Model | None
    journal: Journal
    blobs: Blobs
    progress: Progress
    replies: dict[int, Replied] = field(default_factory=dict)
    interrupt: Interrupt = field(default_factory=Interrupt)

    def tune(self, move: SeedMove, state: RunState) -> Drafted:
        """A seed kernel with the move's knobs set: no model, no cost."""
        made = drafting.tuned(move, self.seeds[move.seed_kernel], self.problem)
        said = getattr(move, "hypothesis", "")
        return Drafted(self._new(made, state), said, drafting.sources(move, state, self.problem))

    def draft(self, move: ModelMove, state: RunState) -> Drafted:
        """What the model makes of a move: bought, unless its reply is in the journal already. `ModelError`."""
        asked = drafting.prompt(move, state, self.problem, self.chip, self.blobs.text)
        kept = self.replies.pop(state.next_seq, None)
        call = kept.model_call if kept else self._buy(asked, state)
        text = self.blobs.text(call.reply_sha256)
        return Drafted(
            self._new(candidate(text, self.problem), state),
            hypothesis(text),
            drafting.sources(move, state, self.problem),
            ("provider_terms",),
            call,
            0.0 if kept else call.latency_s,
        )

    def judge(self, made: Candidate, move: SeedMove | ModelMove, seq: int) -> Outcome:
        """The judge's answer. A fault of the runner is recorded and tried again; the last one raises `RunnerError`."""
        self.blobs.put(made.source)
        self.progress.show(Working(seq, move, "judging"))
        for left in reversed(range(JUDGE_TRIES)):
            # Not durable: after a loss of power the candidate is judged again, whether or not this is known.
            self.journal.append(Intent(seq=seq, call="judge", about=made.sha256), durable=False)
            try:
                said = self.runner.judge(self.problem, made, self.mode, self.deadline_s)
                return Judged(judgement=said, score_us=score_us(self.problem, said))
            except Unsupported as error:
                if isinstance(move, SeedMove):
                    raise
                return Unusable(reason=f"cannot be judged here: {error}")
            except RunnerError as error:
                self.journal.append(RunnerFault(seq=seq, message=str(error)))
                self.progress.show(Faulted(seq, str(error), left))
                if not left:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def _buy(self, asked: str, state: RunState) -> ModelCall:
        if self.model is None:
            raise ValueError("this strategy needs a model")
        prompt_sha256, seq = self.blobs.put(asked), state.next_seq
        self.journal.append(Intent(seq=seq, call="model", about=prompt_sha256))
        reply = self.model.complete(asked, state.spent.model_calls + 1)
        call = ModelCall(
            model=self.model.name, base_url=self.model.base_url, prompt_sha256=prompt_sha256,
            reply_sha256=self.blobs.put(reply.text), input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens, cost_usd=reply.cost_usd, latency_s=reply.latency_s,
        )  # fmt: skip
        self.journal.append(Replied(seq=seq, model_call=call))
        return call

    def _new(self, made: Candidate | Unusable, state: RunState) -> Candidate | Unusable:
        """A text that was judged in this run before is not judged again."""
        if isinstance(made, Candidate) and (before := state.sources.get(made.sha256)) is not None:
            return Unusable(reason=f"same text as attempt {before}")
        return made
