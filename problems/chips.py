"""The chips a problem can name, as their makers' data sheets describe them. Peak figures, never measured here."""

from __future__ import annotations

import difflib
from typing import Literal

from pydantic import Field

from problems.spec import DType, Frozen, ProblemError

Arch = Literal["gfx942", "gfx950", "sm_90", "sm_100a"]
_MIB = 1 << 20
_KIB = 1 << 10
_AMD = "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/"
_NVIDIA = "https://www.nvidia.com/en-us/data-center/"
_NVIDIA_FLOOR = (
    "launch floor: below the 2.7 us that an event pair alone reads, measured on an H200 (2026-11-21, "
    "docs/decisions/clocks.md); the other chips' is taken from it"
)
_AMD_FLOOR = "launch floor: estimated, never measured here"


MATRIX: frozenset[DType] = frozenset({"fp4", "fp8", "fp16", "bf16", "uint8"})
"""Operand dtypes of the matrix units, which share them; the others' peaks are the vector units' or stand apart."""


class Chip(Frozen):
    """One accelerator. A compute unit is AMD's CU or NVIDIA's SM; a wave is AMD's wavefront or NVIDIA's warp."""

    name: str
    arch: Arch
    vendor: Literal["amd", "nvidia"]
    compute_units: int
    xcds: int
    """Dies with an L2 of their own; 1 where the whole chip shares one."""
    simds_per_cu: int
    max_waves_per_simd: int
    wave_size: int
    """Lanes of a wave."""
    vgprs_per_lane: int
    """32-bit registers per lane in one SIMD's file, shared by its waves; on gfx90a and later AGPRs are in it too."""
    vgpr_granule: int
    """Registers are given to a wave in multiples of this."""
    lds_bytes: int
    """LDS (shared memory) of one compute unit."""
    lds_bytes_per_clock: int
    """LDS bandwidth of one compute unit."""
    clock_hz: float
    """Highest engine clock."""
    hbm_bytes: int
    hbm_bytes_per_s: float
    l2_bytes: int
    """L2 of one XCD; the whole L2 where `xcds` is 1."""
    l2_bytes_per_s: float
    """All L2 together, reads."""
    mall_bytes: int
    """Last cache before HBM (AMD Infinity Cache); 0 where there is none."""
    mall_bytes_per_s: float
    peak_flops_per_s: dict[DType, float]
    """Dense peak by operand dtype, the faster of matrix and vector units; a dtype the chip lacks is missing."""
    matrix_clock_hz: dict[DType, float] = Field(default={})
    """Median clock in a long dense matrix product, where its maker published it: power holds it below `clock_hz`."""
    sheet_clock_hz: float
    """Clock at which its maker states the matrix peaks; parts run up to `clock_hz`."""
    link_bytes_per_s: float
    """To the other GPUs of its host, all links together, one direction."""
    launch_floor_us: float
    """Time of an empty kernel between two device events, at the least."""
    sources: tuple[str, ...]

    @property
    def last_level_bytes(self) -> int:
        """The largest cache before HBM."""
        return self.mall_bytes or self.l2_bytes * self.xcds

    def flops_per_s(self, dtype: DType) -> float:
        """Peak for `dtype`, or for the narrowest wider dtype the chip computes it in; `ProblemError` for none."""
        for candidate in _WIDENING[dtype]:
            if candidate in self.peak_flops_per_s:
                return self.peak_flops_per_s[candidate]
        raise ProblemError(f"{self.name} has no peak rate for {dtype}; give one in problems/chips.py")

    def highest_flops_per_s(self, dtype: DType) -> float:
        """No part computes faster: matrix units at the highest clock; fp32 from six fp16 products, or three tf32."""
        if dtype == "fp32":
            return max(self.flops_per_s("fp32"), self.highest_flops_per_s("fp16") / 6)
        return self.flops_per_s(dtype) * (self.clock_hz / self.sheet_clock_hz if dtype in MATRIX else 1.0)

    def roofline_us(self, flops: dict[DType, float], hbm_bytes: float) -> float:
        """The least time for this work: the slower of its arithmetic at peak and its bytes at HBM bandwidth."""
        arithmetic_s = sum(count / self.flops_per_s(dtype) for dtype, count in flops.items())
        return max(arithmetic_s, hbm_bytes / self.hbm_bytes_per_s) * 1e6


