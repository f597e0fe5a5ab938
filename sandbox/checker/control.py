"""A guest of the checker's own, which never holds a candidate: it makes the empty calls that are paired with real ones.

A candidate owns its guest, so an empty call made there could be slowed down to hide work behind it. This one cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.checker.guest import Guest, NotReady, Returned
from sandbox.checker.layout import ALIGNMENT, INPUTS
from sandbox.checker.memory import Shared
from sandbox.checker.pool import Pool

CALL_S = 60.0


class Control:
    """Empty calls, in a guest from a pool of its own."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tree: dict[str, Any] = {}
        self._holds: tuple[Guest | None, list[Shared]] = None, []

    def prepare(self, tree: dict[str, Any], buffers: Sequence[Shared]) -> None:
        """Be ready for calls like those on `tree`, whose tensors lie in `buffers`."""
        self._tree = tree

        def share(guest: Guest) -> None:
            # What a guest has mapped it keeps mapped: the same buffers are handed over once.
            if self._holds != (guest, list(buffers)):
                guest.allow(CALL_S)
                guest.share(buffers)
                self._holds = guest, list(buffers)

        self._do(share)

    def empty(self, copied: int) -> Returned:
        """One empty call, `copied` bytes of a result copied out as a real call's would be."""
        answers: list[Returned] = []

        def call(guest: Guest) -> None:
            guest.allow(CALL_S)
            answers.append(guest.empty(self._tree, copied))

        self._do(call)
        return answers[0]

    def close(self) -> None:
        """End its guest."""
        self._pool.close()

    def _do(self, act: Any) -> None:
        if not self._pool.holds("device", act):
            raise NotReady("the guest that makes the empty calls failed")


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
