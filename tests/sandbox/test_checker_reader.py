"""Kernel evidence made to be hard to read: it costs its candidate the estimate, and the checker a bounded time."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from problems.load import ROOT, load
from sandbox.checker import reader as module
from sandbox.checker.reader import Reader
from sandbox.checker.reading import Asked
from sandbox.verdict import Untimed

ASKED = Asked(problem="pmpp/vectoradd", root=str(ROOT), chip="MI300X", faults={0: "not captured: for this test"})
METADATA = {"num_warps": 4, "num_stages": 2, "shared": 0, "warp_size": 64}


def kernel(asm: str, number: int = 0, **more: Any) -> dict[str, Any]:
    names = {"name": f"k{number}", "target": "gfx942", "hash": str(number), "ttir": "", "amdgcn": asm, "error": None}
    return {**names, "metadata": METADATA, "signature": {}, "constants": {}, **more}


def payload(*kernels: dict[str, Any]) -> bytes:
    return json.dumps({"kernels": kernels, "launches": []}).encode()


def loops(count: int, lines: int) -> str:
    """Nested loops: each instruction is looked for in every one of them."""
    heads = "".join(f".L{number}:\n\tv_add_f32 v0, v0, v0\n" for number in range(count))
    body = "\tv_add_f32 v0, v0, v0\n" * lines
    ends = "".join(f"\ts_cbranch_scc1 .L{number}\n" for number in reversed(range(count)))
    return heads + body + ends + ".vgpr_count: 8\n.sgpr_count: 8\n; codeLenInByte = 8\n"


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


@pytest.mark.slow
def test_evidence_is_read_and_each_reading_is_its_own(reader: Reader) -> None:
    first = reader.read([payload(kernel(loops(2, 10)))], ASKED)
    assert [record.isa.instructions for record in first.records if record.isa] == [14]
    assert [timing.case for timing in first.timings] == list(load("pmpp/vectoradd").benchmarks)
    assert isinstance(first.timings[0], Untimed) and first.timings[0].reason == "not captured: for this test"
    assert isinstance(first.timings[1], Untimed) and "no kernel launch" in first.timings[1].reason
    assert reader.read([payload()]).records == () == reader.read([]).records


@pytest.mark.slow
def test_what_takes_too_long_is_left_and_the_next_is_read(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_S", 0.2)
    reader.read([payload()])
    long = payload(*(kernel(loops(199, 100_000), number) for number in range(20)))
    start_s = time.monotonic()
    reading = reader.read([long], ASKED)
    assert time.monotonic() - start_s < 3
    assert reading.records == () and len(reading.flags) == 1 and "within 0.2 s" in reading.flags[0]
    assert all(isinstance(timing, Untimed) for timing in reading.timings)
    monkeypatch.setattr(module, "READ_S", 20.0)
    assert len(reader.read([payload(kernel(loops(1, 3)))]).records) == 1


@pytest.mark.parametrize("bad", [b"", b"[" * 1_000_000, b'{"kernels": [[]], "launches": []}', b"\xff" * 100])
def test_what_is_no_evidence_is_a_flag(reader: Reader, bad: bytes) -> None:
    reading = reader.read([bad], ASKED)
    assert "unreadable" in reading.flags[0] and len(reading.timings) == 5


@pytest.mark.slow
def test_texts_that_reach_a_record_are_bounded(reader: Reader) -> None:
    names = "".join(f"\tds_read_b{number} v0\n" for number in range(1000))
    reading = reader.read([payload(kernel(loops(1, 1) + names), kernel("", 1, error="x" * 1_000_000))])
    assert len(reading.model_dump_json()) < 64_000
