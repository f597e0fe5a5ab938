"""How well estimates rank kernels whose MI300X times are published: ``python -m tests.bench.trust --folder DIR``.

DIR holds a folder for each source of `trust.toml`, with the device assembly of its kernels (``SOURCE/KERNEL.s``), made
from the source's own files by clang as `tests/sandbox/data/README.md` says. The published times are in `trust.csv`.
Prints what it finds. ``--write`` puts estimates beside the published times in `trust.csv`, the figures the product
shows into `sandbox/trust.toml`, and the page docs/estimate-trust.md. Nothing is fitted to these times.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from problems.chips import chip
from problems.spec import Case, DType, Work
from sandbox.estimate import estimate
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.isa import lds_of, read_registers
from sandbox.listing import symbols
from sandbox.occupancy import occupancy
from sandbox.trust import Trust
from tests.bench.trust_page import page

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
FEWEST = 4
"""Kernels of one task below which it gives no rank correlation."""
Size = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """One kernel at one size: its published time and ours, None with the reason where we give none."""

    source: str
    kernel: str
    size: Size
    published_us: float
    held_out: bool = False
    """Compiled and estimated only after the model was frozen."""
    estimate_us: float | None = None
    note: str = ""
    """What binds the estimate, or why there is none."""
    registers: int = 0
    waves: int = 0
    """Resident on a SIMD; with `registers`, what one might rank by without a model."""

    @property
    def task(self) -> str:
        """Kernels of one task at one size can be ranked."""
        return f"{self.source} {' x '.join(map(str, self.size))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    sources = tomllib.loads((HERE / "trust.toml").read_text())["source"]
    dtypes: dict[str, DType] = {source["id"]: source["dtype"] for source in sources}
    found = [estimated(pair, options.folder, dtypes[pair.source]) for pair in published()]
    summary, held_out = summed(found), summed([pair for pair in found if pair.held_out])
    written = page(sources, found, summary, held_out, by_task(found))
    print(written)
    if options.write:
        keep(found)
        (ROOT / "sandbox/trust.toml").write_text(product(summary))
        (ROOT / "docs/estimate-trust.md").write_text(written)


def published() -> list[Pair]:
    """The pairs of `trust.csv`, estimates left out."""
    return [replace(pair, estimate_us=None, note="") for pair in kept()]


def kept() -> list[Pair]:
    """The pairs of `trust.csv` as they stand there."""
    with (HERE / "trust.csv").open(newline="") as file:
        return [
            Pair(
                source=row["source"],
                kernel=row["kernel"],
                size=(int(row["m"]), int(row["n"]), int(row["k"])),
                published_us=float(row["published_us"]),
                held_out=row["held_out"] == "yes",
                estimate_us=float(row["estimate_us"]) if row["estimate_us"] else None,
                note=row["note"],
            )
            for row in csv.DictReader(file)
        ]


def estimated(pair: Pair, folder: Path, dtype: DType) -> Pair:
    """The pair with our estimate of it."""
    m, n, k = pair.size
    elements = {"fp8": 1, "bf16": 2}[dtype]
    work = Work(flops={dtype: 2.0 * m * n * k}, bytes=float(elements * (m + n) * k + 2 * m * n))
    try:
        kernel, grid = {"snektron": snektron, "gau-nernst": gau_nernst}[pair.source](pair, folder / pair.source)
    except FileNotFoundError:
        return replace(pair, note="was not compiled here: it takes minutes")
    launch = RecordedLaunch(kernel=0, grid=grid, args={}, call=0, tuning=False)
    timing = estimate(chip("MI300X"), Case(params={}), work, [launch], [kernel])
    registers = read_registers(kernel).total
    waves = occupancy(chip("MI300X"), registers, lds_of(kernel), kernel.num_warps).waves_per_simd
    pair = replace(pair, registers=registers, waves=waves)
    if timing.kind == "estimated":
        return replace(pair, estimate_us=timing.us, note=timing.bound)
    return replace(pair, note=timing.reason if timing.kind == "none" else "")


def recorded(assembly: str, symbol: str, threads: int, dynamic_lds: int = 0) -> RecordedKernel:
    """A HIP kernel as a guest would record it."""
    return RecordedKernel(
        name=symbol, target="gfx942", hash="", ttir="", amdgcn=assembly, num_warps=-(-threads // 64), num_stages=0,
        shared_bytes=dynamic_lds, warp_size=64, options={}, signature={}, constants={}, error=None,
        block=(threads, 1, 1),
    )  # fmt: skip


def snektron(pair: Pair, folder: Path) -> tuple[RecordedKernel, Size]:
    """Its kernels are named by setting: block tile, MFMA shape, pipeline depth, transposing, threads."""
    setting = [int(part) for part in pair.kernel.split("_")]
    m, n, _ = pair.size
    kernel = recorded((folder / f"{pair.kernel}.s").read_text(), "kernel", setting[-1])
    return kernel, (1, math.ceil(m / setting[0]), math.ceil(n / setting[1]))


def gau_nernst(pair: Pair, folder: Path) -> tuple[RecordedKernel, Size]:
    """Two versions to a file, a and b; 128 x 128 tiles, 64 deep, in dynamic LDS; v1b pads rows by 8 elements."""
    text = (folder / f"{pair.kernel[:2]}.s").read_text()
    names = symbols(text)
    row = 72 if pair.kernel == "v1b" else 64
    kernel = recorded(text, names[1 if pair.kernel.endswith("b") else 0], 256, 2 * (128 + 128) * row)
    return kernel, (math.ceil(pair.size[0] / 128) * math.ceil(pair.size[1] / 128), 1, 1)


def ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 0, equal values sharing their mean."""
    array = np.asarray(values)
    return np.array([(array < value).sum() + ((array == value).sum() - 1) / 2 for value in array])


