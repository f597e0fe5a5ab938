"""Trusted times against CUPTI's kernel durations, and one kernel judged over and over. Needs a GPU.

``python -m tests.bench.clock_truth [--out FILE] [--judgings 20]``

CUPTI is read through torch's profiler in this process, with the same inputs, flush and head start as the judge's calls;
it is started before the flush, so that what starting it takes is no pause of the device.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from problems.spec import Case
from sandbox.checker.task import Task
from sandbox.checker.trial import HEAD_START
from sandbox.clock import spread
from sandbox.verdict import Measured
from tests.bench.place import KERNELS, Place, leave, place, seed_source

CALLS = 20
JUDGED_SIZES = (4096, 8192)
KERNELS_TIMED: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("pmpp/vectoradd", "pmpp/vectoradd/flat", {"size": 1024}),
    ("pmpp/vectoradd", "pmpp/vectoradd/flat", {"size": 4096}),
    ("pmpp/vectoradd", "pmpp/vectoradd/flat", {"size": 8192}),
    ("pmpp/matmul", "pmpp/matmul/grouped", {"m": 4096, "n": 5120, "k": 4096}),
    ("pmpp/matmul", "pmpp/matmul/grouped", {"m": 10240, "n": 10240, "k": 10240}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--judgings", type=int, default=20)
    options = parser.parse_args()
    start_s = time.monotonic()
    with place() as here:
        rows = [truth(here, *kernel) for kernel in KERNELS_TIMED]
        judged = {size: repeated(here, options.judgings, size) for size in JUDGED_SIZES}
    within = sum(bool(row["within"]) for row in rows)
    print(f"{within} of {len(rows)} within 3 % or 1 us of CUPTI; {time.monotonic() - start_s:.0f} s")
    leave(
        options.out,
        {"machine": here.machine.model_dump(mode="json"), "kernels": rows, "medians_us": judged},
    )


def truth(here: Place, problem: str, seed: str, params: dict[str, Any]) -> dict[str, object]:
    """One kernel by both."""
    task = here.task(problem, [Case(params=params)])
    with here.pool.lend(("device",)) as [guest]:
        [timed], flags = here.timed(task, seed_source(seed), guest)
    cupti = cupti_us(here, task, KERNELS / seed / "submission.py")
    true_us = statistics.median(cupti)
    off_us = timed.us - true_us
    within = abs(off_us) <= max(1.0, 0.03 * true_us)
    print(
        f"{task.problem.benchmarks[0].label():28} trusted {timed.us:9.2f} us {_interval(timed)} "
        f"n {len(timed.samples_us):3}  CUPTI {true_us:9.2f} us  off {off_us:+6.2f} us ({off_us / true_us:+.2%})  "
        f"{'ok' if within else 'OFF'}  clocks {timed.agreement}, "
        f"the checker's {statistics.median(timed.checker_us):.1f} us",
        flush=True,
    )
    return {"cupti_us": cupti, "within": within, "flags": flags, "timed": timed.model_dump(mode="json")}


def cupti_us(here: Place, task: Task, path: Path) -> list[float]:
    """Summed kernel durations of each of `CALLS` calls, by CUPTI."""
    case, kernel = task.problem.benchmarks[0], _kernel(path)
    for seed in range(3):
        kernel(task.inputs(case, seed + 1))
    torch.cuda.synchronize()
    found = []
    for call in range(CALLS):
        data = task.inputs(case, 100 + call)
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiled:
            here.device.flush()
            torch.cuda._sleep(HEAD_START)
            kernel(data)
            torch.cuda.synchronize()
        ran = [event for event in profiled.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        ran.sort(key=lambda event: event.time_range.start)
        spun = next(number for number, event in enumerate(ran) if "spin_kernel" in event.name)
        found.append(sum(event.device_time for event in ran[spun + 1 :]))
        del data
    torch.cuda.empty_cache()
    return found


def repeated(here: Place, count: int, size: int) -> list[float]:
    """Medians of one kernel judged `count` times, each time in a fresh guest."""
    task = here.task("pmpp/vectoradd", [Case(params={"size": size})])
    medians = []
    with here.pool.lend(("device",) * count) as guests:
        for guest in guests:
            [timed], _ = here.timed(task, seed_source("pmpp/vectoradd/flat"), guest)
            medians.append(timed.us)
    ordered, apart = sorted(medians), spread(medians)
    within = spread(ordered[1:-1]) if count > 3 else apart
    print(
        f"vectoradd {size} judged {count} times: medians {ordered[0]:.2f} to {ordered[-1]:.2f} us, {apart:.2%} apart; "
        f"{within:.2%} without the lowest and the highest",
        flush=True,
    )
    return medians


def _kernel(path: Path) -> Callable[[Any], Any]:
    """A seed kernel, imported here: it is ours."""
    sys.modules.setdefault("task", types.SimpleNamespace(input_t=Any, output_t=Any))  # type: ignore[arg-type]
    specification = importlib.util.spec_from_file_location(f"seed_{path.parent.name}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module.custom_kernel


def _interval(timed: Measured) -> str:
    return "[{:.2f}, {:.2f}]".format(*timed.interval_us) if timed.interval_us else ""


if __name__ == "__main__":
    main()
