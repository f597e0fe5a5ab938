"""What a run has met already: keys in order of arrival, cheap to extend and safe to hold on to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Seen:
    """Keys and the attempt that brought each first.

    All values grown from one another share one dictionary, and each looks only at its own first `length` keys, so that
    adding one to the newest costs O(1) at any length. Adding to an older value copies: a fork is rare.
    """

    _places: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    length: int = 0

    def get(self, key: Hashable) -> int | None:
        """Number of the attempt that brought `key`, or None where it has not been met."""
        place, seq = self._places.get(key, (self.length, 0))
        return seq if place < self.length else None

    def __contains__(self, key: Hashable) -> bool:
        return self.get(key) is not None

    def adding(self, key: Hashable, seq: int) -> Seen:
        """This, and `key` as brought by attempt `seq`; a key met before keeps its first attempt."""
        if key in self:
            return self
        places = self._places if len(self._places) == self.length else self._prefix()
        places[key] = (self.length, seq)
        return Seen(places, self.length + 1)

    def _prefix(self) -> dict[Hashable, tuple[int, int]]:
        return {key: value for key, value in self._places.items() if value[0] < self.length}
