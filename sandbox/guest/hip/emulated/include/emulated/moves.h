// Lane moves by builtin: DPP, swizzles, permutes, gfx950's swaps.
// Controls: "AMD Instinct MI300 Instruction Set Architecture" (CDNA3), section 6.5 DPP, and DS_SWIZZLE_B32, DS_PERMUTE_B32
// and DS_BPERMUTE_B32 there; the swaps: LLVM's AMDGPUUsage, llvm.amdgcn.permlane16.swap and permlane32.swap.
#pragma once
#include "wave.h"

namespace kw {

/** The lane that a DPP control reads, or -1 where it lies outside the row or the wave. */
constexpr int dpp_source(int lane, int control) {
  int row = lane & ~15, in_row = lane & 15;
  if (control <= 0xff) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
  int by = control & 15;
  switch (control & ~15) {
    case 0x100: return in_row + by < 16 ? lane + by : -1;  // row_shl
    case 0x110: return in_row >= by ? lane - by : -1;      // row_shr
    case 0x120: return row | ((in_row - by) & 15);         // row_ror
    case 0x150: return row | by;                           // row_newbcast
    default: break;
  }
  switch (control) {
    case 0x130: return lane < 63 ? lane + 1 : -1;  // wave_shl
    case 0x134: return (lane + 1) & 63;            // wave_rol
    case 0x138: return lane - 1;                   // wave_shr
    case 0x13c: return (lane - 1) & 63;            // wave_ror
    case 0x140: return row | (15 - in_row);        // row_mirror
    case 0x141: return (lane & ~7) | (7 - (lane & 7));
    case 0x142: return lane >= 16 ? row - 1 : -1;         // row_bcast15
    case 0x143: return lane >= 32 ? (lane & 32) - 1 : -1;  // row_bcast31
    default: return -2;
  }
}

template <class T>
struct Dpp {
  T old, source, result;
  int control, rows, banks;
  bool zero;
};
template <class T>
KW_BARE void run_dpp(Wave& wave, uint64_t lanes) {
  for (uint64_t left = lanes; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    auto& mine = *static_cast<Dpp<T>*>(wave.lanes[lane].operands);
    int from = dpp_source(lane, mine.control);
    bool enabled = (mine.rows >> (lane >> 4) & 1) && (mine.banks >> (lane >> 2 & 3) & 1);
    bool valid = from >= 0 && (lanes >> from & 1);
    mine.result = !enabled ? mine.old
                  : valid  ? static_cast<Dpp<T>*>(wave.lanes[from].operands)->source
                           : mine.zero ? T{} : mine.old;
  }
}

struct Push {
  int value, result, to;
};
KW_BARE inline void run_push(Wave& wave, uint64_t lanes) {
  for (uint64_t left = lanes; left; left &= left - 1)
    static_cast<Push*>(wave.lanes[__builtin_ctzll(left)].operands)->result = 0;
  for (uint64_t left = lanes; left; left &= left - 1) {
    const auto& mine = *static_cast<Push*>(wave.lanes[__builtin_ctzll(left)].operands);
    if (lanes >> mine.to & 1) static_cast<Push*>(wave.lanes[mine.to].operands)->result = mine.value;
  }
}

using Pair = unsigned __attribute__((ext_vector_type(2)));
struct Swap {
  unsigned first, second, lanes;
  Pair result;
};
KW_BARE inline void run_swap(Wave& wave, uint64_t lanes) {
  auto at = [&](int lane) KW_BARE -> Swap& { return *static_cast<Swap*>(wave.lanes[lane].operands); };
  for (uint64_t left = lanes; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    Swap& mine = at(lane);
    int by = int(mine.lanes), other = lane ^ by;
    bool there = lanes >> other & 1;
    bool odd = lane & by;
    mine.result.x = odd && there ? at(other).second : mine.first;
    mine.result.y = !odd && there ? at(other).first : mine.second;
  }
}
KW_INLINE Pair swap(unsigned first, unsigned second, unsigned lanes) {
  Swap mine{first, second, lanes, {}};
  kw_meet(run_swap, &mine);
  return mine.result;
}

}  // namespace kw

template <class T>
KW_INLINE T __builtin_amdgcn_update_dpp(T old, T source, int control, int rows, int banks, bool zero) {
  if (kw::dpp_source(0, control) == -2) kw_refuse("this DPP control");
  kw::Dpp<T> mine{old, source, T{}, control, rows, banks, zero};
  kw_meet(kw::run_dpp<T>, &mine);
  return mine.result;
}
template <class T>
KW_INLINE T __builtin_amdgcn_mov_dpp(T source, int control, int rows, int banks, bool zero) {
  return __builtin_amdgcn_update_dpp(T{}, source, control, rows, banks, zero);
}
KW_INLINE int __builtin_amdgcn_ds_swizzle(int value, int pattern) {
  int lane = kw::lane_number();
  int from = pattern & 0x8000 ? (lane & ~3) | (pattern >> 2 * (lane & 3) & 3)
                              : (lane & 32) | ((((lane & 31) & pattern) | pattern >> 5) & 31) ^ (pattern >> 10 & 31);
  return kw::exchange(value, from);
}
KW_INLINE int __builtin_amdgcn_ds_bpermute(int address, int value) { return kw::exchange(value, address >> 2 & 63); }
KW_INLINE int __builtin_amdgcn_ds_permute(int address, int value) {
  kw::Push mine{value, 0, address >> 2 & 63};
  kw_meet(kw::run_push, &mine);
  return mine.result;
}
#if defined(__gfx950__)
KW_INLINE kw::Pair __builtin_amdgcn_permlane16_swap(unsigned first, unsigned second, bool, bool) { return kw::swap(first, second, 16); }
KW_INLINE kw::Pair __builtin_amdgcn_permlane32_swap(unsigned first, unsigned second, bool, bool) { return kw::swap(first, second, 32); }
#endif
#define __hip_move_dpp(v, c, r, b, z) __builtin_amdgcn_mov_dpp(v, c, r, b, z)
