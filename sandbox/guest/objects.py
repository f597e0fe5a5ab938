"""Objects that some problems hand over, a closed set by name: the checker says which and with what; no code crosses."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch


class Config(SimpleNamespace):
    """Attributes by name, as a dataclass has them."""


class Routing(Config):
    """The configuration of amd/all2all: sizes by name; tokens are float16 on their way in and out."""

    in_dtype = out_dtype = torch.float16


class KVCache(torch.nn.Module):
    """A cache of rows [batch, most, width], of which the first `seq_len` are filled: amd/mla-decode's."""

    data: torch.Tensor

    def __init__(self, data: torch.Tensor, seq_len: int) -> None:
        super().__init__()
        self.register_buffer("data", data)
        self.seq_len = seq_len

    def zero(self) -> None:
        """Overwrite all of it with zeros; `seq_len` stays."""
        self.data.zero_()

    def get_data(self) -> torch.Tensor:
        """All rows, filled or not."""
        return self.data

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Write `rows` [batch, count, width] after the filled ones; all filled rows, as a view, and their number."""
        end = self.seq_len + rows.shape[1]
        if end > self.data.shape[1]:
            raise AssertionError(f"{end} rows do not fit into a cache of {self.data.shape[1]}")
        self.data[:, self.seq_len : end] = rows
        self.seq_len = end
        return self.data[:, :end], end


_KINDS: dict[str, type[Any]] = {"config": Config, "kv-cache": KVCache, "routing": Routing}


def make(kind: str, fields: Mapping[str, Any]) -> Any:
    """An object of that kind from its fields; `ValueError` for a kind that is not one of these."""
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of object: {kind}")
    return _KINDS[kind](**fields)
