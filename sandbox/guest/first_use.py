"""What a process pays once, paid before a candidate arrives: code generators set up, a kernel compiled, one run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from triton.compiler import ASTSource

from . import dual
from .figures import target

_SIZE = 64


@triton.jit
def _double(pointer, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.arange(0, SIZE)
    tl.store(pointer + offsets, tl.load(pointer + offsets, mask=offsets < SIZE) * 2.0, mask=offsets < SIZE)


def pay(mode: str, targets: Sequence[str]) -> None:
    """Compile and run a tiny kernel the way `mode` does. Nothing of it is recorded; if it fails, the candidate pays."""
    # It may cost time, never the guest.
    with contextlib.suppress(Exception):
        if mode == "device":
            _double[(1,)](torch.zeros(_SIZE, device="cuda"), SIZE=_SIZE)
            torch.cuda.synchronize()
            return
        # The first target alone: the others are compiled in child processes, or not at all.
        source = ASTSource(_double, signature={"pointer": "*fp32", "SIZE": "constexpr"}, constexprs={(1,): _SIZE})
        triton.compile(source, target=target(targets[0]))
        if mode == "emulate":
            dual.run_interpreted(_double, (1, 1, 1), (torch.zeros(_SIZE), _SIZE))
