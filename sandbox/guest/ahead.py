"""Compiling what a candidate would launch, for its next guest, which has the device: nothing runs or is noted here.

Each specialisation is compiled in a child process, several at a time, and lies in Triton's cache when the child ends;
the candidate runs on with a kernel that does nothing. What it computes on the host from a compiled kernel (its
registers, its occupancy) it cannot have here: then it raises, and compiles the rest on the device.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from triton.runtime import driver as active_driver
from triton.runtime.cache import triton_key
from triton.runtime.jit import JITFunction

from . import device_map, dual
from .children import Children
from .figures import figures
from .modes import OffDevice
from .record import Record

SPARED = 4
"""Cores that do not compile: for the candidate that is timed meanwhile, and the checker."""


class Later:
    """A kernel that a child is compiling: a launch of it does nothing."""

    function = packed_metadata = None

    def launch_metadata(self, *_: Any) -> None:
        """Nothing to tell."""

    def run(self, *_: Any) -> None:
        """Nothing to run."""


class AheadMode(OffDevice):
    """As capture; compiles for the first of `targets`, a real GPU of which `told` are the figures."""

    def __init__(self, targets: Sequence[str], told: dict[str, Any] | None) -> None:
        self.record = Record()
        self.device_type = "meta"
        self._map = device_map.DeviceMap(self.device_type)
        device_map.install(figures(targets[0], told), self._map)
        self._children = Children(max(1, len(os.sched_getaffinity(0)) - SPARED))
        driver = dual.driver_for(tuple(targets[:1]), lambda *_: None, self.record.as_tuning, told)
        active_driver.set_active(driver)
        dual.replace_benchmarks(driver)
        _compile_in(self._children)
        # Hashes the whole of Triton, once: for every child.
        triton_key()

    def evidence(self, after: int) -> bytes:
        """None; returns when all that was asked for is compiled."""
        self._children.wait_for_all()
        return self.record.payload(after)


def _compile_in(children: Children) -> None:
    compile_one = JITFunction._do_compile

    def compile_later(self: Any, key: Any, signature: Any, device: int, constexprs: Any, *rest: Any) -> Any:
        def act() -> None:
            # What does not compile here is told about by the guest that launches it.
            with contextlib.suppress(Exception):
                kernel = compile_one(self, key, signature, device, constexprs, *rest)
                # Its launcher too, where Triton builds one.
                kernel._init_handles()

        if children.start(act) is None:
            return compile_one(self, key, signature, device, constexprs, *rest)
        kernel = self.device_caches[device][0][key] = Later()
        return kernel

    JITFunction._do_compile = compile_later
