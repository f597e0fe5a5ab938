"""Profiles: what tools print is read within bounds, and none of it can hurt a verdict."""

import json
from pathlib import Path

import pytest

from problems.load import load
from problems.spec import Case
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.profile import MOST_COUNTERS, MOST_KERNELS, absent, ncu, rocprof, told
from sandbox.runner import Mode
from sandbox.verdict import Passed

CASE = Case(params={"size": 1024})
ROOT = Path(__file__).parents[2]
GOOD = (ROOT / "seed_kernels/pmpp/vectoradd/flat/submission.py").read_text()

NCU = """==PROF== Connected to process 12
something the candidate printed, "with, commas"
==PROF== Disconnected from process 12
"ID","Process ID","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread","sm__throughput.avg.pct"
"","","","ns","register/thread","%"
"0","12","add","1,952","16","71.5"
"1","12","mul","2,048","20","n/a"
"""
ROCPROF = """W2026 a warning
"Correlation_Id","Kernel_Name","Counter_Name","Counter_Value"
1,"add","SQ_WAVES",16384
1,"add","SQ_INSTS_VALU",nan
"""


def test_counters_are_read_out_of_what_else_was_printed() -> None:
    seen = ncu(NCU, CASE)
    assert seen.counters == {
        "add: gpu__time_duration.sum [ns]": 1952.0,
        "add: launch__registers_per_thread [register/thread]": 16.0,
        "add: sm__throughput.avg.pct [%]": 71.5,
        "mul: gpu__time_duration.sum [ns]": 2048.0,
        "mul: launch__registers_per_thread [register/thread]": 20.0,
    }
    assert rocprof(ROCPROF, CASE).counters == {"add: SQ_WAVES": 16384.0}


def test_a_tool_without_counters_says_so() -> None:
    refused = ncu("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", CASE)
    assert refused.counters == {} and "ERR_NVGPUCTRPERM" in refused.notes[1]
    assert rocprof("cat: /tmp/profile: No such file", CASE).notes[0] == "no counters"
    assert absent("ncu", "x" * 9999).notes == ("x" * 500,)


def test_what_a_guest_tells_is_bounded() -> None:
    kernels = [{"name": "k" * 999, "calls": 5, "device_us": float(n)} for n in range(99)]
    row = {"tool": "torch.profiler", "calls": 5, "kernels": kernels, "notes": ["n" * 9999] * 99}
    [seen] = told(json.dumps([row]).encode(), CASE)
    assert len(seen.kernels) == MOST_KERNELS and seen.kernels[0].device_us == 98.0
    assert len(seen.kernels[0].name) == 200 and len(seen.notes) == 10 and len(seen.notes[0]) == 500
    columns = ",".join(f'"a__{n}"' for n in range(999))
    flood = f'"ID","Kernel Name",{columns}\n"0","add",' + ",".join(["1"] * 999)
    assert len(ncu(flood, CASE).counters) == MOST_COUNTERS


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"{}", b"[1]", b"[[]]", b"\xff", b'[{"tool": 1}]', b"[" * 99_999),
        b'[{"tool": "t", "calls": 1, "notes": [], "kernels": [{"name": "k", "calls": 1, "device_us": Infinity}]}]',
    ],
)
def test_what_cannot_be_read_is_a_note(payload: bytes) -> None:
    [seen] = told(payload, CASE)
    assert seen.kernels == () and "unreadable" in seen.notes[0]


@pytest.mark.slow
def test_without_a_device_the_compiler_is_quoted() -> None:
    runner = CpuRunner()
    try:
        judgement = runner.judge(load("pmpp/vectoradd"), Candidate(source=GOOD), Mode.PROFILE)
        wrong = runner.judge(load("pmpp/vectoradd"), Candidate(source="custom_kernel = lambda d: d[0]"), Mode.PROFILE)
    finally:
        runner.close()
    assert isinstance(judgement.verdict, Passed) and judgement.verdict.timings
    [profile] = judgement.profiles
    assert profile.tool == "compiler" and "no device to profile" in profile.notes[0]
    assert any(name.endswith("gfx942: vgpr") and value > 0 for name, value in profile.counters.items())
    assert wrong.profiles == ()


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_device_every_tool_answers() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU that torch sees")
    from sandbox.gpu import GpuRunner

    runner = GpuRunner()
    try:
        judgement = runner.judge(load("pmpp/vectoradd"), Candidate(source=GOOD), Mode.PROFILE, deadline_s=120)
    finally:
        runner.close()
    assert isinstance(judgement.verdict, Passed)
    tools = {profile.tool: profile for profile in judgement.profiles}
    assert {"torch.profiler", "proton"} <= set(tools) and len(tools) == 3
    assert all(profile.kernels or profile.counters or profile.notes for profile in tools.values())
    assert any("vector_add" in kernel.name for kernel in tools["torch.profiler"].kernels), tools
