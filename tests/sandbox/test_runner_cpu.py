"""The CPU runner end to end: the real checker, the real guest, honest and hostile candidates for vectoradd."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from problems.load import ROOT, load
from problems.spec import ProblemError
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.isolation import works
from sandbox.runner import Mode, RunnerError, Unsupported
from sandbox.verdict import BuildFailed, Crashed, Estimated, Judgement, Passed, Rejected, TimedOut, Untimed, WrongAnswer

VECTORADD = load("pmpp/vectoradd")
CONFINED = works("bubblewrap") or works("namespaces")
needs_confinement = pytest.mark.skipif(not CONFINED, reason="neither bubblewrap nor namespaces work on this machine")
HONEST = """
import triton
import triton.language as tl

@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(a + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)

def custom_kernel(data):
    a, b, out = data
    {before}
    add[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), BLOCK=1024)
    {after}
    return out
"""


def honest(before: str = "pass", after: str = "pass") -> str:
    return HONEST.format(before=before, after=after)


@pytest.fixture(scope="module")
def runner() -> Iterator[CpuRunner]:
    made = CpuRunner()
    yield made
    made.close()


def judge(runner: CpuRunner, source: str, mode: Mode = Mode.TEST, deadline_s: float = 60.0) -> Judgement:
    return runner.judge(VECTORADD, Candidate(source=source), mode, deadline_s)


@pytest.mark.slow
def test_an_honest_candidate_passes_with_an_estimate(runner: CpuRunner) -> None:
    judgement = judge(runner, honest(), Mode.BENCHMARK)
    verdict = judgement.verdict
    assert isinstance(verdict, Passed)
    assert {check.role for check in verdict.cases} == {"small", "hidden"}
    assert len(verdict.cases) > len(VECTORADD.small) and judgement.board_accepts is True
    assert [timing.case for timing in verdict.timings] == list(VECTORADD.benchmarks)
    assert all(isinstance(timing, Estimated) and timing.chip == "MI300X" for timing in verdict.timings)
    assert judgement.time_kind == "estimated" and judgement.geomean_us and judgement.geomean_us > 1
    assert {kernel.target for kernel in judgement.kernels if kernel.isa} == {"gfx942", "gfx950"}
    assert judgement.machine.kind == "cpu-emulation" and judgement.machine.arch == "gfx942"
    assert len(set(judgement.seeds)) == len(verdict.cases)
    assert Judgement.model_validate_json(judgement.model_dump_json()) == judgement


@pytest.mark.slow
def test_seeds_and_hidden_cases_are_never_the_same(runner: CpuRunner) -> None:
    first, second = judge(runner, honest()), judge(runner, honest())
    assert first.seeds != second.seeds
    for judgement in (first, second):
        assert isinstance(judgement.verdict, Passed)


@pytest.mark.slow
def test_wrong_in_one_element(runner: CpuRunner) -> None:
    judgement = judge(runner, honest(after="out[0, 0] = out[0, 0] + 0.5"))
    assert isinstance(judgement.verdict, WrongAnswer)
    assert "1 of" in judgement.verdict.reason
    wrong = next(check for check in judgement.verdict.cases if not check.passed)
    # Cases come in an order drawn by lot, and the board's own check is run on its own distribution alone.
    assert wrong.board_accepts is (False if wrong.case.fill == "published" else None)


@pytest.mark.slow
def test_wrong_off_the_tile_only(runner: CpuRunner) -> None:
    # No mask at the end: right wherever the block divides the size. Reads and writes past the end stay in the guest.
    judgement = judge(runner, honest(before="n = out.numel() // 1024 * 1024").replace("out.numel(), BLOCK", "n, BLOCK"))
    assert isinstance(judgement.verdict, WrongAnswer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        (honest(before="raise ValueError('no luck')"), Crashed, "no luck"),
        (honest(after="import os; os._exit(0)"), Crashed, "exit status 0"),
        (honest(after="import sys; sys.exit(0)"), Crashed, "SystemExit"),
        (honest(after="import ctypes; ctypes.string_at(0)"), Crashed, "SIGSEGV"),
        ("import no_such_module\n" + honest(), BuildFailed, "no_such_module"),
        (honest().replace("tl.store", "tl.no_such_thing"), BuildFailed, "no_such_thing"),
        (honest(after="out = None"), WrongAnswer, "the value None"),
        (honest(after="out = out.float()"), WrongAnswer, "returned float32"),
        (honest(after="a.zero_()"), WrongAnswer, "an input was written to"),
        (honest(after="print('PASS ' * 1_000_000)"), Passed, ""),
    ],
)
def test_verdicts(runner: CpuRunner, source: str, kind: type, said: str) -> None:
    verdict = judge(runner, source).verdict
    assert isinstance(verdict, kind), verdict
    assert said in verdict.model_dump_json()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "deadline_s"), [(honest(before="while True: pass"), 5), ("while True: pass\n" + honest(), 1)]
)
def test_an_endless_loop_times_out_and_the_next_one_is_judged(
    runner: CpuRunner, source: str, deadline_s: float
) -> None:
    judgement = judge(runner, source, deadline_s=deadline_s)
    assert isinstance(judgement.verdict, TimedOut) and judgement.verdict.deadline_s == deadline_s
    # Beyond the deadline there is only the guest's own start, where it was not warm yet.
    assert deadline_s <= judgement.wall_s < deadline_s + 10
    assert isinstance(judge(runner, honest()).verdict, Passed)


@pytest.mark.slow
@needs_confinement
def test_a_daemon_is_gone(runner: CpuRunner) -> None:
    name = f"kwdaemon{os.getpid() % 100000}"
    fork = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    open('/proc/self/comm', 'w').write('{name}')
    time.sleep(600)
"""
    judgement = judge(runner, fork + honest())
    assert isinstance(judgement.verdict, Passed)
    left = [path for path in Path("/proc").glob("[0-9]*/comm") if path.read_text().strip() == name]
    assert left == []


