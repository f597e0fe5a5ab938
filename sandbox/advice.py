"""The lint of a kernel engineer: places in the compiled code worth a look, each with what to do. Advice only.

Evidence is a guest's text and may say anything, so nothing here convicts. Figures of the chips: `problems.chips`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from problems.chips import Chip
from sandbox.evidence import RecordedKernel
from sandbox.inspection import Advice, Rule
from sandbox.instructions import Instruction
from sandbox.isa import Loop, Registers, Stream, chip_for, instructions_of, lds_of, section
from sandbox.occupancy import Occupancy
from sandbox.pipes import LANES, Cost, arithmetic_flops, mfma_tile, pipe, vmem_bytes

MAX_ADVICE = 24
FEWEST_FMAS = 8
"""Multiply-adds of a loop that is taken for a matrix product, however few its loads."""
NEAR_STEP = 16
"""Registers over an occupancy step that are worth saving."""
SHORT_COVER_CYCLES = 500
"""A load from L2 takes about so long: less work than that between load and wait leaves a wave standing."""
BAD_CONFLICT = 4.0
"""Twice may come of how lanes are grouped, which is not published."""
_GLOBAL = tuple(f"{kind}_{way}" for kind in ("global", "buffer", "flat") for way in ("load", "store"))
_FUNCTION = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_f")
_ODD = re.compile(r"[^A-Za-z0-9_\[\]:, .()|&+*-]")
_SMALL_LDS = 64 << 10
_WIDE_MFMA = re.compile(r"v_mfma_(?:scale_)?f32_\d+x\d+x\d+_?(?:\d+b_)?(?:bf16|f16|xf32|f32)")
_FP8_MFMA = re.compile(r"v_mfma_(?:scale_)?f32_\S*(?:fp8|bf8|f8f6f4)")
_FP8_CONVERSION = re.compile(r"v_cvt_(?:scalef32_)?(?:pk_)?(?:f32|f16|bf16)_(?:fp8|bf8)")
_FOREIGN_FP8 = {"gfx942": ("fp8e4nv", "14__hip_fp8_e4m3"), "gfx950": ("fp8e4b8", "19__hip_fp8_e4m3_fnuz")}
"""How Triton's signatures and C++'s mangled names spell the e4m3 that the target's matrix units do not take."""


@dataclass(frozen=True, slots=True)
class _Sight:
    """All that the rules look at."""

    kernel: RecordedKernel
    chip: Chip
    registers: Registers
    held: Occupancy
    code: Stream
    instructions: tuple[Instruction, ...]
    first_line: int
    lds_bytes: int
    loop_of: dict[int, Loop]
    """For each instruction in a loop, the innermost one."""

    def say(self, rule: Rule, index: int | None, message: str, remedy: str) -> Advice:
        """Advice about instruction `index`, or about the kernel where it is None."""
        if index is None:
            return Advice(rule=rule, line=0, instruction="", message=message, remedy=remedy)
        found = self.instructions[index]
        # A guest's text: what no assembler would print does not get to a reader.
        text = _ODD.sub("", f"{found.mnemonic} {found.operands}".strip())[:160]
        line = found.line + self.first_line - 1
        return Advice(rule=rule, line=line, instruction=text, message=message, remedy=remedy)

    def first(self, wanted: Callable[[str], object]) -> int | None:
        """The first instruction whose mnemonic is wanted, one in a loop before any other."""
        found = [i for i, item in enumerate(self.instructions) if wanted(item.mnemonic)]
        return min(found, key=lambda i: (i not in self.loop_of, i), default=None)


def advise(kernel: RecordedKernel, registers: Registers, held: Occupancy, code: Stream) -> tuple[Advice, ...]:
    """Advice on one kernel, what costs most first, at most `MAX_ADVICE`."""
    loop_of: dict[int, Loop] = {}
    for loop in code.loops:
        # Outer loops come before inner ones.
        loop_of.update(dict.fromkeys(range(loop.first, loop.last + 1), loop))
    sight = _Sight(
        kernel=kernel,
        chip=chip_for(kernel.target),
        registers=registers,
        held=held,
        code=code,
        instructions=instructions_of(kernel),
        first_line=section(kernel).first_line,
        lds_bytes=lds_of(kernel),
        loop_of=loop_of,
    )
    return tuple(advice for rule in RULES for advice in rule(sight))[:MAX_ADVICE]


