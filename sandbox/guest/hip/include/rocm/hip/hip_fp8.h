// The four 8-bit floats as HIP names them, for machines without ROCm's own header. Names: HIP API reference, "FP8".
//
// `fnuz`: no infinity, no negative zero, NaN is 0x80, bias one more (gfx942's own). The others are OCP's (gfx950's own).
// Where the chip converts a format itself, its instruction does; else the arithmetic below, exact and to nearest even.
#pragma once
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/kernelwright_fp8_bits.h>

#if defined(__gfx942__) && !defined(KW_HIP_EMULATED)
#define KW_FP8_NATIVE(kind) ((kind) == __HIP_E4M3_FNUZ || (kind) == __HIP_E5M2_FNUZ)
#elif defined(__gfx950__) && !defined(KW_HIP_EMULATED)
#define KW_FP8_NATIVE(kind) ((kind) == __HIP_E4M3 || (kind) == __HIP_E5M2)
#endif

KW_HD float kw_fp8_to_float(__hip_fp8_storage_t code, __hip_fp8_interpretation_t kind) {
#ifdef KW_FP8_NATIVE
  if (KW_FP8_NATIVE(kind))
    return kind == __HIP_E4M3 || kind == __HIP_E4M3_FNUZ ? __builtin_amdgcn_cvt_f32_fp8(code, 0)
                                                         : __builtin_amdgcn_cvt_f32_bf8(code, 0);
#endif
  return kw_from_fp8(code, kind);
}

KW_HD __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(
    float2 v, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
#ifdef KW_FP8_NATIVE
  if (KW_FP8_NATIVE(kind)) {
    if (saturate == __HIP_SATFINITE) {
      const float most = kind == __HIP_E4M3 ? 448.f : kind == __HIP_E4M3_FNUZ ? 240.f : 57344.f;
      // The middle of three is NaN for NaN, so NaN stays itself.
      if (!__builtin_isnan(v.x)) v.x = __builtin_amdgcn_fmed3f(v.x, most, -most);
      if (!__builtin_isnan(v.y)) v.y = __builtin_amdgcn_fmed3f(v.y, most, -most);
    }
    return static_cast<__hip_fp8x2_storage_t>(kind == __HIP_E4M3 || kind == __HIP_E4M3_FNUZ
                                                  ? __builtin_amdgcn_cvt_pk_fp8_f32(v.x, v.y, 0, false)
                                                  : __builtin_amdgcn_cvt_pk_bf8_f32(v.x, v.y, 0, false));
  }
#endif
  return static_cast<__hip_fp8x2_storage_t>(kw_to_fp8(v.x, saturate, kind) | kw_to_fp8(v.y, saturate, kind) << 8);
}
KW_HD __hip_fp8_storage_t __hip_cvt_float_to_fp8(
    float x, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
  return static_cast<__hip_fp8_storage_t>(__hip_cvt_float2_to_fp8x2(make_float2(x, x), saturate, kind));
}
KW_HD __hip_fp8_storage_t __hip_cvt_double_to_fp8(
    double x, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
  return __hip_cvt_float_to_fp8(static_cast<float>(x), saturate, kind);
}
KW_HD __hip_fp8_storage_t __hip_cvt_halfraw_to_fp8(
    __half_raw x, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
  return __hip_cvt_float_to_fp8(float(x.data), saturate, kind);
}
KW_HD __hip_fp8_storage_t __hip_cvt_bfloat16raw_to_fp8(
    __hip_bfloat16_raw x, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
  return __hip_cvt_float_to_fp8(float(__hip_bfloat16(x)), saturate, kind);
}
KW_HD __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t x, __hip_fp8_interpretation_t kind) {
  return __half::of(_Float16(kw_fp8_to_float(x, kind)));
}

#define KW_FP8_TYPE(name, kind)                                                                     \
  struct name {                                                                                     \
    __hip_fp8_storage_t __x;                                                                        \
    static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;                     \
    static constexpr __hip_fp8_interpretation_t __default_interpret = kind;                         \
    name() = default;                                                                               \
    KW_HD name(float x) : __x(__hip_cvt_float_to_fp8(x, __HIP_SATFINITE, kind)) {}                  \
    KW_HD name(double x) : name(static_cast<float>(x)) {}                                           \
    KW_HD name(int x) : name(static_cast<float>(x)) {}                                              \
    KW_HD name(unsigned x) : name(static_cast<float>(x)) {}                                         \
    KW_HD name(long x) : name(static_cast<float>(x)) {}                                             \
    KW_HD name(unsigned long x) : name(static_cast<float>(x)) {}                                    \
    KW_HD name(__half x) : name(float(x.data)) {}                                                       \
    KW_HD name(__hip_bfloat16 x) : name(float(x)) {}                                                \
    KW_HD operator float() const { return kw_fp8_to_float(__x, kind); }                             \
    KW_HD explicit operator double() const { return float(*this); }                                 \
    KW_HD explicit operator __half() const { return __half::of(_Float16(float(*this))); }                         \
    KW_HD explicit operator __hip_bfloat16() const { return __hip_bfloat16(float(*this)); }         \
    KW_HD explicit operator bool() const { return float(*this) != 0; }                              \
    KW_HD explicit operator int() const { return static_cast<int>(float(*this)); }                  \
  };
#define KW_FP8_VECTORS(one, two, four, kind)                                                        \
  KW_FP8_TYPE(one, kind)                                                                            \
  struct two {                                                                                      \
    __hip_fp8x2_storage_t __x;                                                                      \
    two() = default;                                                                                \
    KW_HD two(float2 v) : __x(__hip_cvt_float2_to_fp8x2(v, __HIP_SATFINITE, kind)) {}               \
    KW_HD operator float2() const {                                                                 \
      return make_float2(kw_fp8_to_float(__x & 0xff, kind), kw_fp8_to_float(__x >> 8, kind));       \
    }                                                                                               \
  };                                                                                                \
  struct four {                                                                                     \
    __hip_fp8x4_storage_t __x;                                                                      \
    four() = default;                                                                               \
    KW_HD four(float4 v)                                                                            \
        : __x(__hip_cvt_float2_to_fp8x2(make_float2(v.x, v.y), __HIP_SATFINITE, kind) |             \
              static_cast<unsigned>(__hip_cvt_float2_to_fp8x2(make_float2(v.z, v.w), __HIP_SATFINITE, kind)) << 16) {} \
    KW_HD operator float4() const {                                                                 \
      return make_float4(kw_fp8_to_float(__x & 0xff, kind), kw_fp8_to_float(__x >> 8 & 0xff, kind), \
                         kw_fp8_to_float(__x >> 16 & 0xff, kind), kw_fp8_to_float(__x >> 24, kind)); \
    }                                                                                               \
  };
KW_FP8_VECTORS(__hip_fp8_e4m3, __hip_fp8x2_e4m3, __hip_fp8x4_e4m3, __HIP_E4M3)
KW_FP8_VECTORS(__hip_fp8_e5m2, __hip_fp8x2_e5m2, __hip_fp8x4_e5m2, __HIP_E5M2)
KW_FP8_VECTORS(__hip_fp8_e4m3_fnuz, __hip_fp8x2_e4m3_fnuz, __hip_fp8x4_e4m3_fnuz, __HIP_E4M3_FNUZ)
KW_FP8_VECTORS(__hip_fp8_e5m2_fnuz, __hip_fp8x2_e5m2_fnuz, __hip_fp8x4_e5m2_fnuz, __HIP_E5M2_FNUZ)
