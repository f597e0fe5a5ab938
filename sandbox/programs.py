"""Runs the scalar part of a Triton kernel for many program ids at once, and counts the work each program does.

A tile is followed by two of its elements, the first and the last: enough to know where it lies and whether its lanes
all read one address. Values are int64 arrays over the programs; what cannot be known (loaded data) is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sandbox.scalars import BINARY, COMPARE, SAME, Ints, Value, apply, both, constant
from sandbox.ttir import Function, Op, TtirError, element_bytes, parse, tile, tile_bytes

Floats = NDArray[np.float64]
SAMPLES = 8
"""Iterations looked at of a loop that holds loops or conditions; more are taken to lie between these."""
MAX_WORK = 500_000_000
"""Operations times programs: about a second."""


_PASSES = {"tf32x3": 3, "bf16x3": 3, "bf16x6": 6}
"""Products of narrower parts that stand for one product of fp32 operands."""


class Unresolved(TtirError):
    """The work depends on data, or on control flow this reader does not follow."""


@dataclass(slots=True)
class Dot:
    """One `tt.dot`: operations each time, result tile, operand type, and how often each program runs it."""

    flops: float
    rows: int
    columns: int
    dtype: str
    times: Floats


@dataclass(slots=True)
class Access:
    """One load or store of a tile."""

    kind: Literal["load", "store", "atomic"]
    tile_bytes: int
    """Bytes its lanes ask for."""
    distinct_bytes: int
    """Bytes they touch: one element where all lanes read the same address."""
    corner: Ints | None
    """Where its first element lies at its first run, in elements from its pointer; None where not known."""
    times: Floats


@dataclass(slots=True)
class Trace:
    """What the programs asked about do. Arrays are over those programs."""

    dots: list[Dot]
    accesses: list[Access]
    iterations: list[Floats]
    """For each loop that holds work, outermost first: how often its body runs."""


@dataclass(slots=True)
class _State:
    grid: tuple[int, int, int]
    ids: tuple[Ints, Ints, Ints]
    values: dict[str, Value] = field(default_factory=dict)
    dots: dict[int, Dot] = field(default_factory=dict)
    accesses: dict[int, Access] = field(default_factory=dict)
    loops: dict[int, Floats] = field(default_factory=dict)
    steps: int = 0


def trace(ttir: str, args: dict[str, int | float], grid: tuple[int, int, int], programs: Ints) -> Trace:
    """The work of `programs` (linear ids, x fastest) in a launch; `TtirError` where it cannot be known."""
    function = parse(ttir)
    x, y = grid[0], grid[1]
    state = _State(grid, (programs % x, programs // x % y, programs // (x * y)))
    state.values.update(_arguments(function, args, programs))
    with np.errstate(all="ignore"):
        _run(function.body, np.ones(len(programs)), state)
    return Trace(list(state.dots.values()), list(state.accesses.values()), list(state.loops.values()))


def _arguments(function: Function, args: dict[str, int | float], programs: Ints) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, kind in function.arguments:
        number = 0 if kind.startswith(("!tt.ptr", "!tt.tensordesc")) else args.get(name)
        known = isinstance(number, int) and abs(number) < 1 << 62
        values[f"%{name}"] = both(np.full(len(programs), number, dtype=np.int64)) if known else None
    return values


def _run(ops: tuple[Op, ...] | list[Op], weight: Floats, state: _State) -> list[Value]:
    """Run operations in order, each counted `weight` times; returns what the last one yields."""
    yielded: list[Value] = []
    for op in ops:
        state.steps += 1
        if state.steps * len(weight) > MAX_WORK:
            raise Unresolved("too many steps to count its work")
        match op.name:
            case "scf.for":
                _for(op, weight, state)
            case "scf.if":
                _if(op, weight, state)
            case "scf.yield":
                yielded = [state.values.get(name) for name in op.operands]
            case "tt.dot" | "tt.dot_scaled":
                _dot(op, weight, state)
            case "tt.call" | "scf.while" | "cf.br" if op.works() or op.name == "cf.br":
                raise Unresolved(f"{op.name} is not followed")
            case name if name.startswith("tt.descriptor_"):
                # Triton turns descriptors into pointers for gfx942 and gfx950 before this form of the code.
                raise Unresolved(f"{op.name} is not followed")
            case name if name.startswith(("tt.load", "tt.store", "tt.atomic")):
                _access(op, weight, state)
            case _:
                value = _evaluate(op, state)
                state.values.update(dict.fromkeys(op.results, value))
    return yielded


def _for(op: Op, weight: Floats, state: _State) -> None:
    header = re.match(r"(?:unsigned )?(%[\w$.]+) = (\S+) to (\S+) step (\S+)(?: iter_args\((.*?)\))?", op.text)
    if header is None:
        raise Unresolved("scf.for is not in the printed form")
    bounds = [state.values.get(header[i]) for i in (2, 3, 4)]
    pairs = re.findall(r"(%[\w$.]+) = (%[\w$.#]+)", header[5] or "")
    if any(bound is None for bound in bounds):
        if op.works():
            raise Unresolved("a loop's bounds depend on data")
        state.values.update(dict.fromkeys(op.results, None))
        return
    low, high, step = (bound[0] for bound in bounds if bound is not None)
    trips = np.maximum(0, -((low - high) // np.maximum(step, 1)))
    state.loops.setdefault(id(op), np.zeros(len(trips)))
    state.loops[id(op)] += weight * trips
    initial = [state.values.get(source) for _, source in pairs]

    def body(index: Ints, count: Floats, deltas: list[Value]) -> list[Value]:
        state.values[header[1]] = both(low + index * step)
        for (name, _), start, delta in zip(pairs, initial, deltas, strict=True):
            state.values[name] = _advance(start, delta, index)
        return _run(op.regions[0], count, state)

    zero = np.zeros(len(trips), dtype=np.int64)
    still: list[Value] = [(zero, zero)] * len(pairs)
    branches = op.branches()
    yielded = body(zero, np.zeros(len(trips)) if branches else weight * trips, still)
    yielded += [None] * (len(pairs) - len(yielded))
    deltas = [_difference(after, before) for after, before in zip(yielded, initial, strict=False)]
    for index, share in _samples(trips) if branches else []:
        body(index, weight * share, deltas)
    state.values.update(
        zip(op.results, (_advance(s, d, trips) for s, d in zip(initial, deltas, strict=True)), strict=False)
    )


def _samples(trips: Ints) -> list[tuple[Ints, Floats]]:
    """Which iterations to look at, and how many each stands for."""
    most = int(trips.max(initial=0))
    if most <= SAMPLES:
        return [(np.full_like(trips, i), (trips > i).astype(np.float64)) for i in range(most)]
    return [(((2 * i + 1) * trips) // (2 * SAMPLES), trips / SAMPLES) for i in range(SAMPLES)]


def _advance(start: Value, delta: Value, index: Ints) -> Value:
    if start is None or delta is None:
        return None
    return start[0] + delta[0] * index, start[1] + delta[1] * index


def _difference(after: Value, before: Value) -> Value:
    return None if after is None or before is None else (after[0] - before[0], after[1] - before[1])


def _if(op: Op, weight: Floats, state: _State) -> None:
    condition = state.values.get(op.operands[0]) if op.operands else None
    if condition is None:
        if op.works():
            raise Unresolved("a condition depends on data")
        state.values.update(dict.fromkeys(op.results, None))
        return
    taken = condition[0] != 0
    results = [_run(op.regions[0], weight * taken, state)]
    results.append(_run(op.regions[1], weight * ~taken, state) if len(op.regions) > 1 else [])
    for i, name in enumerate(op.results):
        one, other = (branch[i] if i < len(branch) else None for branch in results)
        known = one is not None and other is not None
        state.values[name] = (
            (np.where(taken, one[0], other[0]), np.where(taken, one[1], other[1]))
            if known and one is not None and other is not None
            else None
        )


def _dot(op: Op, weight: Floats, state: _State) -> None:
    kinds = re.findall(r"tensor<[^>]*>", op.text)
    if len(kinds) < 3:
        raise Unresolved("tt.dot without its types")
    (left, dtype), (result, _) = tile(kinds[0]), tile(kinds[-1])
    if len(left) < 2 or len(result) < 2:
        raise Unresolved("tt.dot of something other than tiles")
    depth = left[-1] * (2 if "lhs = e2m1" in op.text else 1)
    flops = 2.0 * depth * next((times for name, times in _PASSES.items() if f"inputPrecision = {name}" in op.text), 1)
    for size in result:
        flops *= size
    site = state.dots.setdefault(id(op), Dot(flops, result[-2], result[-1], dtype, np.zeros(len(weight))))
    site.times += weight
    state.values.update(dict.fromkeys(op.results, None))


def _access(op: Op, weight: Floats, state: _State) -> None:
    kind: Literal["load", "store", "atomic"] = "atomic" if op.name.startswith("tt.atomic") else "load"
    if op.name.startswith("tt.store"):
        kind = "store"
    kind_of_tile = op.text.rsplit(" : ", 1)[-1]
    size, element = tile_bytes(kind_of_tile), element_bytes(tile(kind_of_tile)[1])
    where = state.values.get(op.operands[0]) if op.operands else None
    one_address = where is not None and bool(np.all(where[0] == where[1]))
    corner = None if where is None else where[0]
    made = Access(kind, size, element if one_address else size, corner, np.zeros(len(weight)))
    site = state.accesses.setdefault(id(op), made)
    site.times += weight
    state.values.update(dict.fromkeys(op.results, None))


def _evaluate(op: Op, state: _State) -> Value:
    name, dialect = op.name.rpartition(".")[2], op.name.partition(".")[0]
    count = len(state.ids[0])
    if op.name == "arith.constant":
        return constant(op.text, count)
    if name in ("get_program_id", "get_num_programs"):
        axis = "xyz".index(op.text[0]) if op.text[:1] in ("x", "y", "z") else 0
        return both(state.ids[axis] if name == "get_program_id" else np.full(count, state.grid[axis]))
    if name == "make_range":
        ends = dict(re.findall(r"(start|end) = (\d+)", op.text))
        return np.full(count, int(ends.get("start", 0))), np.full(count, int(ends.get("end", 1)) - 1)
    values = [state.values.get(operand) for operand in op.operands]
    if dialect not in ("tt", "arith", "math") or not values or any(value is None for value in values):
        return None
    if name in SAME:
        return values[0]
    if name == "select" and len(values) == 3:
        return apply(_select, values)
    if name == "cmpi":
        return apply(COMPARE.get(op.text.partition(",")[0].strip(), lambda a, b: a == b), values)
    return apply(BINARY[name], values) if name in BINARY and len(values) == 2 else None


def _select(condition: Ints, one: Ints, other: Ints) -> Ints:
    return np.where(condition != 0, one, other)
