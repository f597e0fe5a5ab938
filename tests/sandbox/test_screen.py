"""What is a submission at all."""

import pytest

from problems.load import load
from sandbox.candidate import Candidate
from sandbox.screen import MAX_BYTES, advise, screen

VECTORADD = load("pmpp/vectoradd")


def screened(source: str) -> tuple[str, int] | None:
    rejected = screen(VECTORADD, Candidate(source=source))
    if rejected is None:
        return None
    assert rejected.findings[0].convicts
    return rejected.findings[0].rule, rejected.findings[0].line


@pytest.mark.parametrize(
    "source",
    [
        "def custom_kernel(data):\n    return data\n",
        "custom_kernel = print",
        "custom_kernel: object = print",
        "from math import sin as custom_kernel",
        "try:\n    import triton\n    def custom_kernel(data): ...\nexcept ImportError:\n    pass\n",
        "if True:\n    custom_kernel = 1\n",
        "class custom_kernel: ...",
        "#!POPCORN leaderboard vectoradd_v2\n#!POPCORN gpus H100\ndef custom_kernel(data): ...",
        "#!POPCORN leaderboard vectoradd\ndef custom_kernel(data): ...",
        "#!popcorn leaderboard PMPP/vectoradd\ndef custom_kernel(data): ...",
        "def custom_kernel(data): return '\\d' is 1",
        "# läßt Umlaute zu ✓\ndef custom_kernel(data): ...",
    ],
)
def test_submissions_pass(source: str) -> None:
    assert screened(source) is None


@pytest.mark.parametrize(
    ("source", "rule", "line"),
    [
        ("", "empty", 1),
        (" \n\t\n", "empty", 1),
        ("x = 1\ndef custom_kernel(data:\n    pass", "syntax", 2),
        ("def other(data): ...", "entry-point", 1),
        ("def outer():\n    def custom_kernel(data): ...\n", "entry-point", 1),
        ("print(custom_kernel)", "entry-point", 1),
        ("x = 1\n#!POPCORN leaderboard matmul_v2\ndef custom_kernel(data): ...", "leaderboard", 2),
        ("def custom_kernel(data): ...\n\0", "encoding", 2),
        ("def custom_kernel(data): return '\ud800'", "encoding", 1),
        ("def custom_kernel(data): ...\n#" + "x" * MAX_BYTES, "size", 1),
        ("(" * 5000 + ")" * 5000, "syntax", 1),
        ("-" * 100_000 + "1", "syntax", 1),
    ],
)
def test_what_is_no_submission_is_refused_with_its_line(source: str, rule: str, line: int) -> None:
    assert screened(source) == (rule, line)


def test_the_word_stream_is_advice() -> None:
    candidate = Candidate(source="# one Stream\ndef custom_kernel(data): ...\n")
    assert screen(VECTORADD, candidate) is None
    findings = advise(candidate)
    assert [(finding.line, finding.convicts) for finding in findings] == [(1, False)]
    assert "stream" in findings[0].message