def spearman(pairs: Iterable[Pair]) -> float:
    """Rank correlation of estimates with published times."""
    known = [(pair.published_us, pair.estimate_us) for pair in pairs if pair.estimate_us is not None]
    return float(np.corrcoef(ranks([a for a, _ in known]), ranks([b for _, b in known]))[0, 1])


def by_task(found: Sequence[Pair]) -> dict[str, list[Pair]]:
    """The pairs that have both times, of each task that has enough of them, fastest first."""
    tasks: dict[str, list[Pair]] = {}
    for pair in sorted(found, key=lambda pair: pair.published_us):
        if pair.estimate_us is not None:
            tasks.setdefault(pair.task, []).append(pair)
    return {task: pairs for task, pairs in tasks.items() if len(pairs) >= FEWEST}


def faster_half(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """By published time."""
    return pairs[: max(FEWEST, math.ceil(len(pairs) / 2))]


def summed(found: Sequence[Pair]) -> Trust:
    """What the product shows."""
    known = [pair for pair in found if pair.estimate_us is not None]
    tasks = by_task(found)
    within = [spearman(pairs) for pairs in tasks.values()]
    off = [(pair.estimate_us or 0) / pair.published_us for pair in known]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return Trust(
        language="hip",
        chip="MI300X",
        kernels=len({(pair.source, pair.kernel) for pair in known}),
        pairs=len(known),
        tasks=len(tasks),
        within=round(float(np.mean(within)), 3),
        within_least=round(min(within), 3),
        within_faster_half=round(float(np.mean([spearman(faster_half(pairs)) for pairs in tasks.values()])), 3),
        overall=round(spearman(known), 3),
        worst_ratio=round(max(off, key=lambda ratio: abs(math.log(ratio))), 3),
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        commit=commit.stdout.strip(),
    )


def keep(found: Sequence[Pair]) -> None:
    """Write estimates beside the published times."""
    with (HERE / "trust.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["source", "kernel", "m", "n", "k", "published_us", "held_out", "estimate_us", "note"])
        for pair in found:
            ours = "" if pair.estimate_us is None else f"{pair.estimate_us:.1f}"
            held_out = "yes" if pair.held_out else "no"
            writer.writerow([pair.source, pair.kernel, *pair.size, pair.published_us, held_out, ours, pair.note])


def product(summary: Trust) -> str:
    """`sandbox/trust.toml`."""
    lines = [f"{name} = {value!r}" for name, value in summary.model_dump().items()]
    head = "# Written by python -m tests.bench.trust --write; what it means: docs/estimate-trust.md.\n\n[[trust]]\n"
    return head + "\n".join(lines).replace("'", '"') + "\n"


if __name__ == "__main__":
    main()
