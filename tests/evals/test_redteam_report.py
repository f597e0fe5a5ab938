"""How the red team counts: what an attack must get to have won, what a header must say, and what a run reports."""

import json
from pathlib import Path

import pytest

from evals.redteam import Result, Setting, play, weak_wins, wins
from evals.redteam_corpus import Specimen, corpus
from evals.redteam_judges import Weak
from evals.redteam_report import Report, as_json, from_json, lines
from evals.redteam_rows import Rows
from evals.redteam_table import as_markdown
from problems.spec import ProblemError
from sandbox.defences import Defences
from sandbox.runner import FakeRunner
from sandbox.verdict import Judgement, Machine, Rejected

CORPUS = Path(__file__).parents[1] / "exploits"
FILES = corpus(CORPUS)


def specimen(name: str, hostile: bool = True, **fields: object) -> Specimen:
    values = {"name": name, "hostile": hostile, "trick": "some", "problem": "pmpp/vectoradd"}
    return Specimen.model_validate(values | {"description": "d", "source": "s"} | fields)


PLAIN = Result(specimen=specimen("honest/plain", hostile=False, trick="plain"), kind="passed", accepted=True)
CLOCK = specimen("attacks/clock", wins_by="time", works_against=("naive", "without:clock_agreement"))


def test_the_corpus_is_as_large_as_it_claims() -> None:
    attacks, honest = [one for one in FILES if one.hostile], [one for one in FILES if not one.hostile]
    assert len(attacks) >= 80 and len({one.trick for one in attacks}) >= 60 and len(honest) >= 30
    assert len({one.candidate.sha256 for one in FILES}) == len(FILES)
    assert all("kernelwright-" not in one.source for one in FILES), "a judge could tell an attack by its label"


def test_files_are_chosen_by_name_class_and_need() -> None:
    chosen = corpus(CORPUS, "attacks/clamped,half-grid,needs=gpu")
    assert {one.needs for one in chosen} == {"any", "gpu"}
    assert [one.name for one in chosen if one.needs != "gpu"] == ["attacks/clamped", "attacks/half_grid"]


@pytest.mark.parametrize("one", [one for one in FILES if one.hostile], ids=lambda one: one.name)
def test_headers_name_what_exists(one: Specimen) -> None:
    known = set(Defences.model_fields)
    assert one.beaten_by and set(one.beaten_by) <= known
    assert one.works_against and set(one.works_against) - {"naive", "eval", "none"} <= {f"without:{k}" for k in known}
    assert set(one.expect) <= {"rejected", "build_failed", "crashed", "timed_out", "wrong_answer", "cheated", "passed"}
    assert one.wins_by == "time" or "passed" not in one.expect


def test_a_broken_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "attacks").mkdir()
    (tmp_path / "attacks/one.py").write_text("# kernelwright-exploit: class=a; needs=moon; problem=p\n# d\n")
    with pytest.raises(ProblemError, match=r"(?s)one\.py.*needs"):
        corpus(tmp_path)
    with pytest.raises(ProblemError, match="no attack"):
        corpus(tmp_path / "elsewhere")


def test_an_accepted_answer_wins_and_a_true_time_does_not() -> None:
    taken = PLAIN.model_copy(update={"time_us": 10.0, "time_kind": "measured", "timed": True})
    wrong = Result(specimen=specimen("attacks/answer"), kind="passed", accepted=True)
    fast = Result(specimen=CLOCK, kind="passed", accepted=True, time_us=2.0, timed=True)
    controls = {"pmpp/vectoradd": 10.0}
    assert wins(wrong, {}) and wins(fast, controls)
    assert not wins(fast.model_copy(update={"time_us": 9.0}), controls)
    assert not wins(fast.model_copy(update={"timed": False}), controls)
    assert not wins(fast.model_copy(update={"flags": ("clocks disagree by 3 us",)}), controls)
    assert wins(fast.model_copy(update={"flags": ("all is 7 us",)}), controls, frozenset({"all is # us"}))
    report = Report(place="gpu", machine="m", results=(taken, fast))
    assert [r.specimen.name for r in report.won()] == ["attacks/clock"] and not report.clean


def test_a_weak_judge_is_fooled_only_where_the_header_says_so() -> None:
    accepts = Weak(judge="eval", accepted=True)
    mine = specimen("attacks/mine", works_against=("eval",))
    lucky = specimen("attacks/lucky", works_against=("naive",))
    results = tuple(Result(specimen=one, kind="wrong_answer", weak=(accepts,)) for one in (mine, lucky))
    report = Report(place="cpu", machine="m", results=results)
    assert [r.specimen.name for r in report.fooled("eval")] == ["attacks/mine"]
    assert [one.name for one in report.unproved()] == ["attacks/lucky"]
    assert weak_wins(Weak(judge="naive", late=True), specimen("attacks/h", wins_by="denial"), {})
    plain = {"pmpp/vectoradd": Weak(judge="naive", accepted=True, time_us=10.0, baseline_us=2.0)}
    slowed, true = (Weak(judge="naive", accepted=True, time_us=9.0, baseline_us=us) for us in (50.0, 3.0))
    assert weak_wins(slowed, CLOCK, plain) and not weak_wins(true, CLOCK, plain)


