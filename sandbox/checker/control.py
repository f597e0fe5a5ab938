"""A guest of the checker's own, which never holds a candidate: it makes the empty calls that are paired with real ones.

A candidate owns its guest, so an empty call made there could be slowed down to hide work behind it. This one cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from sandbox.checker.guest import Guest, NotReady, Returned
from sandbox.checker.layout import ALIGNMENT, INPUTS, RESULT
from sandbox.checker.memory import HostMemory, Shared
from sandbox.checker.pool import Pool

CALL_S = 60.0


class Control:
    """Empty calls, in a guest from a pool of its own."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tree: dict[str, Any] = {}
        self._holds: tuple[Guest | None, list[Shared]] = None, []
        self._gate: Shared | None = None

    def prepare(self, tree: dict[str, Any], buffers: Sequence[Shared]) -> None:
        """Be ready for calls like those on `tree`, whose tensors lie in `buffers`."""
        self._tree = tree
        self._do(lambda guest: self._share(guest, buffers))

    def empty(self, copied: int, head_start: int) -> Returned:
        """One empty call, `copied` bytes of a result copied out as a real call's would be."""
        answers: list[Returned] = []

        def call(guest: Guest) -> None:
            guest.allow(CALL_S)
            answers.append(guest.empty(self._tree, copied, head_start))

        self._do(call)
        return answers[0]

    def burst(self, count: int, out_bytes: int, opening: Callable[[Shared], None]) -> Returned:
        """A burst of `count` empty kernels behind a gate that `opening` opens, results of `out_bytes` in all copied."""
        gate = self._gate = self._gate or HostMemory(1, "cpu")
        gate.tensor.zero_()
        answers: list[Returned] = []

        def act(guest: Guest) -> None:
            self._share(guest, [gate])
            guest.allow(CALL_S)
            header = {"count": count, "copied": out_bytes, "gate": 0}
            answers.append(guest.burst(header, lambda: opening(gate)))

        self._do(act)
        return answers[0]

    def close(self) -> None:
        """End its guest."""
        self._pool.close()

    def _share(self, guest: Guest, buffers: Sequence[Shared]) -> None:
        # What a guest has mapped it keeps mapped: the same buffers are handed over once.
        if self._holds != (guest, list(buffers)):
            guest.allow(CALL_S)
            guest.share(buffers)
            self._holds = guest, list(buffers)

    def _do(self, act: Callable[[Guest], None]) -> None:
        if not self._pool.holds("device", act):
            raise NotReady("the guest that makes the empty calls failed")


def copied(tree: Any) -> int:
    """Bytes of an answer that the guest copied out: all but what lies in the inputs. It was read strictly before."""
    if tree["t"] == "tensor":
        return math.prod(tree["shape"]) * getattr(torch, tree["dtype"]).itemsize if tree["buffer"] == RESULT else 0
    return sum(copied(part) for part in tree["items"])


def miniature(tree: dict[str, Any], at: int = 0) -> dict[str, Any]:
    """The same tree with tensors of one element each: as long to read, and it needs no memory to speak of.

    A guest that outlives many candidates must not map what each of them was given.
    """
    return _small(tree, [at])


def _small(node: dict[str, Any], at: list[int]) -> dict[str, Any]:
    if node["t"] == "tensor":
        offset, at[0] = at[0], at[0] + ALIGNMENT
        return {**node, "shape": [1] * len(node["shape"]), "buffer": INPUTS, "offset": offset}
    if node["t"] in ("dict", "object"):
        return {**node, "items": {name: _small(part, at) for name, part in node["items"].items()}}
    if node["t"] in ("tuple", "list"):
        return {**node, "items": [_small(part, at) for part in node["items"]]}
    return node
