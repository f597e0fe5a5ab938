"""Matrix product over ranks, then reduce-scatter: every rank's inputs as the board makes them, and its exact rows."""

import torch

REPEATED = tuple(f"{rank}/2" for rank in range(1, 8))
"""Every rank has the bias of rank 0."""


def make_inputs(params, fill, generator, device):
    """For each rank (input, weight, bias): bfloat16 [m, k/w], [n, k/w], [n] or None, row-major, on `device`.

    Rank r's generator is seeded with the case's seed plus r, the bias's with the seed itself, so that it is the same on
    every rank. On the meta device, with no generator, the same shapes without memory.
    """
    m, n, k, world = (params[name] for name in ("m", "n", "k", "world_size"))
    seed = generator.initial_seed() if generator is not None else None
    ranks = [(_seeded(seed, rank, device), rank) for rank in range(world)]
    pairs = [_FILLS[fill](m, n, k // world, own, device, rank) for own, rank in ranks]
    bias = [_uniform((n,), _seeded(seed, 0, device), device) if params["has_bias"] else None for _ in ranks]
    return tuple((*pair, one) for pair, one in zip(pairs, bias, strict=True))


def repeated(data):
    """`data` with rank 0's bias on every rank."""
    return tuple((a, b, data[0][2]) for a, b, _ in data)


def exact(data):
    """For each rank its rows of the sum, and the magnitudes that went into them; float64 [m/w, n].

    Every rank's bias is part of its product, so it counts as often as there are ranks. What is rounded are the ranks'
    products, with the bias or before it: the magnitudes of both are the terms, and 2^-11 of the products of magnitudes
    below them for the order of sums.
    """
    total, terms = None, None
    for a, b, bias in data:
        product = a.double() @ b.double().T
        part = product.abs().add_(a.double().abs() @ b.double().abs().T, alpha=2**-11)
        if bias is not None:
            product.add_(bias.double())
            part.add_(bias.double().abs())
        total = product if total is None else total.add_(product)
        terms = part if terms is None else terms.add_(part)
    return list(zip(total.chunk(len(data)), terms.chunk(len(data)), strict=True))


def board_expected(data):
    """For each rank the board's rows: bfloat16 products with bias, summed in bfloat16, one rank after the other."""
    total = None
    for a, b, bias in data:
        product = torch.nn.functional.linear(a, b, bias)
        total = product if total is None else total + product
    return list(total.chunk(len(data)))


def _seeded(seed, rank, device):
    return None if seed is None else torch.Generator(device).manual_seed(seed + rank)


def _uniform(shape, generator, device):
    """bfloat16, uniform in -0.01 to 0.01, as the board draws."""
    return (torch.rand(shape, dtype=torch.bfloat16, device=device, generator=generator) * 2 - 1) * 0.01


def _published(m, n, k, generator, device, rank):
    return _uniform((m, k), generator, device), _uniform((n, k), generator, device)


def _normal(m, n, k, generator, device, rank):
    """N(0, 1): the bias is lost in the sum, a lost rank is not."""
    return tuple(torch.randn((rows, k), dtype=torch.bfloat16, device=device, generator=generator) for rows in (m, n))


def _ranks(m, n, k, generator, device, rank):
    """Rank r's products are 1.5^r times as large, with alternating signs: no rank can stand in for another."""
    a, b = _published(m, n, k, generator, device, rank)
    return (a.float() * ((-1.5) ** rank)).bfloat16(), b.abs()


def _cancelling(m, n, k, generator, device, rank):
    """Every odd rank takes back what the rank before it adds, but for one element in 32."""
    a, b = _published(m, n, k, generator, device, rank)
    if rank % 2 == 0 or generator is None:
        return a, b
    before = _seeded(generator.initial_seed() - 1, 0, device)
    other, weight = _published(m, n, k, before, device, rank - 1)
    kept = torch.randint(0, 32, (m, k), device=device, generator=generator) > 0
    return torch.where(kept, -other, a), weight


def _spikes(m, n, k, generator, device, rank):
    """One element of the input in 128 is 100 times the largest of the others."""
    a, b = _published(m, n, k, generator, device, rank)
    large = torch.randint(0, 128, (m, k), device=device, generator=generator) == 0
    return torch.where(large, a.sign(), a), b


_FILLS = {
    "published": _published,
    "normal": _normal,
    "ranks": _ranks,
    "cancelling": _cancelling,
    "spikes": _spikes,
}
