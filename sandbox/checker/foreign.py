"""A reference from elsewhere, in a guest of its own: makes inputs and answers, which cross as raw bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from problems.spec import Case, Origin, Problem, ProblemError
from sandbox.checker.answer import legible
from sandbox.checker.foreign_tree import Malformed, Value, read
from sandbox.checker.guest import Died, Fault, Forgery, Guest, Late, Raised
from sandbox.checker.memory import HostMemory
from sandbox.runner import Unsupported

MAX_SOURCE_BYTES = 4 << 20
STEP_S = 120.0
"""What one step of a reference may take."""
LARGEST_BYTES = min(16 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8)
"""Of one value: inputs, weights or an answer. A few copies of it exist at a time."""
MEMORY_WORDS = ("out of memory", "can't allocate memory", "MemoryError", "Cannot allocate memory")
GPU_WORDS = ("Float4_", "Float8_", "not implemented for", "NotImplementedError", "CUDA", "cuda", "no kernel image")
"""What torch says of something that it has no code for on a CPU."""


class Broken(ProblemError):
    """A reference raised, died, hung, or said what no reference says."""


class TooLarge(Unsupported):
    """A case needs more memory or time than there is here."""


def sources(origin: Origin) -> tuple[list[list[Any]], bytes]:
    """Names with their sizes, and all files' bytes one after the other; eval.py is not among them: nobody runs it."""
    files = [(name, Path(path)) for name, path in sorted(origin.sources.items()) if name != "eval.py"]
    try:
        contents = [(name, path.read_bytes()) for name, path in files]
    except OSError as error:
        raise ProblemError(f"{error.filename}: cannot be read: {error.strerror}; import the problem again") from error
    if sum(len(content) for _, content in contents) > MAX_SOURCE_BYTES:
        raise ProblemError(f"{origin.path}: its files hold more than {MAX_SOURCE_BYTES} bytes; leave data out of them")
    return [[name, len(content)] for name, content in contents], b"".join(content for _, content in contents)


