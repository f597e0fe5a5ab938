"""A run that is killed at twenty random moments and resumed each time, with every call counted at the endpoint."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataset.attempt import Attempt, Intent, Record, Replied, RunEnded
from dataset.blobs import Blobs
from dataset.journal import read
from tests.agent.endpoint import Answer, serve
from tests.agent.places import kernel_reply

ROOT = Path(__file__).resolve().parents[2]
KILLS, ATTEMPTS, LATENCY_S, LONGEST_LIFE_S = 20, 240, 0.01, 0.25


@contextlib.contextmanager
def nursery(url: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.agent.refine_program", url, str(ATTEMPTS)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def child_of(process: "subprocess.Popen[str]", root: Path) -> int:
    assert process.stdin and process.stdout
    process.stdin.write(f"{root}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def status_of(process: "subprocess.Popen[str]") -> int:
    assert process.stdout
    return int(process.stdout.readline())


def wait_for_begin(root: Path, child: int) -> None:
    """Until the child's session has begun: on a busy machine it may take longer than its life is to be."""
    give_up_s = time.monotonic() + 60
    while lines(root / "begun") != [str(child)]:
        assert time.monotonic() < give_up_s, "the child did not begin"
        time.sleep(0.002)


def journal(root: Path) -> list[Record]:
    return [record for path in root.glob("runs/*/journal.jsonl") for record in read(path)]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_buy_nothing_twice(tmp_path: Path) -> None:
    rng, told = random.Random(20), list[Record]()
    with serve(lambda number: Answer(text=kernel_reply(number), delay_s=LATENCY_S)) as endpoint:
        with nursery(endpoint.url) as process:
            for _ in range(KILLS):
                child = child_of(process, tmp_path)
                if rng.random() < 0.9:  # else it dies while it opens and folds the journal
                    wait_for_begin(tmp_path, child)
                time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
                os.kill(child, signal.SIGKILL)
                assert status_of(process) == -signal.SIGKILL, "the run ended before it was killed often enough"
                kept = journal(tmp_path)
                assert kept[: len(told)] == told, "a record that was there before is gone"
                told = kept
                on_record = {each.seq for each in kept if isinstance(each, Attempt)}
                assert {int(line.split()[0]) for line in lines(tmp_path / "acknowledged")} <= on_record
            child_of(process, tmp_path)
            assert status_of(process) == 0
        calls = len(endpoint.asked)
    records = journal(tmp_path)
    assert isinstance(records[-1], RunEnded)
    check_calls(records, calls)
    check_judged(records, lines(tmp_path / "judged"))
    check_attempts(records, next(tmp_path.glob("runs/*")))


def check_calls(records: list[Record], calls: int) -> None:
    """A reply on record is never bought again; at most the call in flight at a kill is, and it was announced."""
    replied = [each.seq for each in records if isinstance(each, Replied)]
    assert replied == list(range(2, ATTEMPTS + 1))
    asked = [each.seq for each in records if isinstance(each, Intent) and each.call == "model"]
    assert len(replied) <= calls <= len(asked) <= len(replied) + KILLS
    assert len(asked) > len(replied), "no kill met a call in flight: this run proves nothing"
    answered: set[int] = set()
    for each in records:
        if isinstance(each, Intent) and each.call == "model":
            assert each.seq not in answered
        if isinstance(each, Replied):
            answered.add(each.seq)


def check_judged(records: list[Record], judged: list[str]) -> None:
    """A verdict on record is never judged again; at most the one in flight at a kill is."""
    attempts = [each.candidate_sha256 for each in records if isinstance(each, Attempt) and each.candidate_sha256]
    assert set(judged) == set(attempts)
    again = Counter(judged) - Counter(attempts)
    assert again.total() <= KILLS
    order = {sha: max(place for place, line in enumerate(judged) if line == sha) for sha in attempts}
    assert [sha for sha, _ in sorted(order.items(), key=lambda item: item[1])] == attempts


def check_attempts(records: list[Record], folder: Path) -> None:
    """One attempt for each number, each with the reply that was bought for it."""
    attempts = [each for each in records if isinstance(each, Attempt)]
    assert [each.seq for each in attempts] == list(range(1, ATTEMPTS + 1))
    calls = {each.seq: each.model_call for each in records if isinstance(each, Replied)}
    assert all(each.model_call == calls[each.seq] for each in attempts[1:])
    texts = [Blobs(folder).text(call.reply_sha256) for call in calls.values()]
    assert len(set(texts)) == len(texts)