MACHINE = Machine(kind="fake", chip="none", arch="", driver="", runtime="", torch="", triton="", python="", harness="h")


def test_a_row_that_cannot_be_judged_is_its_own_fault_and_a_killed_run_goes_on(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(problem: object, candidate: object) -> Judgement:
        source = candidate.source  # type: ignore[attr-defined]
        asked.append(source)
        if source == "bad":
            raise ValueError("1 validation error for Judgement")
        return Judgement(verdict=Rejected(reason="no"), machine=MACHINE, sandbox="none", seeds=(), wall_s=0.0)

    files = [specimen(f"attacks/{source}", source=source) for source in ("bad", "good")]
    setting, kept = Setting(place="cpu", weak=False), tmp_path / "rows"
    told: list[str] = []
    runs = [play(setting, files, lambda *_: FakeRunner(answer, MACHINE), told.append, Rows(kept, "s")) for _ in "ab"]
    assert [[r.kind for r in run] for run in runs] == [["fault", "rejected"]] * 2
    assert asked == ["bad", "good", "bad"], "a fault is tried again, an answer is not"
    assert "ValueError" in runs[0][0].reason and any("1/2 attacks/bad: fault" in text for text in told)
    assert Report(place="cpu", machine="m", results=runs[0]).faults() == runs[0][:1]
    with kept.open("a") as file:
        file.write('{"stamp": "s", "torn')
    assert Rows(kept, "s").found("ours", files[1])["kind"] == "rejected"
    assert Rows(kept, "another judge").found("ours", files[1]) is None
    assert Rows(kept, "s").found("without:finite", files[1]) is None


def test_runs_of_two_places_make_one_table(tmp_path: Path) -> None:
    both, clock = specimen("attacks/both", works_against=("naive",)), CLOCK
    weak = Weak(judge="naive", accepted=True, time_us=1.0)
    honest = PLAIN.model_copy(update={"weak": (weak.model_copy(update={"time_us": 9.0}),)})
    on_cpu = Report(place="cpu", machine="c", results=(PLAIN, Result(specimen=both, kind="crashed", weak=(weak,))))
    timed = Result(specimen=clock, kind="passed", accepted=True, timed=True, time_us=9.0, weak=(weak,))
    rejected = Result(specimen=both, kind="rejected")
    on_gpu = Report(place="gpu", machine="g", results=(honest, timed, rejected), ablation={"clock_agreement": ()})
    for number, report in enumerate((on_cpu, on_gpu)):
        (tmp_path / f"{number}.json").write_text(json.dumps(as_json(report, Setting(place="cpu"))))
    table = as_markdown([from_json(tmp_path / f"{number}.json") for number in range(2)])
    assert "| both | some | answer | cpu: crashed, gpu: rejected | accepts | not asked | naive |" in table
    assert "| clock | some | time | passed with a true or flagged time | accepts | not asked | naive (gpu) |" in table
    assert "Proved to work: 2 of 2." in table and "Honest files accepted: plain" in table


def test_what_the_screen_alone_convicts_is_named_where_it_only_advises() -> None:
    sleeper = specimen("attacks/sleeper", beaten_by=("screen",))
    passed = Result(specimen=sleeper, kind="passed", accepted=True, flags=("line 3: reads a descriptor",))
    report = Report(place="cpu", machine="m", results=(passed,), screen=False)
    assert not report.won() and any("only the screen convicts" in text for text in lines(report))
    assert Report(place="cpu", machine="m", results=(passed,)).won()
    assert report.model_copy(update={"results": (passed.model_copy(update={"flags": ()}),)}).won()


def test_a_report_says_what_went_wrong() -> None:
    refused = Result(specimen=specimen("honest/poor", hostile=False), kind="cheated", reason="it said stream")
    got_in = Result(specimen=specimen("attacks/clever"), kind="passed", accepted=True)
    without = {"finite": (got_in,), "screen": ()}
    report = Report(place="cpu", machine="m", results=(PLAIN, refused, got_in), ablation=without)
    said = "\n".join(lines(report))
    assert "GOT IN: attacks/clever" in said and "REFUSED: honest/poor" in said and not report.clean
    assert "without finite: 1 of 1 got in: clever" in said and "without screen: 0 of 0" in said
    assert as_json(report, Setting(place="cpu"))["refused"] == ["honest/poor"]
    assert "| clever |" in as_markdown([report]) and "GOT IN" in as_markdown([report])
