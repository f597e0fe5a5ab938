"""What the addresses of one access cost: LDS bank conflicts, and cache sectors of a global access.

LDS has banks of 4 bytes; in one pass each bank serves one address, and lanes that read the same one share it. Which
lanes go together in a pass depends on the instruction. Sources: AMD, Composable Kernel documentation, "Understanding
AMD GPU LDS and bank conflicts" (32 banks; eight neighbours a pass for 16-byte writes, two groups of four for 16-byte
reads); for gfx950, HazyResearch/HipKittens, `analysis/paper_experiments/phases`, measured by its authors on an MI355X
(64 banks for reads of 8 and 16 bytes, 32 for writes). Narrower reads of gfx950 were not published: taken as gfx942's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandbox.lanes import Lanes
from sandbox.pipes import LANES, lds_bytes, lds_bytes_a_pass

BANK_BYTES = 4
SECTOR_BYTES = 64
"""What the vector L1 handles in a clock (AMD CDNA 3 white paper)."""
_QUADS = {
    ("gfx942", 16): ((0, 5), (1, 4), (2, 7), (3, 6)),
    ("gfx950", 16): ((0, 3, 5, 6), (1, 2, 4, 7)),
}
"""Reads by bytes a lane: which groups of four lanes among 32 go together; the other 32 follow alike."""


def conflict(parts: Sequence[Lanes], mnemonic: str, target: str = "gfx942") -> float:
    """Passes an LDS access takes over those it would take without conflicts: 1 is none.

    `parts` are the byte addresses of the lanes, for each of its addresses (a ``ds_read2`` has two).
    """
    bytes_per_lane = lds_bytes(mnemonic) // len(parts)
    words = max(1, bytes_per_lane // BANK_BYTES)
    groups = _groups(mnemonic, bytes_per_lane, target)
    banks = lds_bytes_a_pass(mnemonic, target) // BANK_BYTES
    passes = 0
    for part in parts:
        for group in groups:
            touched = np.unique((part[group][:, None] // BANK_BYTES + np.arange(words)).ravel())
            passes += int(np.bincount(touched % banks, minlength=banks).max())
    return passes / (len(parts) * len(groups))


def sectors(part: Lanes, bytes_per_lane: int) -> int:
    """Different 64-byte sectors that a global access touches."""
    last = part + max(0, bytes_per_lane - 1)
    return len(np.unique(np.concatenate([part // SECTOR_BYTES, last // SECTOR_BYTES])))


def _groups(mnemonic: str, bytes_per_lane: int, target: str) -> list[Lanes]:
    """The lanes of each pass."""
    lanes = np.arange(LANES, dtype=np.int64)
    quads = _QUADS.get((target, bytes_per_lane)) if "read" in mnemonic or "load" in mnemonic else None
    if quads is not None:
        by_four = lanes.reshape(2, 8, 4)
        return [np.concatenate([half[quad] for quad in group]) for half in by_four for group in quads]
    together = max(1, lds_bytes_a_pass(mnemonic, target) // max(BANK_BYTES, bytes_per_lane))
    return [lanes[first : first + together] for first in range(0, LANES, together)]
