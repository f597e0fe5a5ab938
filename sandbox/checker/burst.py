"""Many calls in one handshake, behind a gate: the checker's clock for kernels that one call is too short for.

The guest queues its calls behind a wait on a shared word and says so. Only then are the inputs copied into its buffers
and the gate opened: before that the data is not there to be worked on, and no launch is in the time. The clock runs
from before the copy, since whoever watches the buffers fill and starts early then gains nothing: contexts share the
device by turns. The same in a guest without a candidate, round as many empty kernels, is taken off; what scatters by
the handshake is divided by the number of calls.
"""

from __future__ import annotations

import torch

from problems.spec import Case
from sandbox import clock
from sandbox.checker.control import Control, copied
from sandbox.checker.device import Device
from sandbox.checker.guest import Forgery, Guest, Returned
from sandbox.checker.layout import RESULT, Layout, fill, poison
from sandbox.checker.memory import HostMemory, Shared
from sandbox.checker.outcome import Progress, Refuted
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench
from sandbox.timing import Measured

ROUNDS = 3
MOST_CALLS = 64
MEMORY = 0.2
"""The share of the device's free memory that one burst may take."""


def settle(task: Task, measured: Measured, guest: Guest, device: Device, progress: Progress) -> Measured:
    """The same time held against the checker's clock over bursts; as it is where they cannot be had or are not needed.

    `Refuted` where an answer of theirs is wrong.
    """
    if device.control is None or device.share in (None, HostMemory) or measured.agreement != "unresolved":
        return measured
    count = _calls(task, measured, torch.cuda.mem_get_info()[0])
    if count < 2:
        return measured
    progress.case = measured.case
    burst = Burst(task, measured.case, guest, device, count)
    try:
        burst.take(device.control, progress)  # Finds the room that so many results at once take.
        taken = [burst.take(device.control, progress) for _ in range(ROUNDS)]
    finally:
        burst.close()
        torch.cuda.empty_cache()
    progress.case = None
    burst_us = [us for us in taken if us is not None]
    if len(burst_us) < ROUNDS:
        progress.flags.append(f"{measured.case.label()}: waits for its device while it launches: no burst was timed")
        return measured
    clocks = clock.compare_bursts(measured.samples_us, burst_us, count)
    found = {"burst_us": tuple(burst_us), "burst_calls": count, "agreement": clocks.agreement}
    sure = (clocks.trusted.low, clocks.trusted.high) if clocks.agreement == "disagree" else measured.interval_us
    return measured.model_copy(update={**found, "bound_us": clocks.bound_us, "interval_us": sure})


def _calls(task: Task, measured: Measured, free_bytes: int) -> int:
    """So many that the handshake's scatter is a small part of what one call takes, and that they fit; 0 for none.

    Inputs on the host cannot be held back until a gate on the device opens.
    """
    shapes = task.lay_out(task.shapes(measured.case))
    if shapes.host_bytes:
        return 0
    room = int(MEMORY * free_bytes / (4 * shapes.bytes + 1))
    # Two at the least: what a longer head start hides of a single call, a burst has in sight.
    return min(max(clock.calls_to_resolve(measured.us), 2), MOST_CALLS, room)


class Burst(Bench):
    """The shared buffers of `count` calls of one case, each with inputs and room for a result of its own."""

    def __init__(self, task: Task, case: Case, guest: Guest, device: Device, count: int) -> None:
        self._gate = HostMemory(1, "cpu")
        super().__init__(task, case, "benchmark", guest, device.share or HostMemory, count)
        self._count, self._device = count, device
        # What the guest has not been given yet lies here, out of its sight.
        self._staged = torch.empty_like(self._inputs.tensor)

    @property
    def buffers(self) -> list[Shared]:
        """What the guest sees: all inputs, then all results, then the gate."""
        return [self._inputs, self._result, self._gate]

    def close(self) -> None:
        """Give the buffers back."""
        self._staged = torch.empty(0)
        self._gate.close()
        super().close()

    def take(self, control: Control, progress: Progress) -> float | None:
        """Microseconds a call by the checker's clock; None where the calls could not all be queued."""
        draws = [self._draws.fresh() for _ in range(self._count)]
        self._stage([self._task.lay_out(data) for data, _ in draws])
        calls = {"data": self.tree, "apart": self._apart, "count": self._count, "result": RESULT}
        returned = self._guest.burst({**calls, "gate": len(self.buffers) - 1}, self._opening)
        # Taken at once: the guest can still write where its results lie.
        taken = [self._take(part) for part in self._parts(returned)]
        for (data, seed), (parts, unfit) in zip(draws, taken, strict=True):
            trial = self._judge(data, seed, returned, parts, unfit)
            progress.seeds.append(seed)
            if not trial.check.passed:
                progress.checks.append(trial.check)
                raise Refuted(f"{self._case.label()}, in a burst of {self._count} calls: {trial.reason}")
        out_bytes = copied(returned.tree)
        empty = control.burst(self._count, out_bytes, self._open)
        if not returned.queued or not empty.queued:
            return None
        # Who keeps the device busy meanwhile would make its own calls seem short: no more is believed than was calm.
        most_us = self._device.calm_burst_us(self._count, self._inputs.bytes + out_bytes)
        return (returned.wall_us - min(empty.wall_us, most_us)) / self._count

    def _stage(self, layouts: list[Layout]) -> None:
        """Shut the gate, spoil what the last burst left, and make the next inputs ready."""
        self._gate.tensor.zero_()
        self._inputs.tensor.fill_(0xFF)
        poison(self._result.tensor, self._wanted.parts[0].dtype)
        for index, layout in enumerate(layouts):
            fill(layout, self._staged[index * self._apart :])
        # All of it before the calls are queued: what is still under way when the clock starts would be in their time.
        self._device.settle()

    def _opening(self) -> None:
        self._open(self._gate)

    def _open(self, gate: Shared) -> None:
        """Hand the inputs over and open the gate."""
        self._inputs.tensor.copy_(self._staged)
        self._device.settle()
        gate.tensor[0] = 1

    def _parts(self, returned: Returned) -> list[Returned]:
        """Each call's answer."""
        tree = returned.tree
        items = tree.get("items") if isinstance(tree, dict) and tree.get("t") == "list" else None
        if not isinstance(items, list) or len(items) != self._count:
            raise Forgery(f"answered a burst of {self._count} calls with something else than as many results")
        return [Returned(item, None, returned.wall_us) for item in items]
