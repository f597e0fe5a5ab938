"""Threads, waves, blocks, memory and launches of HIP on the CPU."""

import pytest
import torch

from sandbox.guest.hip.emulated import build, fault, library
from tests.sandbox import hip_emulation as emulation

pytestmark = pytest.mark.slow
SOURCE = r"""
#include <hip/hip_runtime.h>
__global__ void sum(const float* x, float* out, int n) {
  __shared__ float part[4];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float v = i < n ? x[i] : 0;
  for (int d = 32; d; d >>= 1) v += __shfl_down(v, d);
  if (t % 64 == 0) part[t / 64] = v;
  __syncthreads();
  if (t == 0) atomicAdd(out, part[0] + part[1] + part[2] + part[3]);
}
extern "C" void go_sum(const float* x, float* out, int n) { sum<<<(n + 255) / 256, 256>>>(x, out, n); }

__global__ void moves(int* out) {
  int lane = threadIdx.x, *o = out + lane * 16;
  o[0] = __shfl_xor(lane, 5);
  o[1] = __shfl_up(lane, 3, 16);
  o[2] = __builtin_amdgcn_update_dpp(-1, lane, 0x111, 0xf, 0xf, false);
  o[3] = __builtin_amdgcn_mov_dpp(lane, 0x1b, 0xf, 0xf, true);
  o[4] = __builtin_amdgcn_ds_swizzle(lane, 0x401f);
  o[5] = __builtin_amdgcn_ds_bpermute(4 * (63 - lane), lane);
  o[6] = __builtin_amdgcn_readfirstlane(lane + 7);
  o[7] = __popcll(__ballot(lane % 3 == 0));
  int v = -1;
  if (lane & 1) v = __builtin_amdgcn_readfirstlane(lane);
  else v = __shfl(lane, 0) + 100;
  o[8] = v;
  o[9] = __shfl(v, 1);
  o[10] = __builtin_amdgcn_update_dpp(-1, lane, 0x142, 0xa, 0xf, false);
  o[11] = int(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)));
}
extern "C" void go_moves(int* out) { moves<<<1, 64>>>(out); }

template <int N>
__global__ void turn(const int* x, int* out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[(threadIdx.x + N) % blockDim.x] + __syncthreads_count(x[threadIdx.x] > 10);
}
extern "C" void go_turn(const int* x, int* out) { turn<65><<<dim3(1), dim3(128), 512>>>(x, out); }

__global__ void meet(int* count, int* out) {
  __shared__ int ready;
  if (threadIdx.x == 0) {
    __hip_atomic_fetch_add(count, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(count, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < int(gridDim.x))
      __builtin_amdgcn_s_sleep(1);
    ready = 1;
  }
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = ready;
}
extern "C" void go_meet(int* count, int* out, int blocks) { meet<<<blocks, 64>>>(count, out); }

// The compiler would like to copy the barrier into both branches.
__global__ void copied(const float* x, float* out, int n) {
  __shared__ float kept[256];
  int t = threadIdx.x;
  kept[t] = t < n ? x[t] * 2 : 0;
  __syncthreads();
  out[t] = kept[255 - t];
}
extern "C" void go_copied(const float* x, float* out, int n) { copied<<<1, 256>>>(x, out, n); }

__global__ void stuck(int* flag) {
  while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
}
extern "C" void go_stuck(int* flag) { stuck<<<3, 64>>>(flag); }
"""


@pytest.fixture(scope="module")
def made() -> library.Library:
    return library.Library(emulation.built(SOURCE))


def test_a_sum_over_blocks(made: library.Library) -> None:
    x, out = torch.arange(5000, dtype=torch.float32), torch.zeros(1)
    emulation.call(made, "go_sum", x=x, out=out, n=5000)
    assert out.item() == x.sum().item()


