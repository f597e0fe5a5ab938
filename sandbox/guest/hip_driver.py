"""A Triton driver for AMD chips that are not there: it compiles as they would and hands launches to a function.

Triton asks its active driver for a target, device limits and a launcher. This one answers for one chip per device
number, so that `JITFunction` keeps a cache per target, and its launcher calls `on_launch` where a real one would start
the kernel. Limits are those Triton's own AMD driver reports (`figures`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from .figures import MAX_THREADS, Figures, figures, target

Launch = Callable[[Any, Any, tuple[int, int, int], tuple[Any, ...]], None]
"""Called with the kernel's source, its metadata, the grid and every argument in the kernel's order."""


class _Utilities:
    """The part of a driver that loads code objects and knows device limits."""

    def __init__(self, chips: tuple[Figures, ...]) -> None:
        self._chips = chips

    def get_device_properties(self, device: int) -> dict[str, Any]:
        """Limits and figures of one device, under the names Triton's driver gives them."""
        return self._chips[device].for_triton()

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills, most threads: only the last is looked at without a device."""
        return 1, 1, 0, 0, MAX_THREADS

    def unload_module(self, module: int) -> None:
        """Nothing was loaded."""


class HipDriver(DriverBase):
    """Answers for `targets`, device n being the n-th; launches on device 0 go to `on_launch`."""

    def __init__(
        self,
        targets: tuple[str, ...],
        on_launch: Launch,
        as_tuning: Callable[[], Any],
        told: dict[str, Any] | None = None,
    ) -> None:
        """`told`: what is known of the first target, where it is a real GPU."""
        self.targets = targets
        self._chips = tuple(figures(arch, told if number == 0 else None) for number, arch in enumerate(targets))
        self.utils = _Utilities(self._chips)
        self._device = 0
        self._as_tuning = as_tuning

        prepare = self.prepare_launcher

        class Launcher:
            def __init__(self, source: Any, metadata: Any) -> None:
                self._source, self._metadata = source, metadata
                prepare(source, metadata)

            def __call__(self, x: int, y: int, z: int, *rest: Any) -> None:
                # stream, function, packed metadata, launch metadata, enter hook, exit hook come before the arguments.
                on_launch(self._source, self._metadata, (int(x), int(y), int(z)), rest[6:])

        self.launcher_cls = Launcher

    def prepare_launcher(self, source: Any, metadata: Any) -> None:
        """Called when a compiled kernel is first made ready to launch: there is nothing to be done."""

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Make `device` the current one."""
        previous, self._device = self._device, device
        try:
            yield
        finally:
            self._device = previous

    @staticmethod
    def is_active() -> bool:
        """Always: it was chosen."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The current device as a compile target."""
        return target(self.targets[self._device])

    def get_current_device(self) -> int:
        """Number of the current device."""
        return self._device

    def set_current_device(self, device: int) -> None:
        """A candidate sees one device, number 0."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """Major and minor number of the first target."""
        return self._chips[0].capability

    def get_active_torch_device(self) -> torch.device:
        """What candidates know it as."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """`torch.cuda`, under whatever stands in for it."""
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """As Triton's AMD driver does."""
        from triton.backends.amd.driver import ty_to_cpp

        return ty_to_cpp(ty)

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Next to nothing: there is no cache to flush."""
        return torch.empty(1, dtype=torch.uint8)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """There is no cache to clear."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Run once, which compiles, and answer one millisecond: of configurations that fit, the first wins."""

        def benchmark(call: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
            with self._as_tuning():
                call()
            return [1.0] * len(quantiles) if quantiles else 1.0

        return benchmark
