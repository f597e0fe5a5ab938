"""What a confined program cannot do, in every kind of sandbox that works on this machine."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.isolation import KINDS, Limits, Program, choose, works

pytestmark = pytest.mark.slow

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
REFERENCE = Path(__file__).parents[2] / "problems/pmpp/vectoradd/reference.py"
CONFINED = [
    pytest.param(name, marks=pytest.mark.skipif(not works(name), reason=f"{name} does not work on this machine"))
    for name in ("bubblewrap", "namespaces")
]
ALL = [*CONFINED, "process"]


def start(kind: str, code: str, limits: Limits | None = None) -> Program:
    # -S: without site-packages a plain interpreter starts in a few milliseconds.
    return KINDS[kind].start([sys.executable, "-I", "-S", "-c", code], ENV, limits or Limits())


def run(kind: str, code: str, limits: Limits | None = None) -> str:
    program = start(kind, code, limits)
    try:
        deadline = time.monotonic() + 20
        while program.alive and time.monotonic() < deadline:
            time.sleep(0.005)
        return program.output()
    finally:
        program.close()


@pytest.mark.parametrize("kind", ALL)
def test_the_socket_is_descriptor_3(kind: str) -> None:
    program = start(kind, "import socket; s = socket.socket(fileno=3); s.sendall(s.recv(5).upper())")
    program.sock.settimeout(20)
    program.sock.sendall(b"hello")
    assert program.sock.recv(5) == b"HELLO"
    program.close()


@pytest.mark.parametrize("kind", ALL)
def test_nothing_else_is_inherited(kind: str) -> None:
    with socket.socket() as secret:
        os.set_inheritable(secret.fileno(), True)
        code = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))"
        # The last one is the listing's own.
        assert run(kind, code).strip() == "[0, 1, 2, 3, 4]"


@pytest.mark.parametrize("kind", CONFINED)
def test_references_are_invisible(kind: str) -> None:
    code = f"""
import glob
try: print(open({str(REFERENCE)!r}).read())
except OSError as error: print(type(error).__name__)
print(glob.glob('{REFERENCE.parents[2]}/*'))
"""
    seen = run(kind, code)
    assert "FileNotFoundError" in seen
    assert "problems" not in seen and "sandbox" not in seen


@pytest.mark.parametrize("kind", CONFINED)
def test_the_guest_package_alone_is_shown(kind: str) -> None:
    assert run(kind, "import os; print(os.listdir('/kernelwright'))").strip() == "['guest']"


@pytest.mark.parametrize("kind", CONFINED)
def test_nothing_is_writable_but_private_memory(kind: str) -> None:
    places = ["/x", "/usr/x", "/kernelwright/guest/x", f"{sys.prefix}/x", "/proc/sys/kernel/hostname", "/etc/x"]
    places += ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
    code = f"""
import os
for path in {places!r}:
    try: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)); print('OPENED', path)
    except OSError: pass
for path in ('/tmp/x', '/dev/shm/x'): open(path, 'w').write('x')
print('done')
"""
    assert run(kind, code).strip() == "done"
    assert not Path("/tmp/x").exists() and not Path("/dev/shm/x").exists()


@pytest.mark.parametrize("kind", CONFINED)
def test_private_memory_has_a_size(kind: str) -> None:
    code = """
try:
    with open('/tmp/big', 'wb') as file:
        for _ in range(64): file.write(bytes(1 << 20))
    print('filled')
except OSError as error: print(error.errno)
"""
    assert run(kind, code, Limits(tmp_bytes=8 << 20)).strip() == "28"


@pytest.mark.parametrize("kind", CONFINED)
def test_no_network(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
import socket
for address in (('127.0.0.1', {server.getsockname()[1]}), ('1.1.1.1', 80)):
    try: socket.create_connection(address, 2); print('CONNECTED')
    except OSError: print('refused')
"""
        assert run(kind, code).split() == ["refused", "refused"]


