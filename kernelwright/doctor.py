"""What this machine can do, and for each thing missing the one command that adds it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from kernelwright.runners import has_gpu_driver
from sandbox.probe import Toolchain

ROOMS = ("agent", "prompts", "sandbox", "problems", "seed_kernels", "dataset", "evals")
"""Top-level packages with general names, which another distribution may also install."""
TARGETS = ("gfx942", "gfx950")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``missing`` lessens what can be done here, ``broken`` must be cured first."""

    what: str
    state: Literal["ok", "missing", "broken"]
    seen: str
    cure: str = ""


def examine(tools: Toolchain, environment: Mapping[str, str]) -> list[Finding]:
    """Everything, in the order in which a reader would cure it."""
    return [
        _python(),
        _torch(tools),
        _chips(tools),
        _triton(tools),
        *owners("triton"),
        *rooms(),
        *_sandboxes(bool(tools.devices)),
        _model(environment),
    ]


def as_json(findings: list[Finding], tools: Toolchain) -> dict[str, Any]:
    """The findings as one object."""
    return {
        "ok": all(finding.state != "broken" for finding in findings),
        "devices": [device.model_dump() for device in tools.devices],
        "targets": list(TARGETS) if "amd" in tools.backends else [],
        "torch_build": tools.torch_build,
        "findings": [asdict(finding) for finding in findings],
    }


def rooms() -> list[Finding]:
    """Whether each of our top-level packages is ours: found under the root that holds this package."""
    ours = Path(__file__).resolve().parent.parent
    foreign = [(name, where) for name in ROOMS if (where := _where(name)) != ours / name]
    if not foreign:
        return [Finding("packages", "ok", f"all {len(ROOMS)} rooms come from {ours}")]
    return [_clash(name, where) for name, where in foreign]


def owners(package: str) -> list[Finding]:
    """Whether one distribution alone claims `package`: two write over each other's files."""
    claimed = sorted(set(importlib.metadata.packages_distributions().get(package, [])))
    if len(claimed) < 2:
        return []
    named = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in claimed)
    keep = next((name for name in claimed if "rocm" in name), claimed[0])
    others = " ".join(name for name in claimed if name != keep)
    cure = f"{_pip()} uninstall -y {others} && {_pip()} install --force-reinstall --no-deps {keep}"
    return [Finding(f"owners of {package}/", "broken", f"{len(claimed)} distributions claim it: {named}", cure)]


def _where(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]).resolve() if places else None


def _clash(name: str, where: Path | None) -> Finding:
    if where is None:
        return Finding(
            f"package {name}", "broken", "not found", f"{_pip()} install --force-reinstall --no-deps kernelwright"
        )
    claimed = importlib.metadata.packages_distributions().get(name, [])
    others = sorted(set(claimed) - {"kernelwright"})
    cure = f"{_pip()} uninstall -y {' '.join(others)}" if others else f"remove {where.parent} from PYTHONPATH"
    return Finding(f"package {name}", "broken", f"{where} is not ours ({', '.join(others) or 'no distribution'})", cure)


def _python() -> Finding:
    return Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _torch(tools: Toolchain) -> Finding:
    if tools.torch and not tools.torch_error:
        return Finding("torch", "ok", f"{tools.torch} ({tools.torch_build} build)")
    return Finding("torch", "broken", tools.torch_error or "not installed", "make setup")


def _chips(tools: Toolchain) -> Finding:
    if tools.devices:
        seen = ", ".join(f"{d.name} ({d.arch}, {d.memory_bytes / 2**30:.0f} GiB)" for d in tools.devices)
        return Finding("GPU", "ok", f"{seen}: times are measured there")
    driver = (
        f"a GPU driver is here, but this {tools.torch_build} build of torch sees no GPU" if has_gpu_driver() else "none"
    )
    seen = f"{driver}: correctness is emulated on the CPU, times are estimated"
    return Finding("GPU", "missing", seen, "make TORCH=system setup  (on a machine with a ROCm or CUDA torch)")


def _triton(tools: Toolchain) -> Finding:
    if "amd" in tools.backends:
        return Finding("compile targets", "ok", f"{', '.join(TARGETS)} (triton {tools.triton})")
    seen = f"triton {tools.triton} without its AMD backend" if tools.triton else "no triton"
    return Finding("compile targets", "broken", seen, f"{_pip()} install --force-reinstall 'triton>=3.6'")


def _sandboxes(gpu: bool) -> list[Finding]:
    from sandbox.isolation import KINDS, works

    working = [name for name in KINDS if works(name, gpu)]
    seen = f"{', '.join(working)} work; {working[0]} is used" if working else "none works"
    if "bubblewrap" in working:
        return [Finding("sandboxes", "ok", seen)]
    return [Finding("sandboxes", "missing", seen, "apt-get install bubblewrap  (or your system's equivalent)")]


def _model(environment: Mapping[str, str]) -> Finding:
    if environment.get("OPENAI_API_KEY", "").strip():
        where = environment.get("OPENAI_BASE_URL", "the client's default endpoint")
        return Finding("model endpoint", "ok", f"key in OPENAI_API_KEY, {where}; not called by doctor")
    seen = "no key in OPENAI_API_KEY: --strategy search needs none, refine does unless the endpoint is local"
    return Finding("model endpoint", "missing", seen, "export OPENAI_API_KEY=...")


def _pip() -> str:
    return f"{os.path.relpath(sys.executable) if sys.prefix != sys.base_prefix else sys.executable} -m pip"
