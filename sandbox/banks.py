"""What the addresses of one access cost: LDS bank conflicts, and cache sectors of a global access.

LDS has 32 banks of 4 bytes (AMD CDNA 3 instruction set guide, "LDS"); in one pass each bank serves one address, and
lanes that read the same one share it. A wave's access is served 128 bytes a pass: 32 lanes of a dword, 16 of two, 8 of
four. Which lanes go together in a pass of wide accesses is not published; neighbours are taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandbox.lanes import Lanes

BANKS, BANK_BYTES = 32, 4
SECTOR_BYTES = 64
"""What the vector L1 handles in a clock (AMD CDNA 3 white paper)."""


def conflict(parts: Sequence[Lanes], bytes_per_lane: int) -> float:
    """Passes an LDS access takes over those it would take without conflicts: 1 is none, 32 the worst.

    `parts` are the byte addresses of the lanes, for each of its addresses; `bytes_per_lane` is that of one part.
    """
    words = max(1, bytes_per_lane // BANK_BYTES)
    together = max(1, BANKS // words)
    passes = 0
    for part in parts:
        for first in range(0, len(part), together):
            lanes = part[first : first + together] // BANK_BYTES
            touched = np.unique((lanes[:, None] + np.arange(words)).ravel())
            passes += int(np.bincount(touched % BANKS, minlength=BANKS).max())
    return passes / (len(parts) * -(-len(parts[0]) // together))


def sectors(part: Lanes, bytes_per_lane: int) -> int:
    """Different 64-byte sectors that a global access touches."""
    last = part + max(0, bytes_per_lane - 1)
    return len(np.unique(np.concatenate([part // SECTOR_BYTES, last // SECTOR_BYTES])))
