import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.extract import candidate, hypothesis
from agent.header import header, with_header
from dataset.attempt import Unusable
from sandbox.candidate import Candidate
from tests.agent.places import PROBLEM

KERNEL = "import torch\n\n\ndef custom_kernel(data):\n    return data[4]\n"
HEADER = "#!POPCORN leaderboard amd-fp8-mm\n#!POPCORN gpus MI300\n"


def fenced(code: str, language: str = "python", mark: str = "```") -> str:
    return f"{mark}{language}\n{code}{mark}\n"


@pytest.mark.parametrize(
    "reply",
    [
        fenced(KERNEL),
        fenced(KERNEL, "py"),
        fenced(KERNEL, ""),
        fenced(KERNEL, mark="~~~"),
        fenced(KERNEL).replace("\n", "\r\n"),
        "Some words.\n" + fenced("x = 1\n") + fenced("$ make\n", "sh") + fenced(KERNEL) + "More words.",
        fenced(KERNEL) + "Again, the same:\n" + fenced(KERNEL),
    ],
)
def test_one_kernel_is_found_and_gets_its_header(reply: str) -> None:
    assert candidate(reply, PROBLEM) == Candidate(source=HEADER + KERNEL)


def test_a_longer_fence_may_hold_a_shorter_one() -> None:
    code = '"""\n```\nnot an end\n```\n"""\n' + KERNEL
    assert candidate(fenced(code, mark="````"), PROBLEM) == Candidate(source=HEADER + code)


def test_an_assigned_kernel_counts() -> None:
    made = candidate(fenced("def f(data): ...\ncustom_kernel = f\n"), PROBLEM)
    assert isinstance(made, Candidate)


def test_a_syntax_error_is_left_to_the_judge() -> None:
    made = candidate(fenced("def custom_kernel(data:\n    return (\n"), PROBLEM)
    assert isinstance(made, Candidate)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("", "no code block"),
        ("I would tile it.", "no code block"),
        (KERNEL, "outside a fenced code block"),
        (fenced("def kernel(data): ...\n"), "defines custom_kernel"),
        (fenced("    def custom_kernel(data): ...\n"), "defines custom_kernel"),
        (fenced(KERNEL, "cpp"), "outside a fenced"),
        (fenced(KERNEL) + fenced(KERNEL.replace("4", "0")), "2 different kernels"),
        ("```python\n" + KERNEL, "never ends"),
    ],
)
def test_a_reply_without_exactly_one_kernel(reply: str, says: str) -> None:
    made = candidate(reply, PROBLEM)
    assert isinstance(made, Unusable) and says in made.reason


def test_a_right_header_is_kept_and_a_wrong_one_replaced() -> None:
    assert with_header(HEADER + KERNEL, PROBLEM) == HEADER + KERNEL
    own = "# mine\n#!POPCORN gpu MI300\n#!POPCORN leaderboard amd-fp8-mm\n" + KERNEL
    assert with_header(own, PROBLEM) == own
    other = "#!POPCORN leaderboard another\n#!POPCORN gpus H100\n# about it\n" + KERNEL
    assert with_header(other, PROBLEM) == HEADER + "# about it\n" + KERNEL
    assert header(PROBLEM) == HEADER


def test_a_header_below_the_code_does_not_count() -> None:
    assert with_header(KERNEL + HEADER, PROBLEM) == HEADER + KERNEL


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Hypothesis: wider loads.\n", "wider loads."),
        ("> **Hypothesis:** split K fills the chip\n```python\n```", "split K fills the chip"),
        ("hypothesis : x", "x"),
        ("No guess.", ""),
        ("My hypothesis is that", ""),
    ],
)
def test_the_hypothesis_is_one_line(reply: str, said: str) -> None:
    assert hypothesis(reply) == said


PIECES = st.sampled_from(
    ["```python\n", "```\n", "~~~\n", "````py\n", KERNEL, "def custom_kernel(", "\r\n", "#!POPCORN ", "x"]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=30).map("".join))
def test_any_reply_gives_a_candidate_or_a_reason(reply: str) -> None:
    made = candidate(reply, PROBLEM)
    if isinstance(made, Candidate):
        assert "custom_kernel" in made.source and made.source.count(f"#!POPCORN leaderboard {PROBLEM.board}\n") >= 1
    else:
        assert made.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["```\n", "```python\n```\n", "    ", "\n#", "~~~", "hypothesis", " >*_-", "#!POPCORN gpus\n"]
)
def test_a_long_reply_is_read_quickly(piece: str) -> None:
    reply = piece * (400_000 // len(piece))
    before_s = time.process_time()
    candidate(reply, PROBLEM)
    candidate(fenced(reply + KERNEL), PROBLEM)
    hypothesis(reply)
    assert time.process_time() - before_s < 5.0
