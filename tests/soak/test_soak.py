"""A short soak, and that its instruments see a leak where there is one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.isolation import KINDS, Limits, works
from tests.soak import traces


@pytest.mark.slow
def test_a_short_soak_leaves_nothing() -> None:
    command = [sys.executable, "-m", "tests.soak", "--minutes", "0.3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no leaks" in done.stdout and "machine fault" not in done.stdout


def test_growth_is_seen_and_noise_is_not() -> None:
    steady = [(float(at), 100.0 + at % 3) for at in range(100)]
    assert abs(traces.trend(steady).growth) < 1
    assert traces.trend([(at, value + 0.5 * at) for at, value in steady]).growth > 20
    spiked = [(at, value + (1000 if at == 80 else 0)) for at, value in steady]
    assert abs(traces.trend(spiked).growth) < 1


@pytest.mark.slow
@pytest.mark.skipif(not works("bubblewrap"), reason="bubblewrap does not work on this machine")
def test_a_guest_left_behind_is_seen() -> None:
    sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    program = KINDS["bubblewrap"].start(sleeper, {"PATH": "/usr/bin:/bin"}, Limits())
    deadline_s = time.monotonic() + 10
    found: set[str] = set()
    while not found and time.monotonic() < deadline_s:
        found = traces.foreign_namespaces(traces.children(os.getpid()))
    assert found and traces.living_in(found)
    program.close()
    while traces.living_in(found) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert traces.living_in(found) == []