def _lds_size(sight: _Sight) -> Iterator[Advice]:
    held, room = sight.lds_bytes, sight.chip.lds_bytes
    if held > room:
        told = f"a workgroup asks for {held} bytes of LDS; a compute unit of {sight.kernel.target} has {room}"
        yield sight.say("lds-size", None, told, "smaller tiles, fewer stages, or keep one operand in registers")
    elif held > _SMALL_LDS:
        told = f"{held} bytes of LDS fit here, and not on gfx942, which has {_SMALL_LDS}"
        yield sight.say("lds-size", None, told, "choose tile and stages by target if the kernel is for both")


def _spills(sight: _Sight) -> Iterator[Advice]:
    spilled = sight.registers.vgpr_spills + sight.registers.sgpr_spills
    at = sight.first(lambda name: name.startswith("scratch_"))
    if spilled:
        where = "inside a loop" if at in sight.loop_of else "outside the loops"
        told = f"{spilled} registers are spilled to scratch memory, {where}"
        yield sight.say("spill", at, told, "a smaller tile a wave, more waves a workgroup, or wider launch bounds")
    elif sight.registers.scratch_bytes:
        told = f"{sight.registers.scratch_bytes} bytes of private memory a lane: an array that is indexed at run time"
        yield sight.say("scratch", at, told, "unroll fully, so that each index is a constant")


def _fp8_upcast(sight: _Sight) -> Iterator[Advice]:
    names = [sight.kernel.name, section(sight.kernel).symbol, *sight.kernel.signature.values()]
    foreign = any(spelled in name for spelled in _FOREIGN_FP8.get(sight.kernel.target, ()) for name in names)
    native = "e4m3fnuz" if sight.kernel.target == "gfx942" else "e4m3fn"
    at, narrow = sight.first(_WIDE_MFMA.match), sight.first(_FP8_MFMA.match)
    if at is None or narrow is not None:
        return
    if foreign:
        told = f"fp8 that {sight.kernel.target} has no matrix instruction for is widened, at half the rate or less"
        yield sight.say("fp8-upcast", at, told, f"convert once to {native} (mind its range and zero), or ahead of time")
    elif (converted := sight.first(_FP8_CONVERSION.match)) in sight.loop_of and converted is not None:
        told = "fp8 is converted in a loop and multiplied by a wider matrix instruction"
        yield sight.say("fp8-upcast", converted, told, "give both operands to the fp8 matrix instruction, scale after")


def _no_mfma(sight: _Sight) -> Iterator[Advice]:
    loops = [loop for loop in sight.code.loops if _multiplies(loop.own)]
    if not loops or any(pipe(item.mnemonic) == "mfma" for item in sight.instructions):
        return
    busiest = max(loops, key=lambda loop: loop.own.valu_flops)
    body = range(busiest.first, busiest.last + 1)
    # What takes exponentials or roots is no plain product.
    if not any(_FUNCTION.match(sight.instructions[i].mnemonic) for i in body):
        at = next(i for i in body if arithmetic_flops(sight.instructions[i].mnemonic))
        fmas = busiest.own.valu_flops / 2 / LANES
        told = f"{fmas:.0f} multiply-adds a lane in a loop that loads its operands, and no matrix instruction"
        yield sight.say("no-mfma", at, told, "if this is a matrix product: tl.dot, or __builtin_amdgcn_mfma_*")


def _multiplies(body: Cost) -> bool:
    """Whether a loop looks like a product: many multiply-adds of loaded operands, or two loads for each."""
    fmas, loads = body.valu_flops / 2 / LANES, body.loads + body.lds
    return loads > 0 and (fmas >= FEWEST_FMAS or 1 <= fmas <= loads / 2)


def _bank_conflicts(sight: _Sight) -> Iterator[Advice]:
    bad = [i for i, factor in sight.code.conflicts.items() if factor >= BAD_CONFLICT and i in sight.loop_of]
    if not bad:
        return
    worst = max(bad, key=lambda i: sight.code.conflicts[i])
    told = f"{len(bad)} LDS accesses in loops meet in the same banks; this one takes {sight.code.conflicts[worst]:.1f}"
    told += " times the passes it needs"
    yield sight.say("bank-conflict", worst, told, "pad each row by one access's width, or swizzle columns by row")


