"""What a C++ compiler said, as an engineer wants it: place, message, the line itself, a hint; no include stacks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

MOST = 5
"""Errors shown: what follows the first few is mostly their consequence."""
MAX_MESSAGE = 400
_SAID = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?P<kind>fatal error|error|note): (?P<text>.*)$"
)
_QUOTED = re.compile(r"^\s*\d* \| (.*)$")
_BACKEND = re.compile(r"^(?:error: |LLVM ERROR: |ld\.lld: error: |fatal error: )(.+)$")
_WORTH = (
    "did you mean",
    "passing argument",
    "declared here",
    "candidate",
    "requested here",
    "to match this",
    "undefined",
    "evaluated",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One error."""

    file: str
    """As the source calls itself; empty for an error of the code generator, which knows no lines."""
    line: int
    message: str
    source: str = ""
    """The line it is about."""
    hint: str = ""

    def text(self) -> str:
        """A few lines for people and models."""
        place = f"{self.file}:{self.line}: " if self.file else ""
        lines = [f"{place}{self.message}"]
        lines += [f"    {self.source}"] if self.source else []
        lines += [f"  hint: {self.hint}"] if self.hint else []
        return "\n".join(lines)


def read(stderr: str, own: Iterable[str] = ()) -> tuple[Fault, ...]:
    """The errors of a compiler's output, in order, each once.

    `own`: names of the candidate's own sources. An error in a header is told at the candidate's line that led to it.
    """
    names = set(own)
    found: list[Fault] = []
    for line in stderr.splitlines():
        said, backend = _SAID.match(line), _BACKEND.match(line)
        if said and said["kind"] == "note":
            found[-1:] = [_with_note(fault, said, names) for fault in found[-1:]]
        elif said:
            found.append(Fault(_short(said["file"], names), int(said["line"]), said["text"][:MAX_MESSAGE]))
        elif backend:
            found.append(Fault("", 0, backend[1][:MAX_MESSAGE]))
        elif found and not found[-1].source and (quoted := _QUOTED.match(line)):
            found[-1] = replace(found[-1], source=quoted[1].strip()[:MAX_MESSAGE])
    return tuple(dict.fromkeys(found))


def short(faults: tuple[Fault, ...], stderr: str = "") -> str:
    """The first errors as text; where none could be read, the end of what the compiler said."""
    if not faults:
        return stderr.strip()[-2000:] or "the compiler failed and said nothing"
    more = len(faults) - MOST
    shown = [fault.text() for fault in faults[:MOST]]
    return "\n".join([*shown, f"and {more} more"] if more > 0 else shown)


def _with_note(fault: Fault, said: re.Match[str], own: set[str]) -> Fault:
    text, file = said["text"], _short(said["file"], own)
    if fault.file in own or not own:
        if fault.hint or not any(word in text for word in _WORTH):
            return fault
        return replace(fault, hint=f"{text} ({file}:{said['line']})"[:MAX_MESSAGE])
    if file in own and ("requested here" in text or "expanded from" in text or "required from" in text):
        inside = f"in {fault.file}:{fault.line}" + (f": {fault.source}" if fault.source else "")
        return replace(fault, file=file, line=int(said["line"]), source="", hint=inside[:MAX_MESSAGE])
    return fault


def _short(path: str, own: set[str]) -> str:
    """A header by its name in its include folder, a source by its own."""
    if path in own:
        return path
    _, found, rest = path.rpartition("/include/")
    return rest if found else path.rpartition("/")[2]
