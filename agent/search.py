"""The strategy ``search``: walks the seed kernels' knob spaces. No model.

A seed kernel is an expert's choice, so the first settings tried lie near the best one so far; later ones come from
there or from a tree-structured Parzen estimator, by lot.

Each decision depends on the run's seed and its history alone: the sampler is seeded afresh from the run's seed and the
attempt's number, and what it is told is `Trials`, itself a function of the history. A study kept between two decisions
only saves telling it again.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from agent.knobs import SeedKernel
from agent.move import Assignment, Move, Seed, Stop, Tune
from agent.state import RunState, setting, time_kind
from agent.trials import Trial, Trials

ASKS = 5
"""Suggestions asked of the optimiser before a setting is taken from the walk; it repeats itself near the end."""
EXPLORE = 0.25
"""Chance of tuning another seed kernel than the best one's, where a problem has several."""
STARTUP_TRIALS = 10
"""Settings with a time before the estimator is asked: it knows nothing yet."""
NEARBY, NEIGHBOURS, CHANGES = 0.5, 20, (1, 1, 2, 3)
"""Chance of a step from the best setting after that, steps drawn before it is given up, knobs that a step changes."""


class Search:
    """Proposes each allowed setting at most once: the defaults first, then what the optimiser suggests."""

    def __init__(self, seeds: tuple[SeedKernel, ...], run_seed: int, lds_bytes: int) -> None:
        self._seeds = {seed.name: seed for seed in seeds}
        self._run_seed, self._lds_bytes = run_seed, lds_bytes
        self._studies: dict[str, _Study] = {}
        optuna.logging.set_verbosity(optuna.logging.WARNING)

    def next_move(self, state: RunState) -> Move:
        """The next seed or setting; `Stop` once every allowed setting has been judged."""
        for name, seed in self._seeds.items():
            if name not in state.seeds:
                return Seed(name, seed.defaults)
        rng = random.Random(f"{self._run_seed}:{state.next_seq}")
        for seed in self._order(state, rng):
            knobs = self._untried(seed, state, rng)
            if knobs is not None:
                return Tune(seed.name, knobs, state.seeds[seed.name], _change(seed, knobs))
        return Stop("space exhausted" if self._seeds else "this problem has no seed kernel to search from")

    def _order(self, state: RunState, rng: random.Random) -> list[SeedKernel]:
        """Seed kernels by turn: the best attempt's own first, but for one draw in four."""
        names = sorted(self._seeds)
        rng.shuffle(names)
        best = state.best.move.seed_kernel if state.best else None
        if best in names and rng.random() >= EXPLORE:
            names.sort(key=lambda name: name != best)
        return [self._seeds[name] for name in names]

    def _untried(self, seed: SeedKernel, state: RunState, rng: random.Random) -> Assignment | None:
        """A setting that is allowed and was never judged; None where all were."""
        if not seed.knobs:
            return None
        trials, kind = state.trials[seed.name], time_kind(state.best) if state.best else "none"
        proposals = chain(
            _nearby(seed, trials, kind, rng), self._suggested(seed, trials, kind, state.next_seq), _walk(seed, rng)
        )
        return next((knobs for knobs in proposals if self._is_new(seed, knobs, state)), None)

    def _suggested(self, seed: SeedKernel, trials: Trials, kind: str, seq: int) -> Iterator[Assignment]:
        """What the optimiser suggests; asked again it may repeat itself, the more so the less is left."""
        study = self._study(seed, trials, kind)
        for ask in range(ASKS):
            yield study.ask(_sampler_seed(self._run_seed, seq, ask))

    def _is_new(self, seed: SeedKernel, knobs: Assignment, state: RunState) -> bool:
        return setting(seed.name, knobs) not in state.settings and seed.allows(knobs, self._lds_bytes)

    def _study(self, seed: SeedKernel, trials: Trials, kind: str) -> _Study:
        kept = self._studies.get(seed.name)
        if kept is None or not kept.continues(trials, kind):
            kept = self._studies[seed.name] = _Study(seed, kind, trials.epoch)
        kept.tell(trials)
        return kept


@dataclass(slots=True)
class _Told:
    epoch: int
    trials: list[int]


