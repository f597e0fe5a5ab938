"""The recorded table of the attack corpus: which weak judge lets each attack in, and what ours says, over some runs."""

from __future__ import annotations

from collections.abc import Sequence

from evals.redteam import Result, weak_words
from evals.redteam_corpus import Specimen
from evals.redteam_report import Report, lines

_HEAD = """# Attack corpus

Written by `kernelwright redteam --record`. `attacks/` holds one trick a file, `honest/` code that looks like one and
is none, `judges/` the weak judges' programs. Each file's first line says what it is; `evals/redteam_corpus.py`
describes the fields. Judges get a file without that line. *Accepts* and *hangs* are what a weak judge did; an attack
counts as proved by it only where the file's header says that it would fool that judge: elsewhere it found no occasion
there and was right. `without:NAME` is our own judge with that one defence down (`sandbox/defences.py`).
"""
_COLUMNS = ("attack", "class", "wins by", "ours says", "naive", "eval.py", "proved by")


def as_markdown(reports: Sequence[Report]) -> str:
    """The runs in lines, one row for each attack tried in any of them, and the honest files that all accepted."""
    parts = [_HEAD]
    for report in reports:
        parts += [f"## On a {report.place}", "", *(f"- {text}" for text in lines(report)), ""]
    attacks = {r.specimen.name: r.specimen for report in reports for r in report.results if r.specimen.hostile}
    rows = [_row(specimen, reports) for specimen in attacks.values()]
    unproved = [name.removeprefix("attacks/") for name, one in attacks.items() if not _proofs(one, reports)]
    parts += ["## Every attack", "", f"Proved to work: {len(attacks) - len(unproved)} of {len(attacks)}."]
    parts += [f"Not proved by these runs: {', '.join(unproved)}."] if unproved else []
    parts += ["", _line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *rows, ""]
    return "\n".join([*parts, f"Honest files accepted: {', '.join(_accepted(reports))}", ""])


def _row(specimen: Specimen, reports: Sequence[Report]) -> str:
    name, proofs = specimen.name.removeprefix("attacks/"), ", ".join(_proofs(specimen, reports)) or "not here"
    weak = [_weak(specimen, judge, reports) for judge in ("naive", "eval")]
    return _line([name, specimen.trick, specimen.wins_by, _ours(specimen, reports), *weak, proofs])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _of(specimen: Specimen, reports: Sequence[Report]) -> list[tuple[Report, Result]]:
    return [(report, r) for report in reports for r in report.results if r.specimen.name == specimen.name]


def _ours(specimen: Specimen, reports: Sequence[Report]) -> str:
    """Our verdict: once where all places say the same, else by place."""
    said = {report.place: _verdict(report, r) for report, r in _of(specimen, reports)}
    return (
        next(iter(said.values())) if len(set(said.values())) == 1 else ", ".join(f"{k}: {v}" for k, v in said.items())
    )


def _verdict(report: Report, result: Result) -> str:
    if result in report.only_contained():
        return "passed, no time taken"
    if result in report.won():
        return "GOT IN"
    held = result.specimen.wins_by == "time" and result.accepted
    return "passed with a true or flagged time" if held else result.kind.replace("_", " ")


def _weak(specimen: Specimen, judge: str, reports: Sequence[Report]) -> str:
    said = [weak_words(weak) for _, r in _of(specimen, reports) for weak in r.weak if weak.judge == judge]
    asked = [word for word in said if word != "not asked"]
    return " / ".join(dict.fromkeys(asked)) or "not asked"


def _proofs(specimen: Specimen, reports: Sequence[Report]) -> list[str]:
    """Weak judges that let it have what it wanted; where only a GPU showed it, that is said."""
    found: dict[str, str] = {}
    for report in reports:
        for proof in report.proofs(specimen):
            found.setdefault(proof, report.place)
    return [proof if place == "cpu" else f"{proof} (gpu)" for proof, place in found.items()]


def _accepted(reports: Sequence[Report]) -> list[str]:
    """Honest files that every place that could judge them accepts."""
    judged: dict[str, bool] = {}
    for report in reports:
        for r in report.honest():
            judged[r.specimen.name] = judged.get(r.specimen.name, True) and r.accepted
    return [name.removeprefix("honest/") for name, good in judged.items() if good]
