"""Compiling the next candidate ahead: for a GPU that is not there, in a guest of its own, at nobody else's cost."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems.load import ROOT, load
from sandbox.candidate import Candidate
from sandbox.checker import ahead as ahead_module
from sandbox.checker.ahead import Ahead
from sandbox.checker.task import Task, open_task
from sandbox.gpu import GpuRunner
from sandbox.guest.cache import Cache
from sandbox.isolation import choose
from sandbox.runner import Mode
from sandbox.verdict import Passed
from tests.sandbox.guest_client import GuestClient

ARCH = "sm_90"
FIGURES = {"name": "NVIDIA H200", "major": 9, "minor": 0, "multi_processor_count": 132, "total_memory": 140 << 30}
FIGURES["shared_memory_per_block_optin"] = 227 << 10
SEED = Path(__file__).parents[2] / "seed_kernels/pmpp/vectoradd/flat/submission.py"
COUNTING = """
import triton
counts = {"compiled": 0, "found": 0}
def count(**told):
    counts["found" if told["cache_hit"] else "compiled"] += 1
triton.knobs.compilation.listener = count
kernel = custom_kernel
def custom_kernel(data):
    kernel(data)
    return dict(counts)
"""
TELLING = COUNTING.replace("return dict(counts)", "raise RuntimeError(f'in all {counts}')")
GPU = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
KEY = "A" * 52


@pytest.fixture(scope="module")
def task() -> Task:
    return open_task("pmpp/vectoradd", ROOT, "cpu")


@pytest.fixture(scope="module")
def ahead() -> Iterator[Ahead]:
    place = Ahead(choose(), ARCH, FIGURES)
    yield place
    place.close()


def counted(task: Task, source: str, stock: bytes, folder: Path) -> dict[str, int]:
    """Call once on every published case in a guest that never compiled before; what Triton compiled, and found."""
    with GuestClient("capture", ARCH, folder / "log", "--figures", json.dumps(FIGURES)) as guest:
        assert guest.ask({"op": "stock"}, stock).op == "stocked"
        assert guest.load(source) == {"op": "loaded"}
        for case in (*task.problem.tests, *task.problem.benchmarks):
            tree = task.lay_out(task.shapes(case), in_memory=False).tree
            answer = guest.ask({"op": "call", "data": tree, "result": None}).header
            assert answer["op"] == "returned", answer
    return {name: part["value"] for name, part in answer["tree"]["items"].items()}


@pytest.mark.slow
def test_the_next_guest_compiles_nothing(task: Task, ahead: Ahead, tmp_path: Path) -> None:
    """Neither where the cache lies nor who compiles enters the key; without the bytes there is all to compile."""
    source = SEED.read_text() + COUNTING
    ahead.begin(task, source)
    stock = ahead.take(task, source, within_s=120)
    assert ahead.take(task, source) == b""
    found = counted(task, source, stock, tmp_path)
    assert found["compiled"] == 0 and found["found"] > 0
    assert counted(task, source, b"", tmp_path)["compiled"] == found["found"]


@pytest.mark.slow
def test_what_goes_wrong_ahead_costs_a_bounded_time(
    task: Task, ahead: Ahead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead_module, "PATIENCE_S", 0.5)
    hanging = "while True:\n    pass\n"
    ahead.begin(task, hanging)
    start_s = time.monotonic()
    assert ahead.take(task, hanging, within_s=10) == b""
    assert time.monotonic() - start_s < 30
    # One that another candidate pushed aside, one that will not import, and one that is whole.
    source = SEED.read_text() + COUNTING
    for other in (hanging, "import nothing_of_that_name", source):
        ahead.begin(task, other)
    assert ahead.take(task, hanging) == b""
    assert counted(task, source, ahead.take(task, source, within_s=120), tmp_path)["compiled"] == 0


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="no GPU on this machine")
def test_a_device_guest_finds_what_was_compiled_ahead() -> None:
    """The same on a real GPU, under its own driver: the candidate's first call says what Triton compiled for it."""
    runner, problem = GpuRunner(), load("pmpp/vectoradd")
    honest, telling = Candidate(source=SEED.read_text()), Candidate(source=SEED.read_text() + TELLING)
    assert isinstance(runner.judge(problem, honest, Mode.BENCHMARK, 120, telling).verdict, Passed)
    time.sleep(20)
    told = [runner.judge(problem, telling, Mode.TEST, 120).verdict.model_dump_json() for _ in range(2)]
    runner.close()
    assert "'compiled': 0, 'found': 1" in told[0], told[0]
    assert "'compiled': 1, 'found': 0" in told[1], told[1]


def pack(index: object, contents: bytes) -> bytes:
    head = json.dumps(index).encode()
    return struct.pack("<I", len(head)) + head + contents


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xff\xff\xff\xff",
        pack([[f"{KEY}/good", 1]], b"ab"),
        pack([[f"{KEY}/good", 1], [f"{KEY}/../bad", 1]], b"ab"),
        pack([["/tmp/bad", 1]], b"a"),
        pack([[f"{KEY}/..", 1]], b"a"),
        pack([[f"{KEY}/a/b", 1]], b"a"),
        pack([[f"{KEY}/good", -1], [f"{KEY}/well", 2]], b"a"),
        pack([[f"{KEY}/good", True]], b"a"),
        pack([[1, 2, 3]], b""),
        pack({}, b"a"),
        pack([[f"{KEY}/a{number}", 0] for number in range(5000)], b""),
    ],
)
def test_a_bad_pack_writes_nothing(tmp_path: Path, packed: bytes) -> None:
    assert Cache(tmp_path / "cache").unpack(packed) == 0
    assert not list(tmp_path.rglob("*"))


def test_a_pack_brings_the_candidates_kernels_to_another_folder(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for key in ("before", "since"):
        cache = Cache(first)
        cache.begin()
        kernel = first / (key + KEY)
        kernel.mkdir(parents=True)
        (kernel / "k.cubin").write_bytes(b"\x00code")
        (kernel / "__grp__k.json").write_text(json.dumps({"child_paths": {"k.cubin": str(kernel / "k.cubin")}}))
    (second / ("since" + KEY)).mkdir(parents=True)
    (second / ("since" + KEY) / "k.cubin").write_bytes(b"own")
    assert Cache(second).unpack(cache.pack()) == 1
    written = {str(path.relative_to(second)): path.read_bytes() for path in second.rglob("*") if path.is_file()}
    group = {"child_paths": {"k.cubin": str(second / ("since" + KEY) / "k.cubin")}}
    assert written == {f"since{KEY}/k.cubin": b"own", f"since{KEY}/__grp__k.json": json.dumps(group).encode()}
