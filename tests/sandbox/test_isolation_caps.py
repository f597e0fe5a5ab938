"""System calls that confined programs are refused, and caps on all that a program starts."""

import errno
import os
import time
from pathlib import Path

import pytest

from sandbox.isolation import Limits, cgroup, syscalls, works
from sandbox.isolation.cgroup import cage
from tests.sandbox.test_isolation import ALL, CONFINED, run, start

pytestmark = pytest.mark.slow

capped = pytest.mark.skipif(not cgroup.works(), reason="no cgroup can be made on this machine")
filtered = pytest.mark.skipif(not syscalls.known(), reason="no seccomp filter for this architecture")

CALLS = """
import ctypes, errno, os, socket, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    return 'DONE' if libc.syscall(number, *arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
print(*(call(number, 0, 0, 0, 0, 0) for number in NUMBERS))
print(call(CLONE, 0x10000000 | 17, 0, 0, 0, 0), call(435, 0, 0))
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 40, 38):
    try: socket.socket(family, socket.SOCK_DGRAM); print('OPENED', family)
    except OSError as error: print(error.errno, end=' ')
one, other = socket.socketpair()
one.sendall(b'x')
thread = threading.Thread(target=other.recv, args=(1,)); thread.start(); thread.join()
print(subprocess.run(['/bin/echo', 'child'], capture_output=True, text=True).stdout, end='')
print(open('/proc/self/status').read().split('Seccomp:')[1].split()[0])
"""


@filtered
@pytest.mark.parametrize("kind", CONFINED)
def test_calls_that_no_kernel_needs_are_refused_and_others_work(kind: str) -> None:
    machine = os.uname().machine
    refused = list(syscalls.numbers(machine).values())
    code = CALLS.replace("NUMBERS", repr(refused)).replace("CLONE", "56" if machine == "x86_64" else "220")
    calls, clones, rest, status = run(kind, code).splitlines()
    assert calls.split() == ["EPERM"] * len(refused)
    assert clones.split() == ["EPERM", "ENOSYS"]
    assert rest.split() == [str(errno.EPERM)] * 6 + ["child"]
    assert status == "2"


def test_there_is_a_filter_for_both_architectures() -> None:
    for machine in ("x86_64", "aarch64"):
        program = syscalls.filter_program(machine)
        assert len(program) % 8 == 0 and 400 < len(program) < 4096 * 8
        assert len(set(syscalls.numbers(machine).values())) == len(syscalls.numbers(machine))
    assert syscalls.filter_program("riscv64") == b""


def wait_for_output(kind: str, code: str, limits: Limits, seconds: float = 20.0) -> str:
    program = start(kind, code, limits)
    until_s = time.monotonic() + seconds
    try:
        while not program.output() and program.alive and time.monotonic() < until_s:
            time.sleep(0.01)
        return program.output().strip() or program.ending()
    finally:
        program.close()


HOARD = """
import os, time
for child in range(8):
    if os.fork() == 0:
        hoard = [bytearray(b'x') * (16 << 20) for _ in range(4)]
        time.sleep(60)
ended = os.wait()[1]
print(os.WTERMSIG(ended))
"""


@capped
@pytest.mark.parametrize("kind", ALL)
def test_memory_is_counted_over_all_processes(kind: str) -> None:
    # 8 x 64 MiB: none is over the limit alone.
    assert wait_for_output(kind, HOARD, Limits(address_bytes=256 << 20)) in ("9", "killed by SIGKILL")


FLOOD = """
import os, time
count = 0
try:
    while count < 512:
        if os.fork() == 0: os.setsid(); time.sleep(60); os._exit(0)
        count += 1
    print('UNLIMITED')
except OSError: print(count < 90)
"""


def left() -> list[Path]:
    """Cages of this process that are still there."""
    return sorted(cgroup.ROOT.glob(f"*/kernelwright-{os.getpid()}-*"))


@capped
@pytest.mark.parametrize("kind", ALL)
def test_processes_are_counted_over_all_and_all_end(kind: str) -> None:
    assert wait_for_output(kind, FLOOD, Limits(processes=64)) == "True"
    assert left() == []


@capped
def test_two_guests_have_their_own_count() -> None:
    kind = "bubblewrap" if works("bubblewrap") else "process"
    first = start(kind, FLOOD, Limits(processes=64))
    while not first.output() and first.alive:
        time.sleep(0.01)
    try:
        assert "done" in run(kind, "import os; [os.fork() for _ in range(4)]; print('done')", Limits(processes=64))
    finally:
        first.close()


@capped
def test_a_dead_checkers_cages_are_swept() -> None:
    first = cage(Limits())
    # Process numbers end at 4194304.
    stale = [folder.with_name("kernelwright-4194305-dead") for folder in first.folders]
    for folder in stale:
        folder.mkdir()
    cgroup._parents.cache_clear()
    second = cage(Limits())
    assert second.folders and not any(folder.exists() for folder in stale)
    for made in (first, second):
        made.remove()
    assert left() == []
