"""What a red team run says: how many attacks got in, how many honest files were refused, and what each judge let in."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import Field

from dataset.attempt import RecordError
from evals.redteam import Result, Setting, plain, weak_wins, wins
from evals.redteam_corpus import Specimen
from evals.redteam_judges import Weak
from problems.spec import Frozen


class Report(Frozen):
    """A run of the corpus, counted."""

    place: str
    machine: str
    results: tuple[Result, ...]
    ablation: dict[str, tuple[Result, ...]] = Field(default_factory=dict)
    """For each defence switched off: the attacks tried without it."""
    screen: bool = True

    def controls(self) -> dict[str, float]:
        """The honest kernels' times, by problem, where they were taken on a chip."""
        plain_ones = (r for r in self.results if _plain(r) and r.accepted and r.timed)
        return {r.specimen.problem: r.time_us for r in plain_ones if r.time_us is not None}

    def weak_controls(self, judge: str) -> dict[str, Weak]:
        """What a weak judge made of them, by problem."""
        pairs = ((r, weak) for r in self.results if _plain(r) for weak in r.weak if weak.judge == judge)
        return {r.specimen.problem: weak for r, weak in pairs if weak.accepted and weak.time_us is not None}

    def attacks(self) -> tuple[Result, ...]:
        """Attacks with a verdict."""
        return tuple(r for r in self.results if r.specimen.hostile and r.judged)

    def honest(self) -> tuple[Result, ...]:
        """Honest controls with a verdict."""
        return tuple(r for r in self.results if not r.specimen.hostile and r.judged)

    def unjudged(self) -> tuple[Result, ...]:
        """Files without a verdict: the place cannot run them, or failed."""
        return tuple(r for r in self.results if not r.judged)

    def faults(self) -> tuple[Result, ...]:
        """Files that the place failed to judge, in the ablation too: the run is incomplete."""
        every = (*self.results, *(r for tried in self.ablation.values() for r in tried))
        return tuple(r for r in every if r.kind == "fault")

    def won(self) -> tuple[Result, ...]:
        """Attacks that got what they wanted."""
        controls, told = self.controls(), self.only_screened()
        return tuple(r for r in self.attacks() if wins(r, controls, self._usual_flags(r)) and r not in told)

    def only_screened(self) -> tuple[Result, ...]:
        """Attacks that do nothing here, so that the screen alone convicts them; told to advise, it did that."""
        if self.screen:
            return ()
        return tuple(r for r in self.attacks() if r.accepted and r.specimen.beaten_by == ("screen",) and _advised(r))

    def refused(self) -> tuple[Result, ...]:
        """Honest files that were not accepted: false accusations."""
        return tuple(r for r in self.honest() if not r.accepted)

    def only_contained(self) -> tuple[Result, ...]:
        """Attacks on the clock, right in their answer, judged where no time is taken: nothing said of their times."""
        return tuple(r for r in self.attacks() if r.specimen.wins_by == "time" and r.accepted and not r.timed)

    def unexpected(self) -> tuple[Result, ...]:
        """Attacks that ended in another verdict than their header says, though they did not get in."""
        told = self.only_screened()
        return tuple(
            r for r in self.attacks() if r.specimen.expect and r.kind not in r.specimen.expect and r not in told
        )

    def fooled(self, judge: str) -> tuple[Result, ...]:
        """Attacks that a weak judge let have what they wanted, and whose header says that they would."""
        return tuple(r for r in self.attacks_asked(judge) if self.proved_by(r, judge))

    def attacks_asked(self, judge: str) -> tuple[Result, ...]:
        """Attacks that this weak judge was given."""
        return tuple(r for r in self.results if r.specimen.hostile and _answer(r, judge) is not None)

    def proved_by(self, result: Result, judge: str) -> bool:
        """Whether a weak judge let this attack win where its header says it would."""
        weak = _answer(result, judge)
        claimed = judge in result.specimen.works_against
        return claimed and weak is not None and weak_wins(weak, result.specimen, self.weak_controls(judge))

    def proofs(self, specimen: Specimen) -> tuple[str, ...]:
        """Every weak judge of this run that let the attack have what it wanted."""
        mine = [r for r in self.results if r.specimen.name == specimen.name]
        weak = [judge for judge in ("naive", "eval") for r in mine if self.proved_by(r, judge)]
        return (*weak, *(f"without:{name}" for name in self.ablation if specimen.name in self.let_in(name)))

    def let_in(self, defence: str) -> tuple[str, ...]:
        """Attacks that got in without a defence."""
        controls = self.controls()
        return tuple(r.specimen.name for r in self.ablation.get(defence, ()) if wins(r, controls, self._usual_flags(r)))

    def unproved(self) -> tuple[Specimen, ...]:
        """Attacks that no weak judge of this run was seen to let in."""
        return tuple(r.specimen for r in self.results if r.specimen.hostile and not self.proofs(r.specimen))

    @property
    def clean(self) -> bool:
        """No attack got in, no honest file was refused, and every file could be judged or says why it cannot."""
        return not self.won() and not self.refused()

    def _usual_flags(self, result: Result) -> frozenset[str]:
        """Flags that the honest kernel of the same problem carries too, and the advice on words in the source."""
        same = [r for r in self.results if _plain(r) and r.specimen.problem == result.specimen.problem]
        usual = {plain(flag) for r in same for flag in r.flags}
        return frozenset(usual | {plain(flag) for flag in result.flags if flag.startswith("line ")})


