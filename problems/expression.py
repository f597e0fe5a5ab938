"""Arithmetic over named values: ``2*m*n*k``, ``4*ceildiv(n, 128)``, ``BLOCK_M*BLOCK_K*NUM_STAGES <= lds_bytes``.

A problem's work and a knob space's constraints are data, so they are parsed and walked, never executed. Numbers,
names, ``+ - * / // % **``, comparisons, ``and or not``, ``a if test else b``, and the functions `min`, `max`,
`ceildiv` and `sum`: ``sum(m*n)`` adds up the products of lists m and n, entry by entry. Text, depth and the size of
every intermediate result are bounded.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Value = int | float | str

MAX_LENGTH = 500
MAX_NODES = 200
MAX_MAGNITUDE = 10**30
"""No count of bytes or operations comes near it; a runaway power does."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ExpressionError(ValueError):
    """The text is not one of our expressions, names an unknown value, or leaves the bounds."""


def evaluate(text: str, values: Mapping[str, object]) -> int | float:
    """The number that `text` stands for; `ExpressionError` where it has none. True and False count as 1 and 0."""
    result = _visit(_parse(text), values)
    if isinstance(result, str):
        raise ExpressionError(f"{text!r} is text, not a number")
    return result


def holds(text: str, values: Mapping[str, object]) -> bool:
    """Whether the condition `text` is true of `values`."""
    return bool(evaluate(text, values))


def variables(text: str) -> frozenset[str]:
    """The names that `text` needs a value for."""
    called = {id(node.func) for node in ast.walk(_parse(text)) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(_parse(text)) if isinstance(node, ast.Name) and id(node) not in called)
    return frozenset(node.id for node in names)


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is not an arithmetic expression") from error
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ExpressionError(f"more than {MAX_NODES} parts")
    return tree.body


def _visit(node: ast.expr, values: Mapping[str, object]) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as constant):
            return constant
        case ast.Name(id=name):
            return _named(name, values)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _visit(operand, values)
        case ast.BinOp():
            return _binary(node, values)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_visit(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_visit(part, values) for part in parts)
        case ast.Compare():
            return _compare(node, values)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _visit(body if _visit(test, values) else orelse, values)
        case ast.Call(func=ast.Name(id="sum"), args=[argument], keywords=[]):
            return _sum(argument, values)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if arguments:
            return _call(name, [_number(argument, values) for argument in arguments])
        case _:
            raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in an expression")


def _named(name: str, values: Mapping[str, object]) -> Value:
    if name not in values:
        raise ExpressionError(f"unknown name {name!r}; there are {', '.join(sorted(values)) or 'none'}")
    value = values[name]
    if not isinstance(value, int | float | str):
        raise ExpressionError(f"{name!r} is a {type(value).__name__}, not a number")
    return value


def _number(node: ast.expr, values: Mapping[str, object]) -> int | float:
    value = _visit(node, values)
    if isinstance(value, str):
        raise ExpressionError(f"{ast.unparse(node)!r} is text, not a number")
    return value


def _binary(node: ast.BinOp, values: Mapping[str, object]) -> int | float:
    left, right = _number(node.left, values), _number(node.right, values)
    try:
        if isinstance(node.op, ast.Pow):
            return _bounded(_power(left, right))
        return _bounded(_BINARY[type(node.op)](left, right))
    except KeyError as error:
        raise ExpressionError(f"{ast.unparse(node)!r} uses an operator that is not allowed") from error
    except (ZeroDivisionError, OverflowError) as error:
        raise ExpressionError(f"{ast.unparse(node)!r}: {error}") from error


def _power(base: int | float, exponent: int | float) -> int | float:
    # Looked at before it is computed: 9**9**9 must not be tried at all.
    if abs(exponent) > 64 or (base < 0 and exponent != int(exponent)):
        raise ExpressionError(f"exponent {exponent} is out of bounds")
    result: int | float = base**exponent
    return result


def _compare(node: ast.Compare, values: Mapping[str, object]) -> bool:
    left = _visit(node.left, values)
    for comparison, operand in zip(node.ops, node.comparators, strict=True):
        right = _visit(operand, values)
        if type(comparison) not in _COMPARE:
            raise ExpressionError(f"{ast.unparse(node)!r} uses a comparison that is not allowed")
        if isinstance(left, str) != isinstance(right, str) and not isinstance(comparison, ast.Eq | ast.NotEq):
            raise ExpressionError(f"{ast.unparse(node)!r} orders text and a number")
        if not _COMPARE[type(comparison)](left, right):
            return False
        left = right
    return True


def _sum(node: ast.expr, values: Mapping[str, object]) -> int | float:
    """`node` for each entry of the lists that it names, added up."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    lists = {name: value for name in names if isinstance(value := values.get(name), tuple)}
    lengths = {len(value) for value in lists.values()}
    if len(lengths) != 1:
        raise ExpressionError(f"sum({ast.unparse(node)}) needs lists of one length")
    entries = ({**values, **dict(zip(lists, each, strict=True))} for each in zip(*lists.values(), strict=True))
    return _bounded(sum(_number(node, entry) for entry in entries))


def _call(name: str, arguments: list[int | float]) -> int | float:
    match name, arguments:
        case "min", _:
            return min(arguments)
        case "max", _:
            return max(arguments)
        case "ceildiv", [numerator, denominator] if denominator:
            return -(-numerator // denominator)
        case _:
            raise ExpressionError(
                f"{name} of {len(arguments)} values is not defined; there are min, max, ceildiv(a, b), sum(lists)"
            )


def _bounded(value: int | float) -> int | float:
    if not abs(value) <= MAX_MAGNITUDE:
        raise ExpressionError(f"a result is larger than {MAX_MAGNITUDE:.0e}")
    return value