class _Choices(CategoricalDistribution):  # type: ignore[misc]
    """The values of one knob, never copied: the sampler compares every trial's with every other's on each question."""

    def __deepcopy__(self, memo: dict[int, object]) -> _Choices:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))

    __hash__ = CategoricalDistribution.__hash__


class _Study:
    """An Optuna study of one seed kernel within one epoch of its trials."""

    def __init__(self, seed: SeedKernel, kind: str, epoch: int) -> None:
        self._space = {name: _Choices(knob.values) for name, knob in seed.knobs.items()}
        self._kind = kind
        self._told = _Told(epoch, [])
        self._study = optuna.create_study(direction="minimize")

    def continues(self, trials: Trials, kind: str) -> bool:
        """Whether everything told so far is a beginning of `trials`."""
        seqs = [trial.seq for trial in (*trials.base, *trials.since)]
        told = self._told
        return self._kind == kind and told.epoch == trials.epoch and told.trials == seqs[: len(told.trials)]

    def tell(self, trials: Trials) -> None:
        """Tell what is new. A setting without a time of the run's kind is a failure, never a number."""
        new = (*trials.base, *trials.since)[len(self._told.trials) :]
        self._study.add_trials([self._frozen(trial) for trial in new if self._fits(trial.knobs)])
        self._told.trials += [trial.seq for trial in new]

    def ask(self, sampler_seed: int) -> Assignment:
        """One suggestion, which depends on `sampler_seed` and what was told."""
        self._study.sampler = optuna.samplers.TPESampler(seed=sampler_seed, n_startup_trials=STARTUP_TRIALS)
        trial = self._study.ask(self._space)
        # Left open, it would stay in the study as a running trial; failed ones are passed over by the sampler.
        self._study.tell(trial, state=TrialState.FAIL)
        return dict(trial.params)

    def _fits(self, knobs: Assignment) -> bool:
        """False for a setting from before the knobs were declared otherwise."""
        space = self._space
        return knobs.keys() == space.keys() and all(knobs[name] in space[name].choices for name in space)

    def _frozen(self, trial: Trial) -> FrozenTrial:
        timed = trial.score_us is not None and trial.time_kind == self._kind
        # Pruned: the sampler ranks it after every setting that has a time.
        state = TrialState.COMPLETE if timed else TrialState.PRUNED
        value = math.log(trial.score_us) if timed and trial.score_us else None
        return create_trial(state=state, value=value, params=trial.knobs, distributions=self._space)


def _nearby(seed: SeedKernel, trials: Trials, kind: str, rng: random.Random) -> Iterator[Assignment]:
    """Settings a step away from the best: always while few have a time, by chance later."""
    timed = [trial for trial in (*trials.base, *trials.since) if trial.score_us is not None and trial.time_kind == kind]
    if len(timed) >= STARTUP_TRIALS and rng.random() >= NEARBY:
        return
    best = min(timed, key=lambda trial: (trial.score_us or 0.0, trial.seq), default=None)
    start = best.knobs if best and best.knobs.keys() == seed.knobs.keys() else seed.defaults
    free = [name for name, knob in seed.knobs.items() if len(knob.values) > 1]
    for _ in range(NEIGHBOURS if free else 0):
        changed = rng.sample(free, min(len(free), rng.choice(CHANGES)))
        yield start | {name: rng.choice([v for v in seed.knobs[name].values if v != start[name]]) for name in changed}


def _walk(seed: SeedKernel, rng: random.Random) -> Iterator[Assignment]:
    """Every setting once, in an order of its own."""
    size = seed.settings
    start, stride = rng.randrange(size), _coprime(rng.randrange(size) | 1, size)
    return (seed.setting((start + step * stride) % size) for step in range(size))


def _sampler_seed(run_seed: int, seq: int, ask: int) -> int:
    digest = hashlib.sha256(f"{run_seed}:{seq}:{ask}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def _coprime(stride: int, size: int) -> int:
    """`stride` or the next number after it that shares no factor with `size`, so that a walk meets every index."""
    while math.gcd(stride, size) != 1:
        stride += 1
    return stride


def _change(seed: SeedKernel, knobs: Assignment) -> str:
    """What a setting changes in the defaults: ``BLOCK_M 64 -> 128, num_warps 4 -> 8``."""
    changed = (f"{name} {seed.defaults[name]} -> {knobs[name]}" for name in knobs if knobs[name] != seed.defaults[name])
    return ", ".join(changed)
