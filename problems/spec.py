"""The types of a problem. All frozen, all serialisable; nothing here imports torch or reads a file."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

ParamValue = int | bool | str | tuple[int, ...]
DType = Literal["fp64", "fp32", "fp16", "bf16", "fp8", "fp4", "int64", "int32", "uint8"]


class ProblemError(Exception):
    """A problem is unknown, or its folder is broken.

    Raised before any work is done; the message names the file, the field and the cure.
    """


class Frozen(BaseModel):
    """A value that crosses a file or a process: immutable, and refuses unknown fields."""

    # By default pydantic writes infinity and NaN as null, which it then cannot read back; strings are strict JSON.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Case(Frozen):
    """One input of a problem: its sizes, how its values are drawn, and the seed where a board publishes one."""

    params: dict[str, ParamValue]
    fill: str = "published"
    """Which distribution `reference.make_inputs` draws from; `published` is the board's own."""
    seed: int | None = None
    """The board's published seed. The judge never uses it: seeds are drawn after the candidate is loaded."""

    def spec(self) -> str:
        """The case as a line of GPU MODE's case file, without its seed: ``m: 64; n: 64; k: 128``."""
        shown = {name: list(value) if isinstance(value, tuple) else value for name, value in self.params.items()}
        return "; ".join(f"{name}: {value}" for name, value in shown.items())

    def label(self) -> str:
        """The spec, with the fill where it is not the published one."""
        return self.spec() if self.fill == "published" else f"{self.spec()}; fill: {self.fill}"


class Tolerance(Frozen):
    """Our rule: |out - exact| <= rtol * |exact| + term_rtol * terms, at every element.

    `exact` is the float64 result; `terms` is the sum of the magnitudes of the terms that make up the element
    (for a matrix product, |A| |B|), so that a cancelled sum is judged by what went into it and zeros never pass.
    """

    rtol: float
    term_rtol: float
    reason: str


class BoardCheck(Frozen):
    """The board's own rule: |out - theirs| <= scale * (atol + rtol * |theirs|) at every element, or nearly."""

    rtol: float
    atol: float
    scale: str = "1"
    """A factor of both, an expression over the case's parameters."""
    missed_share: float = 0.0
    """The share of elements, at most, that may be off by more."""
    difference: Literal["fp32", "promoted"]
    """Where the difference is taken: in fp32, or in the promoted dtype of the pair (fp16 minus fp16 is fp16)."""
    source: str


class BoardTiming(Frozen):
    """How the board times a call and ranks submissions."""

    evaluator: str
    clock: Literal["host", "event"]
    flush_l2: bool
    calls_per_sample: int = 1
    clone_inside: bool = False
    ranked_by: Literal["geomean", "last", "mean", "weighted"]
    weights: tuple[float, ...] = ()
    """One a benchmark case, where the score is the sum of the cases' times, each times its weight."""
    source: str


class Baseline(Frozen):
    """A published time. Comparable only on its own chip, with its own harness."""

    who: str
    kind: Literal["human", "vendor", "reference", "sol", "automated"]
    chip: str
    time_us: float
    metric: str
    source: str
    case: dict[str, ParamValue] | None = None
    """The case it was measured on, or None where it is the board's score over all ranked cases."""
    confidence: Literal["high", "medium", "low"] = "medium"


class Work(Frozen):
    """What one call must do at the least, on each GPU: operations by the dtype of their operands, and bytes."""

    flops: dict[DType, float]
    bytes: float
    """Through HBM, each once."""
    link_bytes: float = 0.0
    """Between GPUs, in the busier direction."""


class Origin(Frozen):
    """Where a problem from elsewhere is read, in place. Its reference is untrusted code."""

    kind: Literal["gpu-mode", "kernelbench"]
    path: str
    """Of the file that describes it, absolute."""
    sources: dict[str, str]
    """Its files, absolute, by the name under which its code imports them."""
    matched: bool
    """Whether its own check compares with its reference's answer, element by element."""
    unmet: str = ""
    """Why no machine of this judge can run it; empty where one can."""


class Problem(Frozen):
    """One task: what to compute, on which cases it is checked and timed, and by which rule it is judged."""

    name: str
    """Same spelling in folder, file, record and report: ``amd/fp8-mm``."""
    title: str
    board: str
    """The leaderboard's name, as in ``#!POPCORN leaderboard amd-fp8-mm``."""
    aliases: tuple[str, ...] = ()
    chips: tuple[str, ...]
    """Chips whose board exists; the first is the default target."""
    inputs: str
    """The tuple that `custom_kernel` receives, with dtypes, shapes and strides in elements."""
    returns: str
    output_dtype: str
    """torch's name of the returned dtype, ``bfloat16``; of every tensor's where several are returned."""
    part_dtypes: tuple[str, ...] = ()
    """One for each returned tensor, where they differ."""
    writable: tuple[int | str, ...] = ()
    """Where in the inputs the buffers lie that a kernel may write: ``2``, or ``"0/*/2"`` for a place further down, with
    ``*`` for any key. Every other input must come back unchanged."""
    updated: tuple[int | str, ...] = ()
    """Buffers that hold something a kernel needs, and that it may change, like a cache."""
    on_host: tuple[int | str, ...] = ()
    """Inputs that lie in the host's memory."""
    tests: tuple[Case, ...]
    benchmarks: tuple[Case, ...]
    small: tuple[Case, ...]
    """Cases an interpreter can run in about a second."""
    tolerance: Tolerance
    part_tolerances: tuple[Tolerance, ...] = ()
    """One for each returned tensor, where they differ; the first is `tolerance`."""
    board_check: BoardCheck
    board_timing: BoardTiming
    flops: dict[DType, str]
    """Operations of one call by operand dtype, each an arithmetic expression over the case's parameters."""
    bytes: str
    """Bytes that one call must move through HBM at the least, an expression over the case's parameters."""
    link_bytes: str = "0"
    """Bytes that one GPU must receive from the others, or send to them, whichever is more; likewise an expression.

    Where `world_size` is above 1, `flops` and `bytes` too are those of one GPU.
    """
    world_size: int = 1
    """GPUs of one host that a call runs on, a process on each."""
    baselines: tuple[Baseline, ...] = Field(default=())
    origin: Origin | None = None
    """None for the problems of this project."""

    def ranked(self) -> tuple[Case, ...]:
        """The benchmark cases that count for the board's score."""
        return self.benchmarks[-1:] if self.board_timing.ranked_by == "last" else self.benchmarks
