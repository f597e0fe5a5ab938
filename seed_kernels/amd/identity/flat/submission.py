#!POPCORN leaderboard amd-identity
#!POPCORN gpus MI300
# Copy of fp16 values: at the published sizes all of it is launch cost. Measured: see WORKLOG.md.
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK = 1024  # knob
NUM_WARPS = 4  # knob


@triton.jit
def copy(x, out, elements, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < elements
    tl.store(out + index, tl.load(x + index, mask=inside), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    x, out = data
    copy[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK, num_warps=NUM_WARPS)
    return out
