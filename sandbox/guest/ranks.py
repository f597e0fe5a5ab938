"""One candidate on several ranks: a guest process for each, all in one sandbox, in a process group that is ours.

The program on descriptor 3 imports what all need and becomes the parent: it forks a rank for every socket that the
checker hands it, and says how each of them ended. A rank is a guest like any other, with two more things to be told:

======  ==========================================  ===========================================================
op      checker sends                               rank answers
======  ==========================================  ===========================================================
meet    nothing, to rank 0 alone                    ``{"op": "met", "port": p}``: where the others find its store
join    ``rank``, ``world``, ``port``, ``backend``  ``{"op": "joined"}`` or ``failed``: a process group is made
======  ==========================================  ===========================================================

As on GPU MODE's boards the group is new for every case, tensors are on ``cuda:rank``, and the process's current device
is left alone. To the checker the parent says ``{"op": "ended", "rank": r, "how": text}``.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from . import SOCKET_FD, memory, wire
from .mode import GuestMode, Kernel, Nothing, Took
from .modes import make_mode
from .on_device import BOARD_FLUSH_WORDS, OnDevice, cloned
from .serve import Guest

_HERE = "127.0.0.1"


def branch(sock: socket.socket) -> int:
    """Fork a rank for each socket that comes in the checker's first frame; the rank's number, in each of them.

    There descriptor 3 is the rank's own socket. The parent never returns: it ends with the last of its children.
    """
    try:
        frame = wire.receive(sock)
    except wire.WireError:
        os._exit(0)
    children: dict[int, int] = {}
    for rank, descriptor in enumerate(frame.fds):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(descriptor, SOCKET_FD, inheritable=False)
            for other in frame.fds:
                os.close(other)
            sock.detach()
            return rank
        children[child] = rank
    for descriptor in frame.fds:
        os.close(descriptor)
    _watch(sock, children)
    os._exit(0)


def _watch(sock: socket.socket, children: dict[int, int]) -> None:
    """Reap every child, and say how it ended to whoever still listens."""
    while children:
        pid, status = os.wait()
        if pid not in children:
            continue
        code = os.waitstatus_to_exitcode(status)
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        try:
            wire.send(sock, {"op": "ended", "rank": children.pop(pid), "how": how})
        except wire.WireError:
            return


def make_rank_mode(name: str, targets: Sequence[str], rank: int) -> GuestMode:
    """The mode of that name for one rank; a device rank's tensors are on ``cuda:rank``."""
    return RankDevice(rank) if name == "device" else make_mode(name, targets)


class RankGuest(Guest):
    """A guest that is one of several."""

    def __init__(self, mode: GuestMode, workplace: Path) -> None:
        super().__init__(mode, workplace)
        self._stores: list[Any] = []

    def _answer(self, frame: wire.Frame) -> tuple[dict[str, Any], bytes]:
        match frame.op:
            case "meet":
                # Older stores live on: whoever still has the group of the last case asks them.
                self._stores.append(dist.TCPStore(_HERE, 0, is_master=True, wait_for_workers=False))
                return {"op": "met", "port": self._stores[-1].port}, b""
            case "join":
                return self._join(**{name: frame.header[name] for name in ("rank", "world", "port", "backend")}), b""
            case _:
                return super()._answer(frame)

    def _join(self, rank: int, world: int, port: int, backend: str) -> dict[str, Any]:
        os.environ.update(MASTER_ADDR=_HERE, MASTER_PORT=str(port))
        try:
            if dist.is_initialized():
                dist.destroy_process_group()
            store = self._stores[-1] if rank == 0 else dist.TCPStore(_HERE, port)
            own = {"device_id": torch.device("cuda", rank)} if backend == "nccl" else {}
            dist.init_process_group(backend, store=store, rank=rank, world_size=world, **own)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here goes to the checker
            return {"op": "failed", "kind": "run", "log": f"no process group: {type(error).__name__}: {error}"}
        return {"op": "joined"}


class RankDevice(OnDevice):
    """The GPU of one rank, of the several that are visible. Timed calls start and end together on all ranks."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        super().__init__()
        torch.zeros(1, device=f"cuda:{rank}")

    def map_buffer(self, kind: str, descriptor: int, size: int) -> memory.Buffer:
        """Host buffers, staged on the rank's own device."""
        if kind != "host":
            raise ValueError(f"ranks take no {kind} buffers")
        return memory.map_host(descriptor, size, stage_on=f"cuda:{self._rank}")

    def call(self, kernel: Kernel, data: Any, head_start: int = 0, join: bool = True) -> tuple[Any, Took | None]:
        """Run and wait; where timed, flush, meet the others, and take the host's clock until this rank is done."""
        if head_start:
            return self._timed(kernel, data, clone=False, flush=True, meet_after=False)
        with self.running():
            result = kernel(data)
            self._wait(join)
        return result, None

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, Took | None]:
        """As the board of several ranks does: the clones and the barrier after are inside."""
        return self._timed(kernel, data, clone, flush, meet_after=True)

    def empty(self, copied: int, head_start: int) -> Nothing | None:
        """The steps of a timed call without its kernel."""
        self._timed(lambda _: None, None, clone=False, flush=True, meet_after=False)
        return Nothing(0.0, 0.0, 0.0)

    def _timed(self, kernel: Kernel, data: Any, clone: bool, flush: bool, meet_after: bool) -> tuple[Any, Took]:
        if flush:
            torch.empty(BOARD_FLUSH_WORDS, dtype=torch.int64, device=f"cuda:{self._rank}").fill_(42)
        self._meet()
        start_ns = self._clock_ns()
        result = kernel(cloned(data) if clone else data)
        self._wait(join=True)
        if meet_after:
            self._meet()
        return result, Took((self._clock_ns() - start_ns) / 1e3)

    def _meet(self) -> None:
        self._wait(join=True)
        dist.barrier(device_ids=[self._rank])
        self._wait(join=True)

    def _wait(self, join: bool) -> None:
        # The candidate's current device may be another than the rank's, where the board leaves it.
        if join:
            self._synchronize(self._rank)
            self._synchronize()
        else:
            torch.cuda.current_stream(self._rank).synchronize()
