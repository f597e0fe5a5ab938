"""One candidate's ranks, seen from the checker: one sandbox, one guest for each rank, one fate for all.

All ranks of a candidate share the sandbox and its loopback, so that they can find each other; nothing else is there to
be found. Where one of them faults, all are killed, and the fault that began it is the candidate's.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sandbox.checker.answer import legible
from sandbox.checker.guest import FAULTS, READY_S, CandidateFault, Died, Fault, Forgery, Guest, Late, NotReady, Raised
from sandbox.checker.pool import environment, limits
from sandbox.guest import wire
from sandbox.isolation import Limits, Running, Sandbox

JOIN_S = 60.0
"""For a process group: NCCL asks every GPU and link."""
GRACE_S = 1.5
"""After a first fault: one that caused it may only be told now, a death among ranks that lost a neighbour."""
MOST_PORT = 1 << 16
_ORDER = (Died, Raised, Forgery, Late)
"""Which of several ranks' faults began it: a death makes others raise, a raise makes others wait."""
T = TypeVar("T")


class RankProgram:
    """One rank as a running program: a socket of its own; its end is the end of all."""

    def __init__(self, whole: Running, sock: socket.socket, told: Callable[[], str]) -> None:
        self.sock, self._whole, self._told = sock, whole, told

    @property
    def pid(self) -> int:
        """The outermost process of all ranks."""
        return self._whole.pid

    @property
    def alive(self) -> bool:
        """Whether the sandbox still runs."""
        return self._whole.alive

    def kill(self) -> None:
        """Kill all ranks."""
        self._whole.kill()

    def close(self) -> None:
        """Drop the socket; the world ends the rest."""
        self.sock.close()

    def ending(self) -> str:
        """How this rank ended, as the parent of all ranks tells it."""
        return self._told()

    def output(self) -> str:
        """What all ranks printed, as it came."""
        return self._whole.output()


class Rank(Guest):
    """The guest of one rank, which its world started."""

    def __init__(self, mode: str, program: RankProgram, number: int) -> None:
        self.number = number
        self._program: Running = program
        self.held, self._emulates = False, mode != "device"
        self._left_s = READY_S
        self._ready = False
        self.versions = {}

    def grant(self, seconds: float) -> None:
        """Time on top of its own, for what others keep it waiting."""
        self._left_s += seconds

    def meet(self) -> int:
        """The port on which rank 0 keeps the store of the next group."""
        port = self._ask({"op": "meet"}, "met").header.get("port")
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < MOST_PORT:
            raise Forgery("rank 0 named a port that is none")
        return port

    def join(self, rank: int, world: int, port: int, backend: str) -> None:
        """Make the process group of a case; returns when all ranks have. The time it takes is not the candidate's."""
        own_s, self._left_s = self._left_s, JOIN_S
        self._ask({"op": "join", "rank": rank, "world": world, "port": port, "backend": backend}, "joined")
        self._left_s = own_s


