"""How often a kernel is found unlike itself, and how often a twin that takes 2 % longer is found slower. Needs a GPU.

``python -m tests.bench.self_compare [--n 200] [--pairs 60] [--guests 4] [--what both|self|slower] [--out FILE]``

Each comparison is one of `sandbox.checker.contest` on fresh inputs; they are shared out over several pairs of guests,
so that where a process's memory happens to lie is part of what is tested. The clocks are not held against each other
here: it would double the calls, and events decide wherever the two agree.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from problems.spec import Case
from sandbox.checker.contest import Side, Turns
from sandbox.checker.guest import Guest
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Progress, Request
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench
from sandbox.comparison import PAIRS, Difference, difference, log_ratios
from sandbox.runner import Mode
from tests.bench.place import DEADLINE_S, Place, leave, place

SPIN_CYCLES = 160_000
"""About 85 us on an H200; with the addition of 2 x 8 MiB behind it about 100 us in all."""
TWIN = """
import torch
def custom_kernel(data):
    a, b, out = data
    torch.cuda._sleep({cycles})
    return torch.add(a, b, out=out)
"""
CASE = Case(params={"size": 2048})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--guests", type=int, default=4, help="pairs of guests that the comparisons are shared over")
    parser.add_argument("--what", choices=("both", "self", "slower"), default="both")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    start_s, found = time.monotonic(), dict[str, object]()
    with place() as here:
        found["machine"] = here.machine.model_dump(mode="json")
        task = here.task("pmpp/vectoradd", [CASE])
        task = Task(task.problem, task.reference, "cuda", task.root, task.defences.without("clock_agreement"))
        base_us = 0.0
        for what in ("self", "slower") if options.what == "both" else (options.what,):
            second = SPIN_CYCLES if what == "self" else SPIN_CYCLES + extra_cycles(base_us or probe(here, task))
            results, base_us = compared(here, task, second, options.n, options.pairs, options.guests)
            found[what] = [result.model_dump(mode="json") for result in results]
            report(what, results, base_us)
    print(f"{time.monotonic() - start_s:.0f} s")
    leave(options.out, found)


def compared(
    here: Place, task: Task, second_cycles: int, count: int, pairs: int, groups: int
) -> tuple[list[Difference], float]:
    """`count` comparisons of the base kernel with its twin, and the base kernel's median time."""
    results: list[Difference] = []
    times: list[float] = []
    sources = TWIN.format(cycles=SPIN_CYCLES), TWIN.format(cycles=second_cycles)
    with here.pool.lend(("device",) * (2 * groups)) as guests:
        for group in range(groups):
            sides = _sides(guests[2 * group : 2 * group + 2], sources)
            share = here.device.share or HostMemory
            benches = [Bench(task, CASE, "benchmark", side.guest, share) for side in sides]
            for _ in range(count * group // groups, count * (group + 1) // groups):
                turns = Turns(task, CASE, sides, benches, here.device)
                turns.run(pairs)
                assert not any(side.outcome for side in sides), [side.outcome for side in sides]
                first, second = (calls.samples_us for calls in turns.calls)
                results.append(difference(log_ratios(first, second)))
                times += first
            for bench in benches:
                bench.close()
    return results, sorted(times)[len(times) // 2]


def probe(here: Place, task: Task) -> float:
    """The base kernel's time."""
    return compared(here, task, SPIN_CYCLES, 1, 20, 1)[1]


def extra_cycles(base_us: float) -> int:
    """Two per cent of the whole, as cycles of the spin: its own time is that share of the whole it was made of."""
    spin_us = base_us - ADDITION_US
    return round(0.02 * base_us * SPIN_CYCLES / spin_us)


ADDITION_US = 10.0
"""24 MiB through HBM and a launch: what of the whole is not the spin. An error of 5 us here makes 2 % into 2.1 %."""


def report(what: str, results: Sequence[Difference], base_us: float) -> None:
    """One line."""
    counts = Counter(result.outcome for result in results)
    ratios = sorted(result.ratio for result in results)
    detectable = sorted(result.detectable for result in results)[len(results) // 2]
    print(
        f"{what:7} n {len(results)}, {base_us:.1f} us: faster {counts['faster']}, slower {counts['slower']}, "
        f"no significant difference {counts['no significant difference']}; ratio {ratios[len(ratios) // 2]:.4f} "
        f"({ratios[0]:.4f} to {ratios[-1]:.4f}), detectable {detectable:.2%}",
        flush=True,
    )


def _sides(guests: Sequence[Guest], sources: tuple[str, str]) -> tuple[Side, Side]:
    sides = [
        Side(Request(source, Mode.BENCHMARK, DEADLINE_S), guest, Progress())
        for source, guest in zip(sources, guests, strict=True)
    ]
    for side in sides:
        side.guest.load(side.request.source, DEADLINE_S)
    return sides[0], sides[1]


if __name__ == "__main__":
    main()
