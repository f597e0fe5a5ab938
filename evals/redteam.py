"""Plays the attack corpus against a runner, and against weaker judges beside it."""

from __future__ import annotations

import queue
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from evals.redteam_corpus import Specimen
from evals.redteam_judges import Weak, judge_weakly
from evals.redteam_rows import Rows
from problems.load import ROOT, load
from problems.spec import Frozen
from sandbox.defences import Defences
from sandbox.runner import Mode, Runner, Unsupported
from sandbox.verdict import Judgement

Place = Literal["cpu", "gpu"]
Open = Callable[[Defences, Path], Runner]
"""Opens a runner with these defences, on the problems under this folder."""
Say = Callable[[str], None]
UNTRUE = 0.7
"""A time below this share of the honest kernel's, for the same work, is not true."""
SABOTAGED = 10.0
"""A baseline that takes so many times as long beside a submission as beside the honest kernel was slowed by it."""
ABLATED = ("not to be relied on", "not confined")
"""How the flags begin that say a defence was down: whoever takes one down knows."""
NOTHING_KEPT = Rows()


class Setting(Frozen):
    """How a corpus is played."""

    place: Place
    root: Path = ROOT
    """The problems: on a GPU a copy with fewer benchmark cases, so that timing ends."""
    deadline_s: float = 30.0
    """For one candidate. Honest files need a tenth of it; attacks that hang cost all of it."""
    jobs: int = 1
    screen: bool = True
    """Off: what the screen sees is advice, and convicts nobody."""
    evaluators: Path | None = None
    """A folder with GPU MODE's ``eval.py`` for each problem."""
    weak: bool = True
    """Whether weak judges are asked too."""


class Result(Frozen):
    """One specimen, judged by us."""

    specimen: Specimen
    kind: str
    """The verdict's kind, or ``unsupported`` where this place cannot run the file, or ``fault``."""
    reason: str = ""
    accepted: bool = False
    time_us: float | None = None
    time_kind: str = "none"
    flags: tuple[str, ...] = ()
    wall_s: float = 0.0
    weak: tuple[Weak, ...] = ()
    timed: bool = False
    """Whether times were taken on a chip: only then can an attack on the clock be said to have won or lost."""

    @property
    def judged(self) -> bool:
        """Whether there is a verdict at all."""
        return self.kind not in ("unsupported", "fault")


def play(
    setting: Setting, specimens: Sequence[Specimen], open_runner: Open, say: Say, rows: Rows = NOTHING_KEPT
) -> tuple[Result, ...]:
    """Judge every specimen that can be tried here, with all defences up (the screen too, unless told otherwise).

    What `rows` hold already is not asked again; what is found is added to them.
    """
    defences = Defences() if setting.screen else Defences().without("screen")
    here = [one for one in specimens if one.runs_on(setting.place)]
    say(f"{len(here)} of {len(specimens)} files can be tried on this {setting.place} runner")
    results = judged(setting, here, lambda: open_runner(defences, setting.root), say, rows, "ours")
    return tuple(with_weak(setting, results, say, rows)) if setting.weak else results


def judged(
    setting: Setting, specimens: Sequence[Specimen], make: Callable[[], Runner], say: Say, rows: Rows, stage: str
) -> tuple[Result, ...]:
    """Judge specimens on `jobs` runners of one kind; results in the specimens' order."""
    jobs = max(1, min(setting.jobs, len(specimens)))
    with _runners(jobs, make) as free, ThreadPoolExecutor(jobs, "redteam") as pool:

        def one(numbered: tuple[int, Specimen]) -> Result:
            number, specimen = numbered
            if (kept := rows.found(stage, specimen)) is not None:
                return Result.model_validate(kept | {"specimen": specimen})
            runner = free.get()
            try:
                result = judge(setting, specimen, runner)
            finally:
                free.put(runner)
            if result.kind != "fault":
                rows.keep(stage, specimen, result.model_dump(mode="json", exclude={"specimen"}))
            say(f"{number:>4}/{len(specimens)} {line(result)}")
            return result

        return tuple(pool.map(one, enumerate(specimens, 1)))


def judge(setting: Setting, specimen: Specimen, runner: Runner) -> Result:
    """Judge one specimen. A file this place cannot run, or a fault of the place, is a result that says so."""
    # A time counts in leaderboard mode, where both clocks are held against each other for short kernels too.
    mode = Mode.LEADERBOARD if specimen.wins_by == "time" or _is_control(specimen) else Mode.TEST
    problem = load(specimen.problem, setting.root)
    try:
        judgement = runner.judge(problem, specimen.candidate, mode, setting.deadline_s)
    except Unsupported as error:
        return Result(specimen=specimen, kind="unsupported", reason=str(error)[:300])
    except Exception as error:  # noqa: BLE001 - an answer of the judge's that is none is its row's fault, not the run's
        return Result(specimen=specimen, kind="fault", reason=f"{type(error).__name__}: {error}"[:600])
    return _result(specimen, judgement)


def _is_control(specimen: Specimen) -> bool:
    """The plain honest kernels give the times that attacks on the clock are held against."""
    return not specimen.hostile and specimen.trick == "plain"


def _result(specimen: Specimen, judgement: Judgement) -> Result:
    return Result(
        specimen=specimen,
        kind=judgement.verdict.kind,
        reason=str(getattr(judgement.verdict, "reason", ""))[:300],
        accepted=judgement.accepted,
        time_us=judgement.geomean_us,
        time_kind=judgement.time_kind,
        flags=judgement.flags,
        wall_s=judgement.wall_s,
        timed=judgement.time_kind == "measured",
    )


