"""Profilers that run inside the guest: torch's own on any GPU, Triton's Proton where it can be imported."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

CALLS = 5


def take(call: Callable[[], Any]) -> bytes:
    """What each profiler saw of some calls, as JSON; where one fails, its note says how."""
    rows = [_guarded("torch.profiler", _torch, call), _guarded("proton", _proton, call)]
    return json.dumps(rows).encode()


def _guarded(tool: str, profiler: Callable[[Callable[[], Any]], list[dict[str, Any]]], call: Any) -> dict[str, Any]:
    row = {"tool": tool, "calls": CALLS, "kernels": [], "notes": []}
    try:
        row["kernels"] = profiler(call)
        if not row["kernels"]:
            row["notes"] = ["it saw no kernel on the device"]
    except Exception as error:  # noqa: BLE001 - a profiler explains; what stops it is its note
        row["notes"] = [f"{type(error).__name__}: {error}"[:500]]
    return row


def _torch(call: Callable[[], Any]) -> list[dict[str, Any]]:
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profiler:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    device = torch.autograd.DeviceType.CUDA
    events = [event for event in profiler.key_averages() if event.device_type == device]
    return [_row(event.key, event.count, event.self_device_time_total) for event in events]


def _proton(call: Callable[[], Any]) -> list[dict[str, Any]]:
    import triton.profiler as proton

    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "proton")
        proton.start(name, hook="triton")
        try:
            for _ in range(CALLS):
                call()
            torch.cuda.synchronize()
        finally:
            proton.finalize()
        [found] = Path(folder).glob("proton*.hatchet")
        tree = json.loads(found.read_text())
    found_rows: dict[str, dict[str, Any]] = {}
    for node in tree:
        _walk(node, found_rows)
    return list(found_rows.values())


def _walk(node: Any, rows: dict[str, dict[str, Any]]) -> None:
    """Leaves of Proton's tree are kernels; its metrics carry their unit in their name."""
    if not isinstance(node, dict) or "frame" not in node:
        return
    children, metrics = node.get("children", []), node.get("metrics", {})
    for child in children:
        _walk(child, rows)
    time_ns = metrics.get("time (ns)")
    if time_ns and not children:
        name = str(node["frame"].get("name", "?"))
        row = rows.setdefault(name, _row(name, 0, 0.0))
        row["calls"] += int(metrics.get("count", 1))
        row["device_us"] += float(time_ns) / 1e3


def _row(name: str, calls: int, device_us: float) -> dict[str, Any]:
    return {"name": name, "calls": calls, "device_us": device_us}
