"""Memory shared with a guest on an NVIDIA GPU: allocations of their own, handed over as file descriptors.

A handle into torch's caching allocator would show the guest its neighbours: inputs to come, expected outputs. These
allocations hold nothing else.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Literal

import torch


def available() -> bool:
    """Whether the CUDA driver API can be reached: `cuda-bindings` is installed and torch is built for CUDA."""
    if torch.version.cuda is None:
        return False
    with contextlib.suppress(ImportError):
        import cuda.bindings.driver  # noqa: F401

        return True
    return False


class DeviceMemory:
    """One exportable allocation on device 0, mapped here."""

    kind: Literal["host", "cuda", "cpu"] = "cuda"

    def __init__(self, size: int) -> None:
        from cuda.bindings import driver

        torch.zeros(1, device="cuda")
        prop = _properties(driver)
        granularity_kind = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        granularity = int(_call(driver.cuMemGetAllocationGranularity(prop, granularity_kind)))
        self.bytes = -(-max(size, 1) // granularity) * granularity
        self._driver, self._handle = driver, _call(driver.cuMemCreate(self.bytes, prop, 0))
        self._address = _call(driver.cuMemAddressReserve(self.bytes, 0, 0, 0))
        _call(driver.cuMemMap(self._address, self.bytes, 0, self._handle, 0))
        access = driver.CUmemAccessDesc()
        access.location = prop.location
        access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        _call(driver.cuMemSetAccess(self._address, self.bytes, [access], 1))
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        self.fd = int(_call(driver.cuMemExportToShareableHandle(self._handle, kind, 0)))
        self.tensor = torch.as_tensor(_Mapped(int(self._address), self.bytes), device="cuda")

    def close(self) -> None:
        """Unmap and release; every tensor that views it must be gone from use."""
        if self.fd < 0:
            return
        torch.cuda.synchronize()
        self.tensor = torch.empty(0, dtype=torch.uint8)
        os.close(self.fd)
        self.fd = -1
        _call(self._driver.cuMemUnmap(self._address, self.bytes))
        _call(self._driver.cuMemAddressFree(self._address, self.bytes))
        _call(self._driver.cuMemRelease(self._handle))


class _Mapped:
    """A range of device memory, told to torch through `__cuda_array_interface__`."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def _properties(driver: Any) -> Any:
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = 0
    prop.requestedHandleTypes = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    return prop


def _call(answer: tuple[Any, ...]) -> Any:
    """The value of a driver call; `RuntimeError` names the driver's error."""
    error, *values = answer
    if int(error) != 0:
        raise RuntimeError(f"CUDA driver: {error.name}")
    return values[0] if values else None
