"""A problem and three judged kernels, fixed, so that prompts do not change when a published problem does."""

from problems.spec import BoardCheck, BoardTiming, Case, Problem, Tolerance
from prompts.view import Kernel
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
    Verdict,
    WrongAnswer,
)

SMALL, LARGE = Case(params={"m": 64, "n": 64, "k": 128}), Case(params={"m": 1024, "n": 4096, "k": 512})
PROBLEM = Problem(
    name="test/scaled-mm", title="Scaled matrix product", board="scaled-mm", chips=("MI300X",),
    inputs="(a, b, c): a fp8 [m, k], b fp8 [n, k], c bfloat16 [m, n]", returns="a b^T, bfloat16 [m, n]",
    output_dtype="bfloat16", writable=(2,), tests=(SMALL,), benchmarks=(LARGE,), small=(SMALL,),
    tolerance=Tolerance(rtol=0.01, term_rtol=1e-5, reason="bf16"),
    board_check=BoardCheck(rtol=0.02, atol=0.001, difference="fp32", source="here"),
    board_timing=BoardTiming(evaluator="e", clock="host", flush_l2=False, ranked_by="geomean", source="here"),
    flops={"fp8": "2*m*n*k"}, bytes="m*k + n*k + 2*m*n",
)  # fmt: skip
MACHINE = Machine(
    kind="cpu-emulation", chip="MI300X", arch="gfx942", driver="none", runtime="none", torch="2.13.0", triton="3.9.0",
    python="3.11", harness="0" * 64,
)  # fmt: skip
ISA = IsaReport(
    kernel="mm", target="gfx942", vgpr=128, agpr=64, sgpr=40, vgpr_spills=3, sgpr_spills=0, scratch_bytes=16,
    lds_bytes=32768, waves_per_workgroup=8, occupancy_waves=2, occupancy_limit="lds",
    mfma={"v_mfma_f32_16x16x32_fp8_fp8": 64}, memory={"global_load_dwordx4": 16, "ds_read_b64": 32}, waits=24,
    barriers=4, instructions=900, code_bytes=7200,
)  # fmt: skip
SOURCE = "import triton\n\n\n\n@triton.jit\ndef mm(a):\n    pass\n\n\ndef custom_kernel(data):\n    return data[2]\n"


def judgement(verdict: Verdict, error: str | None = None, flags: tuple[str, ...] = ()) -> Judgement:
    kernel = KernelRecord(name="mm", target="gfx942", launches=1, isa=None if error else ISA, error=error)
    return Judgement(
        verdict=verdict,
        machine=MACHINE,
        sandbox="bubblewrap",
        seeds=(424242,),
        kernels=(kernel,),
        flags=flags,
        wall_s=1.5,
    )


def check(passed: bool, case: Case = SMALL) -> CaseCheck:
    error = ErrorFigures(
        max_abs=7.5,
        max_rel=1.0,
        worst_ratio=0.1 if passed else float("inf"),
        mismatches=0 if passed else 3,
        elements=4096,
    )
    return CaseCheck(case=case, role="small", seed=424242, passed=passed, error=error, board_accepts=passed)


TIME = Estimated(case=LARGE, chip="MI300X", us=92.5, bound="mfma", parts_us={"mfma": 80.0, "launch": 12.5})
RIGHT = Kernel(SOURCE, judgement(Passed(cases=(check(True),), timings=(TIME,)), flags=("uses an fp16 product",)), 92.5)
WRONG = Kernel(
    SOURCE, judgement(WrongAnswer(reason="3 of 4096 elements differ", cases=(check(False), check(True, LARGE)))), None
)
LOG = (
    "Traceback (most recent call last):\n  line 5\ntriton.runtime.errors.OutOfResources: shared memory, Required: 98304"
)
FAILED = Kernel(
    SOURCE, judgement(BuildFailed(reason="mm did not compile for gfx942", log=LOG), error="Required: 98304"), None
)
