#!POPCORN leaderboard conv2d_v2
#!POPCORN gpus H100
# fp32 convolution as a product of matrices that is never formed: rows are output pixels, columns output channels, and
# the sum runs over taps and input channels. Full fp32 products: TF32 is refused. Measured: see WORKLOG.md.
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK_M = 128  # knob
BLOCK_N = 64  # knob
BLOCK_C = 16  # knob
NUM_WARPS = 8  # knob


@triton.jit
def convolve(
    x,
    w,
    out,
    pixels,
    channels,
    size,
    kernel,
    edge,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    batch, place = pixel // (edge * edge), pixel % (edge * edge)
    corner = batch * channels * size * size + place // edge * size + place % edge
    inside, wanted = pixel < pixels, column < channels
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tap in range(kernel * kernel):
        moved = corner + tap // kernel * size + tap % kernel
        for first in range(0, channels, BLOCK_C):
            c = first + tl.arange(0, BLOCK_C)
            known = c < channels
            a = tl.load(x + moved[:, None] + c[None, :] * size * size, mask=inside[:, None] & known[None, :], other=0.0)
            at = (column[None, :] * channels + c[:, None]) * kernel * kernel + tap
            b = tl.load(w + at, mask=wanted[None, :] & known[:, None], other=0.0)
            total = tl.dot(a, b, total, input_precision="ieee")
    at = (batch[:, None] * channels + column[None, :]) * edge * edge + place[:, None]
    tl.store(out + at, total, mask=inside[:, None] & wanted[None, :])


def custom_kernel(data: input_t) -> output_t:
    x, w, out = data
    batch, channels, edge, _ = out.shape
    pixels = batch * edge * edge
    convolve[(triton.cdiv(pixels, BLOCK_M), triton.cdiv(channels, BLOCK_N))](
        x,
        w,
        out,
        pixels,
        channels,
        x.shape[-1],
        w.shape[-1],
        edge,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_C=BLOCK_C,
        num_warps=NUM_WARPS,
    )
    return out
