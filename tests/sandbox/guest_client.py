"""Drives a real guest over a socket pair, as the checker does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from sandbox import hip_cache
from sandbox.guest import wire

SANDBOX = Path(wire.__file__).resolve().parent.parent
RESULT_ID = 99


class GuestClient:
    """One guest process; `log` gathers what its candidate prints."""

    def __init__(self, mode: str, targets: str, log: Path, *options: str) -> None:
        ours, theirs = socket.socketpair()
        self._log = log.open("wb")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SANDBOX), "HOME": str(log.parent)}
        environment |= {name: os.environ[name] for name in (hip_cache.VARIABLE,) if name in os.environ}
        words = ["--mode", mode, "--targets", targets, *options]
        command = [sys.executable, "-P", "-c", _EXEC_ON_FD_3.format(fd=theirs.fileno(), words=words)]
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, cwd=log.parent, stdout=self._log, stderr=self._log
        )
        self.pid = self._process.pid
        theirs.close()
        self.sock = ours
        self._deadline_s = time.monotonic() + 120
        self.ready = self._receive().header
        self.memory: dict[int, torch.Tensor] = {}

    def __enter__(self) -> GuestClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()
        self._process.wait(timeout=20)
        self._log.close()

    def load(self, source: str) -> dict[str, Any]:
        return self.ask({"op": "load"}, source.encode()).header

    def ask(self, header: dict[str, Any], payload: bytes = b"", fds: tuple[int, ...] = ()) -> wire.Frame:
        wire.send(self.sock, header, payload, fds)
        return self._receive()

    def give(self, tensors: dict[int, torch.Tensor], result_bytes: int) -> dict[int, dict[str, Any]]:
        """Put each tensor in a buffer of its own; their trees by number."""
        sizes = {number: storage_bytes(tensor) for number, tensor in tensors.items()} | {RESULT_ID: result_bytes}
        fds, items = [], []
        for number, size in sizes.items():
            fd = os.memfd_create(f"buffer-{number}")
            os.ftruncate(fd, size)
            self.memory[number] = torch.from_file(f"/proc/self/fd/{fd}", shared=True, size=size, dtype=torch.uint8)
            fds.append(fd)
            items.append({"id": number, "bytes": size, "kind": "host"})
        trees = {number: self._tree(number, tensor) for number, tensor in tensors.items()}
        assert self.ask({"op": "buffers", "items": items}, fds=tuple(fds)).op == "mapped"
        for fd in fds:
            os.close(fd)
        return trees

    def call(self, *tensors: torch.Tensor, result_bytes: int = 1 << 22, timed: bool = False) -> dict[str, Any]:
        trees = self.give(dict(enumerate(tensors)), result_bytes)
        data = {"t": "tuple", "items": list(trees.values())}
        return self.ask({"op": "call", "data": data, "result": RESULT_ID, "head_start": 200_000 * timed}).header

    def capture(self, *tensors: torch.Tensor) -> dict[str, Any]:
        items = [{**tensor_tree(tensor), "buffer": None, "offset": 0} for tensor in tensors]
        data = {"t": "tuple", "items": items}
        return self.ask({"op": "call", "data": data, "result": None}).header

    def tensor(self, tree: dict[str, Any]) -> torch.Tensor:
        assert tree["t"] == "tensor" and tree["buffer"] is not None, tree
        dtype = getattr(torch, tree["dtype"])
        flat = self.memory[tree["buffer"]][tree["offset"] :]
        flat = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
        return torch.as_strided(flat, tree["shape"], tree["stride"], flat.storage_offset()).clone()

    def kernels(self, after: int = 0) -> dict[str, Any]:
        payload: dict[str, Any] = json.loads(self.ask({"op": "kernels", "after": after}).payload)
        return payload

    def _tree(self, number: int, tensor: torch.Tensor) -> dict[str, Any]:
        flat = self.memory[number].view(tensor.dtype)
        torch.as_strided(flat, tensor.shape, tensor.stride()).copy_(tensor)
        return {**tensor_tree(tensor), "buffer": number, "offset": 0}

    def _receive(self) -> wire.Frame:
        return wire.receive(self.sock, until_s=self._deadline_s, accept_fds=False)


def storage_bytes(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to its last."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def tensor_tree(tensor: torch.Tensor) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"t": "tensor", "dtype": dtype, "shape": list(tensor.shape), "stride": list(tensor.stride())}


_EXEC_ON_FD_3 = """
import os, sys
os.dup2({fd}, 3) if {fd} != 3 else None
os.set_inheritable(3, True)
os.execv(sys.executable, [sys.executable, "-m", "guest", *{words}])
"""
