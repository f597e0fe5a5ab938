"""A container engine started for the tests alone: podman's Docker-compatible service; all it keeps is in one folder."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import docker
from docker.errors import DockerException

# runc and explicit limits: crun refuses machines with both cgroup versions, and raising limits needs CAP_SYS_RESOURCE.
SETTINGS = """
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
"""
START_S = 30.0


def missing() -> str:
    """Why no engine can be started here; empty where one can."""
    if os.geteuid() != 0:
        return "starting a container engine needs root"
    lacking = [name for name in ("podman", "runc") if shutil.which(name) is None]
    return f"not installed: {' '.join(lacking)} (apt-get install podman runc)" if lacking else ""


@contextlib.contextmanager
def started(folder: Path) -> Iterator[str]:
    """The service, listening; its address. Nothing of it is left at the end."""
    (folder / "containers.conf").write_text(SETTINGS)
    # Of empty folders vfs makes no large copies, and it needs nothing of the file system below.
    place = ["--root", str(folder / "store"), "--runroot", str(folder / "run"), "--storage-driver", "vfs"]
    environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf"), "TMPDIR": str(folder)}
    address = f"unix://{folder / 's'}"
    with (folder / "log").open("wb") as log:
        command = ["podman", *place, "system", "service", "--time=0", address]
        # In that folder: conmon leaves a file called oom where it stands.
        service = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=folder)
    try:
        _await_answer(address, service, folder / "log")
        yield address
    finally:
        with contextlib.suppress(DockerException):
            client = docker.DockerClient(base_url=address)
            for container in client.containers.list(all=True):
                container.remove(force=True)
            client.close()
        service.terminate()
        service.wait(START_S)


def _await_answer(address: str, service: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and service.poll() is None:
        with socket.socket(socket.AF_UNIX) as trial, contextlib.suppress(OSError):
            trial.connect(address.removeprefix("unix://"))
            return
        time.sleep(0.05)
    raise AssertionError(f"podman's service does not answer\n{log.read_text()[-2000:]}")
