"""Exit statuses, and how a known error ends a command: one message that names the cure, and no traceback."""

from __future__ import annotations

import sys
from enum import IntEnum

from dataset.attempt import RecordError
from problems.spec import ProblemError
from sandbox.runner import RunnerError, Unsupported


class Status(IntEnum):
    """What the process says at its end."""

    ACCEPTED = 0
    NOT_ACCEPTED = 1
    USAGE = 2
    MACHINE = 3
    INTERRUPTED = 130


class UsageError(Exception):
    """A command was given something it cannot use; the message names the cure."""


def families() -> tuple[type[Exception], ...]:
    """Every error that a boundary may raise. The agent's are looked up, not imported: its model client is slow to."""
    known: tuple[type[Exception], ...] = (ProblemError, RunnerError, RecordError, UsageError)
    return (*known, *_agents_own())


def status_of(error: Exception) -> Status:
    """Usage for what the caller named wrongly, machine for what failed here."""
    return Status.USAGE if kind_of(error) == "usage" else Status.MACHINE


def _agents_own() -> tuple[type[Exception], ...]:
    named = (("agent.model", "ModelError"), ("agent.run", "RunRefused"))
    return tuple(getattr(sys.modules[module], name) for module, name in named if module in sys.modules)


def kind_of(error: Exception) -> str:
    """The error's family as a record's word: ``usage``, ``unsupported``, ``machine``, ``record`` or ``model``."""
    match error:
        case ProblemError() | UsageError():
            return "usage"
        case Unsupported():
            return "unsupported"
        case RunnerError():
            return "machine"
        case RecordError():
            return "record"
        case _:
            return "usage" if type(error).__name__ == "RunRefused" else "model"
