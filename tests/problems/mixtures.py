"""Right and wrong ways to compute amd/moe, in plain torch: a function of the inputs for each."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import silu, softmax

Data = tuple[Any, ...]
Way = Callable[[Data], torch.Tensor]
Cast = Callable[[torch.Tensor], torch.Tensor]


def keep(x: torch.Tensor) -> torch.Tensor:
    return x


class Mixture:
    """The mixture of experts in fp32, whole or spoilt by name.

    `cast` rounds what a product reads, `between` what it makes, `route` the logits and probabilities.
    """

    def __init__(self, cast: Cast = keep, between: Cast = keep, route: Cast = keep, **spoilt: Any) -> None:
        self.cast, self.between, self.route, self.spoilt = cast, between, route, spoilt

    def product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.between(self.cast(a.float()) @ self.cast(b.float()))

    def expert(self, x: torch.Tensor, weights: dict[str, torch.Tensor], name: str) -> torch.Tensor:
        gate, up, down = (weights[f"{name}.{part}.weight"] for part in self.spoilt.get("parts", (0, 1, 2)))
        if "transposed" in self.spoilt:
            gate, up = (part.T.reshape(part.shape) for part in (gate, up))
        inner = self.between(self.spoilt.get("gate", silu)(self.product(x, gate)) * self.product(x, up))
        used = self.spoilt.get("inner", slice(None))
        return self.product(inner[:, used], down[used])

    def routed(self, x: torch.Tensor, weights: dict[str, torch.Tensor], count: int) -> tuple[torch.Tensor, ...]:
        share = self.route(softmax(self.route(x.float() @ weights["router.weight"].float().T), -1))
        share, chosen = share.topk(count + self.spoilt.get("next", 0))
        share, chosen = share[:, -count:], chosen[:, -count:]
        if "normalised" in self.spoilt:
            share = share / share.sum(-1, keepdim=True)
        return share, chosen

    def __call__(self, data: Data) -> torch.Tensor:
        x, weights, config = data
        tokens = x.reshape(-1, x.shape[-1])
        share, chosen = self.routed(tokens, weights, config["n_experts_per_token"])
        chosen = (chosen + self.spoilt.get("shift", 0)) % config["n_routed_experts"]
        share, chosen = (part[:, : self.spoilt.get("first", None)] for part in (share, chosen))
        parts = [torch.zeros_like(tokens, dtype=torch.float32)]
        if "shared" not in self.spoilt:
            parts.append(self.expert(tokens, weights, "shared_experts"))
        for index in range(config["n_routed_experts"]):
            rows, place = (chosen == index).nonzero(as_tuple=True)
            rows, place = (part[: self.spoilt.get("capacity", None)] for part in (rows, place))
            part = torch.zeros_like(parts[0])
            part[rows] = self.expert(tokens[rows], weights, f"experts.{index}") * share[rows, place, None]
            parts.append(self.between(part))
        total = parts[0]
        for part in parts[:: self.spoilt.get("order", 1)]:
            total = self.between(total + part)
        return total.view(x.shape)


def to(dtype: torch.dtype) -> Cast:
    return lambda x: x.to(dtype).to(x.dtype)


HALF, BRAIN, FP8 = to(torch.float16), to(torch.bfloat16), to(torch.float8_e4m3fn)

RIGHT: dict[str, Way] = {
    "fp32": Mixture(),
    "fp16 between steps": Mixture(between=HALF, route=HALF),
    "fp32 routing, fp16 between": Mixture(between=HALF),
    "fp16 routing alone": Mixture(route=HALF),
    "the other way round": Mixture(between=HALF, route=HALF, order=-1),
    "bf16 operands": Mixture(cast=BRAIN),
}


def last_row_lost(data: Data) -> torch.Tensor:
    out = Mixture()(data)
    out.view(-1, out.shape[-1])[-1] = torch.nan
    return out


WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[0]),
    "shared expert alone": Mixture(first=0),
    "no shared expert": Mixture(shared=True),
    "half the experts": Mixture(first=2),
    "the last expert left out": Mixture(first=3),
    "the next expert": Mixture(next=1),
    "another expert's weights": Mixture(shift=1),
    "normalised": Mixture(normalised=True),
    "gate and up swapped": Mixture(parts=(1, 0, 2)),
    "no silu": Mixture(gate=keep),
    "gelu": Mixture(gate=torch.nn.functional.gelu),
    "relu": Mixture(gate=torch.relu),
    "weights transposed": Mixture(transposed=True),
    "half of dexpert": Mixture(inner=slice(0, None, 2)),
    "the last 16 of dexpert lost": Mixture(inner=slice(0, -16)),
    "tokens over the capacity dropped": Mixture(capacity=12),
    "fp8 operands": Mixture(cast=FP8),
    "bf16 between steps": Mixture(between=BRAIN),
    "NaN in the last token": last_row_lost,
}
