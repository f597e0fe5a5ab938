// Device functions for numbers. Where AMD's is approximate, the CPU's correctly rounded or libm's stands for it.
#pragma once
#include <algorithm>

#include "wave.h"

#define KW_CALL1(name, type, expression) KW_INLINE type name(type x) { return type(expression); }
#define KW_CALL2(name, type, expression) KW_INLINE type name(type x, type y) { return type(expression); }
#define KW_CALL3(name, type, expression) KW_INLINE type name(type x, type y, type z) { return type(expression); }

KW_CALL1(__expf, float, ::expf(x)) KW_CALL1(__exp2f, float, ::exp2f(x)) KW_CALL1(__exp10f, float, ::powf(10.0f, x))
KW_CALL1(__logf, float, ::logf(x)) KW_CALL1(__log2f, float, ::log2f(x)) KW_CALL1(__log10f, float, ::log10f(x))
KW_CALL1(__sinf, float, ::sinf(x)) KW_CALL1(__cosf, float, ::cosf(x)) KW_CALL1(__tanf, float, ::tanf(x))
KW_CALL2(__powf, float, ::powf(x, y)) KW_CALL2(__fdividef, float, x / y)
KW_CALL1(rsqrtf, float, 1.0f / ::sqrtf(x)) KW_CALL1(rsqrt, double, 1.0 / ::sqrt(x)) KW_CALL1(__frsqrt_rn, float, 1.0f / ::sqrtf(x))
KW_CALL1(__frcp_rn, float, 1.0f / x) KW_CALL1(__fsqrt_rn, float, ::sqrtf(x)) KW_CALL1(__saturatef, float, x < 0 ? 0 : x > 1 ? 1 : x)
KW_CALL2(__fadd_rn, float, x + y) KW_CALL2(__fsub_rn, float, x - y) KW_CALL2(__fmul_rn, float, x * y) KW_CALL2(__fdiv_rn, float, x / y)
KW_CALL3(__fmaf_rn, float, ::fmaf(x, y, z)) KW_CALL1(normcdff, float, 0.5f * ::erfcf(-x * 0.70710678f))
KW_INLINE void sincosf_(float x, float* s, float* c) { *s = ::sinf(x), *c = ::cosf(x); }
KW_INLINE void __sincosf(float x, float* s, float* c) { sincosf_(x, s, c); }
KW_INLINE float max(float x, float y) { return ::fmaxf(x, y); }
KW_INLINE float min(float x, float y) { return ::fminf(x, y); }
KW_INLINE double max(double x, double y) { return ::fmax(x, y); }
KW_INLINE double min(double x, double y) { return ::fmin(x, y); }
#define KW_EXTREMES(type)                                         \
  KW_INLINE type max(type x, type y) { return x < y ? y : x; }    \
  KW_INLINE type min(type x, type y) { return y < x ? y : x; }
KW_EXTREMES(int) KW_EXTREMES(unsigned) KW_EXTREMES(long) KW_EXTREMES(unsigned long) KW_EXTREMES(long long) KW_EXTREMES(unsigned long long)
template <class T, class U>
  requires(std::is_arithmetic_v<T> && std::is_arithmetic_v<U> && !std::is_same_v<T, U>)
KW_INLINE auto max(T x, U y) { using C = std::common_type_t<T, U>; return C(x) < C(y) ? C(y) : C(x); }
template <class T, class U>
  requires(std::is_arithmetic_v<T> && std::is_arithmetic_v<U> && !std::is_same_v<T, U>)
KW_INLINE auto min(T x, U y) { using C = std::common_type_t<T, U>; return C(y) < C(x) ? C(y) : C(x); }

