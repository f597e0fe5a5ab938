"""What a guest recorded of the kernels a candidate launched: read strictly, within bounds, from untrusted bytes.

The payload is JSON: ``{"kernels": [...], "launches": [...]}``. It ranks and explains, it never accepts a candidate, so
a lie in it can only spoil the liar's own estimate; a malformed one must not hurt the reader.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

MAX_PAYLOAD = 128 << 20
MAX_KERNELS = 1024
MAX_LAUNCHES = 65_536
MAX_TEXT = 8 << 20
"""Characters of one kernel's TTIR or assembly; a fully unrolled kernel is about 1 MB."""
MAX_NAME = 512
MAX_ARGS = 256
MAX_GRID = (1 << 31) - 1
_TARGET = re.compile(r"(gfx|sm_?)[0-9a-f]{2,6}")
_READ = ("num_warps", "num_stages", "shared", "warp_size", "block")

Scalar = int | float


class EvidenceError(Exception):
    """The guest's `kernels` payload is not what it should be. The message names the field."""


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """One specialisation of one kernel, compiled for one target; `error` where it did not build, or does not fit."""

    name: str
    target: str
    hash: str
    ttir: str
    amdgcn: str
    num_warps: int
    num_stages: int
    shared_bytes: int
    """LDS of one workgroup that is asked for at launch: all of Triton's, HIP's dynamic part. The assembly knows the
    static part."""
    warp_size: int
    options: dict[str, str]
    """The rest of the compile options Triton reports, such as ``waves_per_eu``."""
    signature: dict[str, str]
    constants: dict[str, str]
    error: str | None
    block: tuple[int, int, int]
    """Threads of a workgroup along x, y and z; Triton's lie along x."""


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """One launch: which kernel, its grid in workgroups, its scalar arguments."""

    kernel: int
    grid: tuple[int, int, int]
    args: dict[str, Scalar]
    call: int
    """Number of the call to `custom_kernel` it was made in, from 0; -1 while the candidate was imported."""
    tuning: bool
    """Made by an autotuner trying a configuration, not by the candidate's own call."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All a guest recorded, in the order it happened."""

    kernels: tuple[RecordedKernel, ...]
    launches: tuple[RecordedLaunch, ...]


def parse(payload: bytes) -> Evidence:
    """Read a guest's payload; `EvidenceError` on anything that is not exactly the format, or over a bound."""
    if len(payload) > MAX_PAYLOAD:
        raise EvidenceError(f"payload of {len(payload)} bytes is over {MAX_PAYLOAD}")
    try:
        root = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise EvidenceError("payload is not JSON") from error
    fields = _object(root, "payload")
    kernels = tuple(
        _kernel(item, f"kernels[{i}]") for i, item in enumerate(_list(fields, "kernels", "payload", MAX_KERNELS))
    )
    launches = tuple(
        _launch(item, f"launches[{i}]", len(kernels))
        for i, item in enumerate(_list(fields, "launches", "payload", MAX_LAUNCHES))
    )
    return Evidence(kernels, launches)


def _kernel(item: Any, where: str) -> RecordedKernel:
    fields = _object(item, where)
    metadata = _object(fields.get("metadata"), f"{where}.metadata")
    error = fields.get("error")
    if error is not None:
        # What did not build has no metadata.
        metadata = {"num_warps": 1, "num_stages": 0, "shared": 0, "warp_size": 64, **metadata}
    target = _text(fields, "target", where, MAX_NAME)
    if not _TARGET.fullmatch(target):
        raise EvidenceError(f"{where}.target is not a compile target")
    return RecordedKernel(
        name=_text(fields, "name", where, MAX_NAME),
        target=target,
        hash=_text(fields, "hash", where, MAX_NAME),
        ttir=_text(fields, "ttir", where, MAX_TEXT),
        amdgcn=_text(fields, "amdgcn", where, MAX_TEXT),
        num_warps=_whole(metadata, "num_warps", f"{where}.metadata", 1, 32),
        num_stages=_whole(metadata, "num_stages", f"{where}.metadata", 0, 64),
        shared_bytes=_whole(metadata, "shared", f"{where}.metadata", 0, 1 << 20),
        warp_size=_whole(metadata, "warp_size", f"{where}.metadata", 32, 64),
        options=_strings({k: v for k, v in metadata.items() if k not in _READ}, f"{where}.metadata"),
        signature=_strings(fields.get("signature"), f"{where}.signature"),
        constants=_strings(fields.get("constants"), f"{where}.constants"),
        error=None if error is None else _text(fields, "error", where, MAX_TEXT),
        block=_block(metadata, f"{where}.metadata"),
    )


