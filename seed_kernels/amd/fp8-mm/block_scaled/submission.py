#!POPCORN leaderboard amd-fp8-mm
#!POPCORN gpus MI300
# Block-scaled fp8 matrix product: every 128 elements of k have a scale per row of a and per 128 rows of b, so the sum
# over a block is taken in fp32 and scaled before it joins the total. Both operands are contiguous along m and n, not k.
# Two kernels: fp8_mm_fnuz feeds e4m3fnuz to the matrix units (gfx942); fp8_mm_upcast decodes it to fp16 for chips whose
# Triton has no such type (Hopper) or would emulate it (gfx950). Measured: see WORKLOG.md.
import functools

import torch
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK_M = 128  # knob
BLOCK_N = 128  # knob
BLOCK_K = 128  # knob
NUM_WARPS = 8  # knob
NUM_STAGES = 2  # knob
GROUP_M = 4  # knob
SPLIT_PROGRAMS = 304  # knob
XCDS = 8  # knob
WAVES_PER_EU = 0  # knob
MATRIX_INSTR = 16  # knob
REDUCE_BLOCK = 1024  # knob
TRANSPOSE_FROM = 0  # knob

SCALED = tl.constexpr(128)


@triton.jit
def tile_of_program(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr, XCDS: tl.constexpr):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    if XCDS > 1:
        # AMD deals programs out to its dies in turn; give each die a run of neighbouring tiles, for its own L2.
        each = (tiles_m * tiles_n) // XCDS
        pid = tl.where(pid < each * XCDS, (pid % XCDS) * each + pid // XCDS, pid)
    group = pid // (GROUP_M * tiles_n)
    first = group * GROUP_M
    rows = tl.minimum(tiles_m - first, GROUP_M)
    within = pid % (GROUP_M * tiles_n)
    return first + within % rows, within // rows


@triton.jit
def scales_of_block(
    a_scale, b_scale, block, rows, columns, first_column, M, N, BLOCK_N: tl.constexpr, EVEN: tl.constexpr
):
    # Row scales are a vector; column scales are one number, unless the tile spans several of them.
    if EVEN:
        row_scale = tl.load(a_scale + block * M + rows)
    else:
        row_scale = tl.load(a_scale + block * M + rows, mask=rows < M, other=0.0)
    scale_columns = tl.cdiv(N, SCALED)
    if BLOCK_N <= SCALED:
        scale = row_scale[:, None] * tl.load(b_scale + block * scale_columns + first_column // SCALED)
    else:
        place = b_scale + block * scale_columns + columns // SCALED
        scale = row_scale[:, None] * tl.load(place, mask=columns < N, other=0.0)[None, :]
    return scale


@triton.jit
def fp8_mm_fnuz(
    a,
    b,
    a_scale,
    b_scale,
    out,
    M,
    N,
    K,
    depth,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    XCDS: tl.constexpr,
    EVEN: tl.constexpr,
    ALONG_K: tl.constexpr,
):
    tile_m, tile_n = tile_of_program(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M, XCDS)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    start = tl.program_id(1) * depth
    ks = start + tl.arange(0, BLOCK_K)
    if ALONG_K:
        a_tile = a + rows[:, None] * K + ks[None, :]
        b_tile = b + columns[None, :] * K + ks[:, None]
    else:
        a_tile = a + rows[:, None] + ks[None, :] * M
        b_tile = b + columns[None, :] + ks[:, None] * N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(start, tl.minimum(start + depth, K), BLOCK_K):
        if EVEN:
            x = tl.load(a_tile)
            y = tl.load(b_tile)
        else:
            x = tl.load(a_tile, mask=rows[:, None] < M, other=0.0)
            y = tl.load(b_tile, mask=columns[None, :] < N, other=0.0)
        scale = scales_of_block(a_scale, b_scale, k // SCALED, rows, columns, tile_n * BLOCK_N, M, N, BLOCK_N, EVEN)
        total += tl.dot(x, y) * scale
        a_tile += BLOCK_K * (1 if ALONG_K else M)
        b_tile += BLOCK_K * (1 if ALONG_K else N)
    store_tile(out + tl.program_id(1) * M * N, total, rows, columns, M, N, EVEN)


@triton.jit
def fp8_mm_upcast(
    a,
    b,
    a_scale,
    b_scale,
    out,
    M,
    N,
    K,
    depth,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    XCDS: tl.constexpr,
    EVEN: tl.constexpr,
):
    # As fp8_mm_fnuz, on bytes. decode() gives each operand times 2^-7, exactly; the scales take the 2^14 back.
    tile_m, tile_n = tile_of_program(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M, XCDS)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    start = tl.program_id(1) * depth
    ks = start + tl.arange(0, BLOCK_K)
    a_tile = a + rows[:, None] + ks[None, :] * M
    b_tile = b + columns[None, :] + ks[:, None] * N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(start, tl.minimum(start + depth, K), BLOCK_K):
        if EVEN:
            x = tl.load(a_tile)
            y = tl.load(b_tile)
        else:
            x = tl.load(a_tile, mask=rows[:, None] < M, other=0)
            y = tl.load(b_tile, mask=columns[None, :] < N, other=0)
        scale = scales_of_block(a_scale, b_scale, k // SCALED, rows, columns, tile_n * BLOCK_N, M, N, BLOCK_N, EVEN)
        total += tl.dot(decode(x), decode(y)) * (scale * 16384.0)
        a_tile += BLOCK_K * M
        b_tile += BLOCK_K * N
    store_tile(out + tl.program_id(1) * M * N, total, rows, columns, M, N, EVEN)


@triton.jit(do_not_specialize=["tiles_a"])
def lay_along_k(a, b, a_out, b_out, M, N, K, tiles_a, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    # MFMA wants 8 neighbours in k in a register pair. gfx942 reads LDS byte by byte to turn a tile, for every tile of c
    # again; turning both operands beforehand costs each byte one more trip and lets the product read 8 at a time.
    if tl.program_id(0) < tiles_a:
        turn_tile(a, a_out, tl.program_id(0) * ROWS, M, K, ROWS, DEPTH)
    else:
        turn_tile(b, b_out, (tl.program_id(0) - tiles_a) * ROWS, N, K, ROWS, DEPTH)


@triton.jit
def turn_tile(codes, out, first, R, K, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    rows = first + tl.arange(0, ROWS)
    ks = tl.program_id(1) * DEPTH + tl.arange(0, DEPTH)
    tile = tl.load(codes + ks[:, None] * R + rows[None, :], mask=rows[None, :] < R, other=0)
    tl.store(out + rows[:, None] * K + ks[None, :], tl.trans(tile), mask=rows[:, None] < R)


@triton.jit
def decode(code):
    # e4m3fnuz has exponent bias 8, fp16 has 15: the same bits, moved into fp16's fields, are the value times 2^-7.
    # Subnormals come out right, too. 0x80, fnuz's NaN, comes out as minus zero.
    wide = code.to(tl.uint16)
    bits = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)
    return bits.to(tl.float16, bitcast=True)


@triton.jit
def store_tile(out, total, rows, columns, M, N, EVEN: tl.constexpr):
    place = out + rows[:, None] * N + columns[None, :]
    if EVEN:
        tl.store(place, total.to(out.dtype.element_ty))
    else:
        tl.store(place, total.to(out.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def sum_splits(parts, out, elements, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    # Always in the same order, so that the same input gives the same bits.
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < elements
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        total += tl.load(parts + split * elements + index, mask=inside, other=0.0)
    tl.store(out + index, total.to(tl.bfloat16), mask=inside)


@functools.cache
def target() -> tuple[str, str]:
    found = triton.runtime.driver.active.get_current_target()
    return found.backend, str(found.arch)


@functools.cache
def options() -> dict:
    common = {"num_warps": NUM_WARPS, "num_stages": NUM_STAGES}
    if target()[0] != "hip":
        return common
    return common | {"waves_per_eu": WAVES_PER_EU, "matrix_instr_nonkdim": MATRIX_INSTR}


def takes_fnuz() -> bool:
    return target() == ("hip", "gfx942")


def splits_for(tiles: int, blocks: int) -> int:
    # Few tiles leave most compute units idle: cut k, in whole scale blocks, until there are SPLIT_PROGRAMS programs.
    wanted = min(blocks, max(1, SPLIT_PROGRAMS // tiles))
    return triton.cdiv(blocks, triton.cdiv(blocks, wanted))


def along_k(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    (m, k), n = a.shape, b.shape[0]
    a_out = torch.empty((m, k), dtype=a.dtype, device=a.device)
    b_out = torch.empty((n, k), dtype=b.dtype, device=b.device)
    tiles_a, tiles_b = triton.cdiv(m, 64), triton.cdiv(n, 64)
    codes = [x.view(torch.uint8) for x in (a, b, a_out, b_out)]
    lay_along_k[(tiles_a + tiles_b, k // 128)](*codes, m, n, k, tiles_a, ROWS=64, DEPTH=128, num_warps=4)
    return a_out, b_out


def block_scaled(data: input_t, fnuz: bool) -> output_t:
    a, b, a_scale, b_scale, c = data
    (m, k), n = a.shape, b.shape[0]
    tiles = triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)
    blocks = k // 128
    splits = splits_for(tiles, blocks)
    out = c if splits == 1 else torch.empty((splits, m, n), dtype=torch.float32, device=c.device)
    shape = (a_scale, b_scale, out, m, n, k, triton.cdiv(blocks, splits) * 128)
    tile = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K, "GROUP_M": GROUP_M, "XCDS": XCDS}
    tile["EVEN"] = m % BLOCK_M == 0 and n % BLOCK_N == 0
    if fnuz:
        turned = tiles >= TRANSPOSE_FROM
        a, b = along_k(a, b) if turned else (a, b)
        fp8_mm_fnuz[(tiles, splits)](a, b, *shape, **tile, ALONG_K=turned, **options())
    else:
        fp8_mm_upcast[(tiles, splits)](a.view(torch.uint8), b.view(torch.uint8), *shape, **tile, **options())
    if splits > 1:
        sum_splits[(triton.cdiv(m * n, REDUCE_BLOCK),)](out, c, m * n, SPLITS=splits, BLOCK=REDUCE_BLOCK, num_warps=4)
    return c


def custom_kernel(data: input_t) -> output_t:
    return block_scaled(data, takes_fnuz())
