"""The real command with the real CPU judge, in a process of its own: status, purity of standard output, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SEEDS = Path(__file__).resolve().parents[2] / "seed_kernels"
COMMAND = [sys.executable, "-m", "kernelwright"]


def ran(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def test_check_of_a_seed_kernel(tmp_path: Path) -> None:
    done = ran(
        "check",
        SEEDS / "pmpp/vectoradd/flat/submission.py",
        "--problem",
        "vectoradd",
        "--runner",
        "cpu",
        "--json",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert (said["verdict"], said["accepted"], said["time_kind"]) == ("passed", True, "estimated")
    assert said["machine"]["kind"] == "cpu-emulation"
    assert said["geomean_us"] > 0
    assert {kernel["target"] for kernel in said["kernels"]} == {"gfx942", "gfx950"}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("x = 1\n", "rejected"),
        ("def custom_kernel(data:\n", "rejected"),
        ("import nothing_of_that_name\n\n\ndef custom_kernel(data):\n    return data[2]\n", "build_failed"),
        ("print('{')\n\n\ndef custom_kernel(data):\n    print('}', flush=True)\n    return data[0]\n", "wrong_answer"),
        ("def custom_kernel(data):\n    raise ValueError('no')\n", "crashed"),
    ],
)
def test_check_of_a_bad_file(tmp_path: Path, text: str, verdict: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    done = ran("check", "bad.py", "--problem", "vectoradd", "--runner", "cpu", "--mode", "test", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["accepted"]) == (1, False)
    assert said["verdict"] in (verdict, "build_failed" if verdict == "rejected" else verdict)
    assert said["reason"]
    assert "Traceback" not in done.stderr


def test_compile_for_gfx950(tmp_path: Path) -> None:
    done = ran(
        "compile",
        SEEDS / "pmpp/matmul/grouped/submission.py",
        "--problem",
        "matmul",
        "--target",
        "gfx950",
        "--json",
        cwd=tmp_path,
    )
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert said["kernels"]
    assert all(kernel["target"] == "gfx950" and kernel["isa"]["vgpr"] > 0 for kernel in said["kernels"])
    assert any("mfma" in name for kernel in said["kernels"] for name in kernel["isa"]["mfma"])


def test_run_leaves_a_submission_and_a_report(tmp_path: Path) -> None:
    done = ran("run", "vectoradd", "--attempts", "1", "--seed", "1", "--runner", "cpu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    for name in ("submission.py", "report.html", "summary.txt", "journal.jsonl"):
        assert (folder / name).stat().st_size > 0
    assert "nothing was measured" in done.stdout


def test_ctrl_c_ends_cleanly_and_the_run_goes_on(tmp_path: Path) -> None:
    command = [*COMMAND, "run", "vectoradd", "--attempts", "2", "--runner", "cpu"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stderr is not None
            while "   1 seed" not in started.stderr.readline():
                assert started.poll() is None
            os.kill(started.pid, signal.SIGINT)
            _, err = started.communicate(timeout=120)
        finally:
            started.kill()
    assert started.returncode == 130, err
    assert "Traceback" not in err
    assert "runs resume" in err
    done = ran("runs", "resume", "vectoradd", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 attempts" in done.stdout


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    began = time.monotonic()
    done = ran("run", "vectoradd", "--attempts", "1", "--runner", "cpu", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert time.monotonic() - began < 60


def test_no_gpu_is_a_machine_fault(tmp_path: Path) -> None:
    from sandbox.probe import toolchain

    if toolchain().devices:
        pytest.skip("this machine has a GPU")
    (tmp_path / "x.py").write_text("def custom_kernel(data):\n    return data[2]\n")
    done = ran("check", "x.py", "--problem", "vectoradd", "--runner", "gpu", "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["kind"] == "machine"


@pytest.mark.parametrize("arguments", [("--help",), ("problems", "list"), ("--version",)])
def test_quick_commands_are_quick(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    times_s = []
    for _ in range(3):
        began = time.monotonic()
        assert ran(*arguments, cwd=tmp_path).returncode == 0
        times_s.append(time.monotonic() - began)
    assert min(times_s) < 1.0
