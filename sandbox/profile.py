"""What profilers saw of a candidate, in a run of its own after the verdict. It explains; it decides nothing.

All of it is told by the guest or by a tool that ran beside it: text from the untrusted side, bounded and parsed here.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from problems.spec import Case, Frozen

MOST_KERNELS, MOST_COUNTERS, LONGEST_NAME = 40, 200, 200


class ProfiledKernel(Frozen):
    """One kernel on the device, over all profiled calls."""

    name: str
    calls: int
    device_us: float
    """Sum over its calls."""


class Profile(Frozen):
    """What one tool saw. Without kernels and counters, its notes say why."""

    tool: str
    """``torch.profiler``, ``proton``, ``ncu``, ``rocprofv3`` or ``compiler``."""
    case: Case | None = None
    calls: int = 0
    kernels: tuple[ProfiledKernel, ...] = ()
    """Those that took longest, the longest first."""
    counters: dict[str, float] = Field(default_factory=dict)
    """By name, with the tool's own unit in it."""
    notes: tuple[str, ...] = ()
    """What was not available, and what to know when reading it."""


def absent(tool: str, *notes: str) -> Profile:
    """A profile that could not be taken."""
    return Profile(tool=tool, notes=tuple(note[-500:] for note in notes))


def told(payload: bytes, case: Case) -> tuple[Profile, ...]:
    """What a guest answered to ``profile``; a note in its place where that is not readable."""
    try:
        rows = json.loads(payload)
        return tuple(_told(row, case) for row in rows[:4])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return (absent("torch.profiler", f"the guest's answer is unreadable: {error!r}"),)


def _told(row: dict[str, Any], case: Case) -> Profile:
    kernels = [_kernel(str(each["name"]), int(each["calls"]), float(each["device_us"])) for each in row["kernels"]]
    notes = tuple(str(note)[:500] for note in row["notes"][:10])
    return Profile(
        tool=str(row["tool"])[:40], case=case, calls=int(row["calls"]), kernels=longest(kernels), notes=notes
    )


def _kernel(name: str, calls: int, device_us: float) -> ProfiledKernel:
    if not math.isfinite(device_us):
        raise ValueError(f"{name[:40]}: {device_us} us")
    return ProfiledKernel(name=name[:LONGEST_NAME], calls=calls, device_us=device_us)


def longest(kernels: Iterable[ProfiledKernel]) -> tuple[ProfiledKernel, ...]:
    """The kernels that took longest."""
    return tuple(sorted(kernels, key=lambda kernel: -kernel.device_us)[:MOST_KERNELS])


def ncu(output: str, case: Case) -> Profile:
    """Counters of ``ncu --csv --page raw``, out of whatever else was printed; the last launch of a kernel counts."""
    lines = output.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return absent("ncu", "no counters", *(line for line in lines if "==ERROR==" in line or "ERR_" in line))
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    return Profile(tool="ncu", case=case, calls=1, counters=_counters(rows, "Kernel Name"))


def rocprof(output: str, case: Case) -> Profile:
    """Counters of ``rocprofv3 --pmc ... -f csv``, as its ``counter_collection.csv`` has them, printed at the end."""
    lines = output.splitlines()
    start = next((index for index, line in enumerate(lines) if "Counter_Name" in line and "Kernel_Name" in line), None)
    if start is None:
        return absent("rocprofv3", "no counters", *lines[-3:])
    counters: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        name = f"{row.get('Kernel_Name')}: {row.get('Counter_Name')}"
        _add(counters, name, str(row.get("Counter_Value")))
    return Profile(tool="rocprofv3", case=case, calls=1, counters=counters)


def _counters(rows: list[dict[str, Any]], kernel: str) -> dict[str, float]:
    """Every column that holds a number; the first row holds the units."""
    units = rows[0] if rows and not str(rows[0].get("ID", "")).strip() else {}
    counters: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(name, str) and ("__" in name or name.startswith("launch")):
                unit = str(units.get(name) or "").strip()
                _add(counters, f"{row.get(kernel)}: {name}{f' [{unit}]' if unit else ''}", str(value))
    return counters


def _add(counters: dict[str, float], name: str, text: str) -> None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return
    if math.isfinite(value) and (len(counters) < MOST_COUNTERS or name in counters):
        counters[name[:LONGEST_NAME]] = value
