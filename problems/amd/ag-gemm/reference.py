"""All-gather, then matrix product: every rank's inputs as the board makes them, and its exact columns."""

import torch


def make_inputs(params, fill, generator, device):
    """For each rank (input, weight, bias): bfloat16 [m/w, k], [n/w, k], [n/w] or None, row-major, on `device`.

    Rank r's generator is seeded with the case's seed plus r; the bias comes after the weight, so each rank has its own.
    On the meta device, with no generator, the same shapes without memory.
    """
    m, n, k, world = (params[name] for name in ("m", "n", "k", "world_size"))
    data = []
    for rank in range(world):
        own = None if generator is None else torch.Generator(device).manual_seed(generator.initial_seed() + rank)
        pair = _FILLS[fill](m // world, n // world, k, own, device, rank)
        data.append((*pair, _uniform((n // world,), own, device) if params["has_bias"] else None))
    return tuple(data)


def exact(data):
    """For each rank its columns, and the magnitudes that went into them; float64 [m, n/w].

    What is rounded is the product, before the bias is added: its magnitude and the bias's are the terms, and 2^-9 of
    the product of magnitudes for the order of sums.
    """
    rows = torch.cat([a for a, _, _ in data]).double()
    return [_columns(rows, b, bias) for _, b, bias in data]


def board_expected(data):
    """For each rank the board's columns: the product in bfloat16, then the bias."""
    rows = torch.cat([a for a, _, _ in data])
    products = [rows @ b.T for _, b, _ in data]
    return [one if bias is None else one + bias for one, (_, _, bias) in zip(products, data, strict=True)]


def _columns(rows, weight, bias):
    product = rows @ weight.double().T
    terms = product.abs().add_(rows.abs() @ weight.double().abs().T, alpha=2**-9)
    if bias is None:
        return product, terms
    return product.add_(bias.double()), terms.add_(bias.double().abs())


def _uniform(shape, generator, device):
    """bfloat16, uniform in -0.01 to 0.01, as the board draws."""
    return (torch.rand(shape, dtype=torch.bfloat16, device=device, generator=generator) * 2 - 1) * 0.01


def _published(m, n, k, generator, device, rank):
    return _uniform((m, k), generator, device), _uniform((n, k), generator, device)


def _normal(m, n, k, generator, device, rank):
    """N(0, 1): the bias is small beside the products."""
    return tuple(torch.randn((rows, k), dtype=torch.bfloat16, device=device, generator=generator) for rows in (m, n))


def _ranks(m, n, k, generator, device, rank):
    """Rank r's rows are 3^r times as large, and of its own sign: no rank can stand in for another."""
    a, b = _published(m, n, k, generator, device, rank)
    return (a.float() * ((-3.0) ** rank)).bfloat16(), b.abs()


def _cancelling(m, n, k, generator, device, rank):
    """The second half of every sum takes back the first, but for one element in 32."""
    a, b = _published(m, n, k, generator, device, rank)
    half = k // 2
    kept = torch.randint(0, 32, (m, half), device=device, generator=generator) > 0
    a[:, half : 2 * half] = torch.where(kept, a[:, :half], a[:, half : 2 * half])
    b[:, half : 2 * half] = -b[:, :half]
    return a, b


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
