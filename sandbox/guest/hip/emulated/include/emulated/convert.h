// Conversion builtins between f32, f16, bf16, fp8 and bf8 (and fp4 on gfx950). Words select a pair, bytes one value, as the
// instructions V_CVT_* of the CDNA3 and CDNA4 instruction set architectures do. Without clamp, overflow of fp8 is NaN.
#pragma once
#include "formats.h"
#include "wave.h"

namespace kw {
using Float2 = float __attribute__((ext_vector_type(2)));
using Half2 = _Float16 __attribute__((ext_vector_type(2)));
using Short2 = short __attribute__((ext_vector_type(2)));

template <Format F>
KW_INLINE unsigned packed(double a, double b, unsigned old, bool high) {
  unsigned pair = encode<F>(a) | encode<F>(b) << 8;
  return high ? (old & 0xffff) | pair << 16 : (old & 0xffff0000u) | pair;
}
template <Format F>
KW_INLINE Float2 unpacked(unsigned from, bool high, double scale = 1) {
  unsigned pair = high ? from >> 16 : from & 0xffff;
  return Float2{float(table<F>.value[pair & 255] * scale), float(table<F>.value[pair >> 8] * scale)};
}
/** The scale of V_CVT_SCALEF32: only the exponent of a float counts. */
KW_INLINE double exponent_of(float scale) { return scale_e8m0(bits<unsigned>(scale) >> 23 & 255); }
}  // namespace kw

KW_INLINE kw::Float2 __builtin_amdgcn_cvt_pk_f32_fp8(int from, bool high) { return kw::unpacked<kw::fp8>(unsigned(from), high); }
KW_INLINE kw::Float2 __builtin_amdgcn_cvt_pk_f32_bf8(int from, bool high) { return kw::unpacked<kw::bf8>(unsigned(from), high); }
KW_INLINE float __builtin_amdgcn_cvt_f32_fp8(int from, int byte) { return float(kw::table<kw::fp8>.value[from >> 8 * byte & 255]); }
KW_INLINE float __builtin_amdgcn_cvt_f32_bf8(int from, int byte) { return float(kw::table<kw::bf8>.value[from >> 8 * byte & 255]); }
KW_INLINE int __builtin_amdgcn_cvt_pk_fp8_f32(float a, float b, int old, bool high) { return int(kw::packed<kw::fp8>(a, b, unsigned(old), high)); }
KW_INLINE int __builtin_amdgcn_cvt_pk_bf8_f32(float a, float b, int old, bool high) { return int(kw::packed<kw::bf8>(a, b, unsigned(old), high)); }

namespace kw {
/** Stochastic rounding: random bits below the kept mantissa are added, then it is cut off. */
template <Format F>
KW_INLINE int stochastic(float a, unsigned random, int old, int byte) {
  unsigned wide = bits<unsigned>(a);
  constexpr int cut = 23 - F.mantissa_bits;
  unsigned moved = (wide & 0x7f800000u) == 0x7f800000u ? wide : (wide + (random >> (32 - cut))) & ~((1u << cut) - 1);
  return int((unsigned(old) & ~(255u << 8 * byte)) | encode<F>(bits<float>(moved)) << 8 * byte);
}
}  // namespace kw
KW_INLINE int __builtin_amdgcn_cvt_sr_fp8_f32(float a, int random, int old, int byte) { return kw::stochastic<kw::fp8>(a, unsigned(random), old, byte); }
KW_INLINE int __builtin_amdgcn_cvt_sr_bf8_f32(float a, int random, int old, int byte) { return kw::stochastic<kw::bf8>(a, unsigned(random), old, byte); }

namespace kw {
/** Towards zero. */
KW_INLINE _Float16 half_towards_zero(float a) {
  _Float16 near = _Float16(a);
  if (std::isnan(a) || std::fabs(float(near)) <= std::fabs(a)) return near;
  uint16_t word = bits<uint16_t>(near);
  return bits<_Float16>(uint16_t(word - 1));
}
}  // namespace kw
KW_INLINE _Float16 __ocml_cvtrtz_f16_f32(float a) { return kw::half_towards_zero(a); }
KW_INLINE _Float16 __ocml_cvtrtn_f16_f32(float a) {
  _Float16 cut = kw::half_towards_zero(a);
  return a < 0 && float(cut) > a ? kw::bits<_Float16>(uint16_t(kw::bits<uint16_t>(cut) + 1)) : cut;
}
KW_INLINE _Float16 __ocml_cvtrtp_f16_f32(float a) { return -__ocml_cvtrtn_f16_f32(-a); }
KW_INLINE kw::Half2 __builtin_amdgcn_cvt_pkrtz(float a, float b) { return kw::Half2{kw::half_towards_zero(a), kw::half_towards_zero(b)}; }
KW_INLINE float __builtin_amdgcn_fdot2(kw::Half2 a, kw::Half2 b, float sum, bool) { return float(double(a.x) * double(b.x) + double(a.y) * double(b.y) + double(sum)); }

#if defined(__gfx950__)
KW_INLINE kw::Float2 __builtin_amdgcn_cvt_scalef32_pk_f32_fp8(unsigned from, float scale, bool high) { return kw::unpacked<kw::fp8>(from, high, kw::exponent_of(scale)); }
KW_INLINE kw::Float2 __builtin_amdgcn_cvt_scalef32_pk_f32_bf8(unsigned from, float scale, bool high) { return kw::unpacked<kw::bf8>(from, high, kw::exponent_of(scale)); }
KW_INLINE kw::Short2 __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(kw::Short2 old, float a, float b, float scale, bool high) {
  double by = kw::exponent_of(scale);
  return kw::bits<kw::Short2>(kw::packed<kw::fp8>(a / by, b / by, kw::bits<unsigned>(old), high));
}
KW_INLINE kw::Short2 __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(kw::Short2 old, float a, float b, float scale, bool high) {
  double by = kw::exponent_of(scale);
  return kw::bits<kw::Short2>(kw::packed<kw::bf8>(a / by, b / by, kw::bits<unsigned>(old), high));
}
KW_INLINE kw::Float2 __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(unsigned from, float scale, int byte) {
  double by = kw::exponent_of(scale);
  unsigned pair = from >> 8 * byte & 255;
  return kw::Float2{float(kw::table<kw::e2m1>.value[pair & 15] * by), float(kw::table<kw::e2m1>.value[pair >> 4] * by)};
}
KW_INLINE kw::Half2 __builtin_amdgcn_cvt_scalef32_pk_f16_fp4(unsigned from, float scale, int byte) {
  kw::Float2 wide = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(from, scale, byte);
  return kw::Half2{_Float16(wide.x), _Float16(wide.y)};
}
KW_INLINE unsigned __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(unsigned old, float a, float b, float scale, int byte) {
  double by = kw::exponent_of(scale);
  unsigned pair = kw::encode<kw::e2m1>(a / by) | kw::encode<kw::e2m1>(b / by) << 4;
  return (old & ~(255u << 8 * byte)) | pair << 8 * byte;
}
#endif
