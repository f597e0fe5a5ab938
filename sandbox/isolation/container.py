"""A container as a running program, and the engine it runs in. The one place that imports the docker SDK."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.types import LogConfig
from requests.exceptions import RequestException

from sandbox.isolation.program import MAX_OUTPUT_BYTES

_OWNER = "kernelwright.owner"
_ENGINE_S = 60
"""For one answer of the engine."""
_MOMENT_S = 1.0
_REMOVE_S = 10.0
_SOCKETS = ("/var/run/docker.sock", "/run/podman/podman.sock")


@contextlib.contextmanager
def as_os_error() -> Iterator[None]:
    """What goes wrong between us and the engine, as `OSError`: the place's fault."""
    try:
        yield
    except (DockerException, RequestException) as error:
        raise OSError(f"container engine: {error}") from error


@functools.cache
def engine() -> Any:
    """The engine that ``DOCKER_HOST`` names, or the one on a usual socket; `OSError` where none answers.

    Containers whose owner was killed are removed first: they are stopped, but take up names and disk.
    """
    place = os.environ.get("DOCKER_HOST") or f"unix://{next(filter(os.path.exists, _SOCKETS), _SOCKETS[0])}"
    if place.startswith("unix://") and not Path(place.removeprefix("unix://")).exists():
        raise OSError(f"container engine: nothing listens at {place}")
    with as_os_error():
        client = docker.DockerClient(base_url=place, timeout=_ENGINE_S)
        for left in client.containers.list(all=True, filters={"label": _OWNER}, ignore_removed=True):
            if not _lives(left.labels.get(_OWNER, "")):
                _remove(left)
        return client


def create(image: str, words: list[str], **settings: Any) -> Container:
    """A container that is not started yet; `DockerException` where the engine will not make it."""
    log = LogConfig(type="none")
    labels = {_OWNER: _identity(os.getpid())}
    return Container(engine().containers.create(image, words, labels=labels, log_config=log, **settings))


def imported(name: str, archive: bytes) -> str:
    """The image of that name, imported from a tar where the engine does not have it."""
    images = engine().images
    try:
        images.get(name)
    except NotFound:
        repository, _, tag = name.rpartition(":")
        images.client.api.import_image_from_data(archive, repository=repository, tag=tag)
    return name


class Container:
    """One container, the program in it behind one socket, and the folder they met in."""

    sock: socket.socket
    """Given by who starts it, once they met."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self._output = bytearray()
        self._ended = threading.Lock()
        self._closed = False
        # Attached before it starts: nothing it says is lost, and the engine keeps no log that could fill a disk.
        self._stream = made.attach(stdout=True, stderr=True, stream=True, logs=False)
        self._drain = threading.Thread(target=self._read, name="container output", daemon=True)

    def begin(self) -> None:
        """Start it."""
        self._made.start()
        self._drain.start()
        self._made.reload()

    @property
    def pid(self) -> int:
        """Its first process, as the engine and this machine name it; 0 once it ended."""
        return int(self._made.attrs["State"]["Pid"])

    @property
    def alive(self) -> bool:
        """Whether its first process runs: that one alone keeps the streams open to the end."""
        return self._drain.is_alive()

    def kill(self) -> None:
        """Kill every process in it."""
        if self.alive:
            # It may have ended since, or another thread removed it.
            with contextlib.suppress(DockerException):
                self._made.kill(signal.SIGKILL)

    def close(self) -> None:
        """Kill it, remove it, drop the socket; `TimeoutError` or `OSError` where the engine does not get it done."""
        with self._ended:
            if self._closed:
                return
            with as_os_error():
                _remove(self._made)
            if self._drain.ident is not None:
                self._drain.join(_ENGINE_S)
            if self.alive:
                raise TimeoutError(f"container {self._made.short_id} does not end")
            if hasattr(self, "sock"):
                self.sock.close()
            self._closed = True

    def ending(self) -> str:
        """How its program ended, waiting a moment for it; the first process hands its status on."""
        self._drain.join(_MOMENT_S)
        if self.alive:
            return "it runs on"
        try:
            status = int(self._made.wait(timeout=_ENGINE_S)["StatusCode"])
        except (DockerException, RequestException) as error:
            return f"its container is gone: {error}"
        with contextlib.suppress(ValueError):
            if status > 128:
                return f"killed by {signal.Signals(status - 128).name}"
        return f"exit status {status}"

    def output(self) -> str:
        """The end of what it printed on both streams. Text from the untrusted side: shown, never parsed."""
        if not self.alive:
            self._drain.join(_MOMENT_S)
        return bytes(self._output).decode(errors="replace")

    def _read(self) -> None:
        for data in self._stream:
            self._output += data
            del self._output[:-MAX_OUTPUT_BYTES]
        # Its own `close` leaves the descriptor to the garbage collector.
        self._stream._response.close()


def _remove(made: Any) -> None:
    """Kill and remove a container, until the engine knows of none."""
    until_s = time.monotonic() + _REMOVE_S
    while True:
        try:
            made.remove(force=True)
        except NotFound:
            return
        except APIError:
            # Podman fails to kill what ends by itself at that moment.
            if time.monotonic() > until_s:
                raise
            time.sleep(0.02)


def _identity(pid: int) -> str:
    """A process, told from a later one of the same number by when it began; `OSError` where there is none."""
    began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{pid} {began} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def _lives(identity: str) -> bool:
    pid = identity.partition(" ")[0]
    try:
        return pid.isdigit() and _identity(int(pid)) == identity
    except OSError:
        return False
