// gfx950's block-scaled matrix instructions: formats by number, an e8m0 scale for 32 values along k.
// 8-bit values: 16 consecutive k at 16 * group, 16 more half way along K; 6 and 4 bits: 32 consecutive at 32 * group, low bits
// first. A lane's scale is of row lane % M and k from 32 * (lane / M): see matrix.h for the sources.
#pragma once
#include "matrix.h"

namespace kw {

using I8 = int __attribute__((ext_vector_type(8)));

struct Side {
  int format, byte, scale;
};
struct Scaled {
  const void* values[2];
  Side side[2];
  float* d;
};

KW_BARE inline double value_of(const unsigned char* at, int format, int i) {
  auto bits_at = [&](int bit, int count) KW_BARE {
    unsigned word = at[bit / 8] | unsigned(at[bit / 8 + (bit / 8 < 31)]) << 8;
    return word >> bit % 8 & ((1u << count) - 1);
  };
  switch (format) {
    case 0: return table<e4m3>.value[at[i]];
    case 1: return table<e5m2>.value[at[i]];
    case 2: return table<e2m3>.value[bits_at(6 * i, 6)];
    case 3: return table<e3m2>.value[bits_at(6 * i, 6)];
    default: return table<e2m1>.value[bits_at(4 * i, 4)];
  }
}

template <int M, int K>
KW_BARE void run_scaled(Wave& wave, uint64_t lanes) {
  refuse_part(lanes);
  static thread_local Product<M, K, 1, float, double>* kept = nullptr;
  if (!kept) kept = new Product<M, K, 1, float, double>;
  auto& product = *kept;
  for (int lane = 0; lane < 64; lane++) {
    const auto& mine = *static_cast<Scaled*>(wave.lanes[lane].operands);
    int group = lane / M;
    for (int s = 0; s < 2; s++)
      for (int i = 0; i < 32; i++) {
        const Side& side = mine.side[s];
        int k = side.format < 2 ? i % 16 + 16 * group + (K / 2) * (i / 16) : 32 * group + i;
        const auto& of_scale = static_cast<Scaled*>(wave.lanes[lane % M + M * (k / 32)].operands)->side[s];
        double value = value_of(static_cast<const unsigned char*>(mine.values[s]), side.format, i) *
                       scale_e8m0(unsigned(of_scale.scale) >> 8 * of_scale.byte);
        (s ? product.b[0][k][lane % M] : product.a[0][lane % M][k]) = value;
      }
    product.take(lane, mine.d);
  }
  product.multiply();
  for (int lane = 0; lane < 64; lane++) product.give(lane, static_cast<Scaled*>(wave.lanes[lane].operands)->d);
}

template <int M, int K, class C>
KW_INLINE C scaled(I8 a, I8 b, C c, const Side (&side)[2]) {
  Scaled mine{{&a, &b}, {side[0], side[1]}, reinterpret_cast<float*>(&c)};
  kw_meet(run_scaled<M, K>, &mine);
  return c;
}

}  // namespace kw
