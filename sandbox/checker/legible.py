"""What leaves the checker as JSON. Texts in it come from guests by many ways, and JSON can spell what UTF-8 cannot."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticSerializationError

from problems.spec import Frozen
from sandbox.checker.answer import legible


def as_json(value: Frozen) -> bytes:
    """`value` as JSON, with halves of surrogate pairs in its texts replaced."""
    try:
        return value.model_dump_json().encode()
    except PydanticSerializationError:
        return type(value).model_validate(_legible(value.model_dump())).model_dump_json().encode()


def _legible(part: Any) -> Any:
    match part:
        case str():
            return legible(part)
        case dict():
            return {_legible(key): _legible(value) for key, value in part.items()}
        case list() | tuple():
            return [_legible(value) for value in part]
        case _:
            return part
