"""A foreign file's fields, read strictly: every complaint names the file, the field and the cure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from problems.spec import ParamValue, ProblemError


def table(path: Path) -> dict[str, Any]:
    """A YAML file that holds one table; `ProblemError` where it is missing, half-written or something else."""
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]  # not needed by anyone who imports nothing
    except ImportError as error:
        raise ProblemError(f"{path}: PyYAML is needed to read it: pip install pyyaml") from error
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: cannot be read: {error}; give a folder that holds it whole") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ProblemError(f"{path}: is not YAML: {' '.join(str(error).split())}; complete or correct it") from error
    if not isinstance(found, dict):
        raise ProblemError(f"{path}: holds no table of fields but {_kind(found)}; write `name: value` lines")
    return found


def known(found: Mapping[str, Any], fields: Iterable[str], where: str) -> None:
    """`ProblemError` for a field that nobody reads: more likely a misspelling than a wish."""
    names = sorted(fields)
    for field in found:
        if field not in names:
            near = difflib.get_close_matches(str(field), names, n=1)
            cure = f"did you mean {near[0]}?" if near else f"remove it; there are {', '.join(names)}"
            raise ProblemError(f"{where}: {field}: unknown field; {cure}")


def text(found: Mapping[str, Any], field: str, where: str, default: str | None = None) -> str:
    """A field of text; `default` where it is absent."""
    value = found.get(field, default)
    if not isinstance(value, str):
        raise ProblemError(f"{where}: {field}: {_lack(value, 'text')}")
    return value


def flag(found: Mapping[str, Any], field: str, where: str) -> bool:
    """A field of true or false; false where it is absent."""
    value = found.get(field, False)
    if not isinstance(value, bool):
        raise ProblemError(f"{where}: {field}: {_lack(value, 'true or false')}")
    return value


def rows(found: Mapping[str, Any], field: str, where: str) -> list[dict[str, Any]]:
    """A field that is a list of tables, at least one."""
    value = found.get(field)
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise ProblemError(f"{where}: {field}: {_lack(value, 'a list of at least one table')}")
    return value


def params(row: Mapping[str, Any], where: str) -> dict[str, ParamValue]:
    """A case's parameters: whole numbers, true or false, words, and lists of whole numbers."""
    return {str(name): _param(value, f"{where}.{name}") for name, value in row.items()}


def _param(value: Any, where: str) -> ParamValue:
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        return tuple(value)
    raise ProblemError(f"{where}: {_lack(value, 'a whole number, true, false, a word or a list of whole numbers')}")


def _lack(value: Any, wanted: str) -> str:
    return f"missing; add {wanted}" if value is None else f"is {_kind(value)}; write {wanted}"


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"
