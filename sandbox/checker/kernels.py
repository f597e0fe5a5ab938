"""What the guests recorded of the kernels, as records and estimates. It explains and ranks; it accepts nothing."""

from __future__ import annotations

from sandbox.evidence import Evidence, EvidenceError, RecordedKernel, parse
from sandbox.guest.wire import MAX_LOG
from sandbox.isa import IsaError
from sandbox.kernel_report import report
from sandbox.verdict import IsaReport, KernelRecord

NOTHING = Evidence((), ())
MAX_MNEMONICS = 256
UNREADABLE = (ArithmeticError, LookupError, ValueError, RecursionError)
"""What reading assembly or TTIR that no compiler wrote can end in: evidence is a guest's text, and must not hurt."""


def read(payload: bytes, flags: list[str]) -> Evidence:
    """The evidence; an unreadable one is none, and a flag."""
    try:
        return parse(payload)
    except EvidenceError as error:
        flags.append(f"kernel evidence unreadable: {error}")
        return NOTHING


def records(*evidences: Evidence) -> tuple[KernelRecord, ...]:
    """One record per kernel, specialisation and target, over all evidences, in order of appearance."""
    found: dict[tuple[str, str, str, str | None], KernelRecord] = {}
    for evidence in evidences:
        for index, kernel in enumerate(evidence.kernels):
            launches = sum(launch.kernel == index and not launch.tuning for launch in evidence.launches)
            key = (kernel.name, kernel.target, kernel.hash, kernel.error)
            earlier = found[key].launches if key in found else 0
            found[key] = _record(kernel, earlier + launches)
    return tuple(found.values())


def _record(kernel: RecordedKernel, launches: int) -> KernelRecord:
    error = kernel.error[-MAX_LOG:] if kernel.error is not None else None
    record = KernelRecord(name=kernel.name, target=kernel.target, launches=launches, error=error)
    if kernel.error is not None or not kernel.target.startswith("gfx"):
        return record
    try:
        return record.model_copy(update={"isa": _short(report(kernel))})
    except (IsaError, *UNREADABLE) as error:
        return record.model_copy(update={"error": f"assembly unreadable: {error}"})


def _short(isa: IsaReport) -> IsaReport:
    """The report with as many mnemonics as a chip has, and no more: their names are a guest's text."""
    cut = {name: dict(list(getattr(isa, name).items())[:MAX_MNEMONICS]) for name in ("mfma", "memory")}
    return isa.model_copy(update={name: {key[:64]: n for key, n in counts.items()} for name, counts in cut.items()})