@pytest.mark.slow
@needs_confinement
@pytest.mark.parametrize(
    "peek",
    [
        f"open({str(ROOT / 'pmpp/vectoradd/reference.py')!r})",
        "__import__('problems')",
        "__import__('sandbox.checker')",
        "__import__('socket').create_connection(('127.0.0.1', 22), 2)",
        f"open('/proc/{os.getpid()}/environ')",
        "open('/usr/kernelwright', 'w')",
    ],
)
def test_out_of_reach(runner: CpuRunner, peek: str) -> None:
    verdict = judge(runner, honest(before=peek)).verdict
    assert isinstance(verdict, Crashed)
    assert any(
        word in verdict.reason for word in ("FileNotFound", "ModuleNotFound", "refused", "Read-only", "Permission")
    )


def test_what_is_no_submission_is_rejected_without_a_process() -> None:
    runner = CpuRunner()
    judgement = judge(runner, "def other(data): ...")
    assert isinstance(judgement.verdict, Rejected) and runner._client is None


@pytest.mark.slow
def test_a_lost_checker_is_replaced(runner: CpuRunner) -> None:
    assert isinstance(judge(runner, honest()).verdict, Passed)
    assert runner._client is not None and runner._client._program is not None
    os.kill(runner._client._program.pid, signal.SIGKILL)
    assert isinstance(judge(runner, honest()).verdict, Passed)


@pytest.mark.slow
def test_unknown_places_are_refused() -> None:
    with pytest.raises(ProblemError, match="MI300X"):
        CpuRunner(chip="MI3000X").machine()
    runner = CpuRunner(chip="H100")
    with pytest.raises(Unsupported, match="MI300X"):
        judge(runner, honest())
    runner.close()


def descendants(pid: int) -> set[int]:
    found, todo = set(), [pid]
    while todo:
        for children in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            for child in map(int, children.read_text().split()):
                found.add(child)
                todo.append(child)
    return found


