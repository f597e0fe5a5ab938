"""Guests started ahead: each serves one candidate.

The next ones start as soon as these are lent. What they import costs the cores alone; a device they touch only when
nobody is judged, so that no candidate is timed beside another's first use.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from sandbox import hip_cache
from sandbox.checker.guest import FAULTS, Guest, NotReady
from sandbox.isolation import Limits, Sandbox

_KEPT = (
    *("LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_HOME"),
    *("ROCM_PATH", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH", "CC"),
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin:/opt/rocm/bin"

FEW_CORES, SPARES = 8, 3


class Pool:
    """Starts guests. All calls from one thread, which must outlive the guests: their parent's death ends them."""

    def __init__(
        self,
        sandbox: Sandbox,
        wanted: dict[str, Sequence[str]],
        depth: int = 1,
        under: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        """`wanted`: the modes to keep warm, each with the targets it compiles for; `depth` guests of each.

        `under`: the program that guests are started under. `options`: words for their command line.
        """
        self._sandbox, self._wanted, self._depth = sandbox, wanted, depth
        self._under, self._options = tuple(under), tuple(options)
        self._warm: dict[str, list[Guest]] = {mode: [] for mode in wanted}
        self._lent: list[Guest] = []

    def warm(self) -> None:
        """Start whatever is missing, and let the next one of each mode get ready, without waiting for it.

        `NotReady` where one cannot start.
        """
        self._fill()
        for waiting in self._warm.values():
            waiting[0].prepare()

    @contextlib.contextmanager
    def lend(self, modes: Sequence[str]) -> Iterator[list[Guest]]:
        """Guests of these modes, ready; killed at the end, whatever happened. One mode twice: two guests of it."""
        self.warm()
        guests = [self._warm[mode].pop(0) if self._warm[mode] else self._start(mode, self._under) for mode in modes]
        self._lent += guests
        try:
            for guest in guests:
                guest.await_ready()
            with contextlib.suppress(NotReady):  # of those for the next candidate, which will be told
                self._fill()
            yield guests
        finally:
            for guest in guests:
                self._lent.remove(guest)
                guest.close()

    def prepare_next(self, mode: str) -> None:
        """Let the next guest of `mode` touch its device now, if it has come so far, beside the one that is lent."""
        for guest in self._warm[mode][:1]:
            if guest.imported:
                guest.prepare()

    def await_next(self, mode: str) -> None:
        """Wait until the next guest of `mode` leaves its device alone. One that is gone is found out when needed."""
        for guest in self._warm[mode][:1]:
            with contextlib.suppress(NotReady):
                if not guest.held:
                    guest.await_ready()

    def interrupt(self) -> None:
        """Kill the guests lent out now, ready or not. Any thread may call it: whoever waits for one sees it die."""
        for guest in list(self._lent):
            guest.kill()

    def apart(self, mode: str, under: Sequence[str]) -> Guest:
        """A guest that is not one of the warm ones, started under another program; the caller closes it."""
        return self._start(mode, under)

    def holds(self, mode: str, act: Callable[[Guest], None]) -> bool:
        """Whether `act` succeeds on a warm guest that has no candidate yet; it stays warm where it does."""
        self.warm()
        guest = self._warm[mode][0]
        guest.await_ready()
        try:
            act(guest)
        except FAULTS:
            self._warm[mode].pop(0).close()
            return False
        return True

    def close(self) -> None:
        """Kill every warm guest."""
        for waiting in self._warm.values():
            for guest in waiting:
                guest.close()
            waiting.clear()

    def _fill(self) -> None:
        for mode, waiting in self._warm.items():
            for guest in [guest for guest in waiting if not guest.alive]:
                waiting.remove(guest)
                guest.close()
            while len(waiting) < self._depth:
                waiting.append(self._start(mode, self._under))

    def _start(self, mode: str, under: Sequence[str] = ()) -> Guest:
        try:
            return Guest(mode, self._wanted[mode], self._sandbox, environment(), limits(mode), under, self._options)
        except OSError as error:
            raise NotReady(f"cannot start a guest: {error}") from error


def spares() -> int:
    """Guests to keep imported for candidates that follow one another at once: one, where cores are few."""
    return SPARES if len(os.sched_getaffinity(0)) > FEW_CORES else 1


def limits(mode: str) -> Limits:
    """A device guest maps far more than it uses; elsewhere half of this machine's memory is enough for one."""
    if mode == "device":
        return Limits()
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Limits(address_bytes=max(memory_bytes // 2, 4 << 30))


def environment() -> dict[str, str]:
    """A guest's whole environment. No NVLink multicast: a guest is alone on its GPU."""
    kept = hip_cache.shown()
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        **({hip_cache.VARIABLE: str(kept)} if kept else {}),
        "PATH": _PATH,
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "USER": "guest",
        "LOGNAME": "guest",
        "TRITON_CACHE_DIR": "/tmp/triton",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NCCL_NVLS_ENABLE": "0",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
        "NVSHMEM_DISABLE_NVLS": "1",
    }
