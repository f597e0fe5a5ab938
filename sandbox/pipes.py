"""What one AMDGCN instruction costs: which pipe it takes, for how many cycles, how many bytes it moves.

Cycles are those the pipe is busy for one wave of 64 lanes. Sources: AMD matrix instruction calculator (gfx942), AMD
CDNA 3 and CDNA 4 instruction set guides and white papers (gfx950 rates, LDS and L1 widths); `sandbox.banks` for LDS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

Pipe = Literal["mfma", "valu", "salu", "vmem", "lds", "wait", "barrier"]

LANES = 64
_VMEM = ("buffer_", "global_", "flat_", "scratch_", "tbuffer_")
_WAITS = ("s_waitcnt", "s_wait_")
_BARRIERS = ("s_barrier",)
_MFMA = re.compile(r"v_s?mfma[c]?_(?:scale_)?[fi](?:32|64|16)_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?([a-z0-9_]+)")
# Operations per clock of one SIMD, by operand type.
_MFMA_RATES: dict[str, dict[str, int]] = {
    "gfx942": {"f64": 64, "f32": 64, "xf32": 256, "f16": 512, "bf16": 512, "i8": 1024, "fp8": 1024},
    "gfx950": {"f64": 32, "f32": 64, "xf32": 256, "f16": 512, "bf16": 512, "i8": 1024, "fp8": 1024, "f8f6f4": 2048},
}
# CDNA 4 doubles the rate only of its new shapes, known by rows times depth; the CDNA 3 ones keep their cycles.
_GFX950_WIDE = {"f16": 512, "bf16": 512, "i8": 1024}
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_QUARTER_RATE = re.compile(r"v_(mul_lo_u32|mul_hi_[iu]32|mad_[iu]64_[iu]32)")
_ARITHMETIC = re.compile(r"v_(pk_)?(mul|add|sub|fma|fmac|mad|mac|dot(\d+)c?)_(?:f(?:16|32|64)|i32_i8|u32_u8|mix)")
_VMEM_WIDTH = re.compile(r"_(?:s?byte|ubyte|s?short|ushort|dword|b8|b16|b32|b64|b96|b128)(?:x([234]))?")
_WIDE_READ = re.compile(r"ds_(?:read|load)(?:2|2st64)?_b(?:64|128)")
_LDS_WIDTH = re.compile(r"_(?:[buif])(8|16|32|64|96|128)")


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums over instructions of one wave. Cycles are of the pipe named; bytes are of the wave's 64 lanes."""

    instructions: float = 0.0
    mfma: float = 0.0
    valu: float = 0.0
    salu: float = 0.0
    vmem: float = 0.0
    lds: float = 0.0
    waits: float = 0.0
    barriers: float = 0.0
    loads: float = 0.0
    mfma_flops: float = 0.0
    valu_flops: float = 0.0
    mfma_cycles: float = 0.0
    valu_cycles: float = 0.0
    vmem_cycles: float = 0.0
    lds_cycles: float = 0.0
    load_bytes: float = 0.0
    store_bytes: float = 0.0
    scratch_bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Field by field."""
        return Cost(*(getattr(self, name) + getattr(other, name) for name in _FIELDS))

    def times(self, count: float) -> Cost:
        """Every field multiplied: the same instructions, `count` times."""
        return Cost(*(getattr(self, name) * count for name in _FIELDS))


_FIELDS = tuple(field.name for field in fields(Cost))


def pipe(mnemonic: str) -> Pipe:
    """The pipe that takes an instruction."""
    if mnemonic.startswith(("v_mfma", "v_smfma")):
        return "mfma"
    if mnemonic.startswith("v_"):
        return "valu"
    if mnemonic.startswith("ds_"):
        return "lds"
    if mnemonic.startswith(_VMEM):
        return "vmem"
    if mnemonic.startswith(_WAITS):
        return "wait"
    return "barrier" if mnemonic.startswith(_BARRIERS) else "salu"


@lru_cache(maxsize=4096)
def cost(mnemonic: str, modifiers: str, target: str) -> Cost:
    """Cost of one instruction; `modifiers` are the operands that change it, see `modifiers_of`."""
    match pipe(mnemonic):
        case "mfma":
            flops, cycles = mfma(mnemonic, modifiers, target)
            return Cost(instructions=1, mfma=1, mfma_flops=flops, mfma_cycles=cycles)
        case "valu":
            return Cost(
                instructions=1,
                valu=1,
                valu_cycles=_valu_cycles(mnemonic),
                valu_flops=LANES * arithmetic_flops(mnemonic),
            )
        case "vmem":
            return _vmem(mnemonic)
        case "lds":
            cycles = LANES * lds_bytes(mnemonic) / lds_bytes_a_pass(mnemonic, target)
            return Cost(instructions=1, lds=1, lds_cycles=max(2.0, cycles))
        case "wait":
            return Cost(instructions=1, waits=1)
        case "barrier":
            return Cost(instructions=1, barriers=1)
        case "salu":
            return Cost(instructions=1, salu=1)


def modifiers_of(mnemonic: str, operands: str) -> str:
    """The part of the operands that changes an instruction's cost: the formats of an f8f6f4 MFMA."""
    return " ".join(re.findall(r"(?:cbsz|blgp):\d", operands)) if "f8f6f4" in mnemonic else ""