@pytest.mark.parametrize("kind", CONFINED)
def test_other_processes_are_out_of_sight(kind: str) -> None:
    code = f"""
import os
print(max(int(name) for name in os.listdir('/proc') if name.isdigit()) < 20, os.path.exists('/proc/{os.getpid()}'))
try: os.kill({os.getpid()}, 0); print('REACHED')
except OSError: print('absent')
"""
    assert run(kind, code).split() == ["True", "False", "absent"]


@pytest.mark.parametrize("kind", CONFINED)
def test_no_capability_is_left(kind: str) -> None:
    status = run(kind, "print(open('/proc/self/status').read())")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert fields["NoNewPrivs"] == "1"


@pytest.mark.parametrize("kind", ALL)
def test_the_environment_is_what_was_given(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    names = set(run(kind, "import os; print(*os.environ)").split())
    assert names <= {
        *ENV,
        "PYTHONPATH",
        "HOME",
        "TMPDIR",
        "TRITON_CACHE_DIR",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "LC_CTYPE",
    }


@pytest.mark.parametrize("kind", ALL)
def test_limits_hold(kind: str) -> None:
    code = """
import resource
print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_AS)[1])
try:
    open('/tmp/kernelwright-limit', 'wb').write(bytes(1 << 20)); print('WRITTEN')
except OSError as error: print(error.errno)
"""
    try:
        said = run(kind, code, Limits(file_bytes=1 << 16, address_bytes=1 << 30)).split()
    finally:
        Path("/tmp/kernelwright-limit").unlink(missing_ok=True)
    assert said == ["(0,", "0)", str(1 << 30), "27"]


@pytest.mark.parametrize("kind", CONFINED)
def test_a_fork_bomb_meets_its_limit(kind: str) -> None:
    code = """
import os, time
count = 0
try:
    while count < 200:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        count += 1
    print('UNLIMITED')
except OSError: print(count < 60)
"""
    program = start(kind, code, Limits(processes=40))
    deadline = time.monotonic() + 20
    while not program.output() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert program.output().strip() == "True"
    program.close()


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: open('/proc/self/comm', 'w').write('{name}'); time.sleep(0.01)
    os._exit(0)
os.wait()
os.write(3, b'x')
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


@pytest.mark.parametrize("kind", CONFINED)
@pytest.mark.parametrize("then", ["time.sleep(60)", "os._exit(0)"])
def test_a_daemon_dies_with_its_program(kind: str, then: str) -> None:
    name = f"kwd{os.getpid() % 100000}{kind[:3]}{len(then)}"
    program = start(kind, DAEMON.format(name=name, then=then))
    program.sock.settimeout(20)
    assert program.sock.recv(1) == b"x"
    program.close()
    deadline = time.monotonic() + 2
    while named(name) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert named(name) == []


@pytest.mark.parametrize("kind", ALL)
def test_output_is_bounded_and_never_blocks(kind: str) -> None:
    said = run(kind, "for _ in range(400): print('x' * 9999)\nprint('end')")
    assert len(said) <= 64 << 10 and said.endswith("end\n")


@pytest.mark.parametrize("kind", ALL)
def test_the_ending_is_told(kind: str) -> None:
    for code, ending in [
        ("raise SystemExit(7)", "exit status 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
    ]:
        if kind == "namespaces" and "SIGKILL" in ending:
            continue  # the first process of a pid namespace cannot signal itself
        program = start(kind, code)
        deadline = time.monotonic() + 20
        while program.alive and time.monotonic() < deadline:
            time.sleep(0.005)
        assert program.ending() == ending
        program.close()


@pytest.mark.parametrize("kind", ALL)
def test_killed_at_once_and_closed_twice(kind: str) -> None:
    program = start(kind, "import time; time.sleep(60)")
    start_s = time.monotonic()
    program.kill()
    program.kill()
    assert program.ending() == f"killed by {signal.SIGKILL.name}"
    program.close()
    program.close()
    assert time.monotonic() - start_s < 2


def test_the_choice_works_and_is_the_strongest() -> None:
    working = [name for name in KINDS if works(name)]
    assert choose().name == working[0]


def test_a_lower_hard_limit_is_kept() -> None:
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from sandbox.isolation import choose, works
print(choose().name, works("process"))
"""
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert said.stdout.split() == [choose().name, "True"]
