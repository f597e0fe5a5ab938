"""What a GPU that is not there says of itself: data-sheet figures, or those that the checker read from its own GPU.

A candidate shapes its kernels by these (a program per compute unit, tiles that fit the shared memory), so code compiled
ahead of a real GPU is the code that GPU will ask for only where they are that GPU's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget

MAX_THREADS = 1024
WAVE = 64
WARP = 32
_SHARED = ("shared_memory_per_block_optin", "shared_memory_per_block")
"""The most one block may ask for, as torch names it; AMD's has no part that must be asked for."""

SHEETS: dict[str, dict[str, Any]] = {
    "gfx942": {
        "name": "AMD Instinct MI300X",
        "multi_processor_count": 304,
        "shared_memory_per_block": 64 << 10,
        "clock_rate": 2_100_000,
        "memory_clock_rate": 1_300_000,
        "memory_bus_width": 8192,
        "total_memory": 192 << 30,
        "major": 9,
        "minor": 4,
    },
    "gfx950": {
        "name": "AMD Instinct MI355X",
        "multi_processor_count": 256,
        "shared_memory_per_block": 160 << 10,
        "clock_rate": 2_400_000,
        "memory_clock_rate": 2_000_000,
        "memory_bus_width": 8192,
        "total_memory": 288 << 30,
        "major": 9,
        "minor": 5,
    },
}
"""By target, under torch's names: clocks in kHz, bus width in bits, sizes in bytes. LDS per workgroup: AMD CDNA3 and
CDNA4 ISA guides."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One chip's figures, under torch's names."""

    arch: str
    """``gfx942`` or ``sm_90``."""
    told: dict[str, Any]

    @property
    def is_cuda(self) -> bool:
        """NVIDIA's, by the name of its architecture."""
        return self.arch.startswith("sm_")

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number."""
        return self.told["major"], self.told["minor"]

    def for_triton(self) -> dict[str, Any]:
        """Under the names of `get_device_properties` of Triton's drivers."""
        shared = next(self.told[name] for name in _SHARED if name in self.told)
        common = {
            "max_shared_mem": shared,
            "multiprocessor_count": self.told["multi_processor_count"],
            "sm_clock_rate": self.told.get("clock_rate", 0),
            "mem_clock_rate": self.told.get("memory_clock_rate", 0),
            "mem_bus_width": self.told.get("memory_bus_width", 0),
        }
        if self.is_cuda:
            return {**common, "max_num_regs": self.told.get("regs_per_multiprocessor", 65536), "warpSize": WARP}
        return {**common, "max_num_regs": 512, "warpSize": WAVE, "arch": f"{self.arch}:sramecc+:xnack-"}

    def for_torch(self) -> SimpleNamespace:
        """As `torch.cuda.get_device_properties` answers."""
        common = {
            "warp_size": WARP if self.is_cuda else WAVE,
            "max_threads_per_block": MAX_THREADS,
            "max_threads_per_multi_processor": 2048,
            "regs_per_multiprocessor": 65536,
            "L2_cache_size": 4 << 20,
        }
        names = {} if self.is_cuda else {"gcnArchName": f"{self.arch}:sramecc+:xnack-"}
        return SimpleNamespace(**{**common, **names, **self.told})


def target(arch: str) -> GPUTarget:
    """As Triton's own driver names it."""
    if arch.startswith("sm_"):
        return GPUTarget("cuda", int(arch.removeprefix("sm_")), WARP)
    return GPUTarget("hip", arch, WAVE)


def figures(arch: str, told: dict[str, Any] | None = None) -> Figures:
    """The figures of a chip: what was `told` of it, else its data sheet; `ValueError` where there is neither."""
    known = {**SHEETS.get(arch, {}), **(told or {})}
    if not known:
        raise ValueError(f"nothing is known of {arch}")
    return Figures(arch, known)
