"""A built source in this process: its functions, what it launches, what its kernels do wrong."""

from __future__ import annotations

import contextlib
import ctypes
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .fault import HipFault, Place

LDS_BYTES = {"gfx942": 64 << 10, "gfx950": 160 << 10}
"""LDS of a workgroup: 64 KiB on CDNA3, 160 KiB on CDNA4 (AMD's instruction set architectures, "Local Data Share")."""
COMPUTE_UNITS = {"gfx942": 304, "gfx950": 256}


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch, told before it runs."""

    kernel: str
    """The kernel's symbol where it is known, else its name as the launch spells it."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    """Dynamic LDS."""
    args: dict[str, int | float]
    """Scalars by position; pointers and structures are left out."""
    rank: int


class _Index(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


class _Value(ctypes.Union):
    _fields_ = (("i", ctypes.c_int64), ("u", ctypes.c_uint64), ("f", ctypes.c_double))


class _Scalar(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_char), ("value", _Value))


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("grid", _Index),
        ("block", _Index),
        ("dynamic_bytes", ctypes.c_size_t),
        ("arguments", ctypes.POINTER(_Scalar)),
        ("argument_count", ctypes.c_int),
        ("cooperative", ctypes.c_bool),
        ("body", ctypes.c_void_p),
        ("closure", ctypes.c_void_p),
        ("closure_bytes", ctypes.c_size_t),
        ("rank", ctypes.c_int),
    )


class _Place(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
        ("rank", ctypes.c_int32),
        ("lane", ctypes.c_int32),
    )


class _Fault(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_char * 40),
        ("kernel", ctypes.c_char * 512),
        ("message", ctypes.c_char * 2048),
        ("places", ctypes.c_uint32),
        ("at", _Place * 8),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("run", ctypes.c_int),
        ("check", ctypes.c_int),
        ("workers", ctypes.c_int),
        ("lds_limit", ctypes.c_int),
        ("compute_units", ctypes.c_int),
        ("exited_lanes_arrive", ctypes.c_int),
        ("deadlock_s", ctypes.c_double),
    )


class _Program(ctypes.Structure):
    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("symbol_at", ctypes.c_void_p),
    )


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Launch))


class Library:
    """One built source. Libraries of one process share the runtime: its options, its ranges and its first fault."""

    def __init__(
        self,
        path: Path,
        on_launch: Callable[[Launch], None] | None = None,
        run: bool = True,
        check: bool = False,
        arch: str = "gfx942",
        exited_lanes_arrive: bool = False,
        deadlock_s: float = 3.0,
        workers: int = 0,
    ) -> None:
        """Load it.

        Args:
            on_launch: told of each launch before it runs.
            run: False: launches are told and not run.
            check: races between waves, missing fences, narrow scopes and unwritten LDS are looked for too, with one OS
                thread a launch and some hundred nanoseconds an access.
            exited_lanes_arrive: as on the machine, a barrier does not wait for lanes that returned. HIP forbids it.
            deadlock_s: nothing written for so long, and all wait: a deadlock. Twenty times as long where memory of
                another process is mapped.
            workers: OS threads a launch; 0: one a core.
        """
        self.handle = ctypes.CDLL(str(path))
        self._on_launch = on_launch
        self._callback = _CALLBACK(self._launched)
        self.handle.kw_options.restype = ctypes.POINTER(_Options)
        self.handle.kw_fault.restype = ctypes.POINTER(_Fault)
        self.handle.kw_range.argtypes = (
            *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int, ctypes.c_int),
        )
        options = self.handle.kw_options().contents
        options.run, options.check = int(run), int(check)
        options.workers = 1 if check and not workers else workers
        options.lds_limit, options.compute_units = LDS_BYTES[arch], COMPUTE_UNITS[arch]
        options.exited_lanes_arrive, options.deadlock_s = int(exited_lanes_arrive), deadlock_s
        self.handle.kw_on_launch(self._callback)

    def be_rank(self, number: int) -> None:
        """Launches of the calling OS thread are that rank's; ranks of one process run in threads of their own."""
        self.handle.kw_set_device(number)

    def ranges(self, ranges: Iterable[tuple[int, int, str]]) -> None:
        """Storage of tensors as (address, bytes, name). While any is known, kernels may touch nothing else."""
        for begin, size, name in ranges:
            self.handle.kw_range(begin, size, name.encode(), -1, 1)

    def forget(self) -> None:
        """The tensors' ranges are over."""
        self.handle.kw_forget_tensors()

    @contextlib.contextmanager
    def guarded(self, ranges: Iterable[tuple[int, int, str]] = ()) -> Iterator[None]:
        """Functions called inside touch these tensors only; `HipFault` at the end for what a kernel did wrong."""
        self.ranges(ranges)
        try:
            yield
        finally:
            self.forget()
        self.raise_fault()

    def raise_fault(self) -> None:
        """`HipFault` where a kernel did something wrong since the last time; the runtime is usable again then."""
        found = self.handle.kw_fault()
        if not found:
            return
        fault = found.contents
        places = tuple(self._place(fault.at[i]) for i in range(fault.places))
        error = HipFault(
            fault.kind.decode(), fault.kernel.decode(errors="replace"), fault.message.decode(errors="replace"), places
        )
        self.handle.kw_clear_fault()
        raise error

    def _place(self, place: _Place) -> Place:
        file, line = self._line_of(place.address) if place.address else ("", 0)
        return Place(file, line, tuple(place.block), tuple(place.thread), place.lane, place.rank)

    def _line_of(self, address: int) -> tuple[str, int]:
        """The innermost line that is not in a header of ours; binutils reads the debug information."""
        program = self._program_at(address)
        if program is None:
            return "", 0
        path, offset = program
        command = ["addr2line", "-i", "-e", path, hex(offset)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            return "", 0
        for line in said.splitlines():
            file, _, number = line.partition(" (")[0].rpartition(":")
            if number.isdigit() and int(number) and "/emulated/include/" not in file:
                return file.rpartition("/")[2], int(number)
        return "", 0

    def _program_at(self, address: int) -> tuple[str, int] | None:
        dladdr = ctypes.CDLL(None).dladdr
        dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Program))
        program = _Program()
        if not dladdr(address, ctypes.byref(program)) or not program.path:
            return None
        return program.path.decode(), address - int(program.base or 0)

    def _launched(self, pointer: ctypes._Pointer[_Launch]) -> None:
        if self._on_launch is None:
            return
        launch = pointer.contents
        args: dict[str, int | float] = {}
        for index in range(launch.argument_count):
            scalar = launch.arguments[index]
            if scalar.kind == b"f":
                args[str(index)] = scalar.value.f
            elif scalar.kind in (b"i", b"u"):
                args[str(index)] = scalar.value.i if scalar.kind == b"i" else scalar.value.u
        grid, block = launch.grid, launch.block
        self._on_launch(
            Launch(
                kernel=self._symbol(launch.address) or re.sub(r"\s+", " ", launch.kernel.decode(errors="replace")),
                grid=(grid.x, grid.y, grid.z),
                block=(block.x, block.y, block.z),
                shared_bytes=launch.dynamic_bytes,
                args=args,
                rank=launch.rank,
            )
        )

    def _symbol(self, address: int | None) -> str:
        program = _Program()
        dladdr = ctypes.CDLL(None).dladdr
        dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Program))
        if not address or not dladdr(address, ctypes.byref(program)) or program.symbol_at != address:
            return ""
        return program.symbol.decode() if program.symbol else ""
