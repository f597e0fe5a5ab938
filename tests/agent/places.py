"""Real parts for the agent's tests: a fake runner with a made-up but fixed law of times, and scripted replies."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path

from agent.header import header
from agent.knobs import KnobSpec, declared
from problems.load import load
from problems.spec import Problem
from sandbox.candidate import Candidate
from sandbox.runner import FakeRunner, Mode
from sandbox.verdict import (
    BuildFailed,
    CaseCheck,
    ErrorFigures,
    Estimated,
    IsaReport,
    Judgement,
    KernelRecord,
    Machine,
    Passed,
    WrongAnswer,
)

PROBLEM = load("amd/fp8-mm")
MACHINE = Machine(
    kind="fake", chip="MI300X", arch="gfx942", driver="none", runtime="none", torch="none", triton="none",
    python="3.11", harness="0" * 64,
)  # fmt: skip
RIGHT = ErrorFigures(max_abs=1e-3, max_rel=1e-3, worst_ratio=0.1, mismatches=0, elements=4096)
WRONG = ErrorFigures(max_abs=7.5, max_rel=1.0, worst_ratio=900.0, mismatches=4096, elements=4096)
ISA = IsaReport(
    kernel="mm", target="gfx942", vgpr=128, agpr=64, sgpr=40, vgpr_spills=0, sgpr_spills=0, scratch_bytes=0,
    lds_bytes=32768, waves_per_workgroup=8, occupancy_waves=2, occupancy_limit="lds",
    mfma={"v_mfma_f32_16x16x32_fp8_fp8": 64}, memory={"global_load_dwordx4": 16, "ds_read_b64": 32}, waits=24,
    barriers=4, instructions=900, code_bytes=7200,
)  # fmt: skip


def judgement(problem: Problem, verdict: Passed | WrongAnswer | BuildFailed) -> Judgement:
    kernel = KernelRecord(name="mm", target="gfx942", launches=1, isa=ISA)
    return Judgement(verdict=verdict, machine=MACHINE, sandbox="process", seeds=(7,), kernels=(kernel,), wall_s=0.0)


def check(problem: Problem, passed: bool, board_accepts: bool = True) -> CaseCheck:
    return CaseCheck(
        case=problem.small[0], role="small", seed=7, passed=passed, error=RIGHT if passed else WRONG,
        board_accepts=board_accepts,
    )  # fmt: skip


def passed(problem: Problem, us: float, board_accepts: bool = True) -> Judgement:
    times = tuple(
        Estimated(case=case, chip="MI300X", us=us, bound="mfma", parts_us={"mfma": us}) for case in problem.benchmarks
    )
    return judgement(problem, Passed(cases=(check(problem, True, board_accepts),), timings=times))


def wrong(problem: Problem) -> Judgement:
    return judgement(problem, WrongAnswer(reason="4096 of 4096 elements differ", cases=(check(problem, False),)))


def build_failed(problem: Problem, log: str = "OutOfResources: LDS") -> Judgement:
    return judgement(problem, BuildFailed(reason="a kernel did not compile", log=log))


def law(problem: Problem, candidate: Candidate) -> Judgement:
    """Verdict and time from the source alone: knobs have an optimum, some settings fail, the rest goes by hash."""
    if "WRONG" in candidate.source:
        return wrong(problem)
    knobs = declared(candidate.source)
    digest = int(hashlib.sha256(candidate.source.encode()).hexdigest()[:6], 16)
    if not knobs:
        return passed(problem, 80.0 + digest % 1000 / 10)
    if digest % 11 == 0:
        return build_failed(problem)
    numbers = [math.log2(value + 1) for value in knobs.values() if isinstance(value, int)]
    return passed(problem, 100.0 + sum((number - 5) ** 2 for number in numbers) + digest % 7 / 100)


class CountingRunner(FakeRunner):
    """Keeps what it was asked to judge; `before` runs ahead of each answer and may raise."""

    def __init__(self, before: Callable[[Candidate], None] = lambda candidate: None) -> None:
        super().__init__(law, MACHINE)
        self.judged: list[str] = []
        self._before = before

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode = Mode.BENCHMARK,
        deadline_s: float = 120.0,
        following: Candidate | None = None,
    ) -> Judgement:
        self.judged.append(candidate.sha256)
        self._before(candidate)
        return super().judge(problem, candidate, mode, deadline_s, following)


def kernel_reply(number: int, remark: str = "") -> str:
    code = f"# version {number} {remark}\nimport torch\n\n\ndef custom_kernel(data):\n    return data[4]\n"
    return f"Hypothesis: version {number} is faster.\n\n```python\n{code}```\n"


def script(folder: Path, replies: list[str]) -> Path:
    path = folder / "script.jsonl"
    lines = [json.dumps({"reply": reply, "input_tokens": 100, "output_tokens": 10}) for reply in replies]
    path.write_text("\n".join(lines) + "\n")
    return path


def replies(count: int) -> list[str]:
    """Right ones, wrong ones, one without code and one with two kernels."""
    special = {
        3: "I cannot help with that.",
        5: kernel_reply(501) + kernel_reply(502),
        6: kernel_reply(6, "WRONG"),
        7: kernel_reply(7, "WRONG"),
        9: kernel_reply(8),
    }
    return [special.get(number, kernel_reply(number)) for number in range(1, count + 1)]


def knobs(count: int, values: int) -> dict[str, KnobSpec]:
    spec = KnobSpec(values=tuple(2**n for n in range(values)), default=4, why="")
    return {f"KNOB_{number}": spec for number in range(count)}


def knob_source(space: dict[str, KnobSpec]) -> str:
    lines = "".join(f"{name} = {knob.default}  # knob\n" for name, knob in space.items())
    return header(PROBLEM) + lines + "\n\ndef custom_kernel(data):\n    return data[4]\n"


ONE_SEED = Path(__file__).parent / "one_seed"
"""Of the seed kernels the one in Triton for our problem: what a run does is told apart from how many it starts from."""


def seed_folder(root: Path, space: dict[str, KnobSpec]) -> Path:
    """A folder of seed kernels with one for our problem, ``amd/fp8-mm/wide``."""
    folder = root / "seed_kernels" / PROBLEM.name / "wide"
    folder.mkdir(parents=True)
    (folder / "submission.py").write_text(knob_source(space))
    tables = (f'[knobs.{n}]\nvalues = {list(k.values)}\ndefault = {k.default}\nwhy = ""\n' for n, k in space.items())
    (folder / "knobs.toml").write_text("\n".join(tables))
    return root / "seed_kernels"
