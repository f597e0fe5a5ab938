"""Bugs planted in the HIP seeds, one at a time: is each found, and by its right name?

``python -m tests.bench.planted [--seed NAME ...] [--record FILE]``: each text of a seed with one bug is judged on a CPU
as any candidate, and with ``racecheck`` where that does not name the bug. One of order or memory must be named, with
its kernel and line; one that only computes something else must be a wrong answer. Prints a row each; the status says
whether all were. ``--record`` writes the table as a page.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from problems import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from tests.bench.place import seed_source
from tests.bench.variants import commit

WRONG, FAULT = "wrong_answer", "HipFault: "
HEAD = """# Bugs planted in HIP seeds

Each is one edit of a seed kernel, judged on a CPU by `kernelwright check` and, where that does not name the bug, with
`--racecheck`; written by `python -m tests.bench.planted`. Emulated: nothing here ran on a GPU. "Expected" is what must
be said: a kind of fault, or a wrong answer where the code is orderly and computes something else. Ranks are processes:
the order between two of them is not followed, only that an atomic on a peer's memory reaches it.
"""


@dataclass(frozen=True, slots=True)
class Bug:
    """One edit, and what must be said of it."""

    what: str
    old: str
    new: str
    expected: str
    """A kind of `HipFault`, or ``wrong_answer``."""


PLANTED: dict[str, tuple[Bug, ...]] = {
    "amd/fp8-mm/mfma_hip": (
        Bug(
            "wrong lane layout of an operand",
            "k + lane / 32 * 8;\n          left",
            "k + lane % 2 * 8;\n          left",
            WRONG,
        ),
        Bug(
            "wrong lane layout of the result",
            "int row = first_row + row0 + i * 32 + r / 4 * 8 + r % 4",
            "int row = first_row + row0 + i * 32 + r % 4 * 8 + r / 4",
            WRONG,
        ),
        Bug(
            "no barrier between filling LDS and reading it",
            "      __syncthreads();\n      for (int k",
            "      for (int k",
            "missing barrier",
        ),
        Bug(
            "no barrier between reading LDS and filling it again",
            "      if (step + STEP < BLOCK) __syncthreads();\n",
            "",
            "missing barrier",
        ),
        Bug("parts of k share one place for their sums", "(long(part) * m + row) * n", "long(row) * n", "race"),
        Bug(
            "the last block of k left out",
            "block < min(blocks, (part + 1) * each)",
            "block < min(blocks, (part + 1) * each) - 1",
            WRONG,
        ),
        Bug(
            "one row beyond the edge written",
            "if (row >= m || column >= n) continue;",
            "if (row > m || column >= n) continue;",
            "out of bounds",
        ),
        Bug(
            "LDS too small for its rows",
            "a_tile[TILE * STRIDE], b_tile[TILE * STRIDE]",
            "a_tile[TILE * STRIDE], b_tile[TILE * STRIDE - 512]",
            "out of bounds",
        ),
        Bug(
            "scales of half the rows never written",
            "if (step == 0 && threadIdx.x < TILE) {",
            "if (step == 0 && threadIdx.x < TILE / 2) {",
            "uninitialised shared memory",
        ),
        Bug(
            "half of each wave at the barrier",
            "      __syncthreads();\n      for (int k",
            "      if (lane < 32) __syncthreads();\n      for (int k",
            "divergent barrier",
        ),
        Bug("wrong fp8 flavour: e5m2", "mfma_f32_32x32x16_fp8_fp8(", "mfma_f32_32x32x16_bf8_bf8(", WRONG),
    ),
    "amd/all2all/flags_hip": (
        Bug(
            "flags of too narrow a scope",
            "call << 32 | rows, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM",
            "call << 32 | rows, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT",
            "wrong scope",
        ),
        Bug(
            "counter of too narrow a scope",
            "__ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT",
            "__ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_WORKGROUP",
            "wrong scope",
        ),
        Bug(
            "counter that releases nothing, and no fence",
            "    __threadfence_system();\n    last = __hip_atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL",
            "    last = __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED",
            "missing fence",
        ),
        Bug(
            "no barrier before the last block is known",
            "  }\n  __syncthreads();\n  return last;",
            "  }\n  return last;",
            "missing barrier",
        ),
        Bug(
            "places in a row taken without an atomic",
            "int(atomicAdd(counts + threadIdx.x, 1u))",
            "int(counts[threadIdx.x]++)",
            "race",
        ),
        Bug(
            "the last row of each rank left out",
            "row < rows; row += gridDim.x",
            "row + 1 < rows; row += gridDim.x",
            WRONG,
        ),
        Bug(
            "rows of one rank where the next one's lie",
            "(rank * most + place[to]) * pitch",
            "((rank + 1) * most + place[to]) * pitch",
            WRONG,
        ),
        Bug(
            "far beyond the last row",
            "h < hidden; h += blockDim.x)\n      out[h]",
            "h < 64 * pitch * most; h += blockDim.x)\n      out[h]",
            "out of bounds",
        ),
        Bug(
            "the last rank's place never written",
            "if (threadIdx.x < world) {\n    bool",
            "if (threadIdx.x + 1 < world) {\n    bool",
            "uninitialised shared memory",
        ),
        Bug(
            "some lanes at the barrier",
            "places[token * RANKS + threadIdx.x] = at;\n  }\n  __syncthreads();",
            "places[token * RANKS + threadIdx.x] = at;\n    __syncthreads();\n  }",
            "divergent barrier",
        ),
        Bug(
            "a flag of the call before",
            "raise(theirs.back + flag_of(call, rank), call, 0)",
            "raise(theirs.back + flag_of(call, rank), call - 1, 0)",
            "deadlock",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What was said of one bug."""

    seed: str
    bug: Bug
    said: str
    seconds: float

    @property
    def named(self) -> bool:
        """Whether it was what had to be said."""
        return self.bug.expected in self.said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", choices=sorted(PLANTED), action="append", help="all, if left out")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    rows = [judged(name, bug) for name in options.seed or PLANTED for bug in PLANTED[name]]
    print(f"{sum(row.named for row in rows)} of {len(rows)} found and rightly named")
    if options.record is not None:
        options.record.write_text(page(rows))
    sys.exit(not all(row.named for row in rows))


