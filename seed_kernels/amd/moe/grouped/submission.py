#!POPCORN leaderboard amd-mixture-of-experts
#!POPCORN gpus MI300
# Mixture of experts as two grouped products: (token, expert) pairs are sorted by expert, each tile of rows finds its
# expert on the device, and nobody waits for counts on the host. Gate and up share a tile of x; the down product writes
# a row for each pair, added up per token in fp32, in order. Weights are read where they lie, by a table of addresses.
# Offsets are 32 bits wide: up to 299,000 pairs at a width of 7168. Measured: see WORKLOG.md.
import torch
import triton
import triton.language as tl
from task import input_t, output_t

BLOCK_M = 128  # knob
BLOCK_N = 128  # knob
BLOCK_K = 64  # knob
NUM_WARPS = 8  # knob
NUM_STAGES = 2  # knob
ADD_BLOCK = 1024  # knob


@triton.jit
def expert_of_tile(tile_ends, bounds, tile, experts, EXPERTS: tl.constexpr, BLOCK_M: tl.constexpr):
    # Tiles are numbered expert after expert: the number of experts that end before this tile is its own.
    index = tl.arange(0, EXPERTS)
    ends = tl.load(tile_ends + index, mask=index < experts, other=1 << 30)
    expert = tl.sum((ends <= tile).to(tl.int32))
    first_tile = tl.max(tl.where(ends <= tile, ends, 0))
    rows = tl.load(bounds + expert) + (tile - first_tile) * BLOCK_M + tl.arange(0, BLOCK_M)
    return expert, rows, tl.load(bounds + expert + 1)


@triton.jit
def matrix_of(table, expert, part: tl.constexpr):
    address = tl.load(table + expert * 3 + part).to(tl.pointer_type(tl.float16))
    return tl.multiple_of(address, 16)


