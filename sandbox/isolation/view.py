"""What a guest may see of this machine: the system, the Python environment, its own package, and the GPU's parts."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from sandbox import hip_cache

CODE = Path("/kernelwright")
"""Where a guest finds its own package: ``/kernelwright/guest``."""
GUEST = Path(__file__).parents[1] / "guest"
OURS = Path(__file__).parents[2]
_HIDDEN = (
    *("agent", "prompts", "sandbox", "problems", "seed_kernels", "dataset", "evals", "kernelwright"),
    *("tests", "docs", "runs", ".git"),
)
_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_TOOLS = ("CC", "TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "OpenCL", "vulkan")


@dataclass(frozen=True, slots=True)
class View:
    """The mounts of a guest's root, as absolute paths. Everything else is absent."""

    read_only: tuple[str, ...]
    """Shown at their own place."""
    links: tuple[tuple[str, str], ...]
    """(target, link): ``/lib -> usr/lib`` on a merged system."""
    covered: tuple[str, ...]
    """Folders of ours inside a read-only path, hidden under an empty one: references must not be readable."""
    devices: tuple[str, ...]
    groups: tuple[int, ...]
    """Groups that own the device files: on ROCm a user must be in them."""
    code: tuple[str, str]
    """(our folder, where the guest sees it)."""


def view(gpu: bool) -> View:
    """The view of a guest on this machine, with the GPU's device files and driver folders where `gpu`."""
    top = [Path(path) for path in _TOP]
    links = tuple((str(path.readlink()), str(path)) for path in top if path.is_symlink())
    folders = [Path("/usr"), *(path for path in top if path.is_dir() and not path.is_symlink())]
    folders += [Path("/etc") / name for name in _ETC]
    folders += [Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), *_site_folders()]
    if gpu:
        folders += [Path("/sys"), Path("/etc/nvidia"), *library_folders(), *_tool_folders()]
    rocm, kept = Path(os.environ.get("ROCM_PATH") or "/opt/rocm"), hip_cache.shown()
    folders += [rocm] if rocm.is_absolute() and len(rocm.parts) > 1 else []
    folders += [kept] if kept else []
    shown = _outermost([folder for folder in folders if folder.exists()])
    ours = [OURS / name for name in _HIDDEN]
    covered = tuple(str(path) for path in ours if path.exists() and any(path.is_relative_to(top) for top in shown))
    devices = tuple(str(path) for path in _device_files()) if gpu else ()
    groups = tuple(sorted({Path(path).stat().st_gid for path in devices} - {0}))
    return View(tuple(map(str, shown)), links, covered, devices, groups, (str(GUEST), str(CODE / "guest")))


def library_folders() -> list[Path]:
    """The folders of this process's ``LD_LIBRARY_PATH``: drivers are found through it in some containers."""
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [Path(folder) for folder in named if folder.startswith("/") and Path(folder).is_dir()]


def _tool_folders() -> list[Path]:
    """Where the tools lie that Triton is told to use: a compiler needs its whole prefix, not its ``bin`` alone."""
    named = [Path(os.environ[name]) for name in _TOOLS if os.environ.get(name, "").startswith("/")]
    tools = [path for tool in named for path in (tool, tool.resolve())]
    prefixes = [tool if tool.is_dir() else tool.parent.parent for tool in tools]
    return [prefix for prefix in prefixes if len(prefix.parts) > 1]


def _site_folders() -> list[Path]:
    """Package folders on the path that no prefix holds: a user site, or the system's torch beside our environment."""
    return [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]


def _outermost(folders: list[Path]) -> list[Path]:
    kept: list[Path] = []
    for folder in sorted(set(folders), key=lambda path: len(path.parts)):
        if not any(folder.is_relative_to(outer) for outer in kept):
            kept.append(folder)
    return kept


def _device_files() -> list[Path]:
    return [
        *sorted(Path("/dev").glob("nvidia*")),
        *(path for path in (Path("/dev/kfd"), Path("/dev/dri")) if path.exists()),
    ]
