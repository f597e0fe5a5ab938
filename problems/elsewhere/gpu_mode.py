"""GPU MODE's problem folders: ``task.yml`` of every generation, with the files that it names.

Format as read in gpu-mode/kernelbot@4bdd839a and in gpu-mode/reference-kernels@f83cb92.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Literal

from problems.elsewhere import fields
from problems.elsewhere.needs import missing
from problems.spec import BoardCheck, BoardTiming, Case, Origin, Problem, ProblemError, Tolerance

TASK = "task.yml"
SUBMISSION = "@SUBMISSION@"
NEEDED = ("generate_input", "ref_kernel", "check_implementation")
"""What a reference.py defines for the evaluators of every generation but Princeton's."""
_FIELDS = {
    *("files", "lang", "config", "description", "templates", "tests", "benchmarks", "ranking_by", "multi_gpu", "gpus"),
    *("test_timeout", "benchmark_timeout", "ranked_timeout", "libraries", "seed", "name", "milestones"),
}
_CONFIG = {"py": {"main"}, "cu": {"sources", "include_dirs", "defines", "compile_flags"}}
_RANKED: dict[str, Literal["last", "mean", "geomean"]] = {"last": "last", "mean": "mean", "geom": "geomean"}
MATCHED = Tolerance(
    rtol=0.0,
    term_rtol=0.0,
    reason="Decided by the problem's own check_implementation, run in the reference's guest. Where that compares with "
    "ref_kernel element by element, the whole result must lie near too: |out - ref| at most 1/64 of |ref|, 1/8 with "
    "fp8 and 1/4 with fp4 among inputs and result, so that no constant passes a tolerance that is too wide.",
)


def read(path: Path, name: str) -> Problem:
    """The problem that a ``task.yml`` describes, called `name`; `ProblemError` names file, field and cure."""
    where = str(path)
    found = fields.table(path)
    fields.known(found, _FIELDS, where)
    lang = fields.text(found, "lang", where, "py")
    if lang not in _CONFIG:
        raise ProblemError(f"{where}: lang: {lang!r} is not known; write py or cu")
    sources = _sources(path, found)
    config = found.get("config") or {}
    if not isinstance(config, dict):
        raise ProblemError(f"{where}: config: must be a table; write `config: {{main: eval.py}}`")
    fields.known(config, _CONFIG[lang], f"{where}: config")
    multi_gpu = fields.flag(found, "multi_gpu", where)
    tests, benchmarks = (_cases(found, field, where, multi_gpu) for field in ("tests", "benchmarks"))
    ranking = fields.text(found, "ranking_by", where, "last")
    if ranking not in _RANKED:
        raise ProblemError(f"{where}: ranking_by: {ranking!r} is not known; write last, mean or geom")
    matched, unmet = _reference(sources, lang)
    if multi_gpu:
        world = max(int(case.params["world_size"]) for case in (*tests, *benchmarks))  # type: ignore[arg-type]
        unmet = f"needs {world} GPUs, one process on each; this judge runs one"
    description = fields.text(found, "description", where)
    board, gpus = _listed(path, found)
    return Problem(
        name=name,
        title=next((line.strip() for line in description.splitlines() if line.strip()), path.parent.name)[:120],
        board=board,
        chips=gpus,
        inputs=f"what generate_input of {path.parent / 'reference.py'} makes of a case",
        returns="what ref_kernel of the same file returns",
        output_dtype="float32",
        tests=tests,
        benchmarks=benchmarks,
        small=tests,
        tolerance=MATCHED,
        board_check=BoardCheck(rtol=0.0, atol=0.0, difference="fp32", source="its own check_implementation"),
        board_timing=BoardTiming(
            evaluator="its own eval.py", clock="event", flush_l2=True, ranked_by=_RANKED[ranking], source=where
        ),
        flops={},
        bytes="0",
        origin=Origin(kind="gpu-mode", path=where, sources=sources, matched=matched, unmet=unmet),
    )


def _sources(path: Path, found: dict[str, Any]) -> dict[str, str]:
    """Files by the name that the board gives them: absolute paths. The submission's own is left out."""
    where, sources = str(path), {}
    for index, row in enumerate(fields.rows(found, "files", where)):
        at = f"{where}: files.{index}"
        fields.known(row, {"name", "source"}, at)
        name, source = fields.text(row, "name", at), fields.text(row, "source", at)
        if Path(name).name != name:
            raise ProblemError(f"{at}: name: {name!r} is not a plain file name; write one")
        if source == SUBMISSION:
            continue
        file = (path.parent / source).resolve()
        # Sets of the second generation list files that lie one folder higher.
        if not file.is_file() and (path.parent.parent / source).is_file():
            file = (path.parent.parent / source).resolve()
        if not file.is_file():
            raise ProblemError(f"{at}: source: there is no {file}; check out the whole set")
        sources[name] = str(file)
    return sources


def _cases(found: dict[str, Any], field: str, where: str, multi_gpu: bool) -> tuple[Case, ...]:
    cases = []
    for index, row in enumerate(fields.rows(found, field, where)):
        at = f"{where}: {field}.{index}"
        params = fields.params(row, at)
        seed = params.pop("seed", None)
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
            raise ProblemError(f"{at}.seed: must be a whole number")
        if multi_gpu and not (type(world := params.get("world_size")) is int and 2 <= world <= 64):
            raise ProblemError(f"{at}.world_size: must be a whole number from 2 to 64 where multi_gpu is true")
        cases.append(Case(params=params, seed=seed))
    return tuple(cases)


def _reference(sources: dict[str, str], lang: str) -> tuple[bool, str]:
    """(whether its checker compares with ref_kernel, why it cannot be judged or nothing)."""
    if lang == "cu":
        return False, "lang: cu: its reference is CUDA C++, which needs nvcc; only Python references are run"
    if "reference.py" not in sources:
        return False, "lists no reference.py among its files: there is nothing to compare with"
    file = Path(sources["reference.py"])
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{file}: does not parse: {error}; correct that line") from error
    defined = {name: node for node in tree.body for name in _names(node)}
    lacking = [name for name in NEEDED if name not in defined]
    if lacking:
        return False, f"its reference.py does not define {', '.join(lacking)}; an evaluator of its own drives it"
    matched = isinstance(defined["check_implementation"], ast.Assign)
    return matched, missing(tree, {Path(name).stem for name in sources})


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []


def _listed(path: Path, found: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """(the board's name, its GPUs), from the set's list where there is one beside the set's folder."""
    folder = path.parent
    own = found.get("gpus") or []
    gpus = tuple(str(gpu) for gpu in own) if isinstance(own, list) else ()
    for listing in sorted(folder.parent.parent.glob("*.yaml")):
        try:
            rows = fields.table(listing).get("problems") or []
        except ProblemError:
            continue  # another set's list is no fault of this problem
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and row.get("directory") == f"{folder.parent.name}/{folder.name}":
                listed = row.get("gpus") if isinstance(row.get("gpus"), list) else []
                return str(row.get("name", folder.name)), tuple(map(str, listed or gpus)) or ("any GPU",)
    return folder.name, gpus or ("any GPU",)