def _narrow(sight: _Sight) -> Iterator[Advice]:
    by_width: dict[int, list[int]] = {}
    for i, loop in sight.loop_of.items():
        item = sight.instructions[i]
        if item.mnemonic.startswith(_GLOBAL) and not item.operands.endswith(" lds"):
            width = vmem_bytes(item.mnemonic)
            if width < 4 or (width == 4 and loop.own.mfma):
                by_width.setdefault(width, []).append(i)
    for width, found in sorted(by_width.items()):
        told = (
            f"{len(found)} accesses of {width} bytes a lane in loops: each keeps the address unit as long as a wide one"
        )
        yield sight.say("narrow-access", found[0], told, "let a lane move 16 bytes (dwordx4) of consecutive elements")


def _scattered(sight: _Sight) -> Iterator[Advice]:
    def waste(i: int) -> float:
        return sight.code.sectors[i] / max(1, vmem_bytes(sight.instructions[i].mnemonic))

    bad = [i for i in sight.code.sectors if waste(i) >= (4 if i in sight.loop_of else 8)]
    if bad:
        worst = max(bad, key=lambda i: (i in sight.loop_of, waste(i)))
        told = f"{len(bad)} accesses are not coalesced; a wave touches {sight.code.sectors[worst]} sectors of 64 bytes"
        told += f" here where {max(1, vmem_bytes(sight.instructions[worst].mnemonic))} would hold what it asks for"
        yield sight.say("scattered-access", worst, told, "let consecutive lanes take consecutive addresses")


def _drained(sight: _Sight) -> Iterator[Advice]:
    for i, loop in sight.loop_of.items():
        item = sight.instructions[i]
        if item.mnemonic != "s_waitcnt" or "vmcnt(0)" not in item.operands or not loop.own.loads:
            continue
        works = loop.own.mfma or loop.own.valu_flops
        if works and loop.covered_cycles < SHORT_COVER_CYCLES and sight.held.waves_per_simd < 4:
            told = f"every pass waits for all its loads, with {loop.covered_cycles:.0f} cycles of work to hide them"
            told += f" and {sight.held.waves_per_simd} waves a SIMD"
            yield sight.say("drained-loads", i, told, "load the next tile before computing this one (two stages)")
            return


def _register_step(sight: _Sight) -> Iterator[Advice]:
    waves, used, granule = sight.held.waves_per_simd, sight.registers.total, sight.chip.vgpr_granule
    if sight.held.limit != "vgpr" or not 0 < waves < sight.chip.max_waves_per_simd:
        return
    step = sight.chip.vgprs_per_lane // (waves + 1) // granule * granule
    if 0 < used - step <= NEAR_STEP:
        told = f"{used} registers let {waves} waves share a SIMD; {step} would let {waves + 1}"
        yield sight.say("register-step", None, told, f"save {used - step} registers, or bound them (launch bounds)")


def _waves(sight: _Sight) -> Iterator[Advice]:
    x, y, z = sight.kernel.block
    if (x * y * z) % LANES:
        told = f"{x * y * z} threads a workgroup are not a multiple of the {LANES} lanes of a wave: some always idle"
        yield sight.say("partial-wave", None, told, "take a multiple of 64; these chips have no waves of 32")
    names = {item.mnemonic.removesuffix("_e32").removesuffix("_e64") for item in sight.instructions}
    if "v_mbcnt_lo_u32_b32" in names and "v_mbcnt_hi_u32_b32" not in names:
        at = sight.first(lambda name: name.startswith("v_mbcnt_lo"))
        yield sight.say(
            "half-wave", at, "a lane's number is counted over 32 lanes", "count both halves of the 64 lanes"
        )
    # Triton chooses its layouts itself; a 32 x 32 tile is made of lanes modulo 32.
    if sight.kernel.ttir or any(32 in mfma_tile(name) for name in names):
        return
    for i, item in enumerate(sight.instructions):
        if item.mnemonic.startswith("v_and_b32") and re.search(r"\b(?:31|0x1f), v0$", item.operands):
            told = "a thread's number is taken modulo 32, as where a wave has 32 lanes"
            yield sight.say("half-wave", i, told, "waves here have 64 lanes: warpSize, and 64-bit masks")
            return


def _calls(sight: _Sight) -> Iterator[Advice]:
    if (at := sight.first(lambda name: name == "s_swappc_b64")) is not None:
        told = "a function is called, not inlined: its registers go through scratch, and its cost is not counted here"
        yield sight.say("call", at, told, "mark it __forceinline__")


RULES: tuple[Callable[[_Sight], Iterator[Advice]], ...] = (
    _lds_size, _spills, _fp8_upcast, _no_mfma, _bank_conflicts, _scattered, _narrow, _drained, _register_step,
    _waves, _calls,
)  # fmt: skip
"""Costliest first."""