def _advised(result: Result) -> bool:
    return any(flag.startswith("line ") for flag in result.flags)


def _plain(result: Result) -> bool:
    return not result.specimen.hostile and result.specimen.trick == "plain"


def _answer(result: Result, judge: str) -> Weak | None:
    return next((weak for weak in result.weak if weak.judge == judge and not weak.skipped), None)


def lines(report: Report) -> list[str]:
    """The run in plain lines."""
    attacks, honest, won, refused = report.attacks(), report.honest(), report.won(), report.refused()
    tricks = {r.specimen.trick for r in attacks}
    said = [
        f"machine: {report.machine}; screen {'convicts' if report.screen else 'only advises'}",
        f"attacks: {len(attacks)} of {len(tricks)} classes judged, {len(won)} got in "
        f"({_percent(len(attacks) - len(won), len(attacks))} held off)",
        f"honest: {len(honest)} judged, {len(refused)} refused "
        f"({_percent(len(refused), len(honest))} false accusations)",
    ]
    said += [f"GOT IN: {r.specimen.name} ({r.specimen.trick}): {r.specimen.description}" for r in won]
    said += [f"REFUSED: {r.specimen.name}: {r.kind}: {r.reason}" for r in refused]
    said += [f"not judged: {r.specimen.name}: {r.kind}: {r.reason[:160]}" for r in report.unjudged()]
    said += [
        f"not judged without {name}: {r.specimen.name}: {r.kind}: {r.reason[:160]}"
        for name, tried in report.ablation.items()
        for r in tried
        if not r.judged
    ]
    said += [
        f"only the screen convicts, and it advises: {r.specimen.name} ({r.specimen.trick}): {r.specimen.description}"
        for r in report.only_screened()
    ]
    if contained := report.only_contained():
        said.append(f"attacks on the clock, of which this place says nothing but that they were held: {len(contained)}")
    said += [
        f"unexpected verdict: {r.specimen.name}: {r.kind}, not {' or '.join(r.specimen.expect)}: {r.reason[:120]}"
        for r in report.unexpected()
    ]
    return said + _side_by_side(report) + _ablation(report)


def _side_by_side(report: Report) -> list[str]:
    said = []
    for judge in ("naive", "eval"):
        if asked := report.attacks_asked(judge):
            fooled = report.fooled(judge)
            accepted = [r for r in asked if (weak := _answer(r, judge)) is not None and weak.accepted]
            said.append(
                f"side by side: {judge} was fooled by {len(fooled)} of {len(asked)} attacks "
                f"(accepted {len(accepted)}; the others found no occasion there and were right); "
                f"ours by {len([r for r in asked if r in report.won()])}"
            )
    return said


def _ablation(report: Report) -> list[str]:
    said = []
    for name, tried in report.ablation.items():
        let_in = report.let_in(name)
        shown = ", ".join(let.removeprefix("attacks/") for let in let_in) or "none"
        said.append(f"without {name}: {len(let_in)} of {len(tried)} got in: {shown}")
    return said


def as_json(report: Report, setting: Setting) -> dict[str, Any]:
    """Everything, for a file."""
    return {
        "machine": report.machine,
        "place": report.place,
        "screen": report.screen,
        "attacks": len(report.attacks()),
        "classes": dict(Counter(r.specimen.trick for r in report.attacks())),
        "got_in": [r.specimen.name for r in report.won()],
        "honest": len(report.honest()),
        "refused": [r.specimen.name for r in report.refused()],
        "unexpected": [r.specimen.name for r in report.unexpected()],
        "held_only": [r.specimen.name for r in report.only_contained()],
        "weak": {judge: [r.specimen.name for r in report.fooled(judge)] for judge in ("naive", "eval")},
        "ablation": {name: list(report.let_in(name)) for name in report.ablation},
        "unproved": [specimen.name for specimen in report.unproved()],
        "deadline_s": setting.deadline_s,
        "results": [_row(r) for r in report.results],
        "ablation_results": {name: [_row(r) for r in tried] for name, tried in report.ablation.items()},
    }


def _row(result: Result) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude={"specimen": {"source"}})


def from_json(path: Path) -> Report:
    """A run as `as_json` wrote it, its files without their text; `RecordError` where `path` holds none."""
    try:
        told = json.loads(path.read_text())
        rows = [told["results"], *told["ablation_results"].values()]
        for row in (row for some in rows for row in some):
            row["specimen"]["source"] = ""
        kept = {name: told[name] for name in ("place", "machine", "screen", "results")}
        return Report.model_validate(kept | {"ablation": told["ablation_results"]})
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RecordError(f"{path} is not what redteam --json writes: {error}") from error


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"
