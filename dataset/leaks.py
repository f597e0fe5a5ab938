"""Secrets and private paths in text that is about to be published."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dataset.rows import Row

_KINDS = {
    "private_key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]*-----END [A-Z ]*PRIVATE KEY-----)?",
    "hugging_face_token": r"\bhf_[A-Za-z0-9]{24,}",
    "model_key": r"\bsk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{20,}",
    "aws_key_id": r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b",
    "aws_secret_key": r"(?i:aws_?secret_?access_?key)\\?[\"']?\s*[=:]\s*\\?[\"']?[A-Za-z0-9/+=]{40}",
    "github_token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    "google_key": r"\bAIza[0-9A-Za-z_-]{35}",
    "slack_token": r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    "json_web_token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "bearer_token": r"\b[Bb]earer\s+(?=[A-Za-z0-9._~+/-]*\d)[A-Za-z0-9._~+/-]{20,}=*",
    "assigned_key": r"(?i:api_?key|secret_?key|password|passwd)\\?[\"']?\s*[=:]\s*\\?[\"'][^\"'\\\s]{12,}",
    "url_password": r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"']+:[^\s/@\"']+@",
    "home_path": r"(?<![\w.-])(?:/home/[\w.-]+|/Users/[\w.-]+|/root(?=/)|[A-Za-z]:\\{1,2}Users\\{1,2}[\w.-]+)",
}
_ASSIGNMENT = re.compile(r"[\w\\\"']+\s*[=:]\s*\\?[\"']?")
"""The part of an ``aws_secret_key`` or ``assigned_key`` that stays, so that masked JSON is still JSON."""
# A kind is searched for only in a text that holds one of these (in lower case): most texts hold none, and looking for a
# fixed string is some hundred times faster than the expressions.
_ANCHORS: dict[str, tuple[str, ...]] = {
    "private_key": ("private key-----",),
    "hugging_face_token": ("hf_",),
    "model_key": ("sk-",),
    "aws_key_id": ("akia", "asia", "aroa", "aida"),
    "aws_secret_key": ("aws",),
    "github_token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "google_key": ("aiza",),
    "slack_token": ("xox",),
    "json_web_token": ("eyj",),
    "bearer_token": ("bearer",),
    "assigned_key": ("apikey", "api_key", "secretkey", "secret_key", "passw"),
    "url_password": ("://",),
    "home_path": ("/home/", "/users/", "/root", "users\\"),
}


@dataclass(frozen=True, slots=True)
class Leak:
    """A place that must not be published. It never holds the secret itself."""

    kind: str
    column: str
    position: int
    """In characters from the start of the column's text."""


def find(row: Row) -> Iterator[Leak]:
    """Every secret or home path in the texts of `row`, nested ones too."""
    for column, value in row.items():
        for text in _texts(value):
            for match in _expression(text).finditer(text):
                yield Leak(str(match.lastgroup), column, match.start())


def mask(row: Row) -> Row:
    """`row` with every leak replaced by ``[redacted: kind]``; its ``redacted`` names the columns, where it has one."""
    masked = {column: _masked(value) for column, value in row.items()}
    if "redacted" in masked:
        masked["redacted"] = sorted({leak.column for leak in find(row)})
    return masked


def _expression(text: str) -> re.Pattern[str]:
    lowered = text.lower()
    return _either(tuple(kind for kind, anchors in _ANCHORS.items() if any(anchor in lowered for anchor in anchors)))


@lru_cache
def _either(kinds: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all `kinds`; for none, one that matches nowhere."""
    return re.compile("|".join(f"(?P<{kind}>{_KINDS[kind]})" for kind in kinds) or r"(?!)")


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            yield from _texts(list(value.values()))
        case _:
            return


def _masked(value: Any) -> Any:
    match value:
        case str():
            return _expression(value).sub(_mask, value)
        case list():
            return [_masked(item) for item in value]
        case dict():
            return {key: _masked(item) for key, item in value.items()}
        case _:
            return value


def _mask(match: re.Match[str]) -> str:
    kept = _ASSIGNMENT.match(match[0]) if match.lastgroup in ("aws_secret_key", "assigned_key") else None
    return f"{kept[0] if kept else ''}[redacted: {match.lastgroup}]"
