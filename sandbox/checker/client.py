"""The control plane's end of a checker: starts it, asks it, restarts it once, takes it down. No torch here."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from problems.load import ROOT
from problems.spec import Problem, ProblemError
from sandbox.audit import Audited
from sandbox.candidate import Candidate
from sandbox.comparison import Compared
from sandbox.defences import ALL_UP, Defences
from sandbox.guest import wire
from sandbox.isolation.program import Program, start
from sandbox.runner import Mode, RunnerError, Unsupported
from sandbox.verdict import Judgement, Machine

START_S = 180.0
"""For a cold import of torch from a slow disk."""
BEYOND_S = 900.0
"""What the checker itself may take on top of the candidate's time: inputs, references, waiting for a GPU in use."""
ORDERLY_S = 3.0
"""For an idle checker to end in good order; one that is busy ends itself before."""
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_KEPT = (
    *("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "ROCM_PATH"),
    *("TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH", "CC", "DOCKER_HOST", "XDG_CACHE_HOME"),
    *_VISIBLE,
)


_NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""NVLink multicast can take a whole host's fabric down with it."""


class Client:
    """One checker, started when first asked."""

    def __init__(
        self,
        arguments: Sequence[str],
        root: Path = ROOT,
        defences: Defences = ALL_UP,
        gpus: int = 1,
    ) -> None:
        """`gpus`: as many are visible to it, at the most."""
        self._arguments, self._root, self._defences, self._gpus = tuple(arguments), root, defences, gpus
        self._program: Program | None = None
        self._machine: Machine | None = None
        self._one_at_a_time = threading.Lock()

    def machine(self) -> Machine:
        """The machine it judges on."""
        self._started()
        assert self._machine is not None
        return self._machine

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode,
        deadline_s: float,
        following: Candidate | None = None,
    ) -> Judgement:
        """Judge one candidate; after a fault of the place, once more with a new checker. Raises `RunnerError`.

        `following`: the one that is judged next on this problem, if that is known.
        """
        sources = [one.source for one in (candidate, following) if one is not None]
        with self._one_at_a_time:
            return self._judge(problem, json.dumps(sources), mode, deadline_s)

    def _judge(self, problem: Problem, sources: str, mode: Mode, deadline_s: float) -> Judgement:
        header = {"op": "judge", "problem": problem.name, "root": str(self._root)}
        header |= {"mode": mode.value, "deadline_s": str(deadline_s), "defences": self._defences.model_dump_json()}
        header |= {"elsewhere": problem.model_dump_json()} if problem.origin else {}
        try:
            return self._ask(header, sources, deadline_s)
        except Unsupported:
            raise
        except RunnerError:
            self.close()
            return self._ask(header, sources, deadline_s)

    def audit(self, problem: Problem) -> Audited:
        """Screen a problem. Raises `RunnerError`."""
        header = {"op": "audit", "problem": problem.name, "root": str(self._root)}
        header |= {"defences": self._defences.model_dump_json()}
        header |= {"elsewhere": problem.model_dump_json()} if problem.origin else {}
        with self._one_at_a_time:
            frame = self._exchange(header, "", "audited", 0.0)
        return Audited.model_validate_json(frame.payload)

    def compare(self, problem: Problem, first: Candidate, second: Candidate, pairs: int, deadline_s: float) -> Compared:
        """Judge two candidates and time them in turns. Raises `RunnerError`."""
        header = {"op": "compare", "problem": problem.name, "root": str(self._root), "pairs": str(pairs)}
        header |= {"deadline_s": str(deadline_s), "defences": self._defences.model_dump_json()}
        with self._one_at_a_time:
            frame = self._exchange(header, json.dumps([first.source, second.source]), "compared", 2 * deadline_s)
        return Compared.model_validate_json(frame.payload)

    def close(self) -> None:
        """Stop the checker and every guest of it."""
        program, self._program = self._program, None
        if program is not None:
            _hang_up(program)
            program.close()

    def _ask(self, header: dict[str, str], sources: str, deadline_s: float) -> Judgement:
        frame = self._exchange(header, sources, "judgement", deadline_s)
        return Judgement.model_validate_json(frame.payload)

    def _exchange(self, header: dict[str, str], text: str, expected: str, deadline_s: float) -> wire.Frame:
        program = self._started()
        until_s = time.monotonic() + 2 * deadline_s + BEYOND_S
        try:
            wire.send(program.sock, header, text.encode(), until_s=until_s)
            frame = wire.receive(program.sock, until_s, accept_fds=False)
        except wire.WireError as error:
            raise self._lost(error) from error
        except BaseException:
            # Interrupted: its answer must not be taken for the next candidate's.
            self.close()
            raise
        if frame.op != expected:
            _raise(frame)
        return frame

    def _started(self) -> Program:
        if self._program is not None and self._program.alive:
            return self._program
        self.close()
        try:
            self._program = start([sys.executable, "-m", "sandbox.checker", *self._arguments], _environment(self._gpus))
            atexit.register(_close, weakref.ref(self))
            frame = wire.receive(self._program.sock, time.monotonic() + START_S, accept_fds=False)
        except wire.WireError as error:
            raise self._lost(error) from error
        except OSError as error:
            raise RunnerError(f"cannot start the checker: {error}") from error
        if frame.op != "ready":
            self.close()
            _raise(frame)
        self._machine = Machine.model_validate(frame.header["machine"])
        return self._program

    def _lost(self, error: Exception) -> RunnerError:
        """The checker died or fell silent: take it down, and say what it last said."""
        assert self._program is not None
        how, output = self._program.ending(), self._program.output()
        self.close()
        return RunnerError(f"the checker was lost: {error}; {how}\n{output[-4096:]}".strip())


def _hang_up(program: Program) -> None:
    """Let an idle checker end by itself: it takes its guests and their cgroups down; a kill would leave these."""
    with contextlib.suppress(OSError):
        program.sock.shutdown(socket.SHUT_RDWR)
    until_s = time.monotonic() + ORDERLY_S
    while program.alive and time.monotonic() < until_s:
        time.sleep(0.005)


def _raise(frame: wire.Frame) -> None:
    message = str(frame.header.get("message", "the checker answered nothing it should"))
    match frame.header.get("kind"):
        case "problem":
            raise ProblemError(message)
        case "unsupported":
            raise Unsupported(message)
        case _:
            raise RunnerError(message)


def _close(client: weakref.ref[Client]) -> None:
    living = client()
    if living is not None:
        with contextlib.suppress(OSError):
            living.close()


def _environment(gpus: int) -> dict[str, str]:
    """The checker's environment: no keys of the control plane, since a guest's parent may be read by it."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ours = str(Path(__file__).parents[2])
    # The first of those this process may see, by whichever variable says so; a driver passes over those there are not.
    chosen = next((name for name in _VISIBLE if name in kept), _VISIBLE[0])
    seen = kept.get(chosen, ",".join(map(str, range(gpus))))
    visible = {chosen: ",".join(seen.split(",")[:gpus])} | _NO_MULTICAST
    path = os.pathsep.join([ours, *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, **visible, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
