"""What torch and triton on this machine say of themselves, asked in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys

from pydantic import ValidationError

from problems.spec import Frozen
from sandbox.runner import RunnerError

_DEADLINE_S = 120.0
_PROGRAM = """
import json
seen = {"torch": "", "torch_build": "none", "torch_error": "", "devices": [], "triton": "", "backends": []}
try:
    import torch
    seen["torch"] = torch.__version__
    seen["torch_build"] = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            shown = torch.cuda.get_device_properties(index)
            arch = getattr(shown, "gcnArchName", "") or f"sm_{shown.major}{shown.minor}"
            seen["devices"].append({"name": shown.name, "arch": arch, "memory_bytes": shown.total_memory})
except (ImportError, OSError, RuntimeError) as error:
    seen["torch_error"] = f"{type(error).__name__}: {error}"
try:
    import triton
    from triton.backends import backends
    seen["triton"], seen["backends"] = triton.__version__, sorted(backends)
except (ImportError, OSError, RuntimeError):
    pass
print(json.dumps(seen))
"""


class Device(Frozen):
    """One GPU that torch sees."""

    name: str
    arch: str
    memory_bytes: int


class Toolchain(Frozen):
    """torch and triton as installed; empty strings where one is missing."""

    torch: str
    torch_build: str
    """``rocm``, ``cuda``, ``cpu`` or ``none``."""
    torch_error: str
    """Why torch could not be imported or asked; empty where it could."""
    devices: tuple[Device, ...]
    triton: str
    backends: tuple[str, ...]
    """Triton's code generators: ``amd``, ``nvidia``."""


def toolchain(deadline_s: float = _DEADLINE_S) -> Toolchain:
    """Ask this interpreter's torch and triton; `RunnerError` where the asking itself fails or passes its deadline."""
    try:
        answer = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, timeout=deadline_s, check=True)
        return Toolchain.model_validate(json.loads(answer.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired as error:
        raise RunnerError(
            f"importing torch took more than {deadline_s:g} s; try again when the disk is quieter"
        ) from error
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError, ValidationError) as error:
        raise RunnerError(f"torch and triton cannot be asked ({error}); reinstall them: make setup") from error
