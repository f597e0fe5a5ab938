"""What a red team run has found so far, a line each in a file, so that a run that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from evals.redteam_corpus import Specimen


class Rows:
    """Answers by stage and file. `stamp` says what gave them: those of another judge or machine are not taken up."""

    def __init__(self, path: Path | None = None, stamp: str = "") -> None:
        """Read what `path` holds, and cut a torn last line off. Without a path nothing is kept."""
        self._path, self._stamp = path, stamp
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], Any] = {}
        if path is not None and path.exists():
            self._read(path)

    def found(self, stage: str, specimen: Specimen) -> Any:
        """What was kept of this very file at this stage; None where nothing was."""
        return self._found.get((stage, _identity(specimen)))

    def keep(self, stage: str, specimen: Specimen, answer: Any) -> None:
        """Add one answer, as JSON values."""
        if self._path is None:
            return
        line = {"stamp": self._stamp, "stage": stage, "name": specimen.name, "of": _identity(specimen)}
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(line | {"answer": answer}) + "\n")

    def _read(self, path: Path) -> None:
        whole, newline, torn = path.read_bytes().rpartition(b"\n")
        if torn:
            path.write_bytes(whole + newline)
        for text in whole.splitlines():
            line = json.loads(text)
            if line["stamp"] == self._stamp:
                self._found[line["stage"], line["of"]] = line["answer"]


def _identity(specimen: Specimen) -> str:
    return hashlib.sha256(specimen.model_dump_json().encode()).hexdigest()
