// IEEE half as HIP names it, for machines without ROCm's own header. Names: HIP API reference, "Half math".
#pragma once
#include <hip/kernelwright_short_floats.h>

struct __half_raw {
  union {
    _Float16 data;
    unsigned short x;
  };
};

struct __half {
  union {
    _Float16 data;
    unsigned short __x;
  };
  __half() = default;
  KW_HD __half(const __half_raw& raw) : data(raw.data) {}
  KW_HD operator __half_raw() const { __half_raw raw; raw.data = data; return raw; }
#ifndef __HIP_NO_HALF_CONVERSIONS__
  KW_HD __half(_Float16 value) : data(value) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  KW_HD __half(T value) : data(static_cast<_Float16>(value)) {}
  KW_HD operator float() const { return static_cast<float>(data); }
  KW_HD explicit operator _Float16() const { return data; }
  KW_HD explicit operator bool() const { return data != static_cast<_Float16>(0); }
  KW_HD explicit operator int() const { return static_cast<int>(data); }
  KW_HD explicit operator unsigned() const { return static_cast<unsigned>(data); }
  KW_HD explicit operator double() const { return static_cast<double>(data); }
#endif
  KW_HD _Float16 value() const { return data; }
  KW_HD static __half of(_Float16 value) { __half made; made.data = value; return made; }
};

struct __half2_raw { unsigned short x, y; };
struct alignas(4) __half2 {
  typedef _Float16 Pair __attribute__((ext_vector_type(2)));
  __half x, y;
  __half2() = default;
  KW_HD __half2(__half low, __half high) : x(low), y(high) {}
  KW_HD __half2(__half both) : x(both), y(both) {}
  KW_HD __half2(Pair pair) : x(__half::of(pair.x)), y(__half::of(pair.y)) {}
  KW_HD Pair pair() const { return Pair{x.data, y.data}; }
  KW_HD operator Pair() const { return pair(); }
  KW_HD static __half2 of(Pair pair) { return __half2(pair); }
};
typedef __half half;
typedef __half2 half2;
typedef __half2::Pair _Float16_2;

#ifndef __HIP_NO_HALF_OPERATORS__
KW_SHORT_FLOAT_OPERATORS(__half, __half2, _Float16)
#define KW_MIXED(T)                                                                                \
  KW_HD float operator*(__half a, T b) { return float(a.data) * float(b); }                             \
  KW_HD float operator*(T a, __half b) { return float(a) * float(b.data); }                             \
  KW_HD float operator+(__half a, T b) { return float(a.data) + float(b); }                             \
  KW_HD float operator+(T a, __half b) { return float(a) + float(b.data); }                             \
  KW_HD float operator-(__half a, T b) { return float(a.data) - float(b); }                             \
  KW_HD float operator-(T a, __half b) { return float(a) - float(b.data); }                             \
  KW_HD float operator/(__half a, T b) { return float(a.data) / float(b); }                             \
  KW_HD float operator/(T a, __half b) { return float(a) / float(b.data); }
KW_MIXED(float)
#endif
KW_SHORT_FLOAT_FUNCTIONS(__half, __half2, _Float16)
KW_SHORT_FLOAT_MATHS(__half, _Float16)
KW_SHORT_FLOAT_SHUFFLES(__half)
KW_SHORT_FLOAT_SHUFFLES(__half2)

KW_HD __half __float2half(float x) { return __half::of(_Float16(x)); }
KW_HD __half __float2half_rn(float x) { return __half::of(_Float16(x)); }
#ifndef KW_HIP_EMULATED
__device__ inline __half __float2half_rz(float x) { return __half::of(__ocml_cvtrtz_f16_f32(x)); }
__device__ inline __half __float2half_rd(float x) { return __half::of(__ocml_cvtrtn_f16_f32(x)); }
__device__ inline __half __float2half_ru(float x) { return __half::of(__ocml_cvtrtp_f16_f32(x)); }
#else
// The nearest half, and the one before it where that lies beyond the number in the wrong direction.
inline __half kw_half_towards(float x, bool up, bool down) {
  __half near = __half::of(_Float16(x));
  const float found = float(near.data);
  if ((down && found > x) || (up && found < x)) {
    const bool grows = (found > 0) == (found < x);
    near.__x = found == 0 ? (up ? 0x0001 : 0x8001) : static_cast<unsigned short>(near.__x + (grows ? 1 : -1));
  }
  return near;
}
inline __half __float2half_rz(float x) { return kw_half_towards(x, x < 0, x > 0); }
inline __half __float2half_rd(float x) { return kw_half_towards(x, false, true); }
inline __half __float2half_ru(float x) { return kw_half_towards(x, true, false); }
#endif
KW_HD float __half2float(__half x) { return static_cast<float>(x.data); }
KW_HD __half2 __float2half2_rn(float x) { return __half2(__half::of(_Float16(x)), __half::of(_Float16(x))); }
KW_HD __half2 __floats2half2_rn(float x, float y) { return __half2(__half::of(_Float16(x)), __half::of(_Float16(y))); }
KW_HD __half2 __float22half2_rn(float2 v) { return __half2(__half::of(_Float16(v.x)), __half::of(_Float16(v.y))); }
KW_HD float2 __half22float2(__half2 v) { return make_float2(float(v.x.data), float(v.y.data)); }
KW_HD __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
KW_HD __half2 make_half2(__half x, __half y) { return __half2(x, y); }
KW_HD __half2 __half2half2(__half x) { return __half2(x, x); }
KW_HD __half __low2half(__half2 v) { return v.x; }
KW_HD __half __high2half(__half2 v) { return v.y; }
KW_HD __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
KW_HD __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
KW_HD __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }
KW_HD __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
KW_HD __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
KW_HD float __low2float(__half2 v) { return float(v.x.data); }
KW_HD float __high2float(__half2 v) { return float(v.y.data); }
KW_HD unsigned short __half_as_ushort(__half x) { return x.__x; }
KW_HD short __half_as_short(__half x) { return static_cast<short>(x.__x); }
KW_HD __half __ushort_as_half(unsigned short x) { __half h; h.__x = x; return h; }
KW_HD __half __short_as_half(short x) { return __ushort_as_half(static_cast<unsigned short>(x)); }
KW_HD __half __int2half_rn(int x) { return __half::of(_Float16(x)); }
KW_HD __half __uint2half_rn(unsigned x) { return __half::of(_Float16(x)); }
KW_HD int __half2int_rz(__half x) { return static_cast<int>(x.data); }
KW_HD int __half2int_rn(__half x) { return static_cast<int>(__builtin_rintf(float(x.data))); }
KW_ATOMIC_PAIR(__half2, __builtin_amdgcn_flat_atomic_fadd_v2f16, _Float16)
