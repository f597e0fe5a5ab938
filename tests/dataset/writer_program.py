"""A writer to be killed: appends records to a run folder and prints the number of each one acknowledged."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

from dataset.attempt import RunnerFault
from dataset.journal import Journal


def write(folder: Path) -> None:
    with Journal.open(folder) as journal:
        done = max((record.seq for record in journal.records() if isinstance(record, RunnerFault)), default=-1)
        for seq in itertools.count(done + 1):
            # Up to 200 kB, so that a kill often falls inside a write.
            message = "x" * random.randrange(200_000)
            journal.append(RunnerFault(seq=seq, message=message), durable=random.random() < 0.5)
            print(seq, flush=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
