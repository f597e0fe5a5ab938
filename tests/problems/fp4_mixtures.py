"""Right and wrong ways to compute amd/moe-mxfp4, in plain torch: a function of the inputs for each."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import silu

from problems.formats import E2M1
from problems.fp4.reference import FP4, SCALE, quantised, scaled, unpacked

Data = tuple[Any, ...]
Way = Callable[[Data], torch.Tensor]
Cast = Callable[[torch.Tensor], torch.Tensor]


def keep(x: torch.Tensor) -> torch.Tensor:
    return x


def values(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return scaled(unpacked(codes, torch.float32), scale)


def mxfp4(x: torch.Tensor) -> torch.Tensor:
    return values(*quantised(x))


def cut(x: torch.Tensor) -> torch.Tensor:
    """A quantiser whose scale is the floor of the largest magnitude's exponent, as OCP's text has it."""
    blocks = x.double().unflatten(-1, (-1, 32))
    unit = torch.exp2(torch.frexp(blocks.abs().amax(-1, keepdim=True))[1].double() - 3)
    steps = torch.tensor(E2M1[:8], dtype=torch.float64)
    nearest = ((blocks / unit).abs().unsqueeze(-1) - steps).abs().argmin(-1)
    return (steps[nearest] * blocks.sign() * unit).flatten(-2).float()


def shaken(x: torch.Tensor) -> torch.Tensor:
    """Every element off by up to 2^-8 of it before it is quantised: some take a neighbouring code or scale."""
    g = torch.Generator("cpu").manual_seed(11)
    return mxfp4(x * (1 + (torch.rand(x.shape, generator=g) - 0.5) * 2.0**-7))


class Mixture:
    """The MXFP4 mixture in fp32, whole or spoilt by name.

    `first` and `second` quantise x and the inner elements, `narrow` rounds these before, `sums` the total.
    """

    def __init__(
        self, first: Cast = mxfp4, second: Cast = mxfp4, narrow: Cast = keep, sums: Cast = keep, **spoilt: Any
    ) -> None:
        self.first, self.second, self.narrow, self.sums, self.spoilt = first, second, narrow, sums, spoilt

    def weight(self, data: Data, which: int, expert: int) -> torch.Tensor:
        codes, scale = data[self.spoilt.get("codes", (1, 2))[which]], data[self.spoilt.get("scales", (3, 4))[which]]
        rows = codes.shape[1]
        own, its = codes[expert].view(torch.uint8), scale[expert * rows : (expert + 1) * rows].view(torch.uint8)
        if "nibbles" in self.spoilt:
            own = (own >> 4) | (own << 4)
        found = values(own.view(FP4), its.roll(self.spoilt.get("roll", 0), 1).contiguous().view(SCALE))
        return found.T.reshape(found.shape) if "transposed" in self.spoilt else found

    def expert(self, data: Data, tokens: torch.Tensor, expert: int) -> torch.Tensor:
        gate, up = (tokens @ self.weight(data, 0, expert).T).chunk(2, -1)
        if "swapped" in self.spoilt:
            gate, up = up, gate
        inner = self.second(self.narrow(self.spoilt.get("gate", silu)(gate) * up))
        used = self.spoilt.get("inner", slice(None))
        return inner[:, used] @ self.weight(data, 1, expert)[:, used].T

    def __call__(self, data: Data) -> torch.Tensor:
        x, share, ids, config = data[0], data[9], data[10], data[11]
        tokens = self.first(x.float())
        columns = list(range(ids.shape[1]))[self.spoilt.get("columns", slice(None))]
        if "normalised" in self.spoilt:
            routed = config["n_experts_per_token"]
            share = torch.cat((share[:, :routed] / share[:, :routed].sum(-1, keepdim=True), share[:, routed:]), -1)
        total = torch.zeros((len(x), x.shape[1]))
        for column in columns:
            part = torch.zeros_like(total)
            for expert in ids[:, column].unique().tolist():
                rows = (ids[:, column] == expert).nonzero().squeeze(1)
                one = (expert + self.spoilt.get("shift", 0)) % (config["n_routed_experts"])
                one = one if expert < config["n_routed_experts"] else expert
                part[rows] = self.expert(data, tokens[rows], one) * share[rows, column, None]
            total = self.sums(total + part)
        return total


def brain(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().float()


RIGHT: dict[str, Way] = {
    "fp32": Mixture(),
    "inner elements shaken by 2^-8": Mixture(second=shaken),
    "bf16 before the second quantisation": Mixture(narrow=brain),
    "backwards": Mixture(columns=slice(None, None, -1)),
    "bf16 in between and in the sum": Mixture(narrow=brain, sums=brain),
}


def last_row_lost(data: Data) -> torch.Tensor:
    out = Mixture()(data)
    out[-1, -1] = torch.nan
    return out


WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros(data[0].shape),
    "no shared expert": Mixture(columns=slice(0, -1)),
    "shared expert alone": Mixture(columns=slice(-1, None)),
    "half the experts": Mixture(columns=slice(1, None, 2)),
    "one expert left out": Mixture(columns=slice(1, None)),
    "another expert's weights": Mixture(shift=1),
    "normalised": Mixture(normalised=True),
    "gate and up swapped": Mixture(swapped=True),
    "no silu": Mixture(gate=keep),
    "gelu": Mixture(gate=torch.nn.functional.gelu),
    "weights transposed": Mixture(transposed=True),
    "weights left shuffled": Mixture(codes=(5, 6)),
    "scales left shuffled": Mixture(scales=(7, 8)),
    "next block's scale": Mixture(roll=1),
    "nibbles swapped": Mixture(nibbles=True),
    "half of dexpert": Mixture(inner=slice(0, None, 2)),
    "the last 32 of dexpert lost": Mixture(inner=slice(0, -32)),
    "x not quantised": Mixture(first=keep),
    "inner not quantised": Mixture(second=keep),
    "scale's exponent cut, not rounded": Mixture(first=cut, second=cut),
    "the same, the second time alone": Mixture(second=cut),
    "NaN in the last element": last_row_lost,
}
