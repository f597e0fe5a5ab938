#!POPCORN leaderboard vectorsum_v2
#!POPCORN gpus H100
# fp32 sum, bound by HBM: 4 bytes an element. A fixed number of programs each keep a vector of partial sums and write
# one number; one program adds these. No atomics, so the same input gives the same bits. Measured: see WORKLOG.md.
import torch
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK = 4096  # knob
NUM_WARPS = 8  # knob
PROGRAMS = 1024  # knob


@triton.jit
def sum_blocks(x, partial, elements, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(tl.program_id(0) * BLOCK, elements, tl.num_programs(0) * BLOCK):
        index = first + tl.arange(0, BLOCK)
        total += tl.load(x + index, mask=index < elements, other=0.0)
    tl.store(partial + tl.program_id(0), tl.sum(total))


@triton.jit
def sum_partial(partial, out, programs, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(partial + index, mask=index < programs, other=0.0)))


def custom_kernel(data: input_t) -> output_t:
    x, out = data
    programs = min(PROGRAMS, triton.cdiv(x.numel(), BLOCK))
    partial = torch.empty((programs,), dtype=torch.float32, device=x.device)
    sum_blocks[(programs,)](x, partial, x.numel(), BLOCK=BLOCK, num_warps=NUM_WARPS)
    sum_partial[(1,)](partial, out, programs, BLOCK=triton.next_power_of_2(programs), num_warps=4)
    return out[0]  # the board wants a tensor without a dimension
