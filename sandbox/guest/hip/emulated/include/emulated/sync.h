// Barriers, fences, waits and clocks.
#pragma once
#include <chrono>

#include "wave.h"

namespace kw {

// Memory orders as the compiler numbers them, and scopes from one lane to the whole system.
enum Order { relaxed, consume, acquire, release, acquire_release, sequential };
enum Scope { of_lane = 1, of_wave, of_block, of_device, of_system };

struct Count {
  int value, result;
};
template <int What>
KW_BARE void run_count(Wave& wave, uint64_t) {
  Block& block = *wave.block;
  int result = What == 1;
  auto each = [&](auto act) KW_BARE {
    for (unsigned i = 0; i < block.count; i++) {
      Lane& lane = block.all[i];
      if (lane.wave->at_barrier >> lane.lane & 1) act(*static_cast<Count*>(lane.operands));
    }
  };
  each([&](Count& mine) KW_BARE {
    if (What == 0) result += mine.value != 0;
    else if (What == 1) result &= mine.value != 0;
    else result |= mine.value != 0;
  });
  each([&](Count& mine) KW_BARE { mine.result = result; });
}
template <int What>
KW_INLINE int counted(int value, int place) {
  Count mine{value, 0};
  kw_barrier(run_count<What>, &mine, place);
  return mine.result;
}

KW_INLINE int scope_of(const char* name) {
  switch (name[0]) {
    case 0: return of_system;
    case 'a': return of_device;
    case 's': return name[2] == 'n' ? of_lane : of_system;
    case 'w': return name[1] == 'o' ? of_block : of_wave;
    default: return of_system;
  }
}

}  // namespace kw

#define KW_PLACE int place = __builtin_LINE() << 10 | (__builtin_COLUMN() & 1023)
KW_INLINE void __syncthreads(KW_PLACE) { kw_barrier(nullptr, nullptr, place); }
KW_INLINE int __syncthreads_count(int value, KW_PLACE) { return kw::counted<0>(value, place); }
KW_INLINE int __syncthreads_and(int value, KW_PLACE) { return kw::counted<1>(value, place); }
KW_INLINE int __syncthreads_or(int value, KW_PLACE) { return kw::counted<2>(value, place); }
KW_INLINE void __builtin_amdgcn_s_barrier(KW_PLACE) { kw_barrier(nullptr, nullptr, place); }

// The machine's lanes run in step, ours one after the other: where a wave waits for its own accesses, they meet.
KW_INLINE void __kw_wait() {
  if (kw::lane()) kw_meet(kw::run_nothing, nullptr);
}
KW_INLINE void __kw_fence(int order, int scope) {
  kw_fence(order, scope);
  __kw_wait();
}
#define __builtin_amdgcn_fence(order, scope, ...) __kw_fence(order, ::kw::scope_of(scope))
KW_INLINE void __threadfence() { __kw_fence(kw::sequential, kw::of_device); }
KW_INLINE void __threadfence_block() { __kw_fence(kw::sequential, kw::of_block); }
KW_INLINE void __threadfence_system() { __kw_fence(kw::sequential, kw::of_system); }
KW_INLINE void __builtin_amdgcn_s_waitcnt(int) { __kw_wait(); }

// Schedules: nothing to do where every access is done before the next begins.
KW_INLINE void __builtin_amdgcn_sched_barrier(int) {}
KW_INLINE void __builtin_amdgcn_sched_group_barrier(int, int, int) {}
KW_INLINE void __builtin_amdgcn_iglp_opt(int) {}
KW_INLINE void __builtin_amdgcn_s_setprio(int) {}
KW_INLINE void __builtin_amdgcn_s_sethalt(int) {}
KW_INLINE void __builtin_amdgcn_s_nop(int) {}
KW_INLINE void __builtin_amdgcn_s_icache_inv() {}
KW_INLINE void __builtin_amdgcn_s_dcache_inv() {}
KW_INLINE void __builtin_amdgcn_buffer_wbl2() {}
KW_INLINE void __builtin_amdgcn_buffer_inv() {}
KW_INLINE void __builtin_amdgcn_s_sleep(int) { kw_give_way(nullptr); }
KW_INLINE void __builtin_amdgcn_endpgm() { kw_refuse("s_endpgm"); }

KW_INLINE long long wall_clock64() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count() / 10;
}
KW_INLINE long long clock64() { return wall_clock64() * 21; }
KW_INLINE uint64_t __builtin_amdgcn_s_memtime() { return uint64_t(clock64()); }
KW_INLINE uint64_t __builtin_amdgcn_s_memrealtime() { return uint64_t(wall_clock64()); }
KW_INLINE void __builtin_amdgcn_s_trap(int) { kw_refuse("s_trap"); }
KW_INLINE void __assert_kernel(bool holds, const char* text) {
  if (!holds) kw_refuse(text);
}
KW_INLINE unsigned __builtin_amdgcn_workitem_id_x() { return threadIdx.x; }
KW_INLINE unsigned __builtin_amdgcn_workitem_id_y() { return threadIdx.y; }
KW_INLINE unsigned __builtin_amdgcn_workitem_id_z() { return threadIdx.z; }
KW_INLINE unsigned __builtin_amdgcn_workgroup_id_x() { return blockIdx.x; }
KW_INLINE unsigned __builtin_amdgcn_workgroup_id_y() { return blockIdx.y; }
KW_INLINE unsigned __builtin_amdgcn_workgroup_id_z() { return blockIdx.z; }
