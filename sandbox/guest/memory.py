"""Buffers shared with the checker, as flat uint8 tensors."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Buffer:
    """One shared buffer: `memory` is what the candidate's tensors lie in, `shared` what the checker sees.

    They are the same bytes, except for a host buffer staged onto a device.
    """

    memory: torch.Tensor
    shared: torch.Tensor

    def part(self, offset: int, size: int) -> torch.Tensor:
        """`size` bytes from `offset`, as a flat uint8 tensor with a storage of its own.

        Triton specialises on the size of a tensor's storage, so a tensor must not show the whole buffer as its own.
        Raises `ValueError` where they do not lie in the buffer.
        """
        whole = self.memory.numel()
        if offset < 0 or size < 0 or offset + size > whole:
            raise ValueError(f"{size} bytes at {offset} are out of bounds of a buffer of {whole} bytes")
        if size == 0:
            return torch.empty(0, dtype=torch.uint8, device=self.memory.device)
        if self.memory.is_cuda:
            piece = _DeviceArray(self.memory.data_ptr() + offset, size, self.memory)
            return torch.as_tensor(piece, device=self.memory.device)
        return torch.frombuffer(memoryview(self.memory.numpy())[offset : offset + size], dtype=torch.uint8)

    def holds(self, tensor: torch.Tensor) -> int | None:
        """Byte offset of a tensor that lies in this buffer, from its first element to its last; None elsewhere."""
        offset = tensor.data_ptr() - self.memory.data_ptr()
        extent = span_bytes(tensor.shape, tensor.stride(), tensor.element_size())
        return offset if extent and offset >= 0 and offset + extent <= self.memory.numel() else None

    def fetch(self) -> None:
        """Bring the checker's bytes to the candidate."""
        if self.memory is not self.shared:
            self.memory.copy_(self.shared)

    def publish(self) -> None:
        """Bring the candidate's bytes to the checker."""
        if self.memory is not self.shared:
            self.shared.copy_(self.memory)


def span_bytes(shape: Sequence[int], stride: Sequence[int], itemsize: int) -> int:
    """Bytes from a tensor's first element to the end of its last, strides not negative."""
    if 0 in shape:
        return 0
    return (1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))) * itemsize


def map_host(descriptor: int, size: int, stage_on: str | None = None) -> Buffer:
    """A memfd of `size` bytes, mapped shared; with `stage_on`, mirrored on that device. Takes the descriptor."""
    mapping = mmap.mmap(descriptor, size)
    os.close(descriptor)
    shared = torch.frombuffer(mapping, dtype=torch.uint8)
    memory = torch.empty(size, dtype=torch.uint8, device=stage_on) if stage_on else shared
    return Buffer(memory, shared)


class _DeviceArray:
    """What `torch.as_tensor` needs to see device memory as bytes; keeps alive what it is part of."""

    def __init__(self, address: int, size: int, owner: torch.Tensor | None = None) -> None:
        self._owner = owner
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def map_cuda(descriptor: int, size: int, device: int = 0) -> Buffer:
    """A VMM allocation of `size` bytes (a multiple of its granularity), exported as a descriptor. Takes it.

    The mapping stays for the life of the process: a candidate may hold tensors in it.
    """
    from cuda.bindings import driver

    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    handle = checked(driver.cuMemImportFromShareableHandle(descriptor, kind))
    os.close(descriptor)
    address = checked(driver.cuMemAddressReserve(size, 0, 0, 0))
    checked(driver.cuMemMap(address, size, 0, handle, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    checked(driver.cuMemSetAccess(address, size, [access], 1))
    memory = torch.as_tensor(_DeviceArray(int(address), size), device=f"cuda:{device}")
    return Buffer(memory, memory)


def checked(answer: Any) -> Any:
    """The value of a driver call; `RuntimeError` where it failed."""
    status, *values = answer
    if int(status) != 0:
        raise RuntimeError(f"CUDA driver call failed: {status}")
    return values[0] if len(values) == 1 else values
