"""Problems by name: reads the folders, resolves upstream names, reports a broken folder by file, field and cure.

A problem's folder holds ``problem.toml`` (data), ``cases.py`` (hidden cases, pure Python), ``reference.py`` (torch,
loaded by the checker alone) and ``README.md``. Nothing here imports torch.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import random
import tomllib
from collections import Counter
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import ValidationError

from problems.elsewhere import pointers
from problems.expression import ExpressionError, evaluate
from problems.sources import JUDGED_BY, PACKAGE, shared
from problems.spec import Case, Problem, ProblemError, Work

ROOT = Path(__file__).parent

_CURES = {
    "missing": "add it",
    "extra_forbidden": "remove it, or correct its spelling",
}


def names(root: Path = ROOT) -> tuple[str, ...]:
    """Every problem's name, sorted: ``("amd/fp8-mm", "pmpp/matmul", ...)``."""
    return tuple(sorted(path.parent.relative_to(root).as_posix() for path in root.glob("*/*/problem.toml")))


def load(name: str, root: Path = ROOT) -> Problem:
    """The problem called `name`, by its own or an upstream name; `ProblemError` where there is none or it is broken.

    ``from/<set>/<name>`` is one from elsewhere that was imported.
    """
    if name.startswith(pointers.PREFIX):
        return pointers.load(name)
    return _read(root, _resolve(name, root))


def folder(problem: Problem, root: Path = ROOT) -> Path:
    """Where the problem's files are."""
    return root / problem.name


def content_sha256(problem: Problem, root: Path = ROOT) -> str:
    """Hash, in hex, of the files that decide a verdict. It changes when a case, a tolerance or the reference does."""
    digest = hashlib.sha256()
    for file in JUDGED_BY:
        data = (folder(problem, root) / file).read_bytes()
        digest.update(f"{file} {len(data)}\n".encode() + data)
    for path in shared(folder(problem, root)):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def work(problem: Problem, case: Case) -> Work:
    """Operations and bytes that one call of `case` needs at the least."""
    try:
        flops = {dtype: float(evaluate(text, case.params)) for dtype, text in problem.flops.items()}
        moved, linked = (float(evaluate(text, case.params)) for text in (problem.bytes, problem.link_bytes))
        return Work(flops=flops, bytes=moved, link_bytes=linked)
    except ExpressionError as error:
        raise ProblemError(f"{problem.name}, case {case.spec()!r}: {error}; correct flops or bytes") from error


def board_scale(problem: Problem, case: Case) -> float:
    """The factor of the board's tolerance on `case`."""
    try:
        return float(evaluate(problem.board_check.scale, case.params))
    except ExpressionError as error:
        raise ProblemError(f"{problem.name}, case {case.spec()!r}: {error}; correct board_check.scale") from error


def hidden_cases(
    problem: Problem, rng: random.Random, size: Literal["small", "full"], root: Path = ROOT
) -> tuple[Case, ...]:
    """Cases no board publishes, drawn from `rng`: off the tile, not square, other value ranges.

    ``small`` ones suit an interpreter, ``full`` ones a GPU. The same `rng` state draws the same cases.
    """
    path = folder(problem, root) / "cases.py"
    module = _case_module(path)
    try:
        cases: tuple[Case, ...] = tuple(module.hidden(rng, size))
    except Exception as error:
        raise ProblemError(f"{_shown(path)}: hidden: {type(error).__name__}: {error}; correct the file") from error
    return cases


def _resolve(name: str, root: Path) -> str:
    known = names(root)
    if name in known:
        return name
    spellings = [(spelling, problem) for problem in known for spelling in _spellings(problem, root)]
    found = sorted({problem for spelling, problem in spellings if spelling == _plain(name)})
    match found:
        case [only]:
            return only
        case []:
            raise ProblemError(_unknown(name, known, spellings))
        case _:
            raise ProblemError(f"{name!r} names more than one problem: {', '.join(found)}; use one of these")


def _unknown(name: str, known: tuple[str, ...], spellings: list[tuple[str, str]]) -> str:
    by_spelling = dict(spellings)
    close = difflib.get_close_matches(_plain(name), list(by_spelling), n=5, cutoff=0.5)
    near = list(dict.fromkeys(by_spelling[spelling] for spelling in close))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
    return f"no problem is called {name!r}; {hint}"


def _spellings(problem: str, root: Path) -> set[str]:
    # A folder whose TOML is broken still answers to its own name: it must not hide the others, nor be hidden.
    try:
        table = tomllib.loads((root / problem / "problem.toml").read_text())
    except (OSError, ValueError):
        table = {}
    aliases = [alias for alias in table.get("aliases", []) if isinstance(alias, str)]
    return {_plain(text) for text in (problem, problem.split("/")[-1], str(table.get("board", problem)), *aliases)}


