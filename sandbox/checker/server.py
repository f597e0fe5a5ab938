"""Serves judge requests, one after the other, until the other side hangs up."""

from __future__ import annotations

import contextlib
import fcntl
import json
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch

from problems.elsewhere.pointers import PREFIX
from problems.load import folder
from problems.spec import ProblemError
from sandbox.audit import Audited
from sandbox.checker import blame, contest, emulation, foreign_bar, gpu_timing, profiling, rank_judging
from sandbox.checker.ahead import Ahead
from sandbox.checker.control import Control
from sandbox.checker.device import Device
from sandbox.checker.guest import NotReady
from sandbox.checker.legible import as_json
from sandbox.checker.machine import own_figures
from sandbox.checker.outcome import Outcome, Progress, Request
from sandbox.checker.pool import Pool, spares
from sandbox.checker.screening import screen
from sandbox.checker.subjects import OwnSubject
from sandbox.checker.task import Task, open_task
from sandbox.checker.world import World
from sandbox.comparison import Compared
from sandbox.defences import Defences
from sandbox.guest import wire
from sandbox.harness import judge_sha256
from sandbox.isolation import KINDS, Sandbox, sandbox_named
from sandbox.isolation.measures import in_force
from sandbox.runner import Mode, RunnerError, Unsupported
from sandbox.verdict import Judgement, Machine, Passed, Profile

Judge = Callable[[Task, Request, Progress], Outcome]
Hold = Callable[[Task, tuple[Request, Request], tuple[Progress, Progress], int], contest.Contest]
UNCONFINED = (
    "not confined: the candidate ran as a plain process, which can read files and reach the network; "
    "install bubblewrap (apt-get install bubblewrap)"
)


class Closing(Protocol):
    """Something that must be ended."""

    def close(self) -> None:
        """End it."""


class Bar:
    """One place of judgement: a machine, a device to compute on, a sandbox, and how a candidate is judged there."""

    def __init__(
        self,
        machine: Machine,
        device: str,
        sandbox: Sandbox,
        pool: Pool,
        judge: Judge,
        hold: Hold | None = None,
        others: Sequence[Closing] = (),
    ) -> None:
        """`others`: what ends with it besides the pool."""
        self.machine, self.pool = machine, pool
        self._others = others
        self._device, self._sandbox, self._judge, self._hold = device, sandbox, judge, hold

    def close(self) -> None:
        """End every guest."""
        for other in (self.pool, *self._others):
            other.close()

    def judgement(self, header: dict[str, Any], source: str, following: str | None = None) -> Judgement:
        """Judge one candidate; `RunnerError`, `NotReady` or `ProblemError` where that cannot be done here."""
        if (elsewhere := foreign_bar.problem_in(header)) is not None:
            return foreign_bar.judgement(elsewhere, header, source, self._place, self._turn())
        start = time.monotonic()
        task = self._task(header)
        request = Request(source, Mode(header["mode"]), float(header["deadline_s"]), following)
        progress = self._progress(task)
        return self._judgement(task, self._judge(task, request, progress), progress, start)

    def compared(self, header: dict[str, Any], sources: tuple[str, str]) -> Compared:
        """Judge two candidates and time them against each other; raises as `judgement` does."""
        if self._hold is None:
            raise Unsupported("two candidates are timed against each other on a GPU; the CPU's estimates need no clock")
        start, task = time.monotonic(), self._task(header)
        if task.problem.world_size > 1:
            raise Unsupported("two candidates are timed against each other on one GPU; this problem is on several")
        deadline_s = float(header["deadline_s"])
        requests = Request(sources[0], Mode.BENCHMARK, deadline_s), Request(sources[1], Mode.BENCHMARK, deadline_s)
        progress = self._progress(task), self._progress(task)
        held = self._hold(task, requests, progress, int(header["pairs"]))
        first, second = (
            self._judgement(task, outcome, one, start) for outcome, one in zip(held.outcomes, progress, strict=True)
        )
        return Compared(first=first, second=second, cases=held.cases, overall=held.overall)

    def audited(self, header: dict[str, Any]) -> Audited:
        """Screen a problem; raises as `judgement` does."""
        if (elsewhere := foreign_bar.problem_in(header)) is not None:
            return foreign_bar.audited(elsewhere, self._place, self._turn())
        return screen(OwnSubject(self._task(header)))

    @property
    def _place(self) -> foreign_bar.Place:
        return self.machine, self._device, self._sandbox, self.pool

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        return _alone() if self._device == "cuda" else contextlib.nullcontext()

    def _task(self, header: dict[str, Any]) -> Task:
        defences = Defences.model_validate_json(header["defences"])
        if str(header["problem"]).startswith(PREFIX):
            raise Unsupported("two candidates are compared on this project's own problems only, not on imported ones")
        return open_task(str(header["problem"]), Path(str(header["root"])), self._device, defences)

    def _progress(self, task: Task) -> Progress:
        progress = Progress()
        if task.defences.off:
            progress.flags.append(f"not to be relied on: judged without {', '.join(task.defences.off)}")
        if self._sandbox.name == "process":
            progress.flags.append(UNCONFINED)
        return progress

    def _judgement(self, task: Task, outcome: Outcome, progress: Progress, start: float) -> Judgement:
        if progress.ended:
            self._blame(task, progress)
        harness = judge_sha256(folder(task.problem, task.root))
        return Judgement(
            verdict=outcome.verdict,
            machine=self.machine.model_copy(update={"harness": harness}),
            sandbox=in_force(self._sandbox.name),
            seeds=tuple(progress.seeds),
            kernels=outcome.kernels,
            profiles=outcome.profiles,
            flags=tuple(progress.flags),
            wall_s=time.monotonic() - start,
        )

    def _blame(self, task: Task, progress: Progress) -> None:
        """`RunnerError` where a control kernel fares no better than the candidate did."""
        gpu = self._device == "cuda"
        modes = ("device" if gpu else "emulate",)
        with _alone() if gpu else contextlib.nullcontext(), self.pool.lend(modes) as [guest]:
            blame.decide(task, progress.case, guest)


