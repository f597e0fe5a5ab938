"""What a started program looks like from outside, whichever sandbox started it."""

from __future__ import annotations

import socket
from typing import Protocol


class Running(Protocol):
    """One running program behind one socket; its end takes everything it started along."""

    sock: socket.socket

    @property
    def pid(self) -> int:
        """The outermost process, as seen from here."""

    @property
    def alive(self) -> bool:
        """Whether the outermost process still runs."""

    def kill(self) -> None:
        """Kill the whole tree, from outside. Any thread may call it, any number of times."""

    def close(self) -> None:
        """Kill, reap, and drop the socket and whatever was made for this program; `TimeoutError` if it will not end."""

    def ending(self) -> str:
        """How the program ended, waiting a moment for it: ``exit status 1``, ``killed by SIGSEGV``, ``runs on``."""

    def output(self) -> str:
        """The end of what it printed on both streams. Text from the untrusted side: shown, never parsed."""