def _plain(name: str) -> str:
    return name.strip().strip("/").lower().replace("_", "-")


def _read(root: Path, name: str) -> Problem:
    path = root / name / "problem.toml"
    where = _shown(path)
    for file in JUDGED_BY:
        if not path.with_name(file).is_file():
            raise ProblemError(
                f"{_shown(path.with_name(file))}: missing; every problem folder needs {', '.join(JUDGED_BY)}"
            )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProblemError(f"{where}: cannot be read as TOML: {error}; correct that line") from error
    for field in ("tests", "benchmarks", "small"):
        table[field] = _cases(table.get(field), f"{where}: {field}")
    if "name" in table:
        raise ProblemError(f"{where}: name: the folder is the name; remove it")
    try:
        problem = Problem.model_validate({"name": name} | table)
    except ValidationError as error:
        raise ProblemError(f"{where}: {_first_fault(error)}") from error
    _check(problem, path)
    return problem


def _cases(rows: object, where: str) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ProblemError(f"{where}: must be a list of at least one case; write {{ m = 64, seed = 1 }} for each")
    cases = []
    for row in rows:
        own = {key: row[key] for key in ("seed", "fill") if key in row}
        params = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row.items() if key not in own
        }
        cases.append({"params": params} | own)
    return cases


def _first_fault(error: ValidationError) -> str:
    faults = error.errors(include_url=False)
    field = ".".join(str(part) for part in faults[0]["loc"])
    message = faults[0]["msg"][:1].lower() + faults[0]["msg"][1:]
    cure = _CURES.get(faults[0]["type"], "correct the value")
    if faults[0]["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(faults[0]["loc"][-1]), list(Problem.model_fields), n=1)
        cure += f" ({near[0]}?)" if near else ""
    more = f" ({len(faults) - 1} more after this one)" if len(faults) > 1 else ""
    return f"{field}: {message}; {cure}{more}"


def _check(problem: Problem, path: Path) -> None:
    where = _shown(path)
    module = _case_module(path.with_name("cases.py"))
    published = (("tests", problem.tests), ("benchmarks", problem.benchmarks), ("small", problem.small))
    cases = [(f"{where}: {field}.{index}", case) for field, rows in published for index, case in enumerate(rows)]
    if problem.board_timing.ranked_by == "weighted" and len(problem.board_timing.weights) != len(problem.benchmarks):
        raise ProblemError(
            f"{where}: board_timing.weights: must be one for each of {len(problem.benchmarks)} benchmarks"
        )
    (keys, _), *_ = Counter(frozenset(case.params) for _, case in cases).most_common()
    for at, case in cases:
        if set(case.params) != keys:
            raise ProblemError(f"{at}: its keys are not {', '.join(sorted(keys))}; every case needs the same keys")
        if case.fill not in module.FILLS:
            raise ProblemError(f"{at}: unknown fill {case.fill!r}; use one of {', '.join(module.FILLS)}")
        if problem.world_size > 1 and not _has_ranks(problem, case):
            said = case.params.get("world_size", "missing")
            cure = f"give the number of ranks, 2 to {problem.world_size}"
            raise ProblemError(f"{at}: world_size: {said}; {cure}")
        if not _fits(module, case):
            raise ProblemError(f"{at}: {case.spec()!r} breaks the rule of cases.py; correct one of them")
        try:
            work(problem, case)
            board_scale(problem, case)
        except ProblemError as error:
            raise ProblemError(f"{where}: {error}") from error


def _has_ranks(problem: Problem, case: Case) -> bool:
    ranks = case.params.get("world_size")
    return isinstance(ranks, int) and not isinstance(ranks, bool) and 2 <= ranks <= problem.world_size


def _fits(module: ModuleType, case: Case) -> bool:
    try:
        return bool(module.fits(case.params))
    except (KeyError, TypeError):  # a size that is missing, or text
        return False


def _case_module(path: Path) -> ModuleType:
    return _imported(path, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=128)
def _imported(path: Path, _changed_ns: int) -> ModuleType:
    """The module in `path`, loaded by path: folder names like ``fp8-mm`` cannot be imported by name."""
    spec = importlib.util.spec_from_file_location(
        f"problem_cases_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}", path
    )
    if spec is None or spec.loader is None:
        raise ProblemError(f"{_shown(path)}: cannot be loaded; it must be a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ProblemError(
            f"{_shown(path)}: does not import: {type(error).__name__}: {error}; correct the file"
        ) from error
    for needed in ("FILLS", "fits", "hidden"):
        if not hasattr(module, needed):
            raise ProblemError(f"{_shown(path)}: has no {needed}; define FILLS, fits(params) and hidden(rng, size)")
    return module


def _shown(path: Path) -> str:
    return "/".join(path.parts[-4:])
