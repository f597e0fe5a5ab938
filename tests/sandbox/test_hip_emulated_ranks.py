"""Several ranks: at once in one process, and over shared handles between processes."""

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from sandbox.guest.hip.emulated import fault, library
from tests.sandbox import hip_emulation as emulation

pytestmark = pytest.mark.slow
SOURCE = r"""
#include <hip/hip_runtime.h>
#include <cstdlib>
// Every rank writes its row into its neighbour's memory, raises the flag there, waits for its own and adds one.
template <int Scope>
__global__ void ring(float* mine, float* theirs, int* my_flag, int* their_flag, float value) {
  theirs[threadIdx.x] = value + threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __hip_atomic_store(their_flag, 1, __ATOMIC_RELEASE, Scope);
    while (__hip_atomic_load(my_flag, __ATOMIC_ACQUIRE, Scope) != 1) {}
  }
  __syncthreads();
  mine[threadIdx.x] += 1;
}
extern "C" void go_ring(float* mine, float* theirs, int* my_flag, int* their_flag, int value, int narrow) {
  if (narrow) ring<__HIP_MEMORY_SCOPE_AGENT><<<1, 128>>>(mine, theirs, my_flag, their_flag, value);
  else ring<__HIP_MEMORY_SCOPE_SYSTEM><<<1, 128>>>(mine, theirs, my_flag, their_flag, value);
}

extern "C" void* make(long bytes) { void* at = nullptr; return hipMalloc(&at, bytes), hipMemset(at, 0, bytes), at; }
extern "C" int share(void* at, void* handle) { return hipIpcGetMemHandle((hipIpcMemHandle_t*)handle, at); }
extern "C" void* open_(void* handle) {
  void* at = nullptr;
  return hipIpcOpenMemHandle(&at, *(hipIpcMemHandle_t*)handle, hipIpcMemLazyEnablePeerAccess) ? nullptr : at;
}
"""


def ring(made: library.Library, ranks: int, narrow: int = 0, silent: int = -1) -> list[torch.Tensor]:
    """All ranks' launches at once; `silent` does not launch."""
    rows = [torch.zeros(128) for _ in range(ranks)]
    flags = [torch.zeros(1, dtype=torch.int32) for _ in range(ranks)]
    made.ranges([(t.data_ptr(), t.nbytes, f"row {i}") for i, t in enumerate(rows)])
    made.ranges([(t.data_ptr(), t.nbytes, f"flag {i}") for i, t in enumerate(flags)])

    def launch(rank: int) -> None:
        made.be_rank(rank)
        other = (rank + 1) % ranks
        tensors = (rows[rank], rows[other], flags[rank], flags[other])
        made.handle.go_ring(*map(emulation.pointer, tensors), 100 * rank, narrow)

    with ThreadPoolExecutor(ranks) as pool:
        list(pool.map(launch, [rank for rank in range(ranks) if rank != silent]))
    made.forget()
    made.raise_fault()
    return rows


@pytest.mark.parametrize("check", [False, True])
def test_ranks_write_to_each_other_and_wait(check: bool) -> None:
    made = library.Library(emulation.built(SOURCE), check=check)
    rows = ring(made, 4)
    for rank, row in enumerate(rows):
        assert torch.equal(row, torch.arange(128) + 100.0 * ((rank - 1) % 4) + 1)


def test_a_scope_that_does_not_reach_other_ranks_is_named() -> None:
    made = library.Library(emulation.built(SOURCE), check=True)
    with pytest.raises(fault.HipFault) as caught:
        ring(made, 2, narrow=1)
    assert caught.value.kind == "wrong scope" and {place.rank for place in caught.value.places} == {0, 1}


def test_a_deadlock_over_ranks_says_who_waits_for_what() -> None:
    made = library.Library(emulation.built(SOURCE), deadlock_s=0.3)
    with pytest.raises(fault.HipFault, match="waits for byte 0 of flag 0") as caught:
        ring(made, 3, silent=2)
    assert caught.value.kind == "deadlock" and "on rank 0" in caught.value.message


OTHER = """
import ctypes, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from sandbox.guest.hip.emulated import library
made = library.Library(Path({path!r}))
made.handle.open_.restype = ctypes.c_void_p
at = made.handle.open_(bytes.fromhex({handle!r}))
made.be_rank(1)
made.handle.go_ring(*(ctypes.c_void_p(at + by) for by in (0, 512, 1024, 1028)), 100, 0)
made.raise_fault()
"""


def test_ranks_in_processes_of_their_own_share_memory_by_its_handle() -> None:

    path = emulation.built(SOURCE)
    made = library.Library(path)
    made.handle.make.restype = ctypes.c_void_p
    at = made.handle.make(2048)
    handle = ctypes.create_string_buffer(64)
    assert made.handle.share(ctypes.c_void_p(at), handle) == 0
    root = str(Path(__file__).resolve().parents[2])
    script = OTHER.format(root=root, path=str(path), handle=handle.raw.hex())
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        made.be_rank(0)
        made.handle.go_ring(*(ctypes.c_void_p(at + by) for by in (512, 0, 1028, 1024)), 0, 0)
        assert process.wait(timeout=30) == 0
    made.raise_fault()
    rows = (ctypes.c_float * 256).from_address(at)
    assert rows[5] == 6 and rows[128 + 5] == 106
    made.be_rank(0)
