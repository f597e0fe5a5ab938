#!POPCORN leaderboard histogram_v2
#!POPCORN gpus H100
# Counts of bytes. Each program counts its share block by block, with shared memory, and writes 256 counts of its own; a
# second pass adds these. No atomics in device memory, and nothing to clear first. Measured: see WORKLOG.md.
import torch
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK = 4096  # knob
NUM_WARPS = 8  # knob
PROGRAMS = 256  # knob
BINS_PER_PROGRAM = 16  # knob


@triton.jit
def count_blocks(x, partial, elements, BLOCK: tl.constexpr):
    total = tl.zeros((256,), tl.int32)
    for first in range(tl.program_id(0) * BLOCK, elements, tl.num_programs(0) * BLOCK):
        index = first + tl.arange(0, BLOCK)
        inside = index < elements
        values = tl.load(x + index, mask=inside, other=0).to(tl.int32)
        total += tl.histogram(values, 256, mask=inside)
    tl.store(partial + tl.program_id(0) * 256 + tl.arange(0, 256), total)


@triton.jit
def add_counts(partial, out, programs, ROWS: tl.constexpr, BINS: tl.constexpr):
    bins = tl.program_id(0) * BINS + tl.arange(0, BINS)
    rows = tl.arange(0, ROWS)
    counts = tl.load(partial + rows[:, None] * 256 + bins[None, :], mask=rows[:, None] < programs, other=0)
    tl.store(out + bins, tl.sum(counts, axis=0).to(tl.int64))


def custom_kernel(data: input_t) -> output_t:
    x, out = data
    programs = min(PROGRAMS, triton.cdiv(x.numel(), BLOCK))
    partial = torch.empty((programs, 256), dtype=torch.int32, device=x.device)
    count_blocks[(programs,)](x, partial, x.numel(), BLOCK=BLOCK, num_warps=NUM_WARPS)
    rows = triton.next_power_of_2(programs)
    add_counts[(256 // BINS_PER_PROGRAM,)](partial, out, programs, ROWS=rows, BINS=BINS_PER_PROGRAM, num_warps=4)
    return out