def test_lane_moves_are_those_of_the_instruction_set(made: library.Library) -> None:
    out = torch.zeros(64, 16, dtype=torch.int32)
    emulation.call(made, "go_moves", out=out)
    got = out.T.tolist()
    lanes = range(64)
    assert got[0] == [lane ^ 5 for lane in lanes]
    assert got[1] == [lane - 3 if lane % 16 >= 3 else lane for lane in lanes]
    assert got[2] == [lane - 1 if lane % 16 else -1 for lane in lanes]
    assert got[3] == [lane ^ 3 for lane in lanes]
    assert got[4] == [lane ^ 16 for lane in lanes]
    assert got[5] == [63 - lane for lane in lanes]
    assert got[6] == [7] * 64 and got[7] == [22] * 64
    assert got[8] == [1 if lane & 1 else 100 for lane in lanes] and got[9] == [1] * 64
    assert got[10] == [lane // 16 * 16 - 1 if lane // 16 in (1, 3) else -1 for lane in lanes]
    assert got[11] == list(lanes)


def test_dynamic_shared_memory_and_a_counting_barrier(made: library.Library) -> None:
    x, out = torch.arange(128, dtype=torch.int32), torch.zeros(128, dtype=torch.int32)
    emulation.call(made, "go_turn", x=x, out=out)
    assert torch.equal(out, torch.roll(x, -65) + 117)


def test_a_barrier_after_a_branch_is_one_barrier(made: library.Library) -> None:
    x, out = torch.arange(200, dtype=torch.float32), torch.zeros(256)
    emulation.call(made, "go_copied", x=x, out=out, n=200)
    assert torch.equal(out, torch.cat([2 * x, torch.zeros(56)]).flip(0))


def test_blocks_that_wait_for_each_other_all_run(made: library.Library) -> None:
    count, out = torch.zeros(1, dtype=torch.int32), torch.zeros(100, 64, dtype=torch.int32)
    emulation.call(made, "go_meet", count=count, out=out, blocks=100)
    assert count.item() == 100 and bool((out == 1).all())


def test_a_deadlock_is_named_with_what_is_waited_for() -> None:
    made = library.Library(emulation.built(SOURCE), deadlock_s=0.3)
    with pytest.raises(fault.HipFault, match=r"deadlock in stuck at .*:\d+.*waits for byte 0 of flag") as caught:
        emulation.call(made, "go_stuck", flag=torch.zeros(1, dtype=torch.int32))
    assert "__hip_atomic_load(flag" in SOURCE.splitlines()[caught.value.line - 1]


def test_launches_are_told_and_not_run_where_only_they_are_asked_for() -> None:
    seen: list[library.Launch] = []
    made = library.Library(emulation.built(SOURCE), seen.append, run=False)
    made.handle.go_sum(None, None, 1000)
    made.handle.go_turn(None, None)
    assert [(launch.kernel, launch.grid, launch.block, launch.shared_bytes) for launch in seen] == [
        ("_Z3sumPKfPfi", (4, 1, 1), (256, 1, 1), 0),
        ("_Z4turnILi65EEvPKiPi", (1, 1, 1), (128, 1, 1), 512),
    ]
    assert seen[0].args == {"2": 1000}


def test_an_older_standard_is_not_heeded() -> None:
    build.build('extern "C" int f() { return 1; }', "older", emulation.folder(), flags=("-std=c++17",))


def test_what_does_not_compile_is_told_with_the_sources_own_lines() -> None:
    with pytest.raises(build.CompilerFault, match=r"bad:3:\d+: error: use of undeclared identifier 'y'"):
        build.build("__global__ void k(int* x) {\n  __shared__ int s;\n  x[0] = y;\n}\n", "bad", emulation.folder())


BORDERS = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
namespace cg = cooperative_groups;
typedef int i32x4 __attribute__((ext_vector_type(4)));
__device__ unsigned load(i32x4 from, unsigned offset, unsigned scalar, unsigned how)
  __asm("llvm.amdgcn.raw.buffer.load.i32");

// Past a resource's size a buffer load reads 0.
__global__ void buffers(const unsigned* x, unsigned* out, int bytes) {
  i32x4 at = {int(uint64_t(x)), int(uint64_t(x) >> 32), bytes, 0x00027000};
  out[threadIdx.x] = load(at, threadIdx.x * 4, 0, 0);
  auto same = __builtin_amdgcn_make_buffer_rsrc(x, 0, bytes, 0x00027000);
  out[threadIdx.x] += __builtin_amdgcn_raw_buffer_load_b32(same, threadIdx.x * 4, 0, 0);
}
extern "C" void go_buffers(const unsigned* x, unsigned* out, int bytes) { buffers<<<1, 64>>>(x, out, bytes); }

__global__ void straight(const unsigned* x, unsigned* out) {
  __shared__ unsigned tile[64];
  __builtin_amdgcn_global_load_lds(x + (threadIdx.x ^ 1), tile, 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" void go_straight(const unsigned* x, unsigned* out) { straight<<<1, 64>>>(x, out); }

__global__ void rounds(int* board, int* out) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x == 0) board[blockIdx.x] += board[(blockIdx.x + 1) % gridDim.x] * 0 + 1;
    grid.sync();
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int sum = board[threadIdx.x % gridDim.x];
    for (int by = 8; by; by /= 2) sum += tile.shfl_xor(sum, by);
    out[blockIdx.x * 64 + threadIdx.x] = sum;
    grid.sync();
  }
}
extern "C" int go_rounds(int* board, int* out, int blocks) {
  void* arguments[] = {&board, &out};
  dim3 gridDim(blocks), blockDim(64);
  return hipLaunchCooperativeKernel((const void*)rounds, gridDim, blockDim, arguments, 0, nullptr);
}
"""


def test_buffer_resources_and_loads_to_shared_memory() -> None:
    made = library.Library(emulation.built(BORDERS), check=True)
    x, out = torch.arange(1, 65, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    emulation.call(made, "go_buffers", x=x, out=out, bytes=100)
    assert torch.equal(out, torch.where(torch.arange(64) < 25, 2 * x, 0))
    emulation.call(made, "go_straight", x=x, out=out)
    assert torch.equal(out, x.view(32, 2).flip(1).reshape(-1))


def test_a_cooperative_launch_and_its_groups() -> None:
    made = library.Library(emulation.built(BORDERS))
    board, out = torch.zeros(16, dtype=torch.int32), torch.zeros(16, 64, dtype=torch.int32)
    emulation.call(made, "go_rounds", board=board, out=out, blocks=16)
    assert bool((board == 3).all()) and bool((out == 48).all())
    assert made.handle.go_rounds(emulation.pointer(board), emulation.pointer(out), 100_000) == 720


LONG = r"""
#include <hip/hip_runtime.h>
// Far more accesses than a turn has, and no meeting: blocks of it must not pile up.
__global__ void sweep(const float* x, float* out, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[(i + threadIdx.x) % 256];
  out[blockIdx.x * 64 + threadIdx.x] = sum;
}
extern "C" void go_sweep(const float* x, float* out, int n) { sweep<<<20, 64>>>(x, out, n); }

