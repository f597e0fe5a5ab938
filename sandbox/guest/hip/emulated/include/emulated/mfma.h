// Matrix instructions by builtin, with the operand types of LLVM's BuiltinsAMDGPU.
#pragma once
#include "matrix.h"
#if defined(__gfx950__)
#include "scaled.h"
#endif

namespace kw {
template <class T, int N>
using Vec = T __attribute__((ext_vector_type(N)));
using F4 = Vec<float, 4>;
using F16 = Vec<float, 16>;
using F32 = Vec<float, 32>;
using I4 = Vec<int, 4>;
using I16 = Vec<int, 16>;
using I32 = Vec<int, 32>;
}  // namespace kw

#define KW_MFMA(name, M, K, blocks, A, B, in, Out, out)                                                 \
  KW_INLINE out __builtin_amdgcn_mfma_##name(in a, in b, out c, int cbsz, int abid, int blgp) {         \
    return ::kw::mfma<M, K, blocks, ::kw::Type::A, ::kw::Type::B, Out>(a, b, c, cbsz, abid, blgp);      \
  }
namespace kw {
/** Operands of 2-byte values: kernels spell their vectors with _Float16, __fp16, __bf16 or short. */
template <int Bytes>
struct Halves {
  unsigned char raw[Bytes];
  Halves() = default;
  template <class T>
    requires(sizeof(T) == Bytes)
  KW_INLINE Halves(const T& from) { __builtin_memcpy(raw, &from, Bytes); }
};
using H4 = Halves<8>;
using H8 = Halves<16>;
using F2 = Vec<float, 2>;
using D4 = Vec<double, 4>;
}  // namespace kw

KW_MFMA(f32_32x32x1f32, 32, 1, 2, f32, f32, float, float, kw::F32)
KW_MFMA(f32_16x16x1f32, 16, 1, 4, f32, f32, float, float, kw::F16)
KW_MFMA(f32_4x4x1f32, 4, 1, 16, f32, f32, float, float, kw::F4)
KW_MFMA(f32_32x32x2f32, 32, 2, 1, f32, f32, float, float, kw::F16)
KW_MFMA(f32_16x16x4f32, 16, 4, 1, f32, f32, float, float, kw::F4)
KW_MFMA(f32_32x32x4f16, 32, 4, 2, f16, f16, kw::H4, float, kw::F32)
KW_MFMA(f32_16x16x4f16, 16, 4, 4, f16, f16, kw::H4, float, kw::F16)
KW_MFMA(f32_4x4x4f16, 4, 4, 16, f16, f16, kw::H4, float, kw::F4)
KW_MFMA(f32_32x32x8f16, 32, 8, 1, f16, f16, kw::H4, float, kw::F16)
KW_MFMA(f32_16x16x16f16, 16, 16, 1, f16, f16, kw::H4, float, kw::F4)
KW_MFMA(f32_32x32x4bf16_1k, 32, 4, 2, bf16, bf16, kw::H4, float, kw::F32)
KW_MFMA(f32_16x16x4bf16_1k, 16, 4, 4, bf16, bf16, kw::H4, float, kw::F16)
KW_MFMA(f32_4x4x4bf16_1k, 4, 4, 16, bf16, bf16, kw::H4, float, kw::F4)
KW_MFMA(f32_32x32x8bf16_1k, 32, 8, 1, bf16, bf16, kw::H4, float, kw::F16)
KW_MFMA(f32_16x16x16bf16_1k, 16, 16, 1, bf16, bf16, kw::H4, float, kw::F4)
KW_MFMA(i32_32x32x4i8, 32, 4, 2, i8, i8, int, int, kw::I32)
KW_MFMA(i32_16x16x4i8, 16, 4, 4, i8, i8, int, int, kw::I16)
KW_MFMA(i32_4x4x4i8, 4, 4, 16, i8, i8, int, int, kw::I4)
KW_MFMA(i32_32x32x16_i8, 32, 16, 1, i8, i8, long, int, kw::I16)
KW_MFMA(i32_16x16x32_i8, 16, 32, 1, i8, i8, long, int, kw::I4)
KW_MFMA(f64_16x16x4f64, 16, 4, 1, f64, f64, double, double, kw::D4)
KW_MFMA(f64_4x4x4f64, 4, 4, 4, f64, f64, double, double, double)
KW_MFMA(f32_16x16x32_fp8_fp8, 16, 32, 1, fp8, fp8, long, float, kw::F4)
KW_MFMA(f32_16x16x32_fp8_bf8, 16, 32, 1, fp8, bf8, long, float, kw::F4)
KW_MFMA(f32_16x16x32_bf8_fp8, 16, 32, 1, bf8, fp8, long, float, kw::F4)
KW_MFMA(f32_16x16x32_bf8_bf8, 16, 32, 1, bf8, bf8, long, float, kw::F4)
KW_MFMA(f32_32x32x16_fp8_fp8, 32, 16, 1, fp8, fp8, long, float, kw::F16)
KW_MFMA(f32_32x32x16_fp8_bf8, 32, 16, 1, fp8, bf8, long, float, kw::F16)
KW_MFMA(f32_32x32x16_bf8_fp8, 32, 16, 1, bf8, fp8, long, float, kw::F16)
KW_MFMA(f32_32x32x16_bf8_bf8, 32, 16, 1, bf8, bf8, long, float, kw::F16)
#if defined(__gfx950__)
KW_MFMA(f32_16x16x32_f16, 16, 32, 1, f16, f16, kw::H8, float, kw::F4)
KW_MFMA(f32_32x32x16_f16, 32, 16, 1, f16, f16, kw::H8, float, kw::F16)
KW_MFMA(f32_16x16x32_bf16, 16, 32, 1, bf16, bf16, kw::H8, float, kw::F4)
KW_MFMA(f32_32x32x16_bf16, 32, 16, 1, bf16, bf16, kw::H8, float, kw::F16)
KW_MFMA(i32_16x16x64_i8, 16, 64, 1, i8, i8, kw::I4, int, kw::I4)
KW_MFMA(i32_32x32x32_i8, 32, 32, 1, i8, i8, kw::I4, int, kw::I16)
KW_INLINE kw::F4 __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(kw::I8 a, kw::I8 b, kw::F4 c, int format_a, int format_b, int byte_a, int scale_a, int byte_b, int scale_b) {
  return kw::scaled<16, 128>(a, b, c, {{format_a, byte_a, scale_a}, {format_b, byte_b, scale_b}});
}
KW_INLINE kw::F16 __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(kw::I8 a, kw::I8 b, kw::F16 c, int format_a, int format_b, int byte_a, int scale_a, int byte_b, int scale_b) {
  return kw::scaled<32, 64>(a, b, c, {{format_a, byte_a, scale_a}, {format_b, byte_b, scale_b}});
}
#else
// Of CDNA3 only.
KW_MFMA(f32_16x16x8_xf32, 16, 8, 1, xf32, xf32, kw::F2, float, kw::F4)
KW_MFMA(f32_32x32x4_xf32, 32, 4, 1, xf32, xf32, kw::F2, float, kw::F16)
#endif