def mfma(mnemonic: str, modifiers: str, target: str) -> tuple[float, float]:
    """Operations and cycles of one MFMA; (0, 0) for one whose name is not understood."""
    found = _MFMA.match(mnemonic)
    if found is None:
        return 0.0, 0.0
    m, n, k, blocks = (int(group) if group else 1 for group in found.groups()[:4])
    kind = found[5].removesuffix("_1k").split("_")[0].replace("bf8", "fp8")
    flops = 2 * m * n * k * blocks
    rate = _MFMA_RATES[target].get(kind, 512)
    if blocks > 1 and kind in ("f16", "bf16", "i8"):
        rate = 256
    if target == "gfx950" and m * k >= _GFX950_WIDE.get(kind, m * k + 1):
        rate *= 2
    if kind == "f8f6f4" and modifiers == "cbsz:4 blgp:4":
        rate *= 2
    sparse = 2 if mnemonic.startswith("v_smfma") else 1
    return float(flops), flops / (rate * sparse)


def vmem_bytes(mnemonic: str) -> int:
    """Bytes per lane of a global, buffer or scratch access, by its name."""
    found = _VMEM_WIDTH.search(mnemonic)
    if found is None:
        return 4
    word = found[0].lstrip("_")
    if "byte" in word or word == "b8":
        return 1
    if "short" in word or word == "b16":
        return 2
    return int(word[1:]) // 8 if word[0] == "b" else 4 * int(found[1] or 1)


def lds_bytes(mnemonic: str) -> int:
    """Bytes per lane of an LDS access; narrower than a bank counts as one bank."""
    found = _LDS_WIDTH.search(mnemonic)
    width = max(4, int(found[1]) // 8) if found else 4
    return 2 * width if re.match(r"ds_(read|write|load|store)_?2", mnemonic) else width


def _valu_cycles(mnemonic: str) -> float:
    # 16 lanes a clock; the transcendental unit and 32-bit integer multiplies take a quarter of that.
    return 16.0 if _TRANSCENDENTAL.match(mnemonic) or _QUARTER_RATE.match(mnemonic) else 4.0


def lds_bytes_a_pass(mnemonic: str, target: str) -> int:
    """Bytes that LDS moves in a clock: 128, and twice that where gfx950 reads 8 or 16 bytes a lane."""
    doubled = target == "gfx950" and _WIDE_READ.match(mnemonic)
    return 256 if doubled else 128


def arithmetic_flops(mnemonic: str) -> float:
    """Operations a lane of floating-point arithmetic and of dot products; 0 for anything else: it is not the work."""
    found = _ARITHMETIC.match(mnemonic)
    if found is None:
        return 0.0
    each = 2.0 * int(found[3]) if found[3] else 1.0 if found[2] in ("mul", "add", "sub") else 2.0
    return each * (2.0 if found[1] else 1.0)


def _vmem(mnemonic: str) -> Cost:
    # The vector L1 looks up 16 lanes a clock and returns 64 bytes a clock: narrow accesses waste the first.
    total = LANES * vmem_bytes(mnemonic)
    scratch = total if mnemonic.startswith("scratch_") else 0
    moved = 0 if scratch else total
    loads = "load" in mnemonic
    return Cost(
        instructions=1,
        vmem=1,
        vmem_cycles=max(4.0, total / 64),
        loads=1.0 if loads else 0.0,
        load_bytes=float(moved if loads else 0),
        store_bytes=float(0 if loads else moved),
        scratch_bytes=float(scratch),
    )


def mfma_tile(mnemonic: str) -> tuple[int, int]:
    """Rows and columns of an MFMA's result; (0, 0) for any other instruction."""
    found = _MFMA.match(mnemonic)
    return (int(found[1]), int(found[2])) if found else (0, 0)
