"""Histogram: inputs as the board makes them, the exact counts, and the board's own answer."""

import torch

BINS = 256


def make_inputs(params, fill, generator, device):
    """(x, out): x uint8 [size], out int64 [256], uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    x = _FILLS[fill](params["size"], params["contention"], generator, device)
    return x, torch.empty((BINS,), dtype=torch.int64, device=device)


def exact(data):
    """The counts, twice, float64 [256]: whole numbers below 2^53."""
    counts = _counts(data[0]).double()
    return counts, counts.clone()


def board_expected(data):
    """The board's answer: the counts, int64 [256]."""
    return _counts(data[0])


def _counts(x):
    if x.device.type == "meta":  # torch cannot tell bincount's shape without its data
        return torch.empty((BINS,), dtype=torch.int64, device="meta")
    return torch.bincount(x, minlength=BINS)


def _published(size, contention, generator, device):
    """Uniform bytes; each then becomes one value, the same for all, with probability contention / 100."""
    x = _bytes(size, generator, device)
    value = _bytes(1, generator, device)
    struck = torch.rand((size,), device=device, generator=generator) < contention / 100
    return torch.where(struck, value, x)


def _one(size, contention, generator, device):
    """Every element the same: all counts but one are zero."""
    return _bytes(1, generator, device).expand(size).contiguous()


def _ends(size, contention, generator, device):
    """Bytes 0, 127, 128 and 255 alone: signs and off-by-one bins are seen."""
    ends = torch.tensor([0, 127, 128, 255], dtype=torch.uint8, device=device)
    return ends[torch.randint(0, 4, (size,), device=device, generator=generator)]


def _runs(size, contention, generator, device):
    """Runs of 37 equal bytes: neighbours collide, and no run ends with a vector access."""
    return _bytes(-(-size // 37), generator, device).repeat_interleave(37)[:size].contiguous()


def _bytes(size, generator, device):
    return torch.randint(0, BINS, (size,), dtype=torch.uint8, device=device, generator=generator)


_FILLS = {"published": _published, "one": _one, "ends": _ends, "runs": _runs}
