"""Containers of a real engine: what is not reachable in one, what it may use, and that each of them ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems.load import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.isolation import KINDS, Limits, Running, container, works
from sandbox.runner import Mode, RunnerError
from sandbox.verdict import Passed, TimedOut
from tests.sandbox import engine

pytestmark = [pytest.mark.docker, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture(scope="module", autouse=True)
def address() -> Iterator[str]:
    if reason := engine.missing():
        pytest.skip(reason)
    # A UNIX socket's path has at most 107 bytes: pytest's own folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="kw-engine-"))
    with pytest.MonkeyPatch.context() as patch, engine.started(folder) as there:
        patch.setenv("DOCKER_HOST", there)
        container.engine.cache_clear()
        works.cache_clear()
        yield there
        container.engine().close()
    container.engine.cache_clear()
    works.cache_clear()
    shutil.rmtree(folder)


def start(code: str, limits: Limits | None = None) -> Running:
    return KINDS["docker"].start([sys.executable, "-I", "-S", "-c", code], ENV, limits or Limits())


def await_end(program: Running) -> str:
    deadline_s = time.monotonic() + 30
    while program.alive and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return program.output()


def run(code: str, limits: Limits | None = None) -> str:
    program = start(code, limits)
    try:
        return await_end(program)
    finally:
        program.close()


def test_it_works_and_is_not_the_first_choice() -> None:
    assert works("docker")
    assert list(KINDS).index("docker") > list(KINDS).index("namespaces")


REACH = """
import glob, json, os, socket
opened = []
for path in {places!r}:
    try: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)); opened.append(path)
    except OSError: pass
connected = []
for address in (('127.0.0.1', {port}), ('1.1.1.1', 80)):
    try: socket.create_connection(address, 2); connected.append(address)
    except OSError: pass
try: open('/tmp/big', 'wb').write(bytes(64 << 20)); filled = True
except OSError as error: filled = error.errno
for path in ('/tmp/x', '/dev/shm/x'): open(path, 'w').write('x')
print(json.dumps(dict(
    opened=opened, connected=connected, filled=filled, status=open('/proc/self/status').read(), uid=os.getuid(),
    groups=os.getgroups(), ours=os.listdir('/kernelwright'), meeting=os.listdir('/meeting'),
    reference=os.path.exists({reference!r}), rooms=glob.glob({root!r} + '/*/'), pids=len(glob.glob('/proc/[0-9]*')),
    descriptors=sorted(os.listdir('/proc/self/fd')), environment=sorted(os.environ),
    sockets=glob.glob('/run/**', recursive=True) + glob.glob('/var/run/**'))))
"""


def test_nothing_is_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    reference = ROOT / "problems/pmpp/vectoradd/reference.py"
    places = ["/x", "/usr/x", "/etc/x", "/run/x", "/var/tmp/x", "/dev/x", "/meeting/x", "/kernelwright/guest/x"]
    places += [f"{sys.prefix}/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/fs/cgroup/memory/x"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = REACH.format(places=places, port=port, reference=str(reference), root=str(ROOT))
        said = run(code, Limits(tmp_bytes=8 << 20))
    seen = json.loads(said)
    assert (seen["opened"], seen["connected"], seen["filled"]) == ([], [], 28)
    assert (seen["uid"], seen["groups"]) == (65534, [65534])
    assert (seen["ours"], seen["meeting"], seen["reference"]) == (["guest"], [], False)
    assert not {Path(room).name for room in seen["rooms"]} & {"problems", "sandbox", "agent", "dataset", "tests"}
    assert seen["pids"] == 2 and seen["descriptors"] == ["0", "1", "2", "3", "4"]
    assert "OPENAI_API_KEY" not in seen["environment"] and "DOCKER_HOST" not in seen["environment"]
    assert seen["sockets"] in (["/run/"], ["/run/", "/var/run"])
    fields = dict(line.split(":\t", 1) for line in seen["status"].splitlines() if ":\t" in line)
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


FLOOD = """
import os, time
count = 0
try:
    while count < 512:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        count += 1
