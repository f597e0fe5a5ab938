"""How many waves of a kernel a compute unit can hold, and what stops it holding more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from problems.chips import Chip

Limit = Literal["vgpr", "lds", "workgroups", "waves"]

# LLVM, AMDGPUBaseInfo: a compute unit has 16 barriers, so at most 16 workgroups of more than one wave.
_MAX_WORKGROUPS = 16
# LLVM, GCNSubtarget: LDS is given out in 128 dwords on gfx9, in 320 on gfx950.
_LDS_GRANULE_BYTES = {"gfx942": 512, "gfx950": 1280}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What is resident on one compute unit. Zero workgroups: a single one does not fit."""

    workgroups_per_cu: int
    waves_per_simd: int
    limit: Limit


def occupancy(chip: Chip, vgprs: int, lds_bytes: int, waves_per_workgroup: int) -> Occupancy:
    """Occupancy of a kernel with `vgprs` registers a lane (AGPRs included) and `lds_bytes` a workgroup."""
    granules = max(1, -(-vgprs // chip.vgpr_granule))
    waves_by_vgpr = min(chip.max_waves_per_simd, chip.vgprs_per_lane // (granules * chip.vgpr_granule))
    lds_granule = _LDS_GRANULE_BYTES.get(chip.arch, 128)
    lds_held = -(-lds_bytes // lds_granule) * lds_granule
    max_waves = chip.max_waves_per_simd * chip.simds_per_cu
    workgroups: dict[Limit, int] = {
        "waves": max_waves // waves_per_workgroup,
        "vgpr": waves_by_vgpr * chip.simds_per_cu // waves_per_workgroup,
        "lds": chip.lds_bytes // lds_held if lds_held else max_waves,
        "workgroups": max_waves if waves_per_workgroup == 1 else _MAX_WORKGROUPS,
    }
    resident = min(workgroups.values())
    limit = next(name for name, count in workgroups.items() if count == resident)
    waves = resident * waves_per_workgroup // chip.simds_per_cu
    return Occupancy(resident, max(waves, 1) if resident else 0, limit)
