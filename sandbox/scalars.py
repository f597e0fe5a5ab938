"""Integer arithmetic of Triton IR over many programs at once: each value is a tile's first and last element."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Value = tuple[Ints, Ints] | None
"""First and last element, each an int64 array over the programs; None where the value is not known."""


def both(value: Ints) -> Value:
    """A scalar: its first element is its last."""
    return value, value


def apply(function: Callable[..., NDArray[Any]], values: list[Value]) -> Value:
    """`function` of both elements of known values."""
    first, last = ([value[end] for value in values if value is not None] for end in (0, 1))
    return function(*first).astype(np.int64), function(*last).astype(np.int64)


def constant(text: str, count: int) -> Value:
    """An `arith.constant`, scalar or dense, for `count` programs; None where it is not a whole number."""
    found = re.match(r"(?:dense<)?(true|false|-?\d+)(?=>|\s|$)", text)
    if found is None or len(found[1]) > 18:
        return None
    number = {"true": 1, "false": 0}.get(found[1])
    return both(np.full(count, int(found[1]) if number is None else number, dtype=np.int64))


def _divide(a: Ints, b: Ints) -> Ints:
    """C's division: towards zero; by zero it is zero."""
    quotient = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where(b == 0, 0, quotient * np.sign(a) * np.sign(b))


SAME = frozenset(
    (
        "splat",
        "expand_dims",
        "broadcast",
        "reshape",
        "trans",
        "convert_layout",
        "extsi",
        "extui",
        "trunci",
        "index_cast",
        "index_castui",
        "bitcast",
        "unsplat",
        "int_to_ptr",
        "ptr_to_int",
    )
)
"""Operations that change a value's shape or width and not the value."""
COMPARE: dict[str, Callable[..., NDArray[Any]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": np.less,
    "ule": np.less_equal,
    "ugt": np.greater,
    "uge": np.greater_equal,
}
BINARY: dict[str, Callable[..., NDArray[Any]]] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "addptr": np.add,
    "divsi": _divide,
    "divui": _divide,
    "remsi": lambda a, b: a - b * _divide(a, b),
    "remui": lambda a, b: a - b * _divide(a, b),
    "floordivsi": lambda a, b: a // np.where(b == 0, 1, b),
    "ceildivsi": lambda a, b: -(-a // np.where(b == 0, 1, b)),
    "minsi": np.minimum,
    "minui": np.minimum,
    "maxsi": np.maximum,
    "maxui": np.maximum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": lambda a, b: np.left_shift(a, np.clip(b, 0, 62)),
    "shrsi": lambda a, b: np.right_shift(a, np.clip(b, 0, 62)),
    "shrui": lambda a, b: np.right_shift(a, np.clip(b, 0, 62)),
}