CONTROL = f"""
import sys
sys.path.insert(0, {str(ROOT.parent)!r})
from problems.load import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
runner = CpuRunner()
runner.judge(load("pmpp/vectoradd"), Candidate(source={honest()!r}), Mode.TEST)
print("judged", flush=True)
if len(sys.argv) > 1:
    runner.judge(load("pmpp/vectoradd"), Candidate(source={honest(before="while True: pass")!r}), Mode.TEST)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "busy"), [(signal.SIGKILL, []), (signal.SIGTERM, []), (None, []), (signal.SIGKILL, ["busy"])]
)
def test_nothing_outlives_the_control_process(end: signal.Signals | None, busy: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CONTROL, *busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as control:
        assert control.stdout is not None and control.stdin is not None
        assert control.stdout.readline() == b"judged\n"
        time.sleep(4 if busy else 0.5)
        running = descendants(control.pid)
        assert len(running) > 3, "a checker and two warm guests"
        if end is None:
            control.stdin.close()
        else:
            control.send_signal(end)
        control.wait(20)
    deadline = time.monotonic() + 15
    while (left := {pid for pid in running if Path(f"/proc/{pid}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == set()


@pytest.mark.slow
def test_a_published_size_that_does_not_build_fails_the_build(runner: CpuRunner) -> None:
    source = honest().replace("BLOCK=1024", "BLOCK=1024 if out.numel() < 1 << 20 else 1000")
    judgement = judge(runner, source, Mode.BENCHMARK)
    assert isinstance(judgement.verdict, BuildFailed) and judgement.verdict.reason.startswith("size: 1024")
    assert isinstance(judge(runner, source, Mode.TEST).verdict, Passed)


@pytest.mark.slow
def test_host_code_that_needs_values_has_no_estimate(runner: CpuRunner) -> None:
    judgement = judge(runner, honest(before="scale = a[0, 0].item()"), Mode.BENCHMARK)
    assert isinstance(judgement.verdict, Passed) and judgement.time_kind == "none"
    assert all(isinstance(timing, Untimed) and "item" in timing.reason for timing in judgement.verdict.timings)


@pytest.mark.slow
def test_what_the_interpreter_lacks_is_unsupported(runner: CpuRunner) -> None:
    assembly = 'tl.inline_asm_elementwise("v_mov_b32 $0, $1", "=v,v", [at], dtype=tl.int32, is_pure=True, pack=1)'
    source = honest().replace("    mask = at < n\n", f"    mask = {assembly} < n\n")
    with pytest.raises(Unsupported, match="a GPU can"):
        judge(runner, source)
    assert isinstance(judge(runner, honest()).verdict, Passed)


@pytest.mark.slow
def test_upstreams_refusal_is_a_flag(runner: CpuRunner) -> None:
    judgement = judge(runner, "# no Streams here" + honest())
    assert isinstance(judgement.verdict, Passed)
    assert [flag for flag in judgement.flags if flag.startswith("line 1: GPU MODE's server refuses")]


@pytest.mark.slow
def test_a_broken_problem_is_not_the_candidates_fault(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "pmpp/vectoradd", tmp_path / "pmpp/vectoradd")
    runner = CpuRunner(root=tmp_path)
    assert isinstance(judge(runner, honest()).verdict, Passed)
    reference = tmp_path / "pmpp/vectoradd/reference.py"
    reference.write_text(
        reference.read_text().replace("def exact(data):", "def exact(data):\n    raise KeyError('x')\n")
    )
    with pytest.raises(RunnerError, match="KeyError"):
        judge(runner, honest())
    runner.close()


@pytest.mark.slow
def test_memory_has_an_end(runner: CpuRunner) -> None:
    verdict = judge(runner, honest(before="import mmap; hoard = [mmap.mmap(-1, 1 << 30) for _ in range(4096)]")).verdict
    assert isinstance(verdict, Crashed) and "Cannot allocate memory" in verdict.reason


@pytest.mark.slow
def test_a_guest_that_died_waiting_is_replaced(runner: CpuRunner) -> None:
    judge(runner, honest())
    assert runner._client is not None and runner._client._program is not None
    time.sleep(0.5)
    for pid in descendants(runner._client._program.pid):
        os.kill(pid, signal.SIGKILL)
    assert isinstance(judge(runner, honest()).verdict, Passed)


@pytest.mark.slow
def test_an_interrupt_does_not_mix_up_answers(runner: CpuRunner) -> None:
    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    judge(runner, honest())
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    with pytest.raises(KeyboardInterrupt):
        judge(runner, honest(before="while True: pass"), deadline_s=30)
    signal.signal(signal.SIGALRM, before)
    assert isinstance(judge(runner, honest()).verdict, Passed)


@pytest.mark.slow
def test_two_threads_take_turns(runner: CpuRunner) -> None:
    sources = [honest(), honest(after="out = None"), honest(), honest(after="out = None")]
    with ThreadPoolExecutor(2) as threads:
        verdicts = list(threads.map(lambda source: judge(runner, source).verdict, sources))
    assert [type(verdict) for verdict in verdicts] == [Passed, WrongAnswer] * 2