class Reference:
    """One problem's reference, at work in `guest`. Every method raises `Broken` or `TooLarge` where it fails."""

    def __init__(self, problem: Problem, guest: Guest, device: str, step_s: float = STEP_S) -> None:
        assert problem.origin is not None
        self.problem, self._guest, self.device, self._step_s = problem, guest, device, step_s
        self.origin = problem.origin
        self.modules = tuple(Path(name).stem for name in self.origin.sources)
        self._shared: list[HostMemory] = []
        files, content = sources(self.origin)
        header = {"op": "problem", "kind": self.origin.kind, "files": files, "run": True}
        self._ask(header, "problem", None, content)

    def close(self) -> None:
        """Give its buffers back, and end its guest."""
        self._share([])
        self._guest.close()

    def weights(self, case: Case, seed: int) -> Value:
        """What a model is made from: ``seed``, ``init`` and ``state``."""
        return self._held({"op": "weights", **_case(case, seed)}, case)

    def inputs(self, case: Case, seed: int) -> Value:
        """Fresh inputs."""
        return self._held({"op": "make", **_case(case, seed)}, case)

    def answer(self, case: Case, data: Value, exact: bool = False, seed: int = 0) -> Value:
        """Its answer on `data`, in its own precision or in float64."""
        self._share([data])
        return self._held({"op": "answer", "data": data.on(0), "exact": exact, "seed": seed}, case)

    def accepts(self, case: Case, data: Value, output: Value) -> tuple[bool, str]:
        """What its own check says of an output, and the message."""
        self._share([data, output])
        header = {"op": "check", "data": data.on(0), "output": output.on(1)}
        frame = self._ask(header, "checked", case)
        passed, message = frame.header.get("passed"), frame.header.get("message")
        if not isinstance(passed, bool) or not isinstance(message, str):
            raise Broken(f"{self._where(case)}: its check answered neither yes nor no")
        return passed, legible(message[:2000])

    def sized(self, case: Case, most_bytes: int, most_flops: int) -> dict[str, Any]:
        """Sizes within limits and what they cost; see `sandbox.guest.foreign_sizes.shrink`."""
        limits = {"bytes": most_bytes, "flops": most_flops}
        told = self._ask({"op": "shrink", "params": dict(case.params), **limits}, "sized", case).header
        params, numbers = told.get("params"), [told.get(name) for name in ("bytes", "flops", "full_bytes")]
        if not isinstance(params, dict) or set(params) != set(case.params):
            raise Broken(f"{self._where(case)}: its sizes came back as something else")
        sizes = [each for value in params.values() for each in (value if isinstance(value, list) else [value])]
        if not all(type(number) is int for number in (*sizes, *numbers)):
            raise Broken(f"{self._where(case)}: its cost is not a whole number")
        return told

    def _held(self, header: dict[str, Any], case: Case) -> Value:
        """Ask for a value, hand over room for it, and take a copy."""
        size = self._ask(header, "held", case).header.get("bytes")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise Broken(f"{self._where(case)}: a size is not a whole number")
        if size > LARGEST_BYTES:
            raise TooLarge(
                f"{self._where(case)}: {size / 2**30:.1f} GiB in one value; {LARGEST_BYTES / 2**30:.1f} at most"
            )
        room = HostMemory(size)
        self._give([room])
        tree = self._ask({"op": "take"}, "taken", case).header.get("tree")
        data = room.tensor.clone()
        self._share([])
        try:
            leaves = read(tree, {0: data.numel()}, self.modules)
        except Malformed as error:
            raise Broken(f"{self._where(case)}: handed over what cannot be read: {error}") from error
        assert isinstance(tree, dict)
        return Value(tree, data.to(self.device), leaves)

    def _share(self, values: list[Value]) -> None:
        """Hand over values' bytes, each in a buffer of its own; earlier ones are given back."""
        rooms = [HostMemory(value.data.numel()) for value in values]
        for room, value in zip(rooms, values, strict=True):
            room.tensor[: value.data.numel()].copy_(value.data)
        self._give(rooms)

    def _give(self, rooms: list[HostMemory]) -> None:
        for room in self._shared:
            room.close()
        self._shared = rooms
        if rooms:
            self._guest.allow(self._step_s)
            try:
                self._guest.share(rooms)
            except (Raised, Died, Late, Forgery) as fault:
                raise self._fault(fault, None) from fault

    def _ask(self, header: dict[str, Any], expected: str, case: Case | None, payload: bytes = b"") -> Any:
        self._guest.allow(self._step_s)
        try:
            return self._guest.ask(header, expected, payload)
        except (Raised, Died, Late, Forgery) as fault:
            raise self._fault(fault, case) from fault

    def _where(self, case: Case | None) -> str:
        return f"{self.origin.path}{f': case {case.spec()!r}' if case is not None and case.params else ''}"

    def _fault(self, fault: Fault, case: Case | None) -> Exception:
        """Whose fault: the problem's, unless memory ran out."""
        if any(word in text for word in MEMORY_WORDS for text in (fault.reason, fault.log)):
            return TooLarge(f"{self._where(case)}: needs more memory than a guest may use here: {fault.reason}")
        if isinstance(fault, Late):
            where = f"{self._where(case)}: its reference gave no answer within {self._step_s:g} s"
            return TooLarge(f"{where}: it hangs, or the case is too large for this machine; judge it on a GPU")
        if self.device == "cpu" and any(word in text for word in GPU_WORDS for text in (fault.reason, fault.log)):
            return Unsupported(f"{self._where(case)}: its reference needs a GPU: {fault.reason}")
        return Broken(f"{self._where(case)}: its reference failed: {fault.reason}; correct it, or import it anew")


def _case(case: Case, seed: int) -> dict[str, Any]:
    return {"params": dict(case.params), "seed": seed}
