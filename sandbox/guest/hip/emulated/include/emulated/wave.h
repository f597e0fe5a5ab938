// What the lanes of a wave tell each other: shuffles, votes, reads of one lane.
#pragma once
#include "types.h"

namespace kw {

template <class T>
struct Exchange {
  T value, result;
  int from;  // lane to read; negative: keep one's own
};

template <class T>
KW_BARE void run_exchange(Wave& wave, uint64_t lanes) {
  for (uint64_t left = lanes; left; left &= left - 1) {
    auto& mine = *static_cast<Exchange<T>*>(wave.lanes[__builtin_ctzll(left)].operands);
    // A lane that takes no part has nothing to give: 0, as ds_bpermute answers.
    if (mine.from < 0) mine.result = mine.value;
    else if (lanes >> mine.from & 1) mine.result = static_cast<Exchange<T>*>(wave.lanes[mine.from].operands)->value;
    else mine.result = T{};
  }
}

template <class T>
KW_INLINE T exchange(T value, int from) {
  Exchange<T> mine{value, T{}, from};
  kw_meet(run_exchange<T>, &mine);
  return mine.result;
}

struct Vote {
  bool yes;
  uint64_t yeses, lanes;
};
KW_BARE inline void run_vote(Wave& wave, uint64_t lanes) {
  uint64_t yeses = 0;
  for (uint64_t left = lanes; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    yeses |= uint64_t(static_cast<Vote*>(wave.lanes[lane].operands)->yes) << lane;
  }
  for (uint64_t left = lanes; left; left &= left - 1) {
    auto& mine = *static_cast<Vote*>(wave.lanes[__builtin_ctzll(left)].operands);
    mine.yeses = yeses, mine.lanes = lanes;
  }
}
KW_INLINE Vote vote(bool yes) {
  Vote mine{yes, 0, 0};
  kw_meet(run_vote, &mine);
  return mine;
}

template <class T>
struct First {
  T value;
};
template <class T>
KW_BARE void run_first(Wave& wave, uint64_t lanes) {
  T value = static_cast<First<T>*>(wave.lanes[__builtin_ctzll(lanes)].operands)->value;
  for (uint64_t left = lanes; left; left &= left - 1)
    static_cast<First<T>*>(wave.lanes[__builtin_ctzll(left)].operands)->value = value;
}

template <class To, class From>
KW_INLINE To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

KW_INLINE int lane_number() { return int(lane()->lane); }
KW_BARE inline void run_nothing(Wave&, uint64_t) {}

}  // namespace kw

KW_INLINE unsigned __lane_id() { return unsigned(kw::lane_number()); }

// Width as in HIP: the wave falls into parts of `width` lanes; what would leave a part keeps its own value.
template <class T>
KW_INLINE T __shfl(T value, int from, int width = 64) {
  int self = kw::lane_number();
  return kw::exchange(value, (from & (width - 1)) + (self & ~(width - 1)));
}
template <class T>
KW_INLINE T __shfl_up(T value, unsigned by, int width = 64) {
  int self = kw::lane_number(), from = self - int(by);
  return kw::exchange(value, from < (self & ~(width - 1)) ? self : from);
}
template <class T>
KW_INLINE T __shfl_down(T value, unsigned by, int width = 64) {
  int self = kw::lane_number(), from = self + int(by);
  return kw::exchange(value, (self & (width - 1)) + int(by) >= width ? self : from);
}
template <class T>
KW_INLINE T __shfl_xor(T value, int mask, int width = 64) {
  int self = kw::lane_number(), from = self ^ mask;
  return kw::exchange(value, from >= ((self + width) & ~(width - 1)) ? self : from);
}
template <class T>
KW_INLINE T __shfl_sync(unsigned long long, T value, int from, int width = 64) { return __shfl(value, from, width); }
template <class T>
KW_INLINE T __shfl_up_sync(unsigned long long, T value, unsigned by, int width = 64) { return __shfl_up(value, by, width); }
template <class T>
KW_INLINE T __shfl_down_sync(unsigned long long, T value, unsigned by, int width = 64) { return __shfl_down(value, by, width); }
template <class T>
KW_INLINE T __shfl_xor_sync(unsigned long long, T value, int mask, int width = 64) { return __shfl_xor(value, mask, width); }

KW_INLINE unsigned long long __ballot(int yes) { return kw::vote(yes != 0).yeses; }
KW_INLINE unsigned long long __ballot_sync(unsigned long long, int yes) { return kw::vote(yes != 0).yeses; }
KW_INLINE int __any(int yes) { return kw::vote(yes != 0).yeses != 0; }
KW_INLINE int __all(int yes) {
  auto all = kw::vote(yes != 0);
  return all.yeses == all.lanes;
}
KW_INLINE int __any_sync(unsigned long long, int yes) { return __any(yes); }
KW_INLINE int __all_sync(unsigned long long, int yes) { return __all(yes); }
KW_INLINE unsigned long long __activemask() { return kw::vote(true).lanes; }
KW_INLINE uint64_t __builtin_amdgcn_ballot_w64(bool yes) { return kw::vote(yes).yeses; }
KW_INLINE uint64_t __builtin_amdgcn_read_exec() { return kw::vote(true).lanes; }
KW_INLINE unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned add) {
  int lane = kw::lane_number();
  return add + unsigned(__builtin_popcount(lane >= 32 ? mask : mask & ((1u << lane) - 1)));
}
KW_INLINE unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned add) {
  int lane = kw::lane_number();
  return add + unsigned(lane < 32 ? 0 : __builtin_popcount(mask & ((1u << (lane - 32)) - 1)));
}
template <class T>
KW_INLINE T __builtin_amdgcn_readfirstlane(T value) {
  kw::First<T> mine{value};
  kw_meet(kw::run_first<T>, &mine);
  return mine.value;
}
template <class T>
KW_INLINE T __builtin_amdgcn_readlane(T value, int from) { return kw::exchange(value, from & 63); }
KW_INLINE void __builtin_amdgcn_wave_barrier() { kw_meet(kw::run_nothing, nullptr); }
KW_INLINE void __syncwarp(unsigned long long = ~0ull) { kw_meet(kw::run_nothing, nullptr); }