def judged(name: str, bug: Bug) -> Row:
    """Judge a seed with one bug, in a runner of its own."""
    text, start_s = seed_source(name), time.monotonic()
    assert text.count(bug.old) == 1, f"{name}: {bug.what}: its text is there {text.count(bug.old)} times"
    problem, candidate = load("/".join(name.split("/")[:2])), Candidate(source=text.replace(bug.old, bug.new))
    said: list[str] = []
    for racecheck in (False, True):
        runner = CpuRunner(racecheck=racecheck)
        try:
            verdict = runner.judge(problem, candidate, Mode.TEST, 120).verdict
        finally:
            runner.close()
        said.append(f"{verdict.kind}: {getattr(verdict, 'reason', '')}")
        if bug.expected != WRONG and bug.expected in said[-1]:
            break
    # A wrong answer that no fault explains is told as it is; the checking mode names causes, the other sees effects.
    row = Row(name, bug, next((one for one in reversed(said) if FAULT in one), said[0]), time.monotonic() - start_s)
    print(f"{'ok  ' if row.named else 'MISS'} {name} {bug.what}: {row.said[:200]} ({row.seconds:.0f} s)", flush=True)
    return row


def page(rows: list[Row]) -> str:
    """The table."""
    named = sum(row.named for row in rows)
    lines = [
        HEAD,
        f"{named} of {len(rows)} were found and rightly named; commit {commit()}, {time.strftime('%Y-%m-%d')}.\n",
    ]
    for seed in dict.fromkeys(row.seed for row in rows):
        lines += [f"\n## {seed}\n", "| planted | expected | said |", "| --- | --- | --- |"]
        for row in rows:
            if row.seed == seed:
                said = row.said.replace("|", "/").replace("\n", " ")[:180]
                mark = "" if row.named else " (missed)"
                lines.append(f"| {row.bug.what} | {row.bug.expected.replace('_', ' ')} | {said}{mark} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