@triton.jit(do_not_specialize=["top", "experts"])
def gate_up(
    x,
    table,
    order,
    tile_ends,
    bounds,
    inner,
    hidden,
    width,
    top,
    experts,
    EXPERTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    if tile >= tl.load(tile_ends + experts - 1):
        return
    expert, rows, end = expert_of_tile(tile_ends, bounds, tile, experts, EXPERTS, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside, wanted = rows < end, columns < width
    token = tl.load(order + rows, mask=inside, other=0) // top
    ks = tl.arange(0, BLOCK_K)
    a = x + token[:, None] * hidden + ks[None, :]
    at = ks[:, None] * width + columns[None, :]
    g, u = matrix_of(table, expert, 0) + at, matrix_of(table, expert, 1) + at
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, hidden, BLOCK_K):
        part = tl.load(a, mask=inside[:, None], other=0.0)
        gate = tl.dot(part, tl.load(g, mask=wanted[None, :], other=0.0), gate)
        up = tl.dot(part, tl.load(u, mask=wanted[None, :], other=0.0), up)
        a += BLOCK_K
        g += BLOCK_K * width
        u += BLOCK_K * width
    value = gate * tl.sigmoid(gate) * up
    place = inner + rows[:, None] * width + columns[None, :]
    tl.store(place, value.to(tl.float16), mask=inside[:, None] & wanted[None, :])


@triton.jit(do_not_specialize=["experts"])
def down(
    inner,
    table,
    order,
    share,
    tile_ends,
    bounds,
    out,
    hidden,
    width,
    experts,
    WEIGHTED: tl.constexpr,
    EXPERTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    if tile >= tl.load(tile_ends + experts - 1):
        return
    expert, rows, end = expert_of_tile(tile_ends, bounds, tile, experts, EXPERTS, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside, wanted = rows < end, columns < hidden
    ks = tl.arange(0, BLOCK_K)
    a = inner + rows[:, None] * width + ks[None, :]
    b = matrix_of(table, expert, 2) + ks[:, None] * hidden + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, width, BLOCK_K):
        part = tl.load(a, mask=inside[:, None], other=0.0)
        total = tl.dot(part, tl.load(b, mask=wanted[None, :], other=0.0), total)
        a += BLOCK_K
        b += BLOCK_K * hidden
    pair = tl.load(order + rows, mask=inside, other=0)
    if WEIGHTED:
        total *= tl.load(share + pair, mask=inside, other=0.0).to(tl.float32)[:, None]
    place = out + pair[:, None] * hidden + columns[None, :]
    tl.store(place, total.to(tl.float16), mask=inside[:, None] & wanted[None, :])


@triton.jit(do_not_specialize=["top"])
def add_up(shared, pairs, out, hidden, top, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    total = tl.load(shared + token * hidden + columns, mask=inside, other=0.0).to(tl.float32)
    for j in range(top):
        total += tl.load(pairs + (token * top + j) * hidden + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + token * hidden + columns, total.to(tl.float16), mask=inside)


def addresses(weights: dict, names: list[str], device: torch.device) -> torch.Tensor:
    parts = [weights[f"{name}.{part}.weight"].data_ptr() for name in names for part in range(3)]
    return torch.tensor(parts, dtype=torch.int64, device=device)


def grouped(
    tokens: torch.Tensor,
    table: torch.Tensor,
    order: torch.Tensor,
    counts: torch.Tensor,
    width: int,
    top: int,
    share: torch.Tensor | None,
) -> torch.Tensor:
    # A row for each entry of `order`, whose first counts[0] belong to expert 0 and so on; entry // top is its token.
    pairs, hidden, experts = order.shape[0], tokens.shape[1], counts.shape[0]
    tile_ends = ((counts + BLOCK_M - 1) // BLOCK_M).cumsum(0).to(torch.int32)
    bounds = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    inner = torch.empty((pairs, width), dtype=torch.float16, device=tokens.device)
    out = torch.empty((pairs, hidden), dtype=torch.float16, device=tokens.device)
    # The most tiles there can be: every expert may leave one that is not full.
    tiles = triton.cdiv(pairs, BLOCK_M) + min(experts, pairs) - 1
    shape = {
        "EXPERTS": max(32, triton.next_power_of_2(experts)),
        "BLOCK_M": BLOCK_M,
        "BLOCK_N": BLOCK_N,
        "BLOCK_K": BLOCK_K,
    }
    shape |= {"num_warps": NUM_WARPS, "num_stages": NUM_STAGES}
    gate_up[(tiles, triton.cdiv(width, BLOCK_N))](
        tokens, table, order, tile_ends, bounds, inner, hidden, width, top, experts, **shape
    )
    weighted = share is not None
    down[(tiles, triton.cdiv(hidden, BLOCK_N))](
        inner,
        table,
        order,
        share if weighted else inner,
        tile_ends,
        bounds,
        out,
        hidden,
        width,
        experts,
        WEIGHTED=weighted,
        **shape,
    )
    return out


def custom_kernel(data: input_t) -> output_t:
    x, weights, config = data
    tokens = x.reshape(-1, x.shape[-1])
    (count, hidden), experts, top = tokens.shape, config["n_routed_experts"], config["n_experts_per_token"]
    share, chosen = (tokens @ weights["router.weight"].T).softmax(-1).topk(top)
    chosen = chosen.flatten()
    order = chosen.argsort(stable=True).to(torch.int32)
    counts = (chosen[:, None] == torch.arange(experts, device=x.device)).sum(0)
    table = addresses(weights, [f"experts.{i}" for i in range(experts)], x.device)
    pairs = grouped(tokens, table, order, counts, config["d_expert"], top, share.flatten())
    table = addresses(weights, ["shared_experts"], x.device)
    everyone = torch.arange(count, dtype=torch.int32, device=x.device)
    all_of_them = torch.full((1,), count, dtype=torch.int64, device=x.device)
    width = config["d_expert"] * config["n_shared_experts"]
    shared = grouped(tokens, table, everyone, all_of_them, width, 1, None)
    out = torch.empty_like(tokens)
    add_up[(count, triton.cdiv(hidden, ADD_BLOCK))](shared, pairs, out, hidden, top, BLOCK=ADD_BLOCK, num_warps=4)
    return out.view(x.shape)
