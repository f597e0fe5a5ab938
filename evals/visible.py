"""Text from a candidate or a model, made safe to look at: what a reader sees is what is there.

A terminal obeys escape sequences, and a page's bidirectional controls show source in another order than it runs
("Trojan Source", CVE-2021-42574). Both are written as their code points instead.
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls, but for tab and newline
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # zero-width, line separators, bidirectional controls
    "\ud800-\udfff\ufffe\uffff]"  # lone surrogates and non-characters
)


def visible(text: str) -> str:
    """`text` with every unseen character written as ``\\u202e``."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
