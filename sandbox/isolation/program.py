"""A started program: one socket, bounded output, and an end that takes everything it started along."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.isolation.running import Running

MAX_OUTPUT_BYTES = 64 << 10
NOBODY = 65534
TRIAL = """
import glob, os
for path in (*glob.glob("/dev/nvidia[0-9]*"), *glob.glob("/dev/nvidiactl"), *glob.glob("/dev/kfd")):
    os.close(os.open(path, os.O_RDWR))
os.write(3, b"right")
"""
"""A program in Python that says so where it runs and the devices it is shown will open."""
_TRIAL_S = 20.0
_END_S = 30.0
"""A GPU's driver takes its time to end a process whose kernel hangs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use. None leaves a limit off: a GPU's driver maps far more address space than it uses."""

    tmp_bytes: int = 2 << 30
    file_bytes: int = 1 << 30
    address_bytes: int | None = None
    processes: int = 512
    open_files: int = 4096
    loopback: bool = False
    """Whether its processes may reach one another over a loopback of their own, as the ranks of one candidate do."""


def limited(argv: Sequence[str], limits: Limits, count_processes: bool = True) -> list[str]:
    """`argv` under its resource limits, its socket moved from standard input to descriptor 3.

    `count_processes` only in a user namespace of its own: elsewhere the limit counts every process of the user.
    """
    flags = ["--core=0:0", f"--fsize={_at_most(resource.RLIMIT_FSIZE, limits.file_bytes)}"]
    flags.append(f"--nofile={_at_most(resource.RLIMIT_NOFILE, limits.open_files)}")
    if count_processes:
        flags.append(f"--nproc={_at_most(resource.RLIMIT_NPROC, limits.processes)}")
    if limits.address_bytes is not None:
        flags.append(f"--as={_at_most(resource.RLIMIT_AS, limits.address_bytes)}")
    return ["/bin/sh", "-c", 'exec 3<&0 0</dev/null; exec "$@"', "sh", "prlimit", *flags, *argv]


def _at_most(kind: int, wanted: int) -> int:
    """`wanted`, or the hard limit this process is under where that is lower: only root could raise it."""
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def as_nobody(groups: Sequence[int]) -> list[str]:
    """The prefix that makes root user 65534 for good, in `groups` alone (those of the GPU's device files)."""
    member = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    gone = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", *member, *gone]


class Program:
    """One running program, the first of a session (and process group) of its own."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        sock: socket.socket,
        clean_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.sock = sock
        self._process, self._clean_up = process, clean_up
        self._output = bytearray()
        self._ended = threading.Lock()
        self._drain = threading.Thread(target=self._read, name="guest output", daemon=True)
        self._drain.start()

    @property
    def pid(self) -> int:
        """The outermost process, as seen from here."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the outermost process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the whole tree, from outside. Any thread may call it, any number of times."""
        with contextlib.suppress(ProcessLookupError):
            if self.alive:
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill, reap, and drop the socket and whatever was made for this program; `TimeoutError` if it will not end."""
        with self._ended:
            self.kill()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired as error:
                raise TimeoutError(f"process {self.pid} does not end: {error}") from error
            # What left the process group may hold the output open until this ends it.
            self._clean_up()
            self._clean_up = lambda: None
            self._drain.join(_END_S)
            self.sock.close()

    def ending(self) -> str:
        """How the program ended, waiting a moment for it: ``exit status 1``, ``killed by SIGSEGV``, ``runs on``."""
        try:
            status = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return "it runs on"
        number = -status if status < 0 else status - 128
        if status > 128 or status < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(number).name}"
        return f"exit status {status}"

    def output(self) -> str:
        """The end of what it printed on both streams. Text from the untrusted side: shown, never parsed."""
        if not self.alive:
            self._drain.join(1.0)
        return bytes(self._output).decode(errors="replace")

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            while data := os.read(stream.fileno(), 1 << 16):
                self._output += data
                del self._output[:-MAX_OUTPUT_BYTES]


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    clean_up: Callable[[], None] = lambda: None,
    keep: Sequence[int] = (),
) -> Program:
    """Start `argv` in a new session with one end of a fresh socket as its standard input; `OSError` if it cannot.

    It inherits the descriptors `keep` besides, which stay the caller's.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with theirs:
            process = subprocess.Popen(
                list(argv),
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(env),
                bufsize=0,
                start_new_session=True,
                pass_fds=keep,
            )
    except OSError:
        ours.close()
        clean_up()
        raise
    return Program(process, ours, clean_up)


def tried(program: Running) -> bool:
    """Whether a started `TRIAL` gets to its end; ends it."""
    try:
        program.sock.settimeout(_TRIAL_S)
        return program.sock.recv(16) == b"right"
    except OSError:
        return False
    finally:
        program.close()
