// Cooperative groups: a block, a grid, tiles of a wave.
#pragma once
#include "atomics.h"

namespace kw {

/** All blocks meet: the first thread of each counts in the launch's own counter. */
KW_INLINE void grid_barrier() {
  __syncthreads();
  if (lane()->number == 0) {
    uint64_t blocks = uint64_t(grid_size().x) * grid_size().y * grid_size().z;
    uint64_t* counter = &((Launch*)block()->launch)->arrived;
    uint64_t target = (fetch_add(counter, 1, acquire_release, of_device) / blocks + 1) * blocks;
    while (load(counter, acquire, of_device) < target) kw_give_way(counter);
  }
  __syncthreads();
}

}  // namespace kw

namespace cooperative_groups {

struct thread_block {
  KW_INLINE void sync() const { __syncthreads(); }
  KW_INLINE unsigned thread_rank() const { return kw::lane()->number; }
  KW_INLINE unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  KW_INLINE unsigned num_threads() const { return size(); }
  KW_INLINE dim3 group_index() const { return blockIdx; }
  KW_INLINE dim3 thread_index() const { return threadIdx; }
  KW_INLINE bool is_valid() const { return true; }
};

struct grid_group {
  KW_INLINE void sync() const { kw::grid_barrier(); }
  KW_INLINE bool is_valid() const { return true; }
  KW_INLINE unsigned long long num_blocks() const { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  KW_INLINE unsigned long long size() const { return num_blocks() * thread_block().size(); }
  KW_INLINE unsigned long long thread_rank() const {
    return (blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z)) * thread_block().size() + kw::lane()->number;
  }
};

template <unsigned Size, class Parent = thread_block>
struct thread_block_tile {
  KW_INLINE void sync() const { __syncwarp(); }
  KW_INLINE unsigned thread_rank() const { return kw::lane()->number % Size; }
  KW_INLINE constexpr unsigned size() const { return Size; }
  KW_INLINE constexpr unsigned num_threads() const { return Size; }
  KW_INLINE unsigned meta_group_rank() const { return kw::lane()->number / Size; }
  KW_INLINE unsigned meta_group_size() const { return (thread_block().size() + Size - 1) / Size; }
  template <class T>
  KW_INLINE T shfl(T value, int from) const { return __shfl(value, from, Size); }
  template <class T>
  KW_INLINE T shfl_down(T value, unsigned by) const { return __shfl_down(value, by, Size); }
  template <class T>
  KW_INLINE T shfl_up(T value, unsigned by) const { return __shfl_up(value, by, Size); }
  template <class T>
  KW_INLINE T shfl_xor(T value, unsigned mask) const { return __shfl_xor(value, int(mask), Size); }
  KW_INLINE unsigned long long ballot(int yes) const {
    unsigned long long all = __ballot(yes);
    unsigned first = kw::lane()->lane / Size * Size;
    return Size == 64 ? all : all >> first & ((1ull << (Size % 64)) - 1);
  }
  KW_INLINE int any(int yes) const { return ballot(yes) != 0; }
  KW_INLINE int all(int yes) const { return ballot(!yes) == 0; }
};

KW_INLINE thread_block this_thread_block() { return {}; }
KW_INLINE grid_group this_grid() { return {}; }
template <unsigned Size, class Parent>
KW_INLINE thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }
template <class Group>
KW_INLINE void sync(const Group& group) { group.sync(); }

}  // namespace cooperative_groups
