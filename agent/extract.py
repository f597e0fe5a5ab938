"""From a model's reply to a candidate: pure text work. Syntax is left to the judge, which answers with a verdict."""

from __future__ import annotations

import re

from agent.header import with_header
from dataset.attempt import Unusable
from problems.spec import Problem
from sandbox.candidate import Candidate

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n]*$", re.MULTILINE)
_DEFINES = re.compile(r"^(?:def[ \t]+custom_kernel\b|custom_kernel[ \t]*=)", re.MULTILINE)
_HYPOTHESIS = re.compile(
    r"^[ \t>*_-]*hypothesis[*_]*[ \t]*:[*_]*[ \t]*(?P<text>\S[^\n]*)", re.MULTILINE | re.IGNORECASE
)
_LONGEST_HYPOTHESIS = 400


def candidate(reply: str, problem: Problem) -> Candidate | Unusable:
    """The one block of the reply that defines `custom_kernel`, with the problem's headers; `Unusable` says why not."""
    blocks, is_open = _blocks(reply)
    kernels = list(dict.fromkeys(block.strip("\n") + "\n" for block in blocks if _DEFINES.search(block)))
    match kernels:
        case [kernel]:
            return Candidate(source=with_header(kernel, problem))
        case []:
            return Unusable(reason=_why_none(reply, blocks, is_open))
        case _:
            return Unusable(reason=f"the reply holds {len(kernels)} different kernels; exactly one is wanted")


def hypothesis(reply: str) -> str:
    """The reply's line ``Hypothesis: ...``; empty where it has none."""
    found = _HYPOTHESIS.search(reply)
    return found["text"].strip(" *_")[:_LONGEST_HYPOTHESIS] if found else ""


def _blocks(reply: str) -> tuple[list[str], bool]:
    """The bodies of the fenced Python blocks, and whether the last fence was left open."""
    blocks: list[str] = []
    at = 0
    text = reply.replace("\r\n", "\n")
    while opening := _FENCE.search(text, at):
        mark = opening["mark"]
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark)}+[ \t]*$", re.MULTILINE).search(text, opening.end())
        if closing is None:
            return blocks, True
        if opening["language"].lower() in {"", "py", "python", "python3", "triton"}:
            blocks.append(text[opening.end() : closing.start()].removeprefix("\n"))
        at = closing.end()
    return blocks, False


def _why_none(reply: str, blocks: list[str], is_open: bool) -> str:
    if is_open:
        return "the last code block never ends: the reply was cut off, or its closing fence is missing"
    if blocks:
        return "no code block defines custom_kernel"
    if _DEFINES.search(reply):
        return "custom_kernel stands outside a fenced code block; put the whole file into one ```python block"
    return "the reply holds no code block"