_WIDENING: dict[DType, tuple[DType, ...]] = {
    "fp64": ("fp64",),
    "fp32": ("fp32",),
    "fp16": ("fp16", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp8": ("fp8", "fp16", "fp32"),
    "fp4": ("fp4", "fp8", "fp16", "fp32"),
    "int64": ("int64", "int32"),
    "int32": ("int32",),
    "uint8": ("uint8", "int32"),
}


def _cdna3(cus: int, clock_hz: float) -> dict[DType, float]:
    """Operations per clock per CU of CDNA3: ISA guide and white paper."""
    per_clock: dict[DType, int] = {
        "fp64": 256, "fp32": 256, "fp16": 2048, "bf16": 2048,
        "fp8": 4096, "uint8": 4096, "int32": 128, "int64": 64,
    }  # fmt: skip
    return {dtype: ops * cus * clock_hz for dtype, ops in per_clock.items()}


def _cdna4(cus: int, clock_hz: float) -> dict[DType, float]:
    """Operations per clock per CU of CDNA4: white paper, table of peak rates."""
    per_clock: dict[DType, int] = {
        "fp64": 128, "fp32": 256, "fp16": 4096, "bf16": 4096,
        "fp8": 8192, "fp4": 16384, "uint8": 8192, "int32": 128, "int64": 64,
    }  # fmt: skip
    return {dtype: ops * cus * clock_hz for dtype, ops in per_clock.items()}


_MI300X = Chip(
    name="MI300X",
    arch="gfx942",
    vendor="amd",
    compute_units=304,
    xcds=8,
    simds_per_cu=4,
    max_waves_per_simd=8,
    wave_size=64,
    vgprs_per_lane=512,
    vgpr_granule=8,
    lds_bytes=64 * _KIB,
    lds_bytes_per_clock=128,
    clock_hz=2.1e9,
    hbm_bytes=192 * 10**9,
    hbm_bytes_per_s=5.3e12,
    l2_bytes=4 * _MIB,
    l2_bytes_per_s=8 * 2048 * 2.1e9,
    mall_bytes=256 * _MIB,
    mall_bytes_per_s=17.2e12,
    peak_flops_per_s=_cdna3(304, 2.1e9),
    matrix_clock_hz={"fp16": 1.115e9, "bf16": 1.207e9, "fp8": 1.230e9},
    sheet_clock_hz=2.1e9,
    link_bytes_per_s=7 * 64e9,
    launch_floor_us=3.0,
    sources=(
        "304 CUs, 2100 MHz, 192 GB, 5.3 TB/s, 1307.4 TFLOP/s fp16, 2614.9 fp8, 7 links of 64 GB/s each way: AMD "
        f"Instinct MI300X data sheet, {_AMD}data-sheets/amd-instinct-mi300x-data-sheet.pdf",
        "8 XCDs, 4 MB L2 each at 2 KB per clock, 256 MB Infinity Cache at 17.2 TB/s: AMD CDNA 3 white paper, "
        f"{_AMD}white-papers/amd-cdna-3-white-paper.pdf",
        "ROCm blog 'Measuring Max-Achievable FLOPs, part 2', table 1: 1115 MHz fp16, 1207 bf16, 1230 fp8 in dense GEMM",
        "LLVM AMDGPU target, GCNSubtarget for gfx90a and later: 512 unified VGPRs, granule 8, 8 waves per SIMD",
        _AMD_FLOOR,
    ),
)

_MI355X = Chip(
    name="MI355X",
    arch="gfx950",
    vendor="amd",
    compute_units=256,
    xcds=8,
    simds_per_cu=4,
    max_waves_per_simd=8,
    wave_size=64,
    vgprs_per_lane=512,
    vgpr_granule=8,
    lds_bytes=160 * _KIB,
    lds_bytes_per_clock=128,
    clock_hz=2.4e9,
    hbm_bytes=288 * 10**9,
    hbm_bytes_per_s=8.0e12,
    l2_bytes=4 * _MIB,
    l2_bytes_per_s=8 * 2048 * 2.4e9,
    mall_bytes=256 * _MIB,
    mall_bytes_per_s=17.2e12,
    peak_flops_per_s=_cdna4(256, 2.4e9),
    sheet_clock_hz=2.4e9,
    link_bytes_per_s=7 * 76.8e9,
    launch_floor_us=3.0,
    sources=(
        "256 CUs, 2400 MHz, 288 GB, 8 TB/s, 2.5 PFLOP/s fp16, 5.0 fp8, 10.1 fp4, 7 links of 76.8 GB/s each way: AMD "
        f"Instinct MI355X brochure, {_AMD}product-briefs/amd-instinct-mi355x-gpu-brochure.pdf",
        "160 KB LDS per CU, 8 XCDs, 4 MB L2 each, 256 MB Infinity Cache (as fast as CDNA 3's): AMD CDNA 4 white paper, "
        f"{_AMD}white-papers/amd-cdna-4-architecture-whitepaper.pdf",
        _AMD_FLOOR,
    ),
)


def _hopper(name: str, hbm_bytes: int, hbm_bytes_per_s: float, sheet: str) -> Chip:
    """H100 SXM and H200 SXM: the same die, other memory."""
    return Chip(
        name=name,
        arch="sm_90",
        vendor="nvidia",
        compute_units=132,
        xcds=1,
        simds_per_cu=4,
        max_waves_per_simd=16,
        wave_size=32,
        vgprs_per_lane=512,
        vgpr_granule=8,
        lds_bytes=228 * _KIB,
        lds_bytes_per_clock=128,
        clock_hz=1.98e9,
        hbm_bytes=hbm_bytes,
        hbm_bytes_per_s=hbm_bytes_per_s,
        l2_bytes=50 * _MIB,
        l2_bytes_per_s=132 * 64 * 1.98e9,
        mall_bytes=0,
        mall_bytes_per_s=0.0,
        peak_flops_per_s={
            "fp64": 66.9e12,
            "fp32": 66.9e12,
            "fp16": 989.4e12,
            "bf16": 989.4e12,
            "fp8": 1978.9e12,
            "uint8": 1978.9e12,
            "int32": 33.5e12,
            "int64": 16.7e12,
        },
        sheet_clock_hz=1.83e9,
        link_bytes_per_s=450e9,
        launch_floor_us=2.0,
        sources=(
            sheet,
            "NVIDIA H100 Tensor Core GPU architecture white paper: 132 SMs, 228 KB, 50 MB L2, NVLink 900 GB/s in both "
            "directions together, matrix peaks at 1830 MHz, https://resources.nvidia.com/en-us-tensor-core",
            _NVIDIA_FLOOR,
        ),
    )


_H100 = _hopper("H100", 80 * 10**9, 3.35e12, "NVIDIA H100 SXM data sheet: 80 GB, 3.35 TB/s, " + _NVIDIA + "h100/")
_H200 = _hopper("H200", 141 * 10**9, 4.8e12, "NVIDIA H200 SXM data sheet: 141 GB, 4.8 TB/s, " + _NVIDIA + "h200/")

_B200 = Chip(
    name="B200",
    arch="sm_100a",
    vendor="nvidia",
    compute_units=148,
    xcds=1,
    simds_per_cu=4,
    max_waves_per_simd=16,
    wave_size=32,
    vgprs_per_lane=512,
    vgpr_granule=8,
    lds_bytes=228 * _KIB,
    lds_bytes_per_clock=128,
    clock_hz=1.965e9,
    hbm_bytes=180 * 10**9,
    hbm_bytes_per_s=8.0e12,
    l2_bytes=126 * _MIB,
    l2_bytes_per_s=148 * 64 * 1.965e9,
    mall_bytes=0,
    mall_bytes_per_s=0.0,
    peak_flops_per_s={
        "fp64": 40e12,
        "fp32": 80e12,
        "fp16": 2.25e15,
        "bf16": 2.25e15,
        "fp8": 4.5e15,
        "fp4": 9.0e15,
        "uint8": 4.5e15,
        "int32": 40e12,
        "int64": 20e12,
    },
    sheet_clock_hz=2.25e15 / (148 * 8192),  # not stated: the peak over 8192 operations per clock and SM
    link_bytes_per_s=900e9,
    launch_floor_us=2.0,
    sources=(
        "180 GB, 8 TB/s, NVLink 1.8 TB/s in both directions together; dense 2.25 PFLOP/s fp16, 4.5 fp8, 9 fp4: NVIDIA "
        "Blackwell data sheet, HGX B200 per GPU, https://resources.nvidia.com/en-us-blackwell-architecture",
        "the same with fp32 and fp64, from there: https://glennklockwood.com/garden/processors/B200",
        _NVIDIA_FLOOR,
    ),
)

CHIPS: dict[str, Chip] = {chip.name: chip for chip in (_MI300X, _MI355X, _H100, _H200, _B200)}
_ALIASES = {"MI300": "MI300X", "MI355": "MI355X", "H100-SXM": "H100", "H200-SXM": "H200", "B200-SXM": "B200"}


def chip(name: str) -> Chip:
    """The chip of that name or alias, whatever its case; `ProblemError` with near matches for an unknown one."""
    wanted = name.strip().upper()
    found = CHIPS.get(_ALIASES.get(wanted, wanted))
    if found is not None:
        return found
    near = difflib.get_close_matches(wanted, [*CHIPS, *_ALIASES], n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "known chips:"
    raise ProblemError(f"unknown chip {name!r}; {hint} ({', '.join(CHIPS)})")
