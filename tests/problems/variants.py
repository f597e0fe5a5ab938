"""Right and wrong ways to compute each small problem, in plain torch: a function of the inputs for each."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import conv2d, layer_norm

Way = Callable[[tuple[Any, ...]], torch.Tensor]


def tiled_sum(x: torch.Tensor, tile: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Sums of tiles, added one by one, each rounded to `dtype`."""
    total = torch.zeros((), dtype=dtype)
    for part in x.split(tile):
        total = total + part.sum().to(dtype)
    return total


def tree_sum(x: torch.Tensor) -> torch.Tensor:
    while len(x) > 1:
        x = torch.cat([x[: len(x) // 2] + x[len(x) // 2 : len(x) // 2 * 2], x[len(x) // 2 * 2 :]])
    return x[0]


SUM_RIGHT: dict[str, Way] = {
    "torch": lambda data: data[0].sum(),
    "tiles of 256": lambda data: tiled_sum(data[0], 256),
    "backwards": lambda data: tiled_sum(data[0].flip(0), 1024),
    "tree": lambda data: tree_sum(data[0]),
}
SUM_WRONG: dict[str, Way] = {
    "zero": lambda data: torch.zeros(()),
    "half": lambda data: data[0][: len(data[0]) // 2].sum(),
    "a tile lost": lambda data: data[0][1024:].sum(),
    "the tail lost": lambda data: data[0][: len(data[0]) // 256 * 256].sum(),
    "the first twice": lambda data: data[0].sum() + data[0][:64].sum(),
    "magnitudes": lambda data: data[0].abs().sum(),
    "mean": lambda data: data[0].mean(),
    "e5m2 elements": lambda data: data[0].to(torch.float8_e5m2).float().sum(),
    "bf16 partial sums": lambda data: tiled_sum(data[0], 256, torch.bfloat16).float(),
}


def grey(image: torch.Tensor, weights: tuple[float, ...] = (0.2989, 0.5870, 0.1140)) -> torch.Tensor:
    red, green, blue = image.unbind(-1)
    return red * weights[0] + green * weights[1] + blue * weights[2]


def fused(image: torch.Tensor) -> torch.Tensor:
    """Multiply-adds that round once each, with weights rounded to fp32."""
    weights = torch.tensor([0.2989, 0.5870, 0.1140], dtype=torch.float32).double()
    parts = image.double() * weights
    return ((parts[..., 2].float().double() + parts[..., 1]).float().double() + parts[..., 0]).float()


GREY_RIGHT: dict[str, Way] = {
    "torch": lambda data: grey(data[0]),
    "product": lambda data: data[0] @ torch.tensor([0.2989, 0.5870, 0.1140]),
    "fused": lambda data: fused(data[0]),
}
GREY_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[1]),
    "mean of channels": lambda data: data[0].mean(-1),
    "blue first": lambda data: grey(data[0].flip(-1)),
    "red left out": lambda data: grey(data[0], (0.0, 0.5870, 0.1140)),
    "0.299": lambda data: grey(data[0], (0.299, 0.587, 0.114)),
    "the newer standard": lambda data: grey(data[0], (0.2126, 0.7152, 0.0722)),
    "planes": lambda data: grey(data[0].reshape(3, *data[1].shape).permute(1, 2, 0)),
    "transposed": lambda data: grey(data[0]).T.contiguous(),
    "fp16": lambda data: grey(data[0].half()).float(),
    "fp16 output": lambda data: grey(data[0]).half().float(),
    "bf16": lambda data: grey(data[0].bfloat16()).float(),
}


def counts(x: torch.Tensor) -> torch.Tensor:
    return torch.bincount(x.flatten().long(), minlength=256)[:256]


HISTOGRAM_RIGHT: dict[str, Way] = {
    "torch": lambda data: counts(data[0]),
    "by parts": lambda data: torch.stack([counts(part) for part in data[0].split(1000)]).sum(0),
}
HISTOGRAM_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[1]),
    "half": lambda data: counts(data[0][::2]),
    "the tail lost": lambda data: counts(data[0][: len(data[0]) // 16 * 16]),
    "one element twice": lambda data: counts(torch.cat([data[0], data[0][:1]])),
    "bins off by one": lambda data: counts(data[0]).roll(1),
    "signed bytes": lambda data: counts(data[0]).roll(128),
    "7 bits": lambda data: counts(data[0] & 127),
    "saturated": lambda data: counts(data[0]).clamp(max=len(data[0]) // 256),
    "frequencies": lambda data: counts(data[0]) * 100 // len(data[0]),
}


def scanned(x: torch.Tensor, tile: int, carry: torch.dtype = torch.float32) -> torch.Tensor:
    """A scan of each tile, the tiles' sums scanned one by one in `carry`, both added in fp32."""
    whole = torch.cat([x, x.new_zeros(-len(x) % tile)]).view(-1, tile)
    parts = whole.cumsum(1)
    total, carries = torch.zeros((), dtype=carry), []
    for last in parts[:, -1]:
        carries.append(total.float())
        total = (total + last).to(carry)
    return (parts + torch.stack(carries).unsqueeze(1)).flatten()[: len(x)]


def doubled(x: torch.Tensor) -> torch.Tensor:
    """Hillis and Steele's scan: add the element 1, 2, 4, ... places before."""
    step = 1
    while step < len(x):
        x = torch.cat([x[:step], x[step:] + x[:-step]])
        step *= 2
    return x


def without(x: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    x = x.clone()
    x[start:stop] = 0
    return x


SCAN_RIGHT: dict[str, Way] = {
    "torch": lambda data: data[0].cumsum(0),
    "one by one": lambda data: scanned(data[0], 1),
    "tiles of 256": lambda data: scanned(data[0], 256),
    "tiles of 4096": lambda data: scanned(data[0], 4096),
    "doubling": lambda data: doubled(data[0]),
}
SCAN_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[1]),
    "exclusive": lambda data: data[0].cumsum(0) - data[0],
    "tiles without a carry": lambda data: torch.cat([part.cumsum(0) for part in data[0].split(256)]),
    "one carry lost": lambda data: (
        data[0].cumsum(0).index_add(0, torch.arange(512, 768), -data[0][:512].sum().expand(256))
    ),
    "an element lost": lambda data: without(data[0], 511, 512).cumsum(0),
    "the last not reached": lambda data: torch.cat([data[0].cumsum(0)[:-1], data[0][-1:]]),
    "from the end": lambda data: data[0].flip(0).cumsum(0).flip(0),
    "bf16 carries": lambda data: scanned(data[0], 256, torch.bfloat16),
    "fp16 output": lambda data: data[0].cumsum(0).half().float(),
    "fp16 elements": lambda data: data[0].half().cumsum(0).float(),
}

SORT_RIGHT: dict[str, Way] = {
    "torch": lambda data: data[0].sort().values,
    "merged": lambda data: torch.cat([part.sort().values for part in data[0].split(100)]).sort().values,
}
SORT_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[1]),
    "not sorted": lambda data: data[0].clone(),
    "descending": lambda data: data[0].sort(descending=True).values,
    "halves not merged": lambda data: torch.cat([part.sort().values for part in data[0].chunk(2)]),
    "rows alone": lambda data: torch.cat([part.sort().values for part in data[0].split(int(len(data[0]) ** 0.5))]),
    "unsorted tail": lambda data: torch.cat([data[0][:-64].sort().values, data[0][-64:]]),
    "one element lost": lambda data: torch.cat([data[0][1:], data[0][1:2]]).sort().values,
    "by magnitude": lambda data: data[0][data[0].abs().argsort(descending=True)],
    "by row means": lambda data: data[0].mean().expand(len(data[0])).clone(),
    "through bf16": lambda data: data[0].bfloat16().float().sort().values,
    "the largest dropped": lambda data: torch.cat([data[0].sort().values[:1], data[0].sort().values[:-1]]),
}


def by_tap(x: torch.Tensor, w: torch.Tensor, skip: int = -1) -> torch.Tensor:
    """One product of matrices a tap, summed one by one."""
    edge, kernel = x.shape[-1] - w.shape[-1] + 1, w.shape[-1]
    taps = [(i, j) for i in range(kernel) for j in range(kernel)]
    return sum(  # type: ignore[return-value]
        torch.einsum("bcij,fc->bfij", x[:, :, i : i + edge, j : j + edge], w[:, :, i, j])
        for number, (i, j) in enumerate(taps)
        if number != skip
    )


def by_fourier(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    size, edge = x.shape[-1], x.shape[-1] - w.shape[-1] + 1
    spectrum = torch.einsum("bcij,fcij->bfij", torch.fft.rfft2(x), torch.fft.rfft2(w, s=(size, size)).conj())
    return torch.fft.irfft2(spectrum, s=(size, size))[..., :edge, :edge]


def tf32(x: torch.Tensor) -> torch.Tensor:
    """The nearest number with 10 bits after the point."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


CONV_RIGHT: dict[str, Way] = {
    "torch": lambda data: conv2d(data[0], data[1]),
    "by tap": lambda data: by_tap(data[0], data[1]),
    "by channel": lambda data: sum(  # type: ignore[return-value]
        conv2d(data[0][:, c : c + 1], data[1][:, c : c + 1]) for c in range(data[0].shape[1])
    ),
    "Fourier": lambda data: by_fourier(data[0], data[1]),
}
CONV_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[2]),
    "flipped kernel": lambda data: conv2d(data[0], data[1].flip(-1, -2)),
    "kernel transposed": lambda data: conv2d(data[0], data[1].transpose(-1, -2)),
    "channels swapped in w": lambda data: conv2d(data[0], data[1].transpose(0, 1)),
    "a channel lost": lambda data: conv2d(data[0][:, 1:], data[1][:, 1:]),
    "half the channels": lambda data: conv2d(data[0][:, ::2], data[1][:, ::2]),
    "a tap lost": lambda data: by_tap(data[0], data[1], skip=1),
    "shifted by a pixel": lambda data: conv2d(data[0], data[1]).roll(1, -1),
    "image transposed": lambda data: conv2d(data[0].transpose(-1, -2), data[1]),
    "TF32": lambda data: conv2d(tf32(data[0]), tf32(data[1])),
    "fp16 operands": lambda data: conv2d(data[0].half().float(), data[1].half().float()),
    "bf16 operands": lambda data: conv2d(data[0].bfloat16().float(), data[1].bfloat16().float()),
}

COPY_RIGHT: dict[str, Way] = {"torch": lambda data: data[0].clone()}
COPY_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[0]),
    "shifted": lambda data: data[0].roll(1),
    "unwritten tail": lambda data: torch.cat([data[0][:-7], torch.full_like(data[0][-7:], torch.nan)]),
    "a block twice": lambda data: torch.cat([data[0][:64], data[0][:64], data[0][128:]]),
    "reversed": lambda data: data[0].flip(0),
    "through bf16": lambda data: data[0].bfloat16().half(),
    "through fp8": lambda data: data[0].to(torch.float8_e5m2).half(),
    "one step off": lambda data: torch.cat([data[0][:9], data[0][9:10] * 1.002 + 0.001, data[0][10:]]),
}


class Update:
    """The triangle update in fp32, whole or spoilt by name; `cast` rounds what a product reads."""

    def __init__(self, cast: Callable[[torch.Tensor], torch.Tensor] = lambda x: x, **spoilt: Any) -> None:
        self.cast, self.spoilt = cast, spoilt

    def product(self, equation: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum(equation, self.cast(a), self.cast(b))

    def side(self, z: torch.Tensor, mask: torch.Tensor, w: dict[str, torch.Tensor], name: str) -> torch.Tensor:
        value = self.product("bijc,dc->bijd", z, w[f"{name}_proj.weight"])
        if "gate" not in self.spoilt.get(name, ()):
            value = value * self.product("bijc,dc->bijd", z, w[f"{name}_gate.weight"]).sigmoid()
        return value if "mask" in self.spoilt.get(name, ()) else value * mask.float().unsqueeze(-1)

    def __call__(self, data: tuple[Any, ...]) -> torch.Tensor:
        x, mask, w, _ = data
        eps, equation = self.spoilt.get("eps", 1e-5), self.spoilt.get("equation", "bikd,bjkd->bijd")
        z = layer_norm(x, x.shape[-1:], w["norm.weight"], None if "bias" in self.spoilt else w["norm.bias"], eps)
        left, right = (self.side(z, mask, w, name) for name in ("left", "right"))
        keep = self.spoilt.get("keep", slice(None))
        mixed = self.product(equation, left[:, :, keep], right[:, :, keep])
        if "normed" not in self.spoilt:
            mixed = layer_norm(mixed, mixed.shape[-1:], w["to_out_norm.weight"], w["to_out_norm.bias"], eps)
        if "ungated" not in self.spoilt:
            mixed = mixed * self.product("bijc,dc->bijd", z, w["out_gate.weight"]).sigmoid()
        return self.product("bijd,cd->bijc", mixed, w["to_out.weight"])


UPDATE_RIGHT: dict[str, Way] = {
    "fp32": Update(),
    "TF32 operands": Update(tf32),
    "fp16 operands": Update(lambda x: x.half().float()),
    "bf16 operands": Update(lambda x: x.bfloat16().float()),
}
UPDATE_WRONG: dict[str, Way] = {
    "zeros": lambda data: torch.zeros_like(data[0]),
    "no mask": Update(left=("mask",), right=("mask",)),
    "left mask alone": Update(right=("mask",)),
    "incoming": Update(equation="bkid,bkjd->bijd"),
    "sides swapped": Update(equation="bjkd,bikd->bijd"),
    "k minus one": Update(keep=slice(0, -1)),
    "half of k": Update(keep=slice(0, None, 2)),
    "no left gate": Update(left=("gate",)),
    "no output gate": Update(ungated=True),
    "no second LayerNorm": Update(normed=True),
    "no bias": Update(bias=True),
    "fp8 operands": Update(lambda x: x.to(torch.float8_e4m3fn).float()),
}

WAYS: dict[str, tuple[dict[str, Any], tuple[str, ...], dict[str, Way], dict[str, Way]]] = {
    "pmpp/vectorsum": ({"size": 9001}, ("published", "tail", "cancelling", "spikes", "ones"), SUM_RIGHT, SUM_WRONG),
    "pmpp/grayscale": ({"size": 61}, ("published", "signed", "spread"), GREY_RIGHT, GREY_WRONG),
    "pmpp/histogram": (
        {"size": 9001, "contention": 20},
        ("published", "one", "ends", "runs"),
        HISTOGRAM_RIGHT,
        HISTOGRAM_WRONG,
    ),
    "pmpp/prefixsum": ({"size": 9001}, ("published", "ones", "spikes", "positive"), SCAN_RIGHT, SCAN_WRONG),
    "pmpp/sort": ({"size": 3001}, ("published", "normal", "few", "codes", "descending"), SORT_RIGHT, SORT_WRONG),
    "pmpp/conv2d": (
        {"size": 12, "kernelsize": 5, "channels": 16, "batch": 2},
        ("published", "spikes", "ramp"),
        CONV_RIGHT,
        CONV_WRONG,
    ),
    "amd/identity": ({"size": 5001}, ("published", "codes"), COPY_RIGHT, COPY_WRONG),
    "bioml/trimul": (
        {"seqlen": 8, "bs": 1, "dim": 128, "hiddendim": 128, "nomask": False, "distribution": "normal"},
        ("published", "sparse", "offset"),
        UPDATE_RIGHT,
        UPDATE_WRONG,
    ),
}
