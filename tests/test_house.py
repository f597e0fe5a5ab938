"""The house rules that a reader relies on: who may import whom, how long a thing may be, what may stand where."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("problems", "sandbox", "prompts", "dataset", "agent", "evals", "kernelwright")
MAY_IMPORT = {
    "problems": set(),
    "sandbox": {"problems"},
    "prompts": {"problems", "sandbox"},
    "dataset": {"problems", "sandbox"},
    "agent": {"problems", "sandbox", "prompts", "dataset"},
    "evals": {"problems", "sandbox", "prompts", "dataset", "agent"},
    "kernelwright": {"problems", "sandbox", "prompts", "dataset", "agent", "evals"},
    "seed_kernels": set(),
}
ONLY_IN = {
    "langgraph": ("agent/graph.py",),
    "openai": ("agent/model.py",),
    # install.py runs before anything is installed and starts pip.
    "subprocess": ("sandbox/", "kernelwright/install.py"),
    "docker": ("sandbox/",),
    "ray": ("sandbox/", "evals/"),
    "torch": ("sandbox/guest/", "sandbox/checker/", "problems/*/reference.py", "seed_kernels/"),
    "triton": ("sandbox/guest/", "seed_kernels/"),
}
LONGEST_FUNCTION, LONGEST_MODULE = 45, 300
FORBIDDEN_NAMES = {"utils", "common", "core", "helpers", "helper", "manager", "handler", "base", "v2"}


def modules() -> list[Path]:
    return [path for room in (*ROOMS, "seed_kernels") for path in sorted((ROOT / room).rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module, node.lineno


def allowed(place: str, path: Path) -> bool:
    name = name_of(path)
    if "*" in place:
        first, last = place.split("*")
        return name.startswith(first) and name.endswith(last)
    return name.startswith(place)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_follow_the_house(path: Path) -> None:
    room = name_of(path).split("/")[0]
    for module, line in imports(path):
        top = module.split(".")[0]
        if top in MAY_IMPORT and top != room:
            assert top in MAY_IMPORT[room], f"{name_of(path)}:{line}: {room} may not import {top}"
        if top in ONLY_IN:
            assert any(allowed(place, path) for place in ONLY_IN[top]), f"{name_of(path)}:{line}: {top} not here"


def test_the_guest_stands_alone() -> None:
    for path in (ROOT / "sandbox/guest").glob("*.py"):
        foreign = [module for module, _ in imports(path) if module.split(".")[0] in {*MAY_IMPORT, "pydantic", "rich"}]
        assert not foreign, f"{name_of(path)} imports {foreign}: only sandbox/guest is visible inside the sandbox"


def is_exempt(path: Path) -> bool:
    return path.name == "reference.py" or name_of(path).startswith("seed_kernels/")


def test_sizes() -> None:
    too_long = []
    for path in modules():
        text = path.read_text()
        if is_exempt(path):
            continue
        if (lines := text.count("\n")) > LONGEST_MODULE:
            too_long.append(f"{name_of(path)}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    too_long.append(f"{name_of(path)}:{node.lineno} {node.name}: {length} lines")
    assert not too_long, "\n".join(too_long)


def test_names_are_nouns_of_the_field() -> None:
    bad = [name_of(path) for path in modules() if {part.removesuffix(".py") for part in path.parts} & FORBIDDEN_NAMES]
    assert not bad


def test_only_main_is_printed_from() -> None:
    """Library rooms return values; only commands and programs of their own talk to a terminal."""
    loud = []
    for path in modules():
        name = name_of(path)
        if name.startswith(("kernelwright/", "seed_kernels/")) or path.name == "__main__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                loud.append(f"{name}:{node.lineno}")
    assert not loud, loud


def test_every_seed_kernel_is_whole() -> None:
    for submission in (ROOT / "seed_kernels").rglob("submission.py"):
        for part in ("knobs.toml", "WORKLOG.md"):
            assert (submission.parent / part).is_file(), f"{submission.parent} lacks {part}"
        head = submission.read_text()[:400]
        assert re.search(r"^#!POPCORN leaderboard \S+", head, re.MULTILINE), f"{submission} has no POPCORN header"


def test_no_paths_of_one_machine() -> None:
    pattern = re.compile(r"/work/|/root/|/home/[a-z]")
    found = [name_of(path) for path in modules() if pattern.search(path.read_text())]
    assert not found