KW_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
KW_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KW_INLINE int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
KW_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
KW_INLINE int __ffs(int x) { return __builtin_ffs(x); }
KW_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
KW_INLINE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
KW_INLINE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
KW_INLINE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
KW_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
KW_INLINE int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
KW_INLINE unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }
KW_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned long long)((unsigned __int128)x * y >> 64); }
KW_INLINE float __int_as_float(int x) { return kw::bits<float>(x); }
KW_INLINE int __float_as_int(float x) { return kw::bits<int>(x); }
KW_INLINE float __uint_as_float(unsigned x) { return kw::bits<float>(x); }
KW_INLINE unsigned __float_as_uint(float x) { return kw::bits<unsigned>(x); }
KW_INLINE long long __double_as_longlong(double x) { return kw::bits<long long>(x); }
KW_INLINE double __longlong_as_double(long long x) { return kw::bits<double>(x); }
KW_INLINE int __float2int_rn(float x) { return int(::rintf(x)); }
KW_INLINE int __float2int_rz(float x) { return int(x); }
KW_INLINE int __float2int_rd(float x) { return int(::floorf(x)); }
KW_INLINE int __float2int_ru(float x) { return int(::ceilf(x)); }
KW_INLINE unsigned __float2uint_rn(float x) { return unsigned(::rintf(x)); }
KW_INLINE float __int2float_rn(int x) { return float(x); }
KW_INLINE float __uint2float_rn(unsigned x) { return float(x); }
template <class T>
KW_INLINE T __ldg(const T* at) { return *at; }
KW_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned pick) {
  uint64_t both = uint64_t(y) << 32 | x;
  unsigned made = 0;
  for (int i = 0; i < 4; i++) made |= unsigned(both >> 8 * (pick >> 4 * i & 7) & 255) << 8 * i;
  return made;
}
KW_INLINE int __dp4a(int x, int y, int sum) {
  for (int i = 0; i < 4; i++) sum += int(int8_t(x >> 8 * i)) * int(int8_t(y >> 8 * i));
  return sum;
}

// Builtins of the vector unit; CDNA3 instruction set architecture, section 16 (VOP1 to VOP3).
#define KW_UNARY(name, type, expression) KW_CALL1(__builtin_amdgcn_##name, type, expression)
KW_UNARY(rcpf, float, 1.0f / x) KW_UNARY(rcp, double, 1.0 / x) KW_UNARY(rsqf, float, 1.0f / ::sqrtf(x)) KW_UNARY(sqrtf, float, ::sqrtf(x))
KW_UNARY(exp2f, float, ::exp2f(x)) KW_UNARY(logf, float, ::log2f(x)) KW_UNARY(fractf, float, x - ::floorf(x))
KW_UNARY(sinf, float, ::sinf(x * 6.2831853071795865f)) KW_UNARY(cosf, float, ::cosf(x * 6.2831853071795865f))
KW_CALL3(__builtin_amdgcn_fmed3f, float, ::fmaxf(::fminf(x, y), ::fminf(::fmaxf(x, y), z)))
KW_INLINE float __builtin_amdgcn_ldexpf(float x, int by) { return ::ldexpf(x, by); }
KW_INLINE int __builtin_amdgcn_frexp_expf(float x) {
  int by = 0;
  return ::frexpf(x, &by), by;
}
KW_INLINE float __builtin_amdgcn_frexp_mantf(float x) {
  int by = 0;
  return ::frexpf(x, &by);
}
KW_INLINE unsigned __builtin_amdgcn_ubfe(unsigned x, unsigned from, unsigned count) {
  count &= 31;
  return count ? x >> (from & 31) & ((1u << count) - 1) : 0;
}
KW_INLINE int __builtin_amdgcn_sbfe(int x, unsigned from, unsigned count) {
  count &= 31, from &= 31;
  return !count ? 0 : from + count < 32 ? int(unsigned(x) << (32 - from - count)) >> (32 - count) : x >> from;
}
KW_INLINE unsigned __builtin_amdgcn_alignbit(unsigned high, unsigned low, unsigned by) { return unsigned((uint64_t(high) << 32 | low) >> (by & 31)); }
KW_INLINE unsigned __builtin_amdgcn_alignbyte(unsigned high, unsigned low, unsigned by) { return unsigned((uint64_t(high) << 32 | low) >> 8 * (by & 3)); }
/** v_perm_b32: bytes 0..3 of `second` are 0..3, of `first` 4..7; 8..11 signs, 12 zero, above it 255. */
KW_INLINE unsigned __builtin_amdgcn_perm(unsigned first, unsigned second, unsigned pick) {
  uint64_t both = uint64_t(first) << 32 | second;
  unsigned made = 0;
  for (int i = 0; i < 4; i++) {
    unsigned which = pick >> 8 * i & 255;
    unsigned byte = which < 8 ? unsigned(both >> 8 * which & 255) : which < 12 ? (both >> (16 * (which - 8) + 15) & 1 ? 255u : 0u) : which == 12 ? 0u : 255u;
    made |= byte << 8 * i;
  }
  return made;
}
KW_INLINE int __builtin_amdgcn_sdot4(int x, int y, int sum, bool) { return __dp4a(x, y, sum); }
KW_INLINE bool __builtin_amdgcn_classf(float x, int which) {
  bool minus = std::signbit(x);
  int is = std::isnan(x) ? 3 : std::isinf(x) ? (minus ? 4 : 512) : x == 0 ? (minus ? 32 : 64)
           : std::isnormal(x) ? (minus ? 8 : 256) : (minus ? 16 : 128);
  return which & is;
}
