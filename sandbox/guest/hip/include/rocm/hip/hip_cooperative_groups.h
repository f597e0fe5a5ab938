// The part of cooperative groups that kernels use, for machines without ROCm's own header: blocks, the grid, tiles of a
// wave. Names: HIP API reference, "Cooperative groups". Not here: multi-grid and coalesced groups.
#pragma once
#include <hip/hip_runtime.h>

namespace cooperative_groups {
class thread_block {
 public:
  __device__ static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  __device__ static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  __device__ static unsigned num_threads() { return size(); }
  __device__ static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __device__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  __device__ static void sync() { __syncthreads(); }
};
__device__ inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  __device__ static unsigned long long size() {
    return 1ull * thread_block::size() * gridDim.x * gridDim.y * gridDim.z;
  }
  __device__ static unsigned long long thread_rank() {
    const unsigned long long block = blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
    return block * thread_block::size() + thread_block::thread_rank();
  }
  __device__ static bool is_valid() { return true; }
  __device__ static void sync() { __ockl_grid_sync(); }
};
__device__ inline grid_group this_grid() { return {}; }

// A part of a wave whose lanes are in step: `SIZE` is a power of two up to 64.
template <unsigned SIZE>
class thread_block_tile {
  static_assert(SIZE && (SIZE & (SIZE - 1)) == 0 && SIZE <= 64, "a tile is a power of two, up to a wave");

 public:
  __device__ static unsigned size() { return SIZE; }
  __device__ static unsigned num_threads() { return SIZE; }
  __device__ static unsigned thread_rank() { return thread_block::thread_rank() % SIZE; }
  __device__ static unsigned meta_group_rank() { return thread_block::thread_rank() / SIZE; }
  __device__ static unsigned meta_group_size() { return (thread_block::size() + SIZE - 1) / SIZE; }
  __device__ static void sync() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront"); __builtin_amdgcn_wave_barrier(); }
  template <class T>
  __device__ T shfl(T value, int from) const { return __shfl(value, from, SIZE); }
  template <class T>
  __device__ T shfl_down(T value, unsigned by) const { return __shfl_down(value, by, SIZE); }
  template <class T>
  __device__ T shfl_up(T value, unsigned by) const { return __shfl_up(value, by, SIZE); }
  template <class T>
  __device__ T shfl_xor(T value, unsigned by) const { return __shfl_xor(value, by, SIZE); }
  __device__ unsigned long long ballot(int holds) const {
    const unsigned shift = __lane_id() / SIZE * SIZE;
    const unsigned long long own = SIZE == 64 ? ~0ull : (1ull << (SIZE % 64)) - 1;
    return __ballot(holds) >> shift & own;
  }
  __device__ int any(int holds) const { return ballot(holds) != 0; }
  __device__ int all(int holds) const { return ballot(!holds) == 0; }
};
template <unsigned SIZE, class Parent>
__device__ inline thread_block_tile<SIZE> tiled_partition(const Parent&) { return {}; }
template <class Group>
__device__ inline void sync(const Group& group) { group.sync(); }
}  // namespace cooperative_groups
