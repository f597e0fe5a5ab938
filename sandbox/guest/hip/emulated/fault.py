"""What a kernel did wrong in the emulation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A thread, and where in the source it was; no file and line 0 where that is not known."""

    file: str
    line: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    lane: int
    rank: int

    def text(self) -> str:
        """For people: ``gemm.hip:12, thread (3, 0, 0) of block (0, 0, 0)``."""
        where = f"{self.file}:{self.line}, " if self.line else ""
        rank = f" on rank {self.rank}" if self.rank else ""
        return f"{where}thread {self.thread} (lane {self.lane}) of block {self.block}{rank}"


class HipFault(RuntimeError):
    """A kernel's own fault, as a message that names kernel, line, thread and kind."""

    def __init__(self, kind: str, kernel: str, message: str, places: tuple[Place, ...]) -> None:
        told = "; and ".join(place.text() for place in places[:2])
        super().__init__(f"{kind} in {kernel} at {told}: {message}" if told else f"{kind} in {kernel}: {message}")
        self.kind = kind
        """``out of bounds``, ``divergent barrier``, ``deadlock``, ``not emulated``, ``too much shared memory`` or
        ``too much private memory``; in the checking mode ``missing barrier``, ``race``, ``missing fence``,
        ``wrong scope``, ``uninitialised shared memory``, ``lanes out of step``."""
        self.kernel = kernel
        self.message = message
        self.places = places

    @property
    def line(self) -> int:
        """Of the first place; 0 where it is not known."""
        return self.places[0].line if self.places else 0
