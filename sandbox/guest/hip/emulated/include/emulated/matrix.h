// The model of the matrix core. Which lane holds what: AMD's matrix instruction calculator (ROCm/amd_matrix_instruction_calculator
// @2ef9189, cdna3) for gfx942, and for gfx950's f8f6f4 the register maps in composable_kernel test/mx_mfma_op/mx_mfma_op.hpp;
// checked against Triton's layouts in tests/sandbox/test_hip_emulated_mfma.py.
//
//   A: row = lane % M, block = lane / M % blocks, k = (lane / (M * blocks)) * each + i for the i-th of `each` values; B likewise.
//   D, 4-byte: 32 rows: 8 * (i / 4) + 4 * (lane / 32) + i % 4; 16 rows: 4 * (lane / 16) + i % 4; 4 rows: i. 8-byte: see `row`.
//
// Arithmetic: products and their sum with C are taken in double precision in the order of k, and rounded once, to nearest even,
// to the type of D. The machine's order and inner rounding are not documented (MMA-Sim, arXiv:2511.10909, infers them): results
// agree within (K + 1) units of 2^-24 of sum |a b| + |c|. Denormals are kept, as MI300's f16 and bf16 MFMA keep them
// (PyTorch, "Numerical accuracy": MI200 flushes them, MI300 does not). Integers wrap.
#pragma once
#include "formats.h"

namespace kw {

enum class Type { f64, f32, xf32, f16, bf16, fp8, bf8, i8 };

struct Mfma {
  const void *a, *b;
  void* d;  // holds C before
  int broadcast, which, lanes;  // cbsz, abid, blgp
};

template <Type T>
constexpr int bytes_of = T == Type::f64 ? 8 : T == Type::f32 || T == Type::xf32 ? 4 : T == Type::f16 || T == Type::bf16 ? 2 : 1;

template <Type T>
KW_INLINE auto element(const unsigned char* at, int i) {
  if constexpr (T == Type::f64) {
    return reinterpret_cast<const double*>(at)[i];
  } else if constexpr (T == Type::f32) {
    return double(reinterpret_cast<const float*>(at)[i]);
  } else if constexpr (T == Type::xf32) {
    // 8 bits of exponent and 10 of mantissa; the rest is taken to be cut off.
    uint32_t word = reinterpret_cast<const uint32_t*>(at)[i];
    if ((word & 0x7f800000u) != 0x7f800000u) word &= ~0x1fffu;
    float value;
    __builtin_memcpy(&value, &word, 4);
    return double(value);
  } else if constexpr (T == Type::f16) {
    return double(reinterpret_cast<const _Float16*>(at)[i]);
  } else if constexpr (T == Type::bf16) {
    return double(bf16_value(reinterpret_cast<const uint16_t*>(at)[i]));
  } else if constexpr (T == Type::fp8) {
    return table<fp8>.value[at[i]];
  } else if constexpr (T == Type::bf8) {
    return table<bf8>.value[at[i]];
  } else {
    return int32_t(reinterpret_cast<const int8_t*>(at)[i]);
  }
}

template <int M, int Blocks, class Out>
KW_INLINE constexpr int row(int lane, int i) {
  if constexpr (sizeof(Out) == 8) return M == 16 ? 4 * i + lane / 16 : lane / 16;
  else return M == 32 ? 8 * (i % 16 / 4) + 4 * (lane / 32) + i % 4 : M == 16 ? 4 * (lane / 16) + i % 4 : i;
}
template <int M, int Blocks, class Out>
KW_INLINE constexpr int block_of(int lane, int i) {
  if constexpr (sizeof(Out) == 8) return Blocks == 1 ? 0 : lane / 4 % 4;
  else return M == 32 ? i / 16 : M == 16 ? i / 4 : lane / 4;
}

/** D = A B + C of `Blocks` products side by side, all lanes taking part. */
template <int M, int K, int Blocks, class Out, class Sum>
struct Product {
  Sum a[Blocks][M][K], b[Blocks][K][M];
  Sum d[Blocks][M][M];
  static constexpr int outputs = M * M * Blocks / 64;

