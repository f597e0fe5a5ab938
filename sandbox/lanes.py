"""Follows the integer arithmetic of one wave's 64 lanes, to see which addresses each of its accesses touches.

The instructions are run once in the order of the text, as the first wave of a workgroup would; loops once. A scalar
that is not known (a kernel's argument, a loaded value) stands as a multiple of 4096: sizes and strides of matrices
are multiples of a power of two, and what matters is how lanes lie to one another, not where. A lane's value that
depends on data is not known, and neither is an address made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sandbox.instructions import Instruction
from sandbox.pipes import LANES

Lanes = NDArray[np.int64]
MAX_FOLLOWED = 30_000
"""Instructions; a longer kernel's accesses are not followed, for the reader's time."""
UNKNOWN_STEP = 4096
_MASK = (1 << 32) - 1
_REGISTER = re.compile(r"([vs])(?:(\d+)|\[(\d+):(\d+)\])$")
_OFFSET = re.compile(r"\boffset(0|1)?:(\d+)")
_SUFFIX = re.compile(r"_e(?:32|64)$")
_STORES = re.compile(r"(?:global|buffer|flat|scratch|ds)_(?:store|write)")
_IDS: Lanes = np.arange(LANES, dtype=np.int64)
_SINGLE: dict[str, Callable[..., Lanes]] = {
    "mov_b32": lambda a: a,
    "not_b32": lambda a: ~a,
    "add_u32": lambda a, b: a + b,
    "sub_u32": lambda a, b: a - b,
    "subrev_u32": lambda a, b: b - a,
    "mul_lo_u32": lambda a, b: a * b,
    "mul_u32_u24": lambda a, b: a * b,
    "mul_i32_i24": lambda a, b: a * b,
    "mad_u32_u24": lambda a, b, c: a * b + c,
    "mad_i32_i24": lambda a, b, c: a * b + c,
    "mad_u64_u32": lambda a, b, c: a * b + c,
    "lshlrev_b32": lambda n, a: a << (n & 31),
    "lshlrev_b64": lambda n, a: a << (n & 31),
    "lshlrev_b16": lambda n, a: (a << (n & 15)) & 0xFFFF,
    "lshrrev_b32": lambda n, a: a >> (n & 31),
    "lshrrev_b16": lambda n, a: (a & 0xFFFF) >> (n & 15),
    "ashrrev_i32": lambda n, a: a >> (n & 31),
    "lshl_add_u32": lambda a, n, b: (a << (n & 31)) + b,
    "lshl_add_u64": lambda a, n, b: (a << (n & 31)) + b,
    "add_lshl_u32": lambda a, b, n: (a + b) << (n & 31),
    "lshl_or_b32": lambda a, n, b: (a << (n & 31)) | b,
    "and_or_b32": lambda a, b, c: (a & b) | c,
    "or3_b32": lambda a, b, c: a | b | c,
    "add3_u32": lambda a, b, c: a + b + c,
    "xad_u32": lambda a, b, c: (a ^ b) + c,
    "and_b32": lambda a, b: a & b,
    "or_b32": lambda a, b: a | b,
    "xor_b32": lambda a, b: a ^ b,
    "bfe_u32": lambda a, at, width: (a >> (at & 31)) & ((1 << (width & 31)) - 1),
    "bfi_b32": lambda mask, a, b: (mask & a) | (~mask & b),
    "min_u32": lambda a, b: np.minimum(a, b),
    "max_u32": lambda a, b: np.maximum(a, b),
    "min_i32": lambda a, b: np.minimum(a, b),
    "max_i32": lambda a, b: np.maximum(a, b),
    "mbcnt_lo_u32_b32": lambda _, b: np.minimum(_IDS, 32) + b,
    "mbcnt_hi_u32_b32": lambda _, b: np.maximum(_IDS - 32, 0) + b,
}
"""Vector operations, by their names without ``v_`` and encoding; sources in the order of the text."""
_SCALAR: dict[str, Callable[..., int]] = {
    "s_mov_b32": lambda a: a,
    "s_mov_b64": lambda a: a,
    "s_movk_i32": lambda a: a,
    "s_and_b32": lambda a, b: a & b,
    "s_or_b32": lambda a, b: a | b,
    "s_lshl_b32": lambda a, n: a << (n & 31),
    "s_lshr_b32": lambda a, n: a >> (n & 31),
    "s_ashr_i32": lambda a, n: a >> (n & 31),
    "s_add_i32": lambda a, b: a + b,
    "s_add_u32": lambda a, b: a + b,
    "s_sub_i32": lambda a, b: a - b,
    "s_mul_i32": lambda a, b: a * b,
    "s_lshl1_add_u32": lambda a, b: (a << 1) + b,
    "s_lshl2_add_u32": lambda a, b: (a << 2) + b,
    "s_lshl3_add_u32": lambda a, b: (a << 3) + b,
    "s_lshl4_add_u32": lambda a, b: (a << 4) + b,
}
_WITH_CARRY = {"add_co_u32": "add_u32", "sub_co_u32": "sub_u32", "subrev_co_u32": "subrev_u32"}


@dataclass(slots=True)
class _Wave:
    """Registers of one wave; a vector register that is missing is not known."""

    vector: dict[int, Lanes] = field(default_factory=dict)
    scalar: dict[int, int] = field(default_factory=dict)
    unknown: int = 0

    def fresh(self) -> int:
        """A stand-in for a scalar that is not known, unlike any before."""
        self.unknown += 1
        return UNKNOWN_STEP * self.unknown


def thread_ids(block: tuple[int, int, int]) -> Lanes:
    """What register v0 holds when the first wave starts: x, and y and z in bits 10 and 20 where a block has them."""
    x, y = max(1, block[0]), max(1, block[1])
    if y == 1 and block[2] <= 1:
        return _IDS % max(x, LANES)
    return (_IDS % x) | (_IDS // x % y) << 10 | (_IDS // (x * y)) << 20


def addresses(instructions: Sequence[Instruction], block: tuple[int, int, int]) -> dict[int, list[Lanes]]:
    """For each memory access whose addresses are known: by index, one array of byte addresses for each of its parts."""
    found: dict[int, list[Lanes]] = {}
    if len(instructions) > MAX_FOLLOWED:
        return found
    wave = _Wave(vector={0: thread_ids(block)})
    for index, instruction in enumerate(instructions):
        operands = [part.strip() for part in instruction.operands.split(",")]
        accesses = instruction.mnemonic.startswith(("ds_", "global_", "buffer_"))
        if accesses and (parts := _accessed(instruction.mnemonic, operands, wave)) is not None:
            found[index] = parts
        _step(instruction.mnemonic, operands, wave)
    return found


def _accessed(name: str, operands: list[str], wave: _Wave) -> list[Lanes] | None:
    """Addresses of one access, or None; a ``ds_read2`` has two parts."""
    writes = _STORES.match(name) is not None
    if name.startswith("buffer_") and "offen" not in operands[-1]:
        return None
    # A buffer access names its data first, whichever way it goes; others name a store's address first.
    place = 1 if name.startswith("buffer_") or not writes else 0
    if name.startswith(("ds_bpermute", "ds_permute", "ds_swizzle")) or len(operands) <= place:
        return None
    base = _vector(operands[place].split()[0] if operands[place] else "", wave)
    if base is None:
        return None
    offsets = [(which, int(number)) for which, number in _OFFSET.findall(operands[-1])]
    if name.startswith(("ds_read2", "ds_write2")):
        width = int(name.rsplit("_b", 1)[-1]) // 8 * (64 if "st64" in name else 1)
        steps = {which: number * width for which, number in offsets}
        return [base + steps.get("0", 0), base + steps.get("1", 0)]
    return [base + (offsets[0][1] if offsets else 0)]


def _step(mnemonic: str, operands: list[str], wave: _Wave) -> None:
    name = _SUFFIX.sub("", mnemonic)
    if name.startswith("s_"):
        _scalar_step(name, operands, wave)
    elif name == "v_readfirstlane_b32":
        source = _vector(operands[-1], wave)
        _set_scalar(operands[0], int(source[0]) if source is not None else wave.fresh(), wave)
    elif not _STORES.match(name):
        _set_vector(operands[0], _computed(name.removeprefix("v_"), operands, wave), wave)


def _computed(name: str, operands: list[str], wave: _Wave) -> Lanes | None:
    sources = operands[1:]
    if name in _WITH_CARRY or name == "mad_u64_u32" or name.startswith("addc_co"):
        name, sources = _WITH_CARRY.get(name, "mad_u64_u32" if name == "mad_u64_u32" else "add_u32"), operands[2:]
        sources = sources[:2] if name != "mad_u64_u32" else sources
    if name == "cndmask_b32" and len(sources) >= 2:
        # Out of bounds a lane gets another address; what counts is the one it has inside.
        return _source(sources[1], wave)
    function = _SINGLE.get(name)
    values = [_source(source, wave) for source in sources]
    if function is None or any(value is None for value in values):
        return None
    try:
        return np.broadcast_to(np.asarray(function(*values), dtype=np.int64) & _MASK, (LANES,))
    except (TypeError, OverflowError):
        return None


def _scalar_step(name: str, operands: list[str], wave: _Wave) -> None:
    function = _SCALAR.get(name)
    values = [_scalar(source, wave) for source in operands[1:]]
    known = function is not None and all(value is not None for value in values)
    try:
        result = function(*values) & _MASK if known and function is not None else wave.fresh()
    except TypeError:
        result = wave.fresh()
    _set_scalar(operands[0], result, wave)


def _source(text: str, wave: _Wave) -> Lanes | None:
    number = _scalar(text, wave)
    return _vector(text, wave) if number is None else np.full(LANES, number, dtype=np.int64)


def _vector(text: str, wave: _Wave) -> Lanes | None:
    register = _REGISTER.match(text)
    if register is None or register[1] != "v":
        return None
    return wave.vector.get(int(register[2] or register[3]))


def _scalar(text: str, wave: _Wave) -> int | None:
    """The value of a scalar register or a whole number; None for anything else."""
    register = _REGISTER.match(text)
    if register is not None:
        if register[1] == "v":
            return None
        return wave.scalar.setdefault(int(register[2] or register[3]), wave.fresh())
    if re.fullmatch(r"-?(?:0x[0-9a-f]{1,8}|\d{1,10})", text):
        return int(text, 0)
    return None


def _set_vector(text: str, value: Lanes | None, wave: _Wave) -> None:
    register = _REGISTER.match(text)
    if register is None or register[1] != "v":
        return
    first = int(register[2] or register[3])
    for number in range(first, min(first + 64, int(register[4] or first) + 1)):
        wave.vector.pop(number, None)
    if value is not None:
        wave.vector[first] = value
        if register[4]:
            wave.vector[first + 1] = np.zeros(LANES, dtype=np.int64)


def _set_scalar(text: str, value: int, wave: _Wave) -> None:
    register = _REGISTER.match(text)
    if register is None or register[1] != "s":
        return
    first, last = int(register[2] or register[3]), int(register[4] or register[2] or register[3])
    for number in range(first, min(first + 64, last + 1)):
        wave.scalar[number] = value if number == first else wave.fresh()