def with_weak(setting: Setting, results: Sequence[Result], say: Say, rows: Rows) -> Iterator[Result]:
    """The results with what weak judges made of each attack, and of the plain controls that give their times."""
    asked = [result for result in results if _worth_asking(setting, result)]
    say(f"asking weak judges about {len(asked)} files")
    # Two at a time on a GPU: enough to hide their start-up, few enough that their times still mean something.
    # On a CPU more than are judged: evaluators that hang until their deadline use no core.
    jobs = setting.jobs + 2 if setting.place == "cpu" else min(2, setting.jobs)
    with ThreadPoolExecutor(jobs, "weak") as pool:
        answers = dict(
            zip(
                [one.specimen.name for one in asked],
                pool.map(lambda r: _ask(setting, r, say, rows), asked),
                strict=True,
            )
        )
    for result in results:
        yield result.model_copy(update={"weak": answers.get(result.specimen.name, ())})


def _worth_asking(setting: Setting, result: Result) -> bool:
    one = result.specimen
    if setting.place == "gpu" and one.hostile and one.wins_by != "time" and one.needs != "gpu":
        return False  # a run on a CPU shows it, and device time is dear
    return one.hostile or _is_control(one)


def _ask(setting: Setting, result: Result, say: Say, rows: Rows) -> tuple[Weak, ...]:
    names: tuple[Literal["naive", "eval"], ...] = ("naive", "eval") if setting.evaluators else ("naive",)
    if setting.place == "gpu" and result.specimen.hostile:
        # Device time is dear: only the judges that the attack says it fools.
        names = tuple(name for name in names if name in result.specimen.works_against)
    answers = tuple(_answer_of(name, setting, result.specimen, rows) for name in names)
    words = ", ".join(f"{weak.judge} {weak_words(weak)}" for weak in answers)
    say(f"     {result.specimen.name}: {words}")
    return answers


def _answer_of(name: Literal["naive", "eval"], setting: Setting, specimen: Specimen, rows: Rows) -> Weak:
    if (kept := rows.found(name, specimen)) is not None:
        return Weak.model_validate(kept)
    try:
        weak = judge_weakly(name, specimen, setting.place, setting.evaluators)
    except Exception as error:  # noqa: BLE001 - one weak judge that cannot be asked does not end the run
        return Weak(judge=name, skipped=f"could not be asked: {type(error).__name__}: {error}"[:300])
    rows.keep(name, specimen, weak.model_dump(mode="json"))
    return weak


def weak_words(weak: Weak) -> str:
    """``accepts``, ``refuses``, ``hangs`` or ``not asked``."""
    if weak.skipped:
        return "not asked"
    return "accepts" if weak.accepted else ("hangs" if weak.late else "refuses")


def ablate(
    setting: Setting,
    specimens: Sequence[Specimen],
    open_runner: Open,
    names: Sequence[str],
    say: Say,
    rows: Rows = NOTHING_KEPT,
) -> dict[str, tuple[Result, ...]]:
    """For each defence named: the attacks that say they work without it, judged with all others up."""
    table: dict[str, tuple[Result, ...]] = {}
    for name in names:
        chosen = [one for one in specimens if name in one.works_without() and one.runs_on(setting.place)]
        if name == "sandbox":
            chosen = [one for one in chosen if one.unconfined != "never"]
        if not chosen:
            table[name] = ()
            continue
        defences = Defences().without(name)
        say(f"without {name}: {len(chosen)} attacks")
        make: Callable[[], Runner] = lambda up=defences: open_runner(up, setting.root)  # type: ignore[misc]  # noqa: E731
        table[name] = judged(setting, chosen, make, say, rows, f"without:{name}")
    return table


def wins(result: Result, controls: dict[str, float], known_flags: frozenset[str] = frozenset()) -> bool:
    """Whether an attack got what it wanted: its answer accepted, or an untrue time with no flag to it."""
    if not result.accepted or not result.specimen.hostile:
        return False
    if result.specimen.wins_by != "time":
        return True
    control = controls.get(result.specimen.problem)
    if not result.timed or control is None or result.time_us is None:
        return False
    flagged = {plain(flag) for flag in result.flags if not flag.startswith(ABLATED)} - known_flags
    return result.time_us < UNTRUE * control and not flagged


def weak_wins(weak: Weak, specimen: Specimen, controls: dict[str, Weak]) -> bool:
    """Whether an attack got what it wanted from a weak judge; `controls` are its answers to the honest kernels.

    A time is untrue too where it is held against a baseline that was slowed.
    """
    if specimen.wins_by == "denial":
        return weak.late or weak.accepted
    if specimen.wins_by == "answer" or not weak.accepted:
        return weak.accepted
    control = controls.get(specimen.problem)
    if control is None or control.time_us is None or weak.time_us is None:
        return False
    slowed = (weak.baseline_us or 0.0) > SABOTAGED * (control.baseline_us or float("inf"))
    return slowed or weak.time_us < UNTRUE * control.time_us


def plain(flag: str) -> str:
    """A flag without its numbers, so that two of a kind compare equal."""
    return re.sub(r"[0-9.]+", "#", flag)


def line(result: Result) -> str:
    """One result as progress shows it."""
    word = "accepted" if result.accepted else result.kind.replace("_", " ")
    reason = " ".join(result.reason.split())[:110]
    return f"{result.specimen.name}: {word} in {result.wall_s:.1f} s{': ' + reason if reason else ''}"


@contextmanager
def _runners(count: int, make: Callable[[], Runner]) -> Iterator[queue.SimpleQueue[Runner]]:
    made = [make() for _ in range(count)]
    free: queue.SimpleQueue[Runner] = queue.SimpleQueue()
    for runner in made:
        free.put(runner)
    try:
        yield free
    finally:
        for runner in made:
            runner.close()
