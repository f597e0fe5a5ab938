"""Confinement in a container of an engine that speaks Docker's protocol: dockerd, or podman's service.

Covers: no network, own pid, ipc, uts and mount namespaces, no capabilities, the engine's seccomp filter, no new
privileges, user 65534, a read-only root that holds only the system, the Python environment and the guest's package,
private /tmp and /dev/shm with a size; memory (no swap), processes and CPU time of the whole container by cgroup.
Does not cover: faults of the kernel and of the GPU's driver, side channels. The engine is a daemon, and who may speak
to it is root on this machine: the checker may, a guest never sees its socket.

The guest's socket: a descriptor cannot be handed to a container, and buffers must be handed over as descriptors. So the
checker listens on a UNIX socket in a folder of its own that is shown to this container alone. It accepts one
connection, from the container's first process and no other (SO_PEERCRED), which is made before any candidate exists,
and unlinks the path at once.

The CPU image is an imported root of empty folders (`sandbox.images.root`). With ``docker:IMAGE`` a guest runs on that
image's own system, Python and torch instead (see `sandbox/images/`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.images.root import root_archive, tag
from sandbox.isolation.program import NOBODY, Limits, limited
from sandbox.isolation.running import Running
from sandbox.isolation.view import CODE, View, view

MEETING = "/meeting"
"""Where the container sees the checker's folder."""
_FIRST = Path(__file__).with_name("first.py")
_MEET_S = 60.0
_PEER = struct.Struct("3i")
_PLACE = "kernelwright-meeting-"
_CLOSED = {"/run": "size=4k,mode=555,ro", "/var/tmp": "size=4k,mode=555,ro"}
"""Podman would mount these writable."""
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class Docker:
    """Starts programs in containers: of the imported root, or of an image that has a system of its own."""

    def __init__(self, image: str | None = None) -> None:
        self.name = "docker"
        self._image = image

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Running:
        """Start `argv` confined; its folder of ours is on its path. `OSError` where no engine starts it."""
        # The SDK takes its time to import, and most machines never need it.
        from sandbox.isolation.container import as_os_error, create

        shown = view(gpu)
        with as_os_error(), _meeting() as (folder, listener):
            image = self._image or _root(shown)
            devices = _devices(shown)
            container = create(
                image,
                self._command(argv, limits),
                environment={**env, **_one_gpu(shown, env), "PYTHONPATH": str(CODE)},
                volumes={**self._binds(shown), str(folder): {"bind": MEETING, "mode": "ro"}},
                tmpfs=_scratch(shown if self._image is None else None, limits),
                devices=[f"{path}:{path}:rw" for path in devices],
                group_add=[str(group) for group in shown.groups],
                **_caps(limits),
            )
            try:
                container.begin()
                container.sock = _meet(listener, container)
            except BaseException:
                container.close()
                raise
            return container

    def _command(self, argv: Sequence[str], limits: Limits) -> list[str]:
        python = "python3" if self._image else sys.executable
        inner = [python if word == sys.executable else word for word in argv]
        # Processes are counted by the container's cgroup; a user's count would take in other guests.
        limits_here = limited(inner, limits, count_processes=False)
        return [python, "-I", "-S", "-c", _FIRST.read_text(), f"{MEETING}/s", *limits_here]

    def _binds(self, shown: View) -> dict[str, dict[str, str]]:
        system = shown.read_only if self._image is None else ()
        pairs = [*((path, path) for path in system), shown.code]
        return {source: {"bind": target, "mode": "ro"} for source, target in pairs}


def _root(shown: View) -> str:
    """The image of empty folders for this view, imported where the engine does not have it yet."""
    from sandbox.isolation.container import imported

    archive = root_archive(shown, (MEETING,))
    return imported(tag(archive), archive)


def _caps(limits: Limits) -> dict[str, Any]:
    # Half the cores: a guest that spins must not keep the checker from its clock.
    cores = max(1.0, (os.cpu_count() or 1) / 2)
    memory = limits.address_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return {
        "network_mode": "none",
        "ipc_mode": "private",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": f"{NOBODY}:{NOBODY}",
        "hostname": "guest",
        "working_dir": "/tmp",
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": limits.processes,
        "nano_cpus": int(cores * 1e9),
        "shm_size": limits.tmp_bytes,
    }


def _scratch(shown: View | None, limits: Limits) -> dict[str, str]:
    """Memory mounts: one to work in (Triton loads what it compiles there), and empty ones over what is hidden."""
    hidden = dict.fromkeys(shown.covered, "size=4k,mode=555,ro") if shown else {}
    return {**hidden, **_CLOSED, "/tmp": f"size={limits.tmp_bytes},mode=1777,exec,nosuid,nodev"}


def _devices(shown: View) -> list[str]:
    """Device files, with one render node alone where there are several: the first GPU of those we may see."""
    nodes = [path for path in shown.devices if path != "/dev/dri"]
    if len(nodes) == len(shown.devices):
        return nodes
    chosen = next((os.environ[name] for name in _VISIBLE if name in os.environ), "0").split(",")[0]
    renders = sorted(map(str, Path("/dev/dri").glob("renderD*")))
    if chosen.isdigit() and int(chosen) < len(renders):
        renders = [renders[int(chosen)]]
    return [*nodes, *renders]


def _one_gpu(shown: View, env: Mapping[str, str]) -> dict[str, str]:
    """Where one render node is shown, it is GPU 0 inside, whatever its number outside."""
    return {name: "0" for name in _VISIBLE if name in env} if "/dev/dri" in shown.devices else {}


@contextlib.contextmanager
def _meeting() -> Iterator[tuple[Path, socket.socket]]:
    """A folder with a listening socket ``s`` in it; both are gone at the end."""
    _clear_places()
    closed = Path(tempfile.mkdtemp(prefix=f"{_PLACE}{os.getpid()}-"))
    try:
        # The outer folder is closed to other users of this machine; the container sees the inner one alone.
        inner = closed / "inner"
        inner.mkdir()
        inner.chmod(0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(inner / "s"))
            (inner / "s").chmod(0o666)
            listener.listen(1)
            yield inner, listener
    finally:
        shutil.rmtree(closed, ignore_errors=True)


@functools.cache
def _clear_places() -> None:
    """Remove the folders of checkers that were killed while a guest started."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PLACE}*-*"):
        pid = place.name.removeprefix(_PLACE).partition("-")[0]
        if not Path("/proc", pid).exists():
            shutil.rmtree(place, ignore_errors=True)


def _meet(listener: socket.socket, container: Running) -> socket.socket:
    """The connection of the container's first process; `OSError` where none comes."""
    until_s = time.monotonic() + _MEET_S
    listener.settimeout(0.05)
    while time.monotonic() < until_s and container.alive:
        with contextlib.suppress(TimeoutError):
            sock, _ = listener.accept()
            peer = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[0]
            if peer == container.pid:
                sock.settimeout(None)
                sock.sendall(b"!")
                return sock
            sock.close()
    raise OSError(f"the container's first process did not come: {container.ending()}\n{container.output()[-2048:]}")