__global__ void handshake(volatile int* flag, int* out) {
  if (blockIdx.x == 0) {
    while (flag[0] == 0) {}
    out[threadIdx.x] = flag[0];
  } else if (threadIdx.x == 0) {
    flag[0] = 7;
  }
}
extern "C" void go_handshake(int* flag, int* out) { handshake<<<2, 64>>>(flag, out); }

__global__ void deep(float* out) {
  volatile float many[16384];
  for (int i = 0; i < 16384; i++) many[i] = i;
  out[threadIdx.x] = many[threadIdx.x];
}
extern "C" void go_deep(float* out) { deep<<<1, 64>>>(out); }
"""


def test_long_loops_and_plain_waiting_take_turns() -> None:
    made = library.Library(emulation.built(LONG), workers=1)
    x, out = torch.ones(256), torch.zeros(20, 64)
    emulation.call(made, "go_sweep", x=x, out=out, n=40_000)
    assert bool((out == 40_000).all())
    flag, seen = torch.zeros(1, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    emulation.call(made, "go_handshake", flag=flag, out=seen)
    assert bool((seen == 7).all())


def test_more_private_memory_than_there_is() -> None:
    made = library.Library(emulation.built(LONG))
    with pytest.raises(fault.HipFault, match="too much private memory in deep"):
        emulation.call(made, "go_deep", out=torch.zeros(64))
