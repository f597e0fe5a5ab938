"""Serves judge requests, one after the other, until the other side hangs up."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from problems.load import folder
from problems.spec import ProblemError
from sandbox.checker import emulation, gpu_timing
from sandbox.checker.guest import NotReady
from sandbox.checker.outcome import Outcome, Progress, Request
from sandbox.checker.pool import Pool
from sandbox.checker.task import Task, open_task
from sandbox.defences import Defences
from sandbox.guest import wire
from sandbox.harness import judge_sha256
from sandbox.isolation import KINDS, Sandbox, sandbox_named
from sandbox.runner import Mode, RunnerError, Unsupported
from sandbox.verdict import Judgement, Machine

Judge = Callable[[Task, Request, Progress], Outcome]
UNCONFINED = (
    "not confined: the candidate ran as a plain process, which can read files and reach the network; "
    "install bubblewrap (apt-get install bubblewrap)"
)


class Bar:
    """One place of judgement: a machine, a device to compute on, a sandbox, and how a candidate is judged there."""

    def __init__(self, machine: Machine, device: str, sandbox: Sandbox, pool: Pool, judge: Judge) -> None:
        self.machine, self.pool = machine, pool
        self._device, self._sandbox, self._judge = device, sandbox, judge

    def judgement(self, header: dict[str, Any], source: str) -> Judgement:
        """Judge one candidate; `RunnerError`, `NotReady` or `ProblemError` where that cannot be done here."""
        start = time.monotonic()
        root = Path(str(header["root"]))
        defences = Defences.model_validate_json(header["defences"])
        task = open_task(str(header["problem"]), root, self._device, defences)
        request = Request(source, Mode(header["mode"]), float(header["deadline_s"]))
        progress = Progress()
        if defences.off:
            progress.flags.append(f"not to be relied on: judged without {', '.join(defences.off)}")
        if self._sandbox.name == "process":
            progress.flags.append(UNCONFINED)
        outcome = self._judge(task, request, progress)
        harness = judge_sha256(folder(task.problem, root))
        return Judgement(
            verdict=outcome.verdict,
            machine=self.machine.model_copy(update={"harness": harness}),
            sandbox=self._sandbox.name,
            seeds=tuple(progress.seeds),
            kernels=outcome.kernels,
            flags=tuple(progress.flags),
            wall_s=time.monotonic() - start,
        )


def cpu_bar(machine: Machine, sandbox: Sandbox, chip_name: str) -> Bar:
    """Judging by emulation, estimating for `chip_name`."""
    from problems.chips import chip

    target = chip(chip_name)
    if target.arch not in emulation.TARGETS:
        known = "MI300X (gfx942) or MI355X (gfx950)"
        raise Unsupported(f"the CPU runner compiles for AMD chips; {chip_name} is {target.arch}: name {known}")
    # The first target is the one a guest launches as: what does not compile for it fails.
    targets = sorted(emulation.TARGETS, key=lambda name: name != target.arch)
    pool = Pool(sandbox, {"emulate": targets, "capture": (target.arch,)})

    def judge(task: Task, request: Request, progress: Progress) -> Outcome:
        with pool.lend(emulation.modes(request.mode)) as guests:
            return emulation.judge(task, request, guests, target, progress)

    return Bar(machine, "cpu", sandbox, pool, judge)


def gpu_bar(machine: Machine, device: gpu_timing.Device, sandbox: Sandbox) -> Bar:
    """Judging on the first GPU that torch sees."""
    # A device guest compiles for what it runs on; the targets are those its evidence would name.
    pool = Pool(sandbox, {"device": emulation.TARGETS})

    def judge(task: Task, request: Request, progress: Progress) -> Outcome:
        with _alone():
            device.connect(pool)
            with pool.lend(("device",)) as [guest]:
                return gpu_timing.judge(task, request, guest, device, progress)

    return Bar(machine, "cuda", sandbox, pool, judge)


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
        judgement = bar.judgement(frame.header, frame.payload.decode())
    except ProblemError as error:
        return fault("problem", str(error)), b""
    except (Unsupported, torch.OutOfMemoryError, MemoryError) as error:
        return fault("unsupported", str(error)), b""
    except (RunnerError, NotReady, OSError) as error:
        return fault("runner", str(error)), b""
    return {"op": "judgement"}, judgement.model_dump_json().encode()


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
