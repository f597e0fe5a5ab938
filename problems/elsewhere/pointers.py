"""What was imported: one small record a problem, which points at its files and knows them by their sha256.

The records lie in ``$KERNELWRIGHT_IMPORTS``, else in ``kernelwright/imports`` under the user's data folder, as
``<set>/<name>.json``; the problem is called ``from/<set>/<name>``. The files stay where they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from problems.elsewhere import gpu_mode, kernelbench
from problems.spec import Frozen, Problem, ProblemError

PREFIX = "from/"
_LEVEL = re.compile(r"level\d+$")
_SKIPPED = {".git", "__pycache__", "node_modules", ".venv"}


class Pointer(Frozen):
    """One imported problem: where it is, and what its files held then."""

    schema_version: Literal[1] = 1
    name: str
    kind: Literal["gpu-mode", "kernelbench"]
    path: str
    """Of its task.yml, or of its Python file."""
    files: dict[str, str]
    """sha256, in hex, of every file it is made of, by absolute path."""


def home() -> Path:
    """Where the records lie."""
    if own := os.environ.get("KERNELWRIGHT_IMPORTS"):
        return Path(own)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "kernelwright" / "imports"


def found(path: Path) -> Iterator[Path]:
    """Every problem file at or under `path`: each task.yml, each KernelBench file in a folder called ``level<n>``."""
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise ProblemError(f"there is no {path}; give a task.yml, a KernelBench file, or a folder of either")
    for folder, inner, files in os.walk(path):
        inner[:] = sorted(set(inner) - _SKIPPED)
        if gpu_mode.TASK in files:
            yield Path(folder) / gpu_mode.TASK
        elif _LEVEL.search(Path(folder).name):
            yield from (Path(folder) / file for file in sorted(files, key=_numbered) if file.endswith(".py"))


def describe(path: Path) -> tuple[Pointer, Problem]:
    """The record and the problem of one file; `ProblemError` where the file cannot be understood."""
    path = path.resolve()
    kind: Literal["gpu-mode", "kernelbench"] = "kernelbench" if path.suffix == ".py" else "gpu-mode"
    problem = _read(path, kind, _named(path, kind))
    assert problem.origin is not None
    files = {file: _sha256(Path(file)) for file in sorted({str(path), *problem.origin.sources.values()})}
    return Pointer(name=problem.name, kind=kind, path=str(path), files=files), problem


def keep(pointer: Pointer, folder: Path | None = None) -> Path:
    """Write one record, whole or not at all; the file it went to."""
    file = _record(pointer.name, folder or home())
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(f".{os.getpid()}.half")
    half.write_text(pointer.model_dump_json(indent=1) + "\n", encoding="utf-8")
    half.replace(file)
    return file


def names(folder: Path | None = None) -> tuple[str, ...]:
    """Every imported problem's name, sorted."""
    root = folder or home()
    return tuple(sorted(PREFIX + path.relative_to(root).with_suffix("").as_posix() for path in root.glob("*/*.json")))


def load(name: str, folder: Path | None = None) -> Problem:
    """The imported problem called `name`; `ProblemError` where it is unknown or its files are not what they were."""
    root = folder or home()
    file = _record(name, root)
    try:
        pointer = Pointer.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        known = ", ".join(names(root)[:5])
        hint = f"there are {known} and more" if known else "none is: kernelwright problems import PATH"
        raise ProblemError(f"no problem is imported as {name!r}; {hint}") from None
    except (OSError, ValidationError, json.JSONDecodeError) as error:
        raise ProblemError(f"{file}: is no record of an import: {error}; import the problem again") from error
    for path, sha256 in pointer.files.items():
        if not Path(path).is_file():
            raise ProblemError(f"{name}: {path} is gone; put it back, or import the problem from where it is now")
        if _sha256(Path(path)) != sha256:
            raise ProblemError(
                f"{name}: {path} has changed since it was imported; look at it, then accept it: "
                f"kernelwright problems import {pointer.path}"
            )
    return _read(Path(pointer.path), pointer.kind, name)


def _read(path: Path, kind: str, name: str) -> Problem:
    return kernelbench.read(path, name) if kind == "kernelbench" else gpu_mode.read(path, name)


def _named(path: Path, kind: str) -> str:
    parts = (path.parent.name, path.stem) if kind == "kernelbench" else (path.parent.parent.name, path.parent.name)
    prefix = "kernelbench-" if kind == "kernelbench" else ""
    return f"{PREFIX}{prefix}{_plain(parts[0])}/{_plain(parts[1])}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "-", text).strip("._") or "unnamed"


def _record(name: str, root: Path) -> Path:
    parts = [_plain(part) for part in name.removeprefix(PREFIX).split("/")]
    if len(parts) != 2:
        raise ProblemError(f"{name!r} is no imported problem's name; write from/<set>/<name>")
    return root / parts[0] / f"{parts[1]}.json"


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}") from error


def _numbered(file: str) -> tuple[int, str]:
    number = re.match(r"\d+", file)
    return (int(number[0]) if number else 0, file)