def _block(metadata: dict[str, Any], where: str) -> tuple[int, int, int]:
    sizes = metadata.get("block", [metadata["num_warps"] * metadata["warp_size"], 1, 1])
    if not isinstance(sizes, list) or len(sizes) != 3:
        raise EvidenceError(f"{where}.block is not three numbers")
    x, y, z = (_whole({"block": size}, "block", where, 1, 2048) for size in sizes)
    return x, y, z


def _launch(item: Any, where: str, kernels: int) -> RecordedLaunch:
    fields = _object(item, where)
    grid = fields.get("grid")
    if not isinstance(grid, list) or len(grid) != 3:
        raise EvidenceError(f"{where}.grid is not three numbers")
    x, y, z = ({"grid": size} for size in grid)
    tuning = fields.get("tuning")
    if not isinstance(tuning, bool):
        raise EvidenceError(f"{where}.tuning is not true or false")
    return RecordedLaunch(
        kernel=_whole(fields, "kernel", where, 0, kernels - 1),
        grid=(
            _whole(x, "grid", where, 0, MAX_GRID),
            _whole(y, "grid", where, 0, 65_535 * 1024),
            _whole(z, "grid", where, 0, 65_535 * 1024),
        ),
        args=_scalars(fields.get("args"), f"{where}.args"),
        call=_whole(fields, "call", where, -1, MAX_LAUNCHES),
        tuning=tuning,
    )


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise EvidenceError(f"{where} is not an object")
    return value


def _list(fields: dict[str, Any], name: str, where: str, most: int) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise EvidenceError(f"{where}.{name} is not a list of at most {most}")
    return value


def _text(fields: dict[str, Any], name: str, where: str, most: int) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or len(value) > most:
        raise EvidenceError(f"{where}.{name} is not a text of at most {most} characters")
    return value


def _whole(fields: dict[str, Any], name: str, where: str, least: int, most: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise EvidenceError(f"{where}.{name} is not a whole number in {least}..{most}")
    return value


def _entries(value: Any, where: str) -> list[tuple[str, Any]]:
    fields = _object(value, where)
    if len(fields) > MAX_ARGS or any(len(key) > MAX_NAME for key in fields):
        raise EvidenceError(f"{where} has too many or too long names")
    return list(fields.items())


def _strings(value: Any, where: str) -> dict[str, str]:
    """Names to text; numbers are kept as JSON would print them, since only people and hashes read them."""
    found: dict[str, str] = {}
    for key, item in _entries(value, where):
        if isinstance(item, list | dict):
            raise EvidenceError(f"{where}.{key} is not a plain value")
        found[key] = item[:MAX_NAME] if isinstance(item, str) else json.dumps(item)[:MAX_NAME]
    return found


def _scalars(value: Any, where: str) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for key, item in _entries(value, where):
        if not isinstance(item, int | float):
            raise EvidenceError(f"{where}.{key} is not a number")
        if abs(item) >= 1 << 64 or not math.isfinite(item):
            raise EvidenceError(f"{where}.{key} is out of range")
        found[key] = int(item) if isinstance(item, bool) else item
    return found
