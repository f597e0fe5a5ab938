"""The file a run leaves: the exact text of its best accepted candidate, and whether it is ready for the board."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent.state import RunState, judgement
from dataset.attempt import RecordError
from dataset.blobs import Blobs

FILE_NAME = "submission.py"


@dataclass(frozen=True, slots=True)
class Submission:
    """A run's ``submission.py``."""

    path: Path
    attempt_id: str
    lacks: str
    """What keeps it from being ready for the board; empty where nothing does."""

    @property
    def ready(self) -> bool:
        """Accepted by our rule and by the board's own check."""
        return not self.lacks


def write(folder: Path, state: RunState, blobs: Blobs) -> Submission | None:
    """Write the best accepted candidate to the run's folder; None where the run has none. `RecordError`."""
    best = state.best
    if best is None or best.candidate_sha256 is None:
        return None
    path = folder / FILE_NAME
    _replace(path, blobs.get(best.candidate_sha256))
    said = judgement(best)
    lacks = {
        True: "",
        False: "the board's own check would refuse it",
        None: "the board's own check was not run",
    }[said.board_accepts if said else None]
    return Submission(path, best.attempt_id, lacks)


def _replace(path: Path, content: bytes) -> None:
    """Whole or not at all: a reader never sees a half-written file."""
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".submission-", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise RecordError(f"cannot write {path}: {error.strerror}; free the disk or the folder, then resume") from error
