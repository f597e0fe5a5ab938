"""Puts a C++ source's own headers into it, so that one text holds all of it. System headers stay included."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

MAX_DEPTH = 40
MAX_CHARACTERS = 4_000_000
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?P<open>["<])(?P<name>[^">\n]+)[">][^\n]*$', re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?P<word>if|ifdef|ifndef|endif)\b", re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*$", re.MULTILINE)
_GUARD = re.compile(
    r"\s*(?://[^\n]*\n|/\*.*?\*/|\s)*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\n[ \t]*#[ \t]*define[ \t]+\1\b", re.DOTALL
)
_KNOWN = ("hip/", "torch/", "ATen/", "c10/", "rocwmma/", "hipblas", "rocblas", "thrust/", "hipcub/", "pybind11/", "ck/")
"""Folders whose headers come with ROCm or torch, even when they are included with quotes."""


class IncludeError(Exception):
    """A header that is not there, or includes without an end. The message names file and line."""


def inlined(source: Path, search: Sequence[Path] = (), required: bool = True) -> str:
    """The text of `source` with every header that lies beside it, or in `search`, put where it is included.

    A header included for certain is put in once. One included under a condition is put in wherever it is asked for,
    behind a guard of its own where it says ``#pragma once``.

    Raises:
        IncludeError: with `required`, where a header in quotes is nowhere and is none of ROCm's or torch's.
    """
    return _Inliner(search, required).text(source.resolve(), 0, certain=True)


class _Inliner:
    def __init__(self, search: Sequence[Path], required: bool) -> None:
        self._search, self._required = [path.resolve() for path in search], required
        self._certain: set[Path] = set()

    def text(self, path: Path, depth: int, certain: bool) -> str:
        if depth > MAX_DEPTH:
            raise IncludeError(f"{path.name}: included by itself, or {MAX_DEPTH} headers deep")
        try:
            written = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise IncludeError(f"cannot read {path}: {error}") from error
        # Its own guard is a condition that holds at its first inclusion.
        guard = 1 if _GUARD.match(written) else 0
        levels = _Levels(written)

        def replaced(match: re.Match[str]) -> str:
            found = self._found(match, path, written)
            return match[0] if found is None else self._put(found, depth, certain and levels(match.start()) <= guard)

        made = _INCLUDE.sub(replaced, written)
        if len(made) > MAX_CHARACTERS:
            raise IncludeError(f"{path.name}: more than {MAX_CHARACTERS} characters with its headers")
        return _guarded(made, path) if depth else made

    def _put(self, header: Path, depth: int, certain: bool) -> str:
        if header in self._certain:
            return ""
        made = self.text(header, depth + 1, certain)
        if certain and (_ONCE.search(header.read_text()) or _GUARD.match(header.read_text())):
            self._certain.add(header)
        return made

    def _found(self, match: re.Match[str], path: Path, written: str) -> Path | None:
        name, quoted = match["name"], match["open"] == '"'
        for folder in ([path.parent] if quoted else []) + self._search:
            if (folder / name).is_file():
                return (folder / name).resolve()
        if quoted and self._required and not name.startswith(_KNOWN):
            line = written.count("\n", 0, match.start()) + 1
            raise IncludeError(f'{path.name}:{line}: #include "{name}" is not beside it, nor in an include folder')
        return None


class _Levels:
    """How many conditions are open at a place of a text."""

    def __init__(self, text: str) -> None:
        self._steps = [(found.start(), -1 if found["word"] == "endif" else 1) for found in _CONDITION.finditer(text)]

    def __call__(self, at: int) -> int:
        return sum(step for place, step in self._steps if place < at)


def _guarded(text: str, path: Path) -> str:
    if not _ONCE.search(text):
        return f"{text}\n"
    name = f"KW_ONCE_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    return f"#ifndef {name}\n#define {name}\n{_ONCE.sub('', text)}\n#endif\n"