def cpu_bar(machine: Machine, sandbox: Sandbox, chip_name: str, racecheck: bool = False) -> Bar:
    """Judging by emulation, estimating for `chip_name`; with `racecheck` slower, and HIP kernels' order is checked."""
    from problems.chips import chip

    target = chip(chip_name)
    if target.arch not in emulation.TARGETS:
        known = "MI300X (gfx942) or MI355X (gfx950)"
        raise Unsupported(f"the CPU runner compiles for AMD chips; {chip_name} is {target.arch}: name {known}")
    # The first target is the one a guest launches as: what does not compile for it fails.
    targets = sorted(emulation.TARGETS, key=lambda name: name != target.arch)
    options = ("--racecheck",) if racecheck else ()
    pool = Pool(sandbox, {"emulate": targets, "capture": (target.arch,)}, options=options)

    def judge(task: Task, request: Request, progress: Progress) -> Outcome:
        if task.problem.world_size > 1:
            return rank_judging.emulated(
                task, request, partial(World, "emulate", targets, sandbox, options=options), progress
            )
        with pool.lend(emulation.modes(request.mode)) as guests:
            outcome = emulation.judge(task, request, guests, target, progress)
        return _profiled(request, outcome, lambda: profiling.compiled(outcome.kernels))

    return Bar(machine, "cpu", sandbox, pool, judge)