  KW_BARE void multiply() {
    for (int block = 0; block < Blocks; block++)
      for (int i = 0; i < M; i++) {
        Sum sums[M];
        for (int j = 0; j < M; j++) sums[j] = d[block][i][j];
        for (int k = 0; k < K; k++) {
          Sum left = a[block][i][k];
          for (int j = 0; j < M; j++) sums[j] += left * b[block][k][j];
        }
        for (int j = 0; j < M; j++) d[block][i][j] = sums[j];
      }
  }
  KW_BARE void take(int lane, const Out* from) {
    for (int i = 0; i < outputs; i++) d[block_of<M, Blocks, Out>(lane, i)][row<M, Blocks, Out>(lane, i)][lane % M] = Sum(from[i]);
  }
  KW_BARE void give(int lane, Out* to) const {
    for (int i = 0; i < outputs; i++) to[i] = Out(d[block_of<M, Blocks, Out>(lane, i)][row<M, Blocks, Out>(lane, i)][lane % M]);
  }
};

KW_BARE inline void refuse_part(uint64_t lanes) {
  if (~lanes) kw_refuse("a matrix instruction with lanes switched off");
}

template <int M, int K, int Blocks, Type A, Type B, class Out>
KW_BARE void run_mfma(Wave& wave, uint64_t lanes) {
  refuse_part(lanes);
  constexpr int groups = 64 / (M * Blocks), each = K / groups;
  using Sum = std::conditional_t<std::is_integral_v<Out>, uint32_t, double>;
  static thread_local Product<M, K, Blocks, Out, Sum>* kept = nullptr;
  if (!kept) kept = new Product<M, K, Blocks, Out, Sum>;
  auto& product = *kept;
  const auto& first = *static_cast<Mfma*>(wave.lanes[0].operands);
  for (int lane = 0; lane < 64; lane++) {
    const auto& mine = *static_cast<Mfma*>(wave.lanes[lane].operands);
    int block = lane / M % Blocks, group = lane / (M * Blocks);
    // cbsz: blocks in groups of 2^cbsz all take the A of block `abid` in their group.
    int from = (block & ~((1 << first.broadcast) - 1)) | (first.broadcast ? first.which : block & ((1 << first.broadcast) - 1));
    const auto& of_a = *static_cast<Mfma*>(wave.lanes[lane % M + M * from + M * Blocks * group].operands);
    auto* a = static_cast<const unsigned char*>(of_a.a);
    auto* b = static_cast<const unsigned char*>(mine.b);
    for (int i = 0; i < each; i++) {
      product.a[block][lane % M][group * each + i] = Sum(element<A>(a, i));
      product.b[block][group * each + i][lane % M] = Sum(element<B>(b, i));
    }
    product.take(lane, static_cast<const Out*>(mine.d));
  }
  if constexpr (sizeof(Out) == 8) {
    // blgp of f64 negates A, B or C (CDNA3 ISA, section 7.1.3).
    auto negate = [&](auto& values) KW_BARE { for (auto& x : values) for (auto& y : x) for (auto& z : y) z = -z; };
    if (first.lanes & 1) negate(product.a);
    if (first.lanes & 2) negate(product.b);
    if (first.lanes & 4) negate(product.d);
  }
  product.multiply();
  for (int lane = 0; lane < 64; lane++) product.give(lane, static_cast<Out*>(static_cast<Mfma*>(wave.lanes[lane].operands)->d));
}

template <int M, int K, int Blocks, Type A, Type B, class Out, class VA, class VC>
KW_INLINE VC mfma(VA a, VA b, VC c, int cbsz, int abid, int blgp) {
  static_assert(sizeof(VA) == bytes_of<A> * M * K * Blocks / 64 && sizeof(VC) == sizeof(Out) * M * M * Blocks / 64);
  if (sizeof(Out) == 4 && blgp) kw_refuse("blgp of a matrix instruction");
  Mfma mine{&a, &b, &c, cbsz, abid, blgp};
  kw_meet(run_mfma<M, K, Blocks, A, B, Out>, &mine);
  return c;
}

}  // namespace kw
