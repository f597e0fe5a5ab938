"""Hostile candidates in real guests: each ends in a verdict within its deadline, and the next honest one passes."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems.load import ROOT, load
from sandbox.candidate import Candidate
from sandbox.checker import blame
from sandbox.checker.guest import Guest
from sandbox.checker.task import open_task
from sandbox.cpu import CpuRunner
from sandbox.isolation import cgroup, works
from sandbox.isolation.measures import in_force
from sandbox.runner import Mode, RunnerError
from sandbox.verdict import Crashed, Judgement, Passed, TimedOut
from tests.sandbox.impostors import impostor
from tests.sandbox.test_runner_cpu import honest

VECTORADD = load("pmpp/vectoradd")
KINDS = [
    pytest.param(name, marks=pytest.mark.skipif(not works(name), reason=f"{name} does not work on this machine"))
    for name in ("bubblewrap", "namespaces")
]
DEADLINE_S = 4.0
HEAVY = ("disk", "64 GiB", "64 GiB in 64 processes", "fork flood", "signals")
"""After these, and after what ran out of time, an honest candidate is judged."""
FLOOD = """
import os, time
while True:
    for _ in range(512):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
"""
HOARD = """
import os
for _ in range(64):
    if os.fork() == 0:
        hoard = bytearray(1 << 30)
        for at in range(0, 1 << 30, 4096): hoard[at] = 1
        import time; time.sleep(600)
import time; time.sleep(600)
"""
HANG = "import ctypes; ctypes.PyDLL(None).sleep(600)"
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: open('/proc/self/comm', 'w').write('{name}'); time.sleep(0.01)
    os._exit(0)
os.wait()
"""
SIGNAL = """
import os, signal
for pid in {{os.getppid(), 1, {pids}}} - {{0}}:
    for number in (signal.SIGSTOP, signal.SIGKILL):
        try: os.kill(pid, number)
        except OSError: pass
"""


def indented(code: str) -> str:
    return "\n    ".join(code.strip().splitlines())


@pytest.fixture(params=KINDS)
def runner(request: pytest.FixtureRequest) -> Iterator[CpuRunner]:
    made = CpuRunner(isolation=request.param)
    yield made
    made.close()


def judge(runner: CpuRunner, source: str) -> Judgement:
    judgement = runner.judge(VECTORADD, Candidate(source=source), Mode.TEST, DEADLINE_S)
    # The control's own guest and run come on top, and a cold start.
    assert judgement.wall_s < DEADLINE_S + 20
    return judgement


@pytest.mark.slow
def test_each_probe_ends_in_a_verdict_and_the_next_candidate_passes(runner: CpuRunner, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("planted-secret")
    name = f"kwc{os.getpid() % 100000}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        probes = {
            "network": (
                f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)",
                (Crashed,),
            ),
            "planted key": (f"raise ValueError(open({str(key)!r}).read())", (Crashed,)),
            "write outside": (f"open({str(tmp_path / 'new')!r}, 'w').write('x')", (Crashed,)),
            "disk": ("f = open('/tmp/fill', 'wb')\n    while True: f.write(bytes(1 << 24)); f.flush()", (Crashed,)),
            "64 GiB": ("hoard = bytearray(64 << 30)", (Crashed,)),
            "fork flood": (indented(FLOOD), (Crashed, TimedOut)),
            "hang": (HANG, (TimedOut,)),
            "daemon": (indented(DAEMON.format(name=name)), (Passed,)),
            "signals": (indented(SIGNAL.format(pids=os.getpid())), (Passed, Crashed)),
        }
        if cgroup.works():
            probes["64 GiB in 64 processes"] = (indented(HOARD), (Crashed, TimedOut))
        for probe, (code, kinds) in probes.items():
            judgement = judge(runner, honest(before=code))
            assert isinstance(judgement.verdict, kinds), (probe, judgement.verdict)
            assert "planted-secret" not in judgement.model_dump_json()
            assert judgement.sandbox == in_force(judgement.sandbox.split("+")[0])
            if judgement.verdict.kind == "timed_out" or probe in HEAVY:
                assert isinstance(judge(runner, honest()).verdict, Passed), probe
    assert not (tmp_path / "new").exists()
    assert name not in {comm.read_text().strip() for comm in Path("/proc").glob("[0-9]*/comm") if comm.exists()}


def guest(behaviour: str) -> Guest:
    made = impostor(behaviour)
    made.await_ready()
    return made


@pytest.mark.parametrize("behaviour", ["exits", "silent", "raises", "refuses", "lazy"])
def test_where_the_control_fails_too_the_machine_is_to_blame(behaviour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "CONTROL_S", 0.3)
    task = open_task("pmpp/vectoradd", ROOT, "cpu")
    control = guest(behaviour)
    with pytest.raises(RunnerError, match="the machine failed, not the candidate"):
        blame.decide(task, None, control)
    control.close()


def test_where_the_control_runs_the_verdict_stands() -> None:
    control = guest("returns an input")
    blame.decide(open_task("pmpp/vectoradd", ROOT, "cpu"), VECTORADD.small[0], control)
    control.close()
