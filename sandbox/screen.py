"""What can be said of a text without running it: whether it is a submission at all, and what in it is suspicious."""

from __future__ import annotations

import ast
import re
import warnings

from problems.spec import Problem
from sandbox import constructs
from sandbox.candidate import Candidate
from sandbox.defences import ALL_UP, Defences
from sandbox.verdict import Finding, Judgement, Machine, Rejected

MAX_BYTES = 1_000_000
"""GPU MODE's server takes no larger file."""
MAX_FINDINGS = 20
_HEADER = re.compile(r"^\s*(?:#|//)!POPCORN\s+leaderboard\s+(\S+)", re.MULTILINE | re.IGNORECASE)


def screen(problem: Problem, candidate: Candidate, convict: bool = True) -> Rejected | None:
    """Why the candidate is refused, with its line: it is no submission to `problem`, or holds what no kernel needs.

    Without `convict` only the first counts. None where it must be judged.
    """
    for look in (_text, _header, _definition):
        if finding := look(problem, candidate):
            return Rejected(reason=f"line {finding.line}: {finding.message}", findings=(finding,))
    findings = suspicions(candidate)
    guilty = [finding for finding in findings if finding.convicts]
    if not (convict and guilty):
        return None
    return Rejected(reason=f"line {guilty[0].line}: {guilty[0].message}", findings=findings)


def suspicions(candidate: Candidate) -> tuple[Finding, ...]:
    """Suspicious constructs of a source that parses, the first of each kind."""
    tree = _parsed(candidate.source)
    if isinstance(tree, Finding):
        return ()
    try:
        found = constructs.find(tree)
    except RecursionError:
        return ()
    firsts = {finding.rule: finding for finding in reversed(found)}
    return tuple(sorted(firsts.values(), key=lambda finding: finding.line))[:MAX_FINDINGS]


def advise(candidate: Candidate) -> tuple[Finding, ...]:
    """Places worth a look that do not decide anything."""
    lines = enumerate(candidate.source.splitlines(), 1)
    message = "GPU MODE's server refuses files that contain 'stream', in any case and even in a comment"
    named = [number for number, line in lines if "stream" in line.lower()][:1]
    banned = tuple(Finding(line=number, rule="upstream-stream", message=message) for number in named)
    return banned + suspicions(candidate)


def advised(judgement: Judgement, candidate: Candidate) -> Judgement:
    """The judgement with the advice on its candidate among its flags."""
    flags = tuple(f"line {finding.line}: {finding.message}" for finding in advise(candidate))
    return judgement.model_copy(update={"flags": judgement.flags + flags})


def refuse(
    problem: Problem,
    candidate: Candidate,
    machine: Machine,
    defences: Defences = ALL_UP,
) -> Judgement | None:
    """The judgement on a candidate that is no submission; None where it must be judged."""
    rejected = screen(problem, candidate, defences.screen)
    if rejected is None:
        return None
    return Judgement(verdict=rejected, machine=machine, sandbox="none", seeds=(), wall_s=0.0)


def _text(problem: Problem, candidate: Candidate) -> Finding | None:
    if not candidate.source.strip():
        return _refusal(1, "empty", "the file is empty; a submission defines custom_kernel(data)")
    try:
        size = len(candidate.source.encode())
    except UnicodeEncodeError:
        return _refusal(1, "encoding", "the file is not UTF-8 text")
    if size > MAX_BYTES:
        return _refusal(1, "size", f"{size} bytes; a submission has at most {MAX_BYTES}")
    if "\0" in candidate.source:
        line = candidate.source[: candidate.source.index("\0")].count("\n") + 1
        return _refusal(line, "encoding", "the file holds a NUL byte")
    return None


def _header(problem: Problem, candidate: Candidate) -> Finding | None:
    known = {_plain(name) for name in (problem.name, problem.board, problem.name.split("/")[-1], *problem.aliases)}
    for match in _HEADER.finditer(candidate.source):
        if _plain(match[1]) not in known:
            line = candidate.source[: match.start(1)].count("\n") + 1
            return _refusal(line, "leaderboard", f"the header names {match[1]!r}, the problem is {problem.name}")
    return None


def _definition(problem: Problem, candidate: Candidate) -> Finding | None:
    tree = _parsed(candidate.source)
    if isinstance(tree, Finding):
        return tree
    modelled = problem.origin is not None and problem.origin.kind == "kernelbench"
    wanted, used = ("ModelNew", "ModelNew(nn.Module)") if modelled else ("custom_kernel", "custom_kernel(data)")
    if any(wanted in _defined(node) for node in tree.body):
        return None
    return _refusal(1, "entry-point", f"no {wanted} at the top level; a submission defines {used}")


def _parsed(source: str) -> ast.Module | Finding:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        return _refusal(error.lineno or 1, "syntax", f"syntax error: {error.msg}")
    except (RecursionError, MemoryError, ValueError):
        return _refusal(1, "syntax", "the source is nested too deeply to parse")


def _defined(node: ast.stmt) -> set[str]:
    """Names that a top-level statement may bind; any name stored inside an if, try, with or loop counts."""
    found: set[str] = set()
    for part in _own(node):
        match part:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name)
    return found


def _own(node: ast.AST) -> list[ast.AST]:
    """The node and what is in it, without the bodies of functions and classes."""
    found, todo = [], [node]
    while todo:
        part = todo.pop()
        found.append(part)
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo += ast.iter_child_nodes(part)
    return found


def _refusal(line: int, rule: str, message: str) -> Finding:
    return Finding(line=line, rule=rule, message=message, convicts=True)


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")