class World:
    """The ranks of one candidate, started ahead of it. `mode` is ``emulate`` (gloo) or ``device`` (NCCL, RCCL)."""

    def __init__(
        self, mode: str, targets: Sequence[str], sandbox: Sandbox, ranks: int, options: Sequence[str] = ()
    ) -> None:
        """Start the program that forks `ranks` guests, with `options` more; `NotReady` where it cannot start."""
        argv = [sys.executable, "-m", "guest", "--mode", mode, "--targets", ",".join(targets), "--ranks", *options]
        env = {**environment(), "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
        # Whether there is a GPU is asked while it imports; asked of CUDA itself, it could not be forked any more.
        env["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        self._backend = "nccl" if mode == "device" else "gloo"
        self._told: dict[int, str] = {}
        self._asking = threading.Lock()
        try:
            self._program = sandbox.start(argv, env, shared_limits(mode), gpu=mode == "device")
        except OSError as error:
            raise NotReady(f"cannot start the ranks: {error}") from error
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(ranks)]
        try:
            wire.send(self._program.sock, {"op": "ranks"}, fds=[theirs.fileno() for _, theirs in pairs])
        except wire.WireError as error:
            self._program.close()
            raise NotReady(f"the ranks did not start: {error}; {self._program.output()[-2048:]}") from error
        finally:
            for _, theirs in pairs:
                theirs.close()
        own = [RankProgram(self._program, ours, partial(self._ending, rank)) for rank, (ours, _) in enumerate(pairs)]
        self.ranks = [Rank(mode, program, number) for number, program in enumerate(own)]
        self._threads = ThreadPoolExecutor(ranks, "rank")

    def await_ready(self) -> None:
        """Wait until every rank is warm; `NotReady` where one never is."""
        for rank in self.ranks:
            rank.await_ready()

    def load(self, source: str, deadline_s: float) -> None:
        """Hand the candidate to every rank; from here on each has `deadline_s` in all."""
        self.each(lambda rank: rank.load(source, deadline_s))

    def group(self, world: int) -> list[Rank]:
        """The first `world` ranks in a process group of their own, new for each case."""
        ranks = self.ranks[:world]
        port = self.each(lambda rank: rank.meet(), ranks[:1])[0]
        self.each(lambda rank: rank.join(rank.number, world, port, self._backend), ranks)
        return ranks

    def each(self, act: Callable[[Rank], T], ranks: Sequence[Rank] | None = None) -> list[T]:
        """`act` on every rank at once, in order; the first fault kills them all and is raised, with its rank."""
        return self.results(self.begin(act, self.ranks if ranks is None else ranks))

    def begin(self, act: Callable[[Rank], T], ranks: Sequence[Rank]) -> list[Future[T]]:
        """`act` under way on each of `ranks`."""
        return [self._threads.submit(act, rank) for rank in ranks]

    def results(self, calls: Sequence[Future[T]]) -> list[T]:
        """What came of each; at the first fault all ranks are killed, and the one to blame is raised."""
        done, left = wait(calls, return_when=FIRST_EXCEPTION)
        if not any(call.exception() for call in done):
            return [call.result() for call in calls]
        told = [call for call in (*done, *wait(left, GRACE_S).done) if call.exception()]
        self.kill()
        faults = [(calls.index(call), call.exception()) for call in told]
        candidates = [(rank, fault) for rank, fault in faults if isinstance(fault, FAULTS)]
        if len(candidates) < len(faults):
            raise next(fault for _, fault in faults if fault is not None and not isinstance(fault, FAULTS))
        rank, fault = min(
            candidates, key=lambda pair: next(n for n, kind in enumerate(_ORDER) if type(pair[1]) is kind)
        )
        raise named(fault, calls, rank)

    def kill(self) -> None:
        """Kill all ranks now."""
        self._program.kill()

    def close(self) -> None:
        """Kill all ranks and reap them."""
        self._program.kill()
        self._threads.shutdown()
        for rank in self.ranks:
            rank.close()
        self._program.close()

    def _ending(self, rank: int) -> str:
        with self._asking:
            until_s = time.monotonic() + 0.5
            while rank not in self._told:
                try:
                    frame = wire.receive(self._program.sock, until_s, accept_fds=False)
                except wire.WireError:
                    break
                number, how = frame.header.get("rank"), frame.header.get("how")
                if isinstance(number, int) and isinstance(how, str):
                    self._told[number] = legible(how[:64])
            return self._told.get(rank, "it did not say how")


def named(fault: Fault, calls: Sequence[Any], rank: int) -> Fault:
    """The same fault with its rank in front of the reason."""
    if not isinstance(fault, CandidateFault):
        raise TypeError(fault)
    return type(fault)(f"rank {rank} of {len(calls)}: {fault.reason}", fault.log, fault.build)


def shared_limits(mode: str) -> Limits:
    """One guest's limits for all ranks together, with a loopback between them."""
    return replace(limits(mode), loopback=True)
