"""all2all with a secret: every expert's gain is known to its own rank alone; inputs and exact sums."""

import torch

from problems.made import Made

SMALLEST = 2.0**-13
"""Twice fp16's smallest normal number: below that an fp16 sum's steps no longer shrink with the sum."""


def make_inputs(params, fill, generator, device):
    """For each rank (cfg, rank_data, rank, world_size).

    cfg: num_experts, experts_per_token, hidden_dim, max_num_tokens, in_dtype and out_dtype. rank_data: num_tokens T,
    from 1 to max_num_tokens - 1; indices int32 [T, k]; weights float32 [T, k], uniform in [0, 1); x float16 [T, H];
    gain float32 [num_experts / world_size], of the rank's own experts, uniform in [0.5, 2). All but gain as amd/all2all
    has it; gain is drawn last.
    Rank r's generator is seeded with the case's seed plus r. On the meta device, with no generator, the largest shapes.
    """
    world = params["world_size"]
    names = ("num_experts", "experts_per_token", "hidden_dim", "max_num_tokens")
    config = Made("routing", {name: params[name] for name in names})
    data = []
    for rank in range(world):
        own = None if generator is None else torch.Generator(device).manual_seed(generator.initial_seed() + rank)
        tokens = _tokens(params["max_num_tokens"], fill, rank, own, device)
        data.append((config, Made("config", _rank_data(params, fill, tokens, own, device)), rank, world))
    return tuple(data)


def exact(data):
    """For each rank the sums of its tokens' experts, and of their magnitudes; float64 [T, H].

    The magnitudes are at least twice fp16's smallest normal number: what is smaller has no relative precision.
    """
    gains = _gains(data).double()
    return [_sums(rank_data.fields, gains) for _, rank_data, _, _ in data]


def board_expected(data):
    """For each rank what the board's reference would say with these gains: every step rounded to fp16."""
    gains = _gains(data)
    return [_board(rank_data.fields, gains) for _, rank_data, _, _ in data]


def _gains(data):
    """Every expert's, float32 [num_experts]."""
    return torch.cat([rank_data.fields["gain"] for _, rank_data, _, _ in data])


def depends(data, rank, on):
    """Whether a token of `rank` is for an expert of rank `on`."""
    config, rank_data, _, world = data[rank]
    per_rank = config.fields["num_experts"] // world
    return bool((rank_data.fields["indices"] // per_rank == on).any())


def _tokens(most, fill, rank, generator, device):
    """How many tokens a rank has; the largest number where there is no generator."""
    drawn = most - 1 if generator is None else int(torch.randint(1, most, (1,), generator=generator, device=device))
    if fill == "uneven":
        return 1 if rank % 2 else most - 1
    return drawn


def _rank_data(params, fill, tokens, generator, device):
    experts, chosen, hidden = params["num_experts"], params["experts_per_token"], params["hidden_dim"]
    like = {"device": device, "generator": generator}
    if generator is None:
        indices = torch.empty((tokens, chosen), dtype=torch.int32, device=device)
    else:
        # One rank's experts, as many as a token needs, take all tokens: most ranks get none.
        among = max(chosen, experts // params["world_size"]) if fill == "crowded" else experts
        rows = [torch.randperm(among, **like)[:chosen] for _ in range(tokens)]
        indices = torch.stack(rows).to(torch.int32)
    weights = torch.rand((tokens, chosen), dtype=torch.float32, **like)
    x = torch.randn((tokens, hidden), dtype=torch.float16, **like)
    if fill == "spikes":
        large = torch.randint(0, 128, x.shape, **like) == 0
        x = torch.where(large, x.sign() * 500, x)
    gain = torch.rand((experts // params["world_size"],), dtype=torch.float32, **like) * 1.5 + 0.5
    return {"num_tokens": tokens, "indices": indices, "weights": weights, "x": x, "gain": gain}


def _sums(fields, gains):
    x = fields["x"].double()
    if x.is_meta:
        return x, x
    share = fields["weights"].double() * gains.to(x.device)[fields["indices"].long()]
    total = share.sum(dim=1, keepdim=True)
    return total * x, (total * x.abs()).clamp_min(SMALLEST)


def _board(fields, gains):
    x, total = fields["x"], torch.zeros_like(fields["x"])
    for column in range(fields["indices"].shape[1]):
        gain = gains[fields["indices"][:, column].long()].unsqueeze(1)
        term = fields["weights"][:, column].unsqueeze(1) * (x.float() * gain).to(torch.float16).float()
        total = (total.float() + term).to(torch.float16)
    return total
