#!POPCORN leaderboard prefixsum_v2
#!POPCORN gpus H100
# Inclusive fp32 scan in three launches: the sum of each tile, a scan of these by one program, and the scan of each tile
# with its carry. Reads x twice: 12 bytes an element where one pass needs 8. Measured: see WORKLOG.md.
import torch
import triton
import triton.language as tl
from task import input_t, output_t

TILE = 4096  # knob
NUM_WARPS = 8  # knob
CARRIES = 4096  # knob


@triton.jit
def sum_tiles(x, carry, elements, TILE: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    tl.store(carry + tl.program_id(0), tl.sum(tl.load(x + index, mask=index < elements, other=0.0)))


@triton.jit
def scan_carries(carry, tiles, CARRIES: tl.constexpr):
    # Element i becomes the sum of the tiles before tile i.
    total = 0.0
    for first in range(0, tiles, CARRIES):
        index = first + tl.arange(0, CARRIES)
        sums = tl.load(carry + index, mask=index < tiles, other=0.0)
        tl.store(carry + index, total + tl.cumsum(sums, 0) - sums, mask=index < tiles)
        total += tl.sum(sums)


@triton.jit
def scan_tiles(x, carry, out, elements, TILE: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = index < elements
    values = tl.load(x + index, mask=inside, other=0.0)
    tl.store(out + index, tl.load(carry + tl.program_id(0)) + tl.cumsum(values, 0), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    x, out = data
    elements, tiles = x.numel(), triton.cdiv(x.numel(), TILE)
    carry = torch.empty((tiles,), dtype=torch.float32, device=x.device)
    sum_tiles[(tiles,)](x, carry, elements, TILE=TILE, num_warps=NUM_WARPS)
    scan_carries[(1,)](carry, tiles, CARRIES=CARRIES, num_warps=16)
    scan_tiles[(tiles,)](x, carry, out, elements, TILE=TILE, num_warps=NUM_WARPS)
    return out
