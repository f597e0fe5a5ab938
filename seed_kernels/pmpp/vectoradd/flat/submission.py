#!POPCORN leaderboard vectoradd_v2
#!POPCORN gpus H100
# Elementwise fp16 addition, bound by HBM: 6 bytes an element and nothing to reuse. Chips: any that Triton compiles for.
# What counts is 16-byte accesses, coalesced over the warp, and enough of them in flight. Measured: see WORKLOG.md.
import functools

import torch
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK = 4096  # knob
NUM_WARPS = 8  # knob
PROGRAMS_PER_CU = 0  # knob
LOAD_CACHE = ""  # knob
STORE_CACHE = ""  # knob
WAVES_PER_EU = 0  # knob


@triton.jit
def vector_add(
    a,
    b,
    out,
    elements,
    BLOCK: tl.constexpr,
    EVEN: tl.constexpr,
    LOOP: tl.constexpr,
    LOAD_CACHE: tl.constexpr,
    STORE_CACHE: tl.constexpr,
):
    # An fp16 addition is rounded once; fp32 addition rounded to fp16 gives the same bits, as 24 >= 2 * 11 + 2.
    start = tl.program_id(0) * BLOCK
    if LOOP:
        for first in range(start, elements, tl.num_programs(0) * BLOCK):
            add_block(a, b, out, first, elements, BLOCK, EVEN, LOAD_CACHE, STORE_CACHE)
    else:
        add_block(a, b, out, start, elements, BLOCK, EVEN, LOAD_CACHE, STORE_CACHE)


@triton.jit
def add_block(
    a,
    b,
    out,
    first,
    elements,
    BLOCK: tl.constexpr,
    EVEN: tl.constexpr,
    LOAD_CACHE: tl.constexpr,
    STORE_CACHE: tl.constexpr,
):
    index = first + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(a + index, cache_modifier=LOAD_CACHE)
        y = tl.load(b + index, cache_modifier=LOAD_CACHE)
        tl.store(out + index, x + y, cache_modifier=STORE_CACHE)
    else:
        inside = index < elements
        x = tl.load(a + index, mask=inside, cache_modifier=LOAD_CACHE)
        y = tl.load(b + index, mask=inside, cache_modifier=LOAD_CACHE)
        tl.store(out + index, x + y, mask=inside, cache_modifier=STORE_CACHE)


@functools.cache
def compute_units(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def options() -> dict:
    # waves_per_eu exists on AMD targets alone; elsewhere Triton refuses it.
    hip = triton.runtime.driver.active.get_current_target().backend == "hip"
    return {"num_warps": NUM_WARPS} | ({"waves_per_eu": WAVES_PER_EU} if hip else {})


def custom_kernel(data: input_t) -> output_t:
    a, b, out = data
    elements = out.numel()
    blocks = triton.cdiv(elements, BLOCK)
    loop = PROGRAMS_PER_CU > 0
    programs = min(blocks, PROGRAMS_PER_CU * compute_units(out.device)) if loop else blocks
    vector_add[(programs,)](
        a,
        b,
        out,
        elements,
        BLOCK=BLOCK,
        EVEN=elements % BLOCK == 0,
        LOOP=loop,
        LOAD_CACHE=LOAD_CACHE,
        STORE_CACHE=STORE_CACHE,
        **options(),
    )
    return out
