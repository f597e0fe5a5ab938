"""The attack corpus: one trick a file, honest controls beside them, each with a header that says what it is.

    # kernelwright-exploit: class=NAME; problem=NAME; needs=cpu|gpu|any; wins_by=answer|time|denial;
    #   beaten_by=DEFENCES; works_against=JUDGES; expect=VERDICTS; unconfined=never
    # kernelwright-honest: class=NAME; problem=NAME; needs=cpu|gpu|any

Each header is one line, the first of its file; the next line describes the trick. Judges get the file without both, so
that none can tell an attack by its label.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from problems.spec import Frozen, ProblemError
from sandbox.candidate import Candidate

ATTACK, HONEST = "# kernelwright-exploit:", "# kernelwright-honest:"
FOLDERS = {"attacks": ATTACK, "honest": HONEST}
_LISTS = {"beaten_by": ",", "works_against": ",", "expect": "|"}


class Specimen(Frozen):
    """One file of the corpus."""

    name: str
    """Its folder and stem: ``attacks/lazy_tensor``."""
    hostile: bool
    trick: str
    """Its class: what kind of cheating it is, or what kind of honest code."""
    problem: str
    description: str
    source: str
    """Without the header."""
    needs: Literal["cpu", "gpu", "any"] = "any"
    wins_by: Literal["answer", "time", "denial"] = "answer"
    """How it would gain: a wrong answer accepted, an untrue time, or a judge that never ends."""
    beaten_by: tuple[str, ...] = ()
    works_against: tuple[str, ...] = ()
    """Weak judges that it should fool: ``naive``, ``eval``, ``without:DEFENCE``; ``none`` where there is none here."""
    expect: tuple[str, ...] = ()
    """Kinds of verdict that it should end in."""
    unconfined: Literal["allowed", "never"] = "allowed"
    """``never``: not run where nothing holds it."""

    @property
    def candidate(self) -> Candidate:
        """What judges get."""
        return Candidate(source=self.source)

    def works_without(self) -> tuple[str, ...]:
        """The defences without which it should get in."""
        return tuple(name.removeprefix("without:") for name in self.works_against if name.startswith("without:"))

    def runs_on(self, place: Literal["cpu", "gpu"]) -> bool:
        """Whether the trick can be tried there at all."""
        return self.needs in ("any", place)


def corpus(folder: Path, only: str = "*") -> tuple[Specimen, ...]:
    """Every file under `folder` that fits `only`, attacks first. `ProblemError` names a file that is not one.

    `only` are patterns with commas between, held against a file's name, its class, ``needs=`` and ``wins_by=``.
    """
    found = [
        read(path, folder, mark) for name, mark in FOLDERS.items() for path in sorted((folder / name).glob("*.py"))
    ]
    chosen = tuple(one for one in found if _fits(one, only))
    if not chosen:
        raise ProblemError(f"{folder} holds no attack or honest file that fits {only!r}")
    return chosen


def read(path: Path, folder: Path, mark: str) -> Specimen:
    """One file; `ProblemError` where its header is not as described above."""
    header, _, rest = path.read_text().partition("\n")
    second, _, source = rest.partition("\n")
    if not header.startswith(mark) or not second.startswith("# "):
        raise ProblemError(f"{path}: must begin with '{mark} class=...' and one line of description")
    fields = dict(_pair(part, path) for part in header.removeprefix(mark).split(";") if part.strip())
    values: dict[str, object] = {
        name: tuple(text.split(_LISTS[name])) if name in _LISTS else text for name, text in fields.items()
    }
    values["trick"] = values.pop("class", "")
    try:
        return Specimen.model_validate(
            values
            | {
                "name": path.relative_to(folder).with_suffix("").as_posix(),
                "hostile": mark == ATTACK,
                "description": second.removeprefix("# "),
                "source": source,
            }
        )
    except ValidationError as error:
        raise ProblemError(f"{path}: {error}") from error


def _pair(part: str, path: Path) -> tuple[str, str]:
    name, equals, value = part.strip().partition("=")
    if not equals:
        raise ProblemError(f"{path}: {part.strip()!r} in its header is not name=value")
    return name, value.strip()


def _fits(specimen: Specimen, only: str) -> bool:
    short = specimen.name.partition("/")[2]
    names = (specimen.name, short, specimen.trick, f"needs={specimen.needs}", f"wins_by={specimen.wins_by}")
    return any(fnmatch.fnmatch(name, pattern) for pattern in only.split(",") for name in names)
