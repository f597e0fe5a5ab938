"""One guest, talked to: every wait has an end, every answer is read within bounds."""

from __future__ import annotations

import math
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sandbox.checker.answer import legible
from sandbox.checker.memory import Shared
from sandbox.guest import wire
from sandbox.guest.wire import Frame, WireError, WireGone, WireLate
from sandbox.isolation import Limits, Sandbox
from sandbox.runner import Unsupported

QUEUE_S = 1.0
"""How long a burst's gate stays shut for calls that are not queued."""
READY_S = 120.0
"""Importing torch and triton from a cold disk, and a GPU's context, take their time."""


class CandidateFault(Exception):
    """Something the candidate's process did, or failed to do."""

    def __init__(self, reason: str, log: str = "", build: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.log, self.build = reason, log[-wire.MAX_LOG :], build


class Raised(CandidateFault):
    """It raised, and said so."""


class Died(CandidateFault):
    """Its process ended."""


class Late(CandidateFault):
    """It let its time run out."""


class Forgery(CandidateFault):
    """It answered something no honest guest answers."""


Fault = Raised | Died | Late | Forgery
FAULTS = (Raised, Died, Late, Forgery)
"""The ways a candidate's process ends a judging."""


class NotReady(Exception):
    """A guest failed before any candidate reached it: the machine's fault."""


@dataclass(frozen=True, slots=True)
class Returned:
    """One call's answer: the tree as told, the guest's event time, and the checker's own clock round the call."""

    tree: object
    event_us: float | None
    wall_us: float
    pair_us: float | None = None
    """Of an empty call: device events round a kernel that does nothing."""
    late_us: float = 0.0
    """By its own word, how long it waited for its whole device after the last event."""
    exposed: bool = False
    """Of a timed call: by its own word, the head start was over before all was launched."""
    queued: bool = True
    """Of a burst: whether all its calls were queued before the gate opened, which is where `wall_us` begins."""


class Guest:
    """A started guest. Its time runs only while it is waited for: what the checker computes is not its fault."""

    def __init__(
        self,
        mode: str,
        targets: Sequence[str],
        sandbox: Sandbox,
        env: dict[str, str],
        limits: Limits,
        under: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        argv = [*under, sys.executable, "-m", "guest", "--mode", mode, "--targets", ",".join(targets), *options]
        self.held, self._emulates = mode == "device", mode != "device"
        self._imported = False
        argv += ["--held"] if self.held else []
        self._program = sandbox.start(argv, env, limits, gpu=mode == "device")
        self._left_s = READY_S
        self._ready = False
        self.versions: dict[str, str] = {}

    @property
    def alive(self) -> bool:
        """Whether its outermost process still runs."""
        return self._program.alive

    @property
    def imported(self) -> bool:
        """Whether it has imported all it needs, and the device is next."""
        if self.held and not self._imported and select.select([self._program.sock], [], [], 0)[0]:
            with suppress(NotReady):  # `await_ready` says so
                self._imported = self._hear().op == "imported"
        return self._imported

    def prepare(self) -> None:
        """Let it touch the device: until then it has imported, and waits."""
        if self.held:
            self.held = False
            with suppress(WireError):  # gone already: `await_ready` says so
                wire.send(self._program.sock, {"op": "prepare"}, until_s=time.monotonic() + READY_S)

    def await_ready(self) -> None:
        """Wait until it is warm; `NotReady` where it never is."""
        if self._ready:
            return
        self.prepare()
        frame = self._hear()
        if frame.op == "imported":
            frame = self._hear()
        if frame.op != "ready":
            raise NotReady("a guest did not say that it is ready")
        versions = frame.header.get("versions")
        told = versions if isinstance(versions, dict) else {}
        self.versions = {legible(str(name)): legible(str(version)) for name, version in told.items()}
        self._ready = True

    def _hear(self) -> Frame:
        """The next frame of a guest that has no candidate yet; `NotReady` where none comes."""
        try:
            return wire.receive(self._program.sock, time.monotonic() + READY_S, accept_fds=False)
        except WireError as error:
            ending = self._program.ending()
            raise NotReady(f"a guest did not start: {error}; {ending}\n{self._program.output()[-4096:]}") from error

    def load(self, source: str, deadline_s: float, stock: bytes = b"") -> None:
        """Hand over the candidate; from here on it has `deadline_s` in all. `Raised` where it does not import.

        `stock`: what `cache` answered in another guest of this candidate. A guest that died before is no candidate's
        fault: `NotReady`.
        """
        if not self.alive:
            raise NotReady(f"a guest died while it waited: {self._program.ending()}")
        self._left_s = deadline_s
        if stock:
            self._ask({"op": "stock"}, "stocked", payload=stock)
        self._ask({"op": "load"}, "loaded", payload=source.encode())

    def ask(self, header: dict[str, Any], expected: str, payload: bytes = b"") -> Frame:
        """Send one frame of a problem from elsewhere, see `sandbox.guest.foreign`; its answer, of op `expected`."""
        return self._ask(header, expected, payload)

    def share(self, buffers: Sequence[Shared]) -> None:
        """Hand over the buffers, by id in order; earlier ones are gone."""
        items = [{"id": index, "bytes": shared.bytes, "kind": shared.kind} for index, shared in enumerate(buffers)]
        self._ask({"op": "buffers", "items": items}, "mapped", fds=[shared.fd for shared in buffers])

    def allow(self, deadline_s: float) -> None:
        """Give it `deadline_s` from here on: for a guest of the checker's own, which serves for as long as it lives."""
        self._left_s = deadline_s

    def call(
        self,
        tree: dict[str, Any],
        result: int | None,
        head_start: int = 0,
        join: bool = True,
        board: dict[str, str | bool] | None = None,
    ) -> Returned:
        """Call `custom_kernel` once: timed by events after `head_start` busy cycles, if any, or as a `board` does."""
        header = {"op": "call", "data": tree, "result": result, "head_start": head_start, "join": join}
        return self._timed(header | ({"board": board} if board else {}))

    def empty(self, tree: dict[str, Any], copied: int, head_start: int) -> Returned:
        """All that a timed call costs without a candidate's kernel; `event_us` is how long the head start was."""
        return self._timed({"op": "empty", "data": tree, "copied": copied, "head_start": head_start})

    def burst(self, header: dict[str, Any], opening: Callable[[], None]) -> Returned:
        """Many calls behind a gate, see `sandbox.guest.wire`: the tree of all answers, and the time from `opening` on.

        `opening` hands the inputs over and opens the gate: once all calls are queued, or after `QUEUE_S` anyway, since
        a candidate may wait for its device while it launches.
        """
        frame: Frame | None = None
        with suppress(Late):
            frame = self._ask({"op": "burst", **header}, "queued", within_s=QUEUE_S)
        start = time.perf_counter_ns()
        opening()
        told = frame or self._ask(None, "queued")
        self._ask(None, "returned")
        wall_us = (time.perf_counter_ns() - start) / 1e3
        return Returned(told.header.get("tree"), None, wall_us, queued=frame is not None)

    def _timed(self, header: dict[str, Any]) -> Returned:
        start = time.perf_counter_ns()
        frame = self._ask(header, "returned")
        wall_us = (time.perf_counter_ns() - start) / 1e3
        told = frame.header
        event_us, pair_us, late_us = (_microseconds(told.get(name)) for name in ("event_us", "pair_us", "late_us"))
        return Returned(told.get("tree"), event_us, wall_us, pair_us, late_us or 0.0, told.get("exposed") is True)

    def cache(self) -> bytes:
        """The kernels it compiled since it was loaded, as it packs them: for its own candidate, never read here."""
        return self._ask({"op": "cache"}, "cache").payload

    def kernels(self) -> bytes:
        """Everything it recorded of the kernels launched, as it tells it."""
        return self._ask({"op": "kernels", "after": 0}, "kernels").payload

    def profile(self, tree: dict[str, Any]) -> bytes:
        """What its profilers saw of some calls on what lies in the buffers, as it tells it."""
        return self._ask({"op": "profile", "data": tree}, "profiled").payload

    def leave(self, within_s: float) -> None:
        """Let it go in good order: what it runs under prints its findings then."""
        with suppress(OSError):
            self._program.sock.shutdown(socket.SHUT_RDWR)
        until_s = time.monotonic() + within_s
        while self.alive and time.monotonic() < until_s:
            time.sleep(0.01)

    def output(self) -> str:
        """The end of what it printed: text from the untrusted side."""
        return self._program.output()

    def kill(self) -> None:
        """Kill its whole tree now; whoever waits for it sees it die."""
        self._program.kill()

    def close(self) -> None:
        """Kill its whole tree and reap it."""
        self._program.close()

    def _ask(
        self,
        header: dict[str, Any] | None,
        expected: str,
        payload: bytes = b"",
        fds: Sequence[int] = (),
        within_s: float = math.inf,
    ) -> Frame:
        """Its answer to `header`; without one, the next frame of an answer of several."""
        sock, until_s = self._program.sock, min(self._until(), time.monotonic() + within_s)
        try:
            with self._running():
                if header is not None:
                    wire.send(sock, header, payload, fds, until_s)
                frame = wire.receive(sock, until_s, accept_fds=False)
        except WireLate as error:
            raise Late(f"no {expected!r} in time", self._program.output()) from error
        except WireGone as error:
            ending = self._program.ending()
            raise Died(f"the candidate's process hung up: {ending}", self._program.output()) from error
        except WireError as error:
            raise Forgery(f"sent something that is not a frame: {error}", self._program.output()) from error
        if frame.op in {"failed", "raised"} and frame.header.get("kind") == "unsupported" and self._emulates:
            raise Unsupported(f"emulation cannot run this candidate, a GPU can: {_last_line(frame)}")
        if frame.op in {"failed", "raised"}:
            raise Raised(_last_line(frame), _log(frame), build=frame.header.get("kind") == "build")
        if frame.op != expected:
            raise Forgery(f"answered {frame.op[:32]!r} where {expected!r} was due")
        return frame

    def _until(self) -> float:
        return time.monotonic() + self._left_s

    @contextmanager
    def _running(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._left_s -= time.monotonic() - start


def _microseconds(told: object) -> float | None:
    """A claimed time; infinite for a whole number beyond what a float holds, None for anything that is no number."""
    if not isinstance(told, int | float) or isinstance(told, bool):
        return None
    try:
        return float(told)
    except OverflowError:
        return math.inf


def _log(frame: Frame) -> str:
    log = frame.header.get("log")
    return legible(log[-wire.MAX_LOG :]) if isinstance(log, str) else ""


def _last_line(frame: Frame) -> str:
    lines = _log(frame).strip().splitlines()
    return lines[-1][:500] if lines else "no traceback"