def gpu_bar(machine: Machine, device: Device, sandbox: Sandbox) -> Bar:
    """Judging on the first GPU that torch sees."""
    # A device guest compiles for what it runs on; the targets are those its evidence would name.
    pool = Pool(sandbox, {"device": emulation.TARGETS}, depth=spares())
    controls = Pool(sandbox, {"device": emulation.TARGETS})
    device.control = control = Control(controls)
    ahead = Ahead(sandbox, machine.arch, own_figures())

    def judge(task: Task, request: Request, progress: Progress) -> Outcome:
        with _alone():
            if task.problem.world_size > 1:
                start = partial(World, "device", emulation.TARGETS, sandbox)
                gpus = torch.cuda.device_count()
                return rank_judging.on_gpus(task, request, start, machine.chip, gpus, progress)
            device.connect(pool)
            request = replace(request, stock=ahead.take(task, request.source))
            ahead.begin(task, request.following)
            with pool.lend(("device",)) as [guest]:
                outcome = gpu_timing.judge(task, request, guest, device, progress)
            return _profiled(request, outcome, lambda: profiling.take(task, request, pool, device))

    def hold(
        task: Task, requests: tuple[Request, Request], progress: tuple[Progress, Progress], pairs: int
    ) -> contest.Contest:
        with _alone():
            device.connect(pool)
            with pool.lend(("device", "device")) as guests:
                sides = [contest.Side(*each) for each in zip(requests, guests, progress, strict=True)]
                return contest.hold(task, sides[0], sides[1], device, pairs)

    with contextlib.suppress(NotReady):
        controls.warm()
    return Bar(machine, "cuda", sandbox, pool, judge, hold, (control, ahead))


def _profiled(request: Request, outcome: Outcome, take: Callable[[], tuple[Profile, ...]]) -> Outcome:
    """With profiles, where they were asked for and the candidate passed; its verdict is made already."""
    wanted = request.mode is Mode.PROFILE and isinstance(outcome.verdict, Passed)
    return replace(outcome, profiles=take()) if wanted else outcome


def serve(sock: socket.socket, bar: Bar) -> None:
    """Answer requests until the other side hangs up. Between them the next guests warm up."""
    with contextlib.suppress(NotReady):
        bar.pool.warm()
    # torch imports most of its compiler when it first draws on the meta device: now, while the guests start.
    torch.randn(1, device="meta")
    while True:
        try:
            frame = wire.receive(sock, accept_fds=False)
        except wire.WireError:
            return
        answer, payload = _answer(bar, frame)
        wire.send(sock, answer, payload)
        with contextlib.suppress(NotReady):
            bar.pool.warm()


def fault(kind: str, message: str) -> dict[str, Any]:
    """The answer where the place of work failed: `kind` is ``runner``, ``unsupported`` or ``problem``."""
    return {"op": "fault", "kind": kind, "message": message[-8192:]}


def _answer(bar: Bar, frame: wire.Frame) -> tuple[dict[str, Any], bytes]:
    try:
        return _answered(bar, frame)
    except ProblemError as error:
        return fault("problem", str(error)), b""
    except (Unsupported, torch.OutOfMemoryError, MemoryError) as error:
        return fault("unsupported", str(error)), b""
    except (RunnerError, NotReady, OSError) as error:
        return fault("runner", str(error)), b""


def _answered(bar: Bar, frame: wire.Frame) -> tuple[dict[str, Any], bytes]:
    if frame.op == "audit":
        return {"op": "audited"}, bar.audited(frame.header).model_dump_json().encode()
    if frame.op == "compare":
        first, second = json.loads(frame.payload)
        compared = bar.compared(frame.header, (first, second))
        return {"op": "compared"}, as_json(compared)
    source, *following = json.loads(frame.payload)
    judgement = bar.judgement(frame.header, source, *following)
    return {"op": "judgement"}, as_json(judgement)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One candidate at a time on a timed GPU, over all processes of this machine."""
    path = Path(tempfile.gettempdir()) / f"kernelwright-gpu-{_gpu()}.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def named(name: str | None, choose: Callable[[], Sandbox]) -> Sandbox:
    """The sandbox asked for by name, or the one chosen; `RunnerError` for an unknown name."""
    if name is None:
        return choose()
    try:
        return sandbox_named(name)
    except KeyError:
        raise RunnerError(f"no sandbox is called {name!r}; there are {', '.join(KINDS)}") from None


def _gpu() -> str:
    """What tells this GPU from the machine's others, for every process alike."""
    properties = torch.cuda.get_device_properties(0)
    return str(getattr(properties, "uuid", None) or getattr(properties, "pci_bus_id", 0))
