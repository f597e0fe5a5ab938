"""A sample of the attack corpus against the CPU runner; `kernelwright redteam` plays all of it."""

import os
from pathlib import Path

import pytest

from evals.redteam import Setting, play
from evals.redteam_corpus import corpus
from evals.redteam_judges import judge_weakly
from evals.redteam_problems import one_benchmark_each
from evals.redteam_report import Report, lines
from problems.load import load
from sandbox.cpu import CpuRunner
from sandbox.isolation import works

CORPUS = Path(__file__).parents[1] / "exploits"
ATTACKS = (
    *("attacks/fingerprint_sample", "attacks/last_call", "attacks/patch_allclose", "attacks/frame_expected"),
    *("attacks/scratch_in_input", "attacks/lazy_tensor", "attacks/clamped", "attacks/tiny_to_zero"),
    *("attacks/reads_reference", "attacks/thread_fill", "attacks/forged_frame", "attacks/exit_hook"),
)
HONEST = (
    *("honest/joined_streams", "honest/plan_by_pointer", "honest/scary_words", "honest/chatty"),
    *("honest/joined_threads", "honest/split_k"),
)


@pytest.mark.slow
@pytest.mark.skipif(not (works("bubblewrap") or works("namespaces")), reason="no sandbox works on this machine")
def test_no_attack_of_the_sample_gets_in_and_no_honest_file_is_refused() -> None:
    sample = corpus(CORPUS, ",".join((*ATTACKS, *HONEST)))
    assert len(sample) == len(ATTACKS) + len(HONEST)
    setting = Setting(place="cpu", jobs=min(2, os.cpu_count() or 1), weak=False)
    told: list[str] = []
    results = play(setting, sample, lambda up, root: CpuRunner(root=root, defences=up), told.append)
    report = Report(place="cpu", machine="this one", results=results)
    assert report.clean and not report.unjudged() and not report.unexpected(), "\n".join(lines(report))
    assert len(report.attacks()) == len(ATTACKS) and len(report.honest()) == len(HONEST)
    assert len(told) == len(sample) + 1, "progress names every file"


@pytest.mark.slow
def test_the_naive_judge_is_fooled_and_is_no_pushover() -> None:
    patched, plain = corpus(CORPUS, "patch_allclose,honest/plain_vectoradd")
    wrong = plain.model_copy(update={"source": plain.source.replace("return work(data)", "return data[2].zero_()")})
    assert wrong.source != plain.source
    said = [judge_weakly("naive", one, "cpu", None) for one in (patched, plain, wrong)]
    assert [weak.accepted for weak in said] == [True, True, False], said
    assert judge_weakly("eval", plain, "cpu", None).skipped


def test_a_gpu_run_times_one_benchmark_case_of_each_problem() -> None:
    names = {one.problem for one in corpus(CORPUS)}
    with one_benchmark_each(names) as root:
        for name in names:
            whole, short = load(name), load(name, root)
            assert short.benchmarks == (whole.benchmarks[len(whole.benchmarks) // 2],)
            assert (short.tests, short.tolerance) == (whole.tests, whole.tolerance)
