"""``python -m tests.soak [--minutes 20]``: honest and hostile candidates through one judge, then what they left.

Exit status 0 where nothing leaked and memory stayed flat, else 1.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from evals.redteam_corpus import Specimen, corpus
from problems.load import load
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode, RunnerError
from tests.soak import traces

CORPUS = Path(__file__).parents[1] / "exploits"
DEADLINE_S = 8.0
WARM_UP = 4
END_S = 10.0
"""The kernel takes its time to end what was killed last, on a busy machine."""
TORCH_CACHE = "torchinductor_"
"""One folder a user, which torch makes when imported."""
FEWEST_FOR_A_TREND = 40
FLAT_BYTES, FLAT_SHARE = 8 << 20, 0.03
"""Growth over the second half that still counts as flat: the larger of the two."""
FLAT_DESCRIPTORS = 2.0


@dataclass
class Watch:
    """What was seen while it ran."""

    namespaces: set[str] = field(default_factory=set)
    checkers: set[int] = field(default_factory=set)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Note the guests' namespaces, again and again: a daemon is known by where it lives."""
        while not self.ended.wait(0.2):
            self.namespaces |= traces.foreign_namespaces(traces.children(os.getpid()))

    def sample(self) -> None:
        """Descriptors and memory of this process and of the checker."""
        checker = traces.checker_of(os.getpid())
        if checker is not None:
            self.checkers.add(checker)
        for name, pid in (("control", os.getpid()), ("checker", checker)):
            if pid is not None:
                at = time.monotonic()
                self.samples.setdefault(f"{name} memory", []).append((at, traces.memory_bytes(pid)))
                self.samples.setdefault(f"{name} descriptors", []).append((at, traces.descriptors(pid)))


def soak(seconds: float, seed: int, watch: Watch) -> None:
    """Judge for that long, honest and hostile in turn, in an order drawn by lot."""
    specimens = [one for one in corpus(CORPUS) if one.runs_on("cpu")]
    draw = random.Random(seed)
    kinds = [[one for one in specimens if one.hostile is hostile] for hostile in (False, True)]
    runner, end_s, count = CpuRunner(), time.monotonic() + seconds, 0
    try:
        while time.monotonic() < end_s or count < WARM_UP + 2:
            _judge(runner, draw.choice(kinds[count % 2]), watch)
            count += 1
            if count > WARM_UP:
                watch.sample()
    finally:
        runner.close()


def _judge(runner: CpuRunner, specimen: Specimen, watch: Watch) -> None:
    kind = "hostile" if specimen.hostile else "honest"
    try:
        judgement = runner.judge(load(specimen.problem), specimen.candidate, Mode.TEST, DEADLINE_S)
        watch.verdicts[kind, judgement.verdict.kind] += 1
    except RunnerError as error:
        watch.verdicts[kind, "machine fault"] += 1
        watch.faults.append(f"{specimen.name}: {str(error).splitlines()[0][:200]}")


def report(watch: Watch, before: dict[str, set[str]], folder: Path) -> list[str]:
    """Print the table; the rows that are leaks."""
    leaks: list[str] = []

    def row(what: str, found: str, bad: bool) -> None:
        print(f"{'LEAK' if bad else 'ok':5} {what:22} {found}")
        if bad:
            leaks.append(what)

    left = traces.living_in(watch.namespaces)
    row("processes", f"{len(left)} left of {len(watch.namespaces)} sandboxes", bool(left))
    ours = traces.children(os.getpid())
    row("children", f"{len(ours)} left", bool(ours))
    for what, now in (("tmpfs mounts", traces.mounts()), ("shared memory", traces.shared_memory())):
        more = now - before[what]
        row(what, f"{len(more)} more {sorted(more)[:3] or ''}", bool(more))
    groups = set().union(*(traces.cgroups(pid) for pid in watch.checkers))
    row("cgroups", f"{len(groups)} left", bool(groups))
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith(TORCH_CACHE))
    row("temporary files", f"{len(files)} left {files[:3] or ''}", bool(files))
    row("checkers", f"{len(watch.checkers)} in all", len(watch.checkers) != 1)
    for name, samples in sorted(watch.samples.items()):
        found = traces.trend(samples)
        unit, scale = ("MiB", 1 << 20) if "memory" in name else ("", 1)
        flat = max(FLAT_BYTES, FLAT_SHARE * found.first) if unit else FLAT_DESCRIPTORS
        told = f"{found.first / scale:.1f} -> {found.last / scale:.1f} {unit}, trend {found.growth / scale:+.2f}"
        enough = len(samples) >= FEWEST_FOR_A_TREND
        row(name, told if enough else f"{told} (n {len(samples)}: too few to judge)", enough and found.growth > flat)
    return leaks


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    before = {"tmpfs mounts": traces.mounts(), "shared memory": traces.shared_memory()}
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="kw-soak-") as name:
        os.environ["TMPDIR"] = name  # the checker's too
        looking = threading.Thread(target=watch.look, daemon=True)
        looking.start()
        start_s = time.monotonic()
        soak(options.minutes * 60, options.seed, watch)
        watch.ended.set()
        looking.join()
        end_s = time.monotonic() + END_S
        while traces.living_in(watch.namespaces) and time.monotonic() < end_s:
            time.sleep(0.1)
        count = sum(watch.verdicts.values())
        print(f"{count} candidates in {time.monotonic() - start_s:.0f} s, seed {options.seed}")
        for (kind, verdict), times in sorted(watch.verdicts.items()):
            print(f"      {kind:8} {verdict:14} {times}")
        for fault in watch.faults[:10]:
            print(f"      machine fault: {fault}")
        leaks = report(watch, before, Path(name))
    print(f"leaks: {', '.join(leaks)}" if leaks else "no leaks")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
