import pytest

from problems.chips import chip
from problems.load import load, names
from prompts import render
from prompts.view import FAILED_CASES, LOG_CHARACTERS, Kernel, trimmed, view
from sandbox.inspection import Advice, LoopCost
from sandbox.verdict import Crashed, Finding, KernelRecord, Measured, Passed, Rejected, TimedOut, Untimed, WrongAnswer
from tests.prompts.samples import FAILED, ISA, LARGE, PROBLEM, RIGHT, SMALL, SOURCE, WRONG, check, judgement

MI300X = chip("MI300X")


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("on", ["MI300X", "MI355X", "H200"])
def test_every_problem_has_a_prompt_for_every_chip(name: str, on: str) -> None:
    text = render.draft(load(name), chip(on))
    assert on in text and load(name).inputs.split("\n")[0][:40] in text
    assert "{{" not in text and "{%" not in text and "\n\n\n" not in text


def test_a_chip_gets_its_own_cards() -> None:
    amd, nvidia = render.draft(PROBLEM, MI300X), render.draft(PROBLEM, chip("H200"))
    assert "Triton on AMD" in amd and "CDNA3" in amd and "Hopper" not in amd
    assert "Triton on AMD" not in nvidia and "Hopper" in nvidia
    assert "fp8 formats" in amd
    plain = PROBLEM.model_copy(update={"flops": {"fp16": "2*m*n*k"}})
    assert "fp8 formats" not in render.draft(plain, MI300X)


def test_a_kernels_text_is_shown_to_the_letter() -> None:
    for text in (render.optimise(PROBLEM, MI300X, RIGHT), render.repair(PROBLEM, MI300X, WRONG)):
        assert f"```python\n{SOURCE}```\n" in text


def test_a_kernel_that_holds_a_fence_gets_a_longer_one() -> None:
    source = '"""\n```\n"""\n\n\n' + SOURCE
    text = render.optimise(PROBLEM, MI300X, Kernel(source, RIGHT.judgement, 92.5))
    assert f"````python\n{source}````\n" in text


def test_times_say_where_they_come_from() -> None:
    assert "Times estimated for MI300X from the compiled code; nothing ran on that chip" in render.optimise(
        PROBLEM, MI300X, RIGHT
    )
    clocked = Measured(case=LARGE, chip="H200", clock="event", samples_us=(9.0,), wall_us=(10.0,), warmup_calls=1)
    said = judgement(Passed(cases=(check(True),), timings=(clocked,)))
    said = said.model_copy(update={"machine": said.machine.model_copy(update={"chip": "H200"})})
    text = render.optimise(PROBLEM, chip("H200"), Kernel(SOURCE, said, 9.0))
    assert "Times measured on H200" in text and "Board score, measured: 9 us." in text and "estimated" not in text
    none = judgement(Passed(cases=(check(True),), timings=(Untimed(case=LARGE, reason="host code reads the device"),)))
    assert "No times: host code reads the device." in render.optimise(PROBLEM, MI300X, Kernel(SOURCE, none, None))


def test_seeds_and_the_machine_stay_with_the_judge() -> None:
    for kernel in (WRONG, FAILED):
        text = render.repair(PROBLEM, MI300X, kernel)
        assert "424242" not in text and "bubblewrap" not in text


def test_a_log_keeps_its_end_and_cannot_close_a_fence() -> None:
    log = "\n".join(f"line {number}" for number in range(500)) + "\n```\nError: at the end"
    kept = trimmed(log)
    assert kept.endswith("'''\nError: at the end") and kept.startswith("(") and "lines before these)" in kept
    assert len(trimmed("x" * 50_000)) <= LOG_CHARACTERS + 40
    assert trimmed("short") == "short"
    assert trimmed('File "/opt/x/lib/python3.11/site-packages/triton/a.py", line 3') == 'File "triton/a.py", line 3'


def test_only_some_failing_cases_are_listed() -> None:
    cases = tuple(check(False) for _ in range(FAILED_CASES + 3))
    shown = view(Kernel(SOURCE, judgement(WrongAnswer(reason="r", cases=cases)), None), {})
    assert len(shown.failed) == FAILED_CASES and shown.more_failed == 3


def test_every_verdict_has_its_words() -> None:
    finding = Finding(line=3, rule="name", message="the word is refused")
    for verdict, words in (
        (Rejected(reason="not a submission", findings=(finding,)), ["not a submission", "Line 3: the word is refused"]),
        (Crashed(reason="IndexError", case=SMALL, log="boom"), ["crashed: IndexError", "m: 64; n: 64; k: 128", "boom"]),
        (TimedOut(reason="took too long", deadline_s=120.0, case=None), ["timed out: took too long"]),
    ):
        text = render.repair(PROBLEM, MI300X, Kernel(SOURCE, judgement(verdict), None))
        assert all(word in text for word in words)


def test_a_prompt_is_a_function_of_its_values() -> None:
    assert render.optimise(PROBLEM, MI300X, RIGHT) == render.optimise(PROBLEM, MI300X, RIGHT)


def test_the_models_loops_and_advice_are_of_the_judged_target() -> None:
    loop = LoopCost(
        label=".LBB0_2", line=7, depth=1, instructions=9, cycles={"mfma": 64.0, "lds": 256.0, "vmem": 0.0},
        binding="lds", waves_per_simd=2,
    )  # fmt: skip
    told = Advice(rule="bank-conflict", line=9, instruction="ds_read_b64 v1, v2", message="banks meet", remedy="pad")
    isa = ISA.model_copy(update={"loops": (loop,), "advice": (told,)})
    here, other = (
        KernelRecord(name="mm", target=target, launches=1, isa=isa.model_copy(update={"target": target}))
        for target in ("gfx942", "gfx950")
    )
    judged = RIGHT.judgement.model_copy(update={"kernels": (here, other)})
    prompt = render.optimise(PROBLEM, chip("MI300X"), Kernel(RIGHT.source, judged, 92.5))
    assert prompt.count("- mm: loop .LBB0_2, cycles an iteration by pipe: mfma 64, lds 256; lds binds") == 1
    assert prompt.count("- mm: banks meet (`ds_read_b64 v1, v2`); pad") == 1
