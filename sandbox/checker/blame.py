"""Who is to blame when a candidate's process dies or hangs: a known-good kernel decides, in a fresh guest of its own.

Where it runs, the machine is sound and the verdict stands. Where it does not, the place of work has failed, and the
candidate is not judged by it. The control is given the very buffers of the case, so that it needs the memory they need.
"""

from __future__ import annotations

from problems.spec import Case
from sandbox.checker.draws import Draws
from sandbox.checker.guest import FAULTS, Guest
from sandbox.checker.layout import INPUTS, RESULT, Layout, changed, fill, lay_out
from sandbox.checker.memory import HostMemory
from sandbox.checker.places import tensors
from sandbox.checker.task import Task
from sandbox.runner import RunnerError

CONTROL_S = 60.0
SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * 2)


def custom_kernel(data):
    known = torch.arange(256, dtype=torch.float32, device="cuda")
    out = torch.empty_like(known)
    double[(1,)](known, out, BLOCK=256)
    if out.tolist() != [2.0 * number for number in range(256)]:
        raise RuntimeError("a known kernel computes wrong values here")
    # As bytes where they are that narrow: not every library copies every fp4 tensor.
    copies = [(part.view(torch.uint8) if part.element_size() == 1 else part).clone() for part in data]
    return data[0] if copies else None
"""
"""Compiles and runs a kernel, reads all it is given, returns the first tensor of it: true of every problem."""


def decide(task: Task, case: Case | None, guest: Guest) -> None:
    """Return where the control runs on `case` (None: on the first test), or raise `RunnerError`."""
    data, _ = Draws(task, case or task.problem.small[0]).fresh()
    # Flat, and all of it on the device: what the candidate was given there, whatever shape it has.
    layout = lay_out(tuple(tensor for _, tensor in tensors(data)))
    inputs, result = HostMemory(layout.bytes), HostMemory(1)
    fill(layout, inputs.tensor)
    try:
        _run(guest, layout, inputs, result)
    except FAULTS as fault:
        told = f"a known-good kernel fails here too: {type(fault).__name__}: {fault.reason}"
        raise RunnerError(f"the machine failed, not the candidate: {told}") from fault
    finally:
        inputs.close()
        result.close()


def _run(guest: Guest, layout: Layout, inputs: HostMemory, result: HostMemory) -> None:
    guest.load(SOURCE, CONTROL_S)
    guest.share([inputs, result])
    tree = guest.call(layout.tree, RESULT).tree
    if not isinstance(tree, dict) or (tree.get("buffer"), tree.get("offset")) != (INPUTS, layout.spans[0].offset):
        raise RunnerError("the machine failed, not the candidate: a known-good kernel's answer is not what it returns")
    if changed(layout, inputs.tensor):
        raise RunnerError("the machine failed, not the candidate: shared memory does not hold what was written to it")