except OSError: pass
print(count)
"""
EATERS = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = b'x' * (200 << 20)
        time.sleep(5)
        os._exit(0)
print(*(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(6)))
"""


def test_what_it_may_use() -> None:
    assert 20 < int(run(FLOOD, Limits(processes=40))) < 40
    # Each process alone is under its own limit; the container's counts them together.
    assert "-9" in run(EATERS, Limits(address_bytes=512 << 20))
    output = run("for _ in range(400): print('x' * 9999)\nprint('end')")
    assert len(output) <= 64 << 10 and output.endswith("end\n")


def test_its_ending_is_told() -> None:
    for code, ending in [
        ("raise SystemExit(7)", "exit status 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
    ]:
        program = start(code)
        await_end(program)
        assert program.ending() == ending
        program.close()


DAEMON = """
import os, socket, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('/proc/self/comm', 'w').write('{name}')
        os.write(3, b'x')
        time.sleep(60)
    os._exit(0)
os.wait()
{then}
"""


def named(name: str) -> list[str]:
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == name:
                found.append(comm.parent.name)
        except OSError:
            continue
    return found


def await_gone(name: str) -> bool:
    deadline_s = time.monotonic() + 10
    while named(name) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return named(name) == []


def test_a_daemon_dies_with_its_program() -> None:
    for number, then in enumerate(("time.sleep(60)", "socket.socket(fileno=3).recv(1); os._exit(0)")):
        name = f"kwdocker{number}"
        program = start(DAEMON.format(name=name, then=then))
        program.sock.settimeout(20)
        assert program.sock.recv(1) == b"x" and named(name)
        if number:
            program.sock.sendall(b"y")
            await_end(program)
            assert await_gone(name)
        begun_s = time.monotonic()
        program.kill()
        program.kill()
        assert program.ending() in {"killed by SIGKILL", "exit status 0"}
        program.close()
        program.close()
        assert time.monotonic() - begun_s < 5 and await_gone(name)


def test_a_killed_checker_leaves_nothing() -> None:
    code = f"""
import sys, time
from sandbox.isolation import KINDS, Limits
program = KINDS["docker"].start([sys.executable, "-I", "-S", "-c", sys.argv[1]], {ENV!r}, Limits())
program.sock.recv(1)
print("up", flush=True)
time.sleep(60)
"""
    name = "kworphan"
    arguments = [sys.executable, "-c", code, DAEMON.format(name=name, then="time.sleep(60)")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT) as checker:
        assert checker.stdout is not None and checker.stdout.readline() == b"up\n"
        assert named(name)
        checker.send_signal(signal.SIGKILL)
    assert await_gone(name)
    container.engine().close()
    container.engine.cache_clear()
    assert container.engine().containers.list(all=True) == []


HANG = """
#!POPCORN leaderboard vectoradd_v2
import ctypes
def custom_kernel(data):
    ctypes.PyDLL(None).sleep(1000)
"""


def test_candidates_are_judged_in_it() -> None:
    problem = load("pmpp/vectoradd")
    good = Candidate(source=(ROOT / "seed_kernels/pmpp/vectoradd/flat/submission.py").read_text())
    runner = CpuRunner(isolation="docker")
    try:
        first = runner.judge(problem, good, Mode.TEST)
        hung = runner.judge(problem, Candidate(source=HANG), Mode.TEST, deadline_s=3)
        again = runner.judge(problem, good, Mode.TEST)
    finally:
        runner.close()
    assert isinstance(first.verdict, Passed) and isinstance(again.verdict, Passed)
    assert isinstance(hung.verdict, TimedOut) and {first.sandbox, hung.sandbox} == {"docker"}


def test_without_an_engine_or_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CpuRunner(isolation="docker:no-such-image")
    with pytest.raises(RunnerError, match="no-such-image"):
        runner.judge(load("pmpp/vectoradd"), Candidate(source=HANG), Mode.TEST)
    runner.close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{os.devnull}.socket")
    container.engine.cache_clear()
    with pytest.raises(OSError, match="container engine"):
        start("pass")
    container.engine.cache_clear()
