"""A nursery of runs: for each line on standard input, a path, a fork of this process starts or resumes the run there.

Forking saves importing everything anew for each of many runs that are killed. The child's process id is printed when it
begins, and its exit status when it is gone. Arguments: the endpoint's address, the number of attempts.
"""

import os
import sys
import time
from pathlib import Path

from agent.model import OpenAIModel
from agent.progress import AttemptDone, Began, Event
from agent.run import resume, start
from agent.settings import RunSettings
from sandbox.candidate import Candidate
from tests.agent.places import CountingRunner, knobs, seed_folder

JUDGING_S = 0.005


class Acknowledged:
    """Writes down each attempt that the run says is on record, and each session that began."""

    def __init__(self, root: Path) -> None:
        self._begun = root / "begun"
        self._file = (root / "acknowledged").open("a", buffering=1)

    def show(self, event: Event) -> None:
        if isinstance(event, Began):
            self._begun.write_text(f"{os.getpid()}\n")
        if isinstance(event, AttemptDone):
            self._file.write(f"{event.attempt.seq} {event.attempt.candidate_sha256}\n")


def work(root: Path, url: str, attempts: int) -> None:
    """Resume the run under `root`, or start it where there is none yet."""
    judged = (root / "judged").open("a", buffering=1)

    def before(candidate: Candidate) -> None:
        judged.write(f"{candidate.sha256}\n")
        time.sleep(JUDGING_S)

    model = OpenAIModel(url, "m", "none", timeout_s=30.0, wait=lambda seconds: time.sleep(0.01))
    runner, watching, seeds = CountingRunner(before), Acknowledged(root), root / "seed_kernels"
    folders = [path.parent for path in root.glob("runs/*/journal.jsonl") if path.stat().st_size]
    if folders:
        resume(folders[0], runner, model, watching, seed_kernels=seeds)
        return
    seed_folder(root, knobs(3, 4)) if not seeds.exists() else None
    settings = RunSettings(problem="amd/fp8-mm", strategy="refine", model="m", base_url=url, attempts=attempts, seed=1)
    start(settings, root / "runs", runner, model, watching, seed_kernels=seeds)


def main() -> None:
    url, attempts = sys.argv[1], int(sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            work(Path(line.strip()), url, attempts)
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
