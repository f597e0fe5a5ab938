"""What this checker judges on, read from the machine itself."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from problems.chips import CHIPS, Chip
from sandbox.harness import harness_sha256
from sandbox.runner import RunnerError
from sandbox.verdict import Machine

_DRIVER = (Path("/sys/module/nvidia/version"), Path("/sys/module/amdgpu/version"))


def gpu_machine() -> tuple[Machine, Chip | None]:
    """The first GPU that torch sees, and its data sheet where we have one; `RunnerError` where torch sees none."""
    if not torch.cuda.is_available():
        raise RunnerError(
            "torch sees no GPU here: use the CPU runner, or on a machine with a GPU install a CUDA or ROCm build of "
            f"torch (this one is {torch.__version__})"
        )
    name, properties = torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0)
    chip = next((chip for chip in CHIPS.values() if chip.name.lower() in name.lower().split()), None)
    machine = Machine(
        kind="gpu",
        chip=chip.name if chip else name,
        arch=_arch(properties),
        driver=_driver(),
        runtime=f"rocm {torch.version.hip}" if torch.version.hip else f"cuda {torch.version.cuda}",
        torch=torch.__version__,
        triton=version("triton"),
        python=platform.python_version(),
        harness=harness_sha256(),
    )
    return machine, chip


def own_figures() -> dict[str, Any]:
    """What torch says of the first GPU, under its own names: for a guest that compiles for it without seeing it."""
    properties = torch.cuda.get_device_properties(0)
    told = {name: getattr(properties, name, None) for name in dir(properties) if not name.startswith("_")}
    return {name: value for name, value in told.items() if isinstance(value, int | str)}


def _arch(properties: object) -> str:
    gcn = str(getattr(properties, "gcnArchName", "")).split(":")[0]
    major, minor = getattr(properties, "major", 0), getattr(properties, "minor", 0)
    return gcn if torch.version.hip else f"sm_{major}{minor}"


def _driver() -> str:
    for path in _DRIVER:
        with contextlib.suppress(OSError):
            return path.read_text().strip()
    with contextlib.suppress(OSError):
        first = Path("/proc/driver/nvidia/version").read_text().splitlines()[0].split()
        return next((word for word in first if word[:1].isdigit() and "." in word), "unknown")
    return "unknown"
