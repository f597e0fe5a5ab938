"""A candidate: the source text of one submission, named by its content."""

from __future__ import annotations

import hashlib
from typing import Literal

from problems.spec import Frozen

Language = Literal["triton", "hip", "cuda", "torch"]


class Candidate(Frozen):
    """One GPU MODE submission file. Two candidates with the same text are the same candidate."""

    source: str
    language: Language = "triton"

    @property
    def sha256(self) -> str:
        """The candidate's id: the content hash of its source, in hex."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def language_of(source: str) -> Language:
    """What a submission in Python writes its kernels in: HIP where it builds an extension, else Triton."""
    return "hip" if "load_inline" in source or "cpp_extension" in source else "triton"
