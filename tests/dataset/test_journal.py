from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dataset.attempt import Intent, Record, RecordError, RunnerFault
from dataset.frames import pack
from dataset.journal import JOURNAL_NAME, Journal, read
from tests.dataset.samples import NOT_FINITE, OUTCOMES, WRONG, attempt, judged, make_run, started

ROOT = Path(__file__).parents[2]


def fault(seq: int, message: str = "lost") -> RunnerFault:
    return RunnerFault(seq=seq, message=message)


def start_writer(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.dataset.writer_program", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def stop(process: subprocess.Popen[str]) -> list[str]:
    """Kill -9, and every acknowledgement it had printed."""
    process.kill()
    output, _ = process.communicate()
    return output.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of three records."""
    with Journal.open(tmp_path) as journal:
        for seq in range(3):
            journal.append(fault(seq, f"fault {seq}"))
    return tmp_path


def test_every_record_comes_back_equal(tmp_path: Path) -> None:
    records: list[Record] = [started("r"), Intent(seq=0, call="judge", about="ab"), fault(0, "é\n\u2028 \0 ☃")]
    records += [attempt("r", seq, outcome) for seq, outcome in enumerate(OUTCOMES)]
    with Journal.open(tmp_path) as journal:
        for record in records:
            journal.append(record, durable=False)
        assert list(journal.records()) == records
    assert list(read(tmp_path)) == records == list(read(tmp_path / JOURNAL_NAME))


def test_a_whole_run_reads_back(tmp_path: Path) -> None:
    kinds = [record.kind for record in read(make_run(tmp_path))]
    assert kinds[:5] == ["run_started", "intent", "replied", "runner_fault", "attempt"]
    assert kinds.count("attempt") == len(OUTCOMES) and kinds[-1] == "run_ended"


def test_infinities_are_kept_and_the_json_is_strict(tmp_path: Path) -> None:
    wrong = judged(OUTCOMES[9].judgement.verdict)  # type: ignore[union-attr]
    with Journal.open(tmp_path) as journal:
        journal.append(attempt("r", 0, wrong))
    (record,) = read(tmp_path)
    assert record.outcome.judgement.verdict.cases == WRONG  # type: ignore[union-attr]
    assert record.outcome.judgement.verdict.cases[1].error == NOT_FINITE  # type: ignore[union-attr]
    body = (tmp_path / JOURNAL_NAME).read_text().split(" ", 2)[2]
    json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_a_torn_tail_at_any_byte_is_passed_over_and_cut(folder: Path) -> None:
    path = folder / JOURNAL_NAME
    whole = path.read_bytes()
    last = pack(fault(3, "torn é").model_dump_json().encode())
    for cut in range(1, len(last)):
        for zeros in (b"", b"\0" * 40):
            path.write_bytes(whole + last[:cut] + zeros)
            assert [record.seq for record in read(folder) if isinstance(record, RunnerFault)] == [0, 1, 2]
        with Journal.open(folder) as journal:
            assert journal.cut_bytes == cut + 40
            journal.append(fault(3))
        assert path.read_bytes() == whole + pack(fault(3).model_dump_json().encode())


def test_any_changed_byte_is_found_and_named(folder: Path) -> None:
    path = folder / JOURNAL_NAME
    whole = path.read_bytes()
    starts = [0, *(at + 1 for at, byte in enumerate(whole) if byte == 10)]
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        start = max(offset for offset in starts if offset <= at)
        with pytest.raises(RecordError, match=rf"journal.jsonl is damaged at byte {start}: .* truncate -s {start} "):
            list(read(folder))
        with pytest.raises(RecordError, match="is damaged at byte"):
            Journal.open(folder)
    path.write_bytes(whole)
    Journal.open(folder).close()


def test_a_lost_middle_is_found(folder: Path) -> None:
    path = folder / JOURNAL_NAME
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    path.write_bytes(whole[: second + 5] + b"\0" * 20 + whole[second + 25 :])
    with pytest.raises(RecordError, match=f"damaged at byte {second}"):
        list(read(folder))


@pytest.mark.parametrize("extra", [{}, {"unheard_of": 1}, {"kind": "verdict_of_2031"}])
def test_a_newer_schema_is_refused_by_name(folder: Path, extra: dict[str, object]) -> None:
    newer = {"kind": "runner_fault", "schema_version": 2, "seq": 3, "message": "m", **extra}
    with (folder / JOURNAL_NAME).open("ab") as file:
        file.write(pack(json.dumps(newer).encode()))
    with pytest.raises(RecordError, match=rf"\({newer['kind']}\) has schema version 2.*upgrade Kernelwright"):
        list(read(folder))


def test_an_unknown_field_of_this_schema_is_named(folder: Path) -> None:
    with (folder / JOURNAL_NAME).open("ab") as file:
        file.write(pack(b'{"kind":"runner_fault","seq":3,"message":"m","odd":1}'))
    with pytest.raises(RecordError, match=r"not one that this version knows \(runner_fault.odd"):
        list(read(folder))


def test_text_that_is_not_unicode_is_refused_and_the_journal_stays_valid(folder: Path) -> None:
    with Journal.open(folder) as journal:
        with pytest.raises(RecordError, match="not Unicode"):
            journal.append(fault(3, "\ud800"))
        journal.append(fault(3))
    assert len(list(read(folder))) == 4


@pytest.mark.slow
def test_a_second_process_is_told_who_writes(tmp_path: Path) -> None:
    writer = start_writer(tmp_path)
    try:
        assert writer.stdout is not None and writer.stdout.readline() == "0\n"
        with pytest.raises(RecordError, match=f"written by pid {writer.pid} on host {socket.gethostname()}"):
            Journal.open(tmp_path)
        assert next(read(tmp_path)) is not None
    finally:
        stop(writer)
    Journal.open(tmp_path).close()


def test_a_second_writer_of_one_process_is_refused_and_the_lock_returns(folder: Path) -> None:
    journal = Journal.open(folder)
    with pytest.raises(RecordError, match=f"pid {os.getpid()}"):
        Journal.open(folder)
    journal.close()
    journal.close()
    with pytest.raises(RecordError, match="it was closed"):
        journal.append(fault(3))
    Journal.open(folder).close()


def test_threads_share_a_writer(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:

        def work(part: int) -> None:
            for seq in range(50):
                journal.append(fault(part * 50 + seq), durable=seq % 3 == 0)

        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(record.seq for record in read(tmp_path) if isinstance(record, RunnerFault)) == list(range(200))


def test_a_reader_sees_what_is_not_yet_durable(folder: Path) -> None:
    with Journal.open(folder) as journal:
        journal.append(fault(3), durable=False)
        assert len(list(read(folder))) == 4


@pytest.mark.parametrize("path", ["absent", "absent/journal.jsonl"])
def test_a_missing_journal_is_an_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(RecordError, match=r"cannot read .*absent.*no such file"):
        list(read(tmp_path / path))
    with pytest.raises(RecordError, match=r"cannot lock .*absent"):
        Journal.open(tmp_path / path)


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_no_acknowledged_record(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("on_disk")
    acknowledged, torn = -1, 0
    for _ in range(24):
        writer = start_writer(folder)
        assert writer.stdout is not None
        writer.stdout.readline()
        # The kill follows some number of acknowledgements and an instant, so it falls anywhere in an append.
        for _ in range(random.randrange(40)):
            acknowledged = int(writer.stdout.readline())
        threading.Event().wait(random.random() / 500)
        acknowledged = max([acknowledged, *map(int, stop(writer))])
        seen = [record.seq for record in read(folder) if isinstance(record, RunnerFault)]
        assert seen == list(range(len(seen))) and seen[-1] >= acknowledged
        with Journal.open(folder) as journal:
            torn += journal.cut_bytes > 0
        assert len(list(read(folder))) == len(seen)
    print(f"24 kills, {acknowledged + 1} records acknowledged, {torn} torn tails")
