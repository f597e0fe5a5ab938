"""Which bytes of a launch are served by which level: L2 of one XCD, Infinity Cache (MALL), HBM.

Workgroups are dealt to the XCDs in turn, so programs i, i + 8, i + 16, ... share an L2 (AMD CDNA 3 white paper; ROCm,
"Optimizing Triton kernels"). Programs resident at one time are taken to walk their loops in step: a tile that several
of them read is fetched into their L2 once. What later batches read again comes from the MALL if everything fits there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from problems.chips import Chip
from problems.spec import Work
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.programs import Access, Trace, trace
from sandbox.scalars import Ints
from sandbox.waves import WaveWork

MAX_PROGRAMS = 65_536


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one launch that pass each level, all workgroups together."""

    l2_bytes: float
    """Asked of the L2s, after lanes that read one address are merged."""
    fabric_bytes: float
    """Asked of the MALL by the L2s."""
    hbm_bytes: float

    @property
    def l2_hit_rate(self) -> float:
        """Share of what the L2s are asked for that they hold."""
        return 1 - min(1.0, self.fabric_bytes / self.l2_bytes) if self.l2_bytes else 0.0


def sample(programs: int) -> Ints:
    """All linear program ids of a grid, or `MAX_PROGRAMS` of them evenly spread."""
    if programs <= MAX_PROGRAMS:
        return np.arange(programs, dtype=np.int64)
    return np.linspace(0, programs - 1, MAX_PROGRAMS).astype(np.int64)


def traffic(chip: Chip, kernel: RecordedKernel, launch: RecordedLaunch, whole: Trace, per_cu: int) -> Traffic:
    """Traffic of a launch of which `whole` traces `sample`d programs, with `per_cu` workgroups on a compute unit."""
    programs = launch.grid[0] * launch.grid[1] * launch.grid[2]
    traced = min(programs, MAX_PROGRAMS)
    loads = [site for site in whole.accesses if site.kind == "load"]
    written = sum(_asked(site) for site in whole.accesses if site.kind != "load") * programs / traced
    asked = [_asked(site) * programs / traced for site in loads]
    once = [min(_distinct(site), bytes_) for site, bytes_ in zip(loads, asked, strict=True)]
    shares = _batch_shares(chip, kernel, launch, programs, per_cu, len(loads))
    fetched = sum(bytes_ * share for bytes_, share in zip(asked, shares, strict=True))
    footprint = sum(once) * (programs / traced if programs > traced else 1.0)
    if footprint <= chip.l2_bytes:
        fetched = min(fetched, footprint * chip.xcds)
    fetched = max(fetched, min(footprint, sum(asked)))
    missed = max(0.0, 1 - chip.mall_bytes / footprint) if footprint else 0.0
    from_hbm = footprint + (fetched - footprint) * missed
    return Traffic(sum(asked) + written, fetched + written, min(fetched, from_hbm) + written)


def assembly_traffic(chip: Chip, work: Work, wave: WaveWork, waves: int, per_cu: int) -> Traffic:
    """Traffic of a launch whose programs cannot be followed: of `waves` waves that do what `wave` does.

    What they ask the L2s for is what their loads and stores move. Which of it they share is not known: workgroups
    resident on one die are taken to cover a square of tiles, as those of a matrix product do, so that n of them ask for
    2 n tiles of which 2 sqrt(n) differ. HBM gives the case's bytes, and again what does not fit into the MALL.
    """
    resident = max(1, chip.compute_units // chip.xcds * per_cu)
    asked, written = wave.total.load_bytes * waves, wave.total.store_bytes * waves
    least = min(work.bytes, asked + written)
    fetched = max(asked / math.sqrt(resident), min(asked, least))
    missed = max(0.0, 1 - chip.mall_bytes / least) if least else 0.0
    from_hbm = least + max(0.0, fetched - least) * missed
    return Traffic(asked + written, fetched + written, min(fetched + written, from_hbm))


def _asked(site: Access) -> float:
    return float(site.distinct_bytes * site.times.sum())


def _distinct(site: Access) -> float:
    """Bytes of the different tiles among those asked for; a loop's later tiles follow its first."""
    if site.corner is None:
        return _asked(site)
    running = site.times > 0
    _, index = np.unique(site.corner[running], return_index=True)
    return float(site.distinct_bytes * site.times[running][index].sum())


def _batch_shares(
    chip: Chip, kernel: RecordedKernel, launch: RecordedLaunch, programs: int, per_cu: int, sites: int
) -> list[float]:
    """For each load, which share of what resident programs of one XCD ask for is fetched into its L2."""
    resident = max(1, chip.compute_units // chip.xcds * per_cu)
    batches = -(-programs // (resident * chip.xcds))
    shares = []
    for batch in sorted({0, batches // 2, max(0, batches - 2)}):
        first = batch * resident * chip.xcds
        ids = np.arange(first, min(programs, first + resident * chip.xcds), chip.xcds, dtype=np.int64)
        found = trace(kernel.ttir, launch.args, launch.grid, ids)
        loads = [site for site in found.accesses if site.kind == "load"]
        shares.append([min(1.0, _distinct(site) / max(_asked(site), 1.0)) for site in loads])
    return [float(np.mean(column)) for column in zip(*shares, strict=True)] if sites else []
