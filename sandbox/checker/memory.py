"""Memory shared with a guest on the host: sealed memfds, so that a guest cannot shrink one under the checker's feet."""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Literal, Protocol

import torch


class Shared(Protocol):
    """One buffer that checker and guest both map: nothing else lies in it."""

    kind: Literal["host", "cuda", "cpu"]
    """Host memory that stands for a device's, a device's, or host memory for tensors that are to be on the host."""
    bytes: int
    fd: int
    tensor: torch.Tensor
    """All of it, uint8, one dimension, as this process sees it."""

    def close(self) -> None:
        """Give the memory back. The guest's mapping lives until the guest ends."""


class HostMemory:
    """A memfd of fixed size, mapped here."""

    kind: Literal["host", "cuda", "cpu"]

    def __init__(self, size: int, kind: Literal["host", "cpu"] = "host") -> None:
        self.kind = kind
        self.bytes = max(size, mmap.PAGESIZE)
        self.fd = os.memfd_create("shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.bytes)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        self.tensor = torch.frombuffer(mmap.mmap(self.fd, self.bytes), dtype=torch.uint8)

    def close(self) -> None:
        """Close the descriptor; the mapping goes with the last tensor that views it."""
        self.tensor = torch.empty(0, dtype=torch.uint8)
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
