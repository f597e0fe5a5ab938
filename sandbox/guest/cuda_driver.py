"""A Triton driver for an NVIDIA GPU that is not shown: what is compiled under it is what the real driver asks for.

Triton keys its cache by source, signature, specialisation, options, environment and target. All but the target come
from the call itself, and this driver names the same target, so a guest with the GPU finds there what one without it has
compiled. Triton up to 3.6 also builds a launcher in C for each signature; it lies in the same cache.
"""

from __future__ import annotations

import contextlib
from typing import Any

from triton.backends.nvidia import driver as nvidia

from .hip_driver import HipDriver


class CudaDriver(HipDriver):
    """As `HipDriver`, for one NVIDIA target."""

    def prepare_launcher(self, source: Any, metadata: Any) -> None:
        """Build the launcher that a real launch would; where that cannot be done here, the real launch does."""
        if hasattr(nvidia, "make_launcher"):
            with contextlib.suppress(Exception):
                nvidia.CudaLauncher(source, metadata)

    def map_python_to_cpp_type(self, ty: str) -> str:
        """As Triton's NVIDIA driver does."""
        return str(nvidia.ty_to_cpp(ty))
