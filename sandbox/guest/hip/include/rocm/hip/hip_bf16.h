// bfloat16 as HIP names it, for machines without ROCm's own header. Names: HIP API reference, "Bfloat16".
#pragma once
#include <hip/kernelwright_short_floats.h>

struct __hip_bfloat16_raw { unsigned short x; };
struct __hip_bfloat162_raw { unsigned short x, y; };

struct __hip_bfloat16 {
  union {
    __bf16 __x_bf16;
    unsigned short __x;
    unsigned short data;
  };
  __hip_bfloat16() = default;
  KW_HD __hip_bfloat16(float value) : __x_bf16(static_cast<__bf16>(value)) {}
  KW_HD __hip_bfloat16(double value) : __x_bf16(static_cast<__bf16>(static_cast<float>(value))) {}
  KW_HD __hip_bfloat16(int value) : __x_bf16(static_cast<__bf16>(static_cast<float>(value))) {}
  KW_HD __hip_bfloat16(unsigned value) : __x_bf16(static_cast<__bf16>(static_cast<float>(value))) {}
  KW_HD __hip_bfloat16(long value) : __x_bf16(static_cast<__bf16>(static_cast<float>(value))) {}
  KW_HD __hip_bfloat16(__bf16 value) : __x_bf16(value) {}
  KW_HD __hip_bfloat16(const __hip_bfloat16_raw& raw) { __x = raw.x; }
  KW_HD operator float() const { return static_cast<float>(__x_bf16); }
  KW_HD operator __hip_bfloat16_raw() const { return __hip_bfloat16_raw{__x}; }
  KW_HD explicit operator __bf16() const { return __x_bf16; }
  KW_HD explicit operator bool() const { return static_cast<float>(__x_bf16) != 0; }
  KW_HD explicit operator int() const { return static_cast<int>(static_cast<float>(__x_bf16)); }
  KW_HD explicit operator double() const { return static_cast<float>(__x_bf16); }
  KW_HD __bf16 value() const { return __x_bf16; }
  KW_HD static __hip_bfloat16 of(__bf16 value) { return __hip_bfloat16(value); }
};

struct alignas(4) __hip_bfloat162 {
  typedef __bf16 Pair __attribute__((ext_vector_type(2)));
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
  KW_HD __hip_bfloat162(__hip_bfloat16 low, __hip_bfloat16 high) : x(low), y(high) {}
  KW_HD explicit __hip_bfloat162(Pair pair) : x(pair.x), y(pair.y) {}
  KW_HD Pair pair() const { return Pair{x.__x_bf16, y.__x_bf16}; }
  KW_HD operator float2() const { return make_float2(float(x), float(y)); }
  KW_HD static __hip_bfloat162 of(Pair pair) { return __hip_bfloat162(pair); }
};

KW_SHORT_FLOAT_OPERATORS(__hip_bfloat16, __hip_bfloat162, __bf16)
KW_SHORT_FLOAT_FUNCTIONS(__hip_bfloat16, __hip_bfloat162, __bf16)
KW_SHORT_FLOAT_MATHS(__hip_bfloat16, __bf16)
KW_SHORT_FLOAT_SHUFFLES(__hip_bfloat16)
KW_SHORT_FLOAT_SHUFFLES(__hip_bfloat162)

KW_HD __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
KW_HD __hip_bfloat16 __float2bfloat16_rn(float x) { return __hip_bfloat16(x); }
KW_HD __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
KW_HD float __bfloat162float(__hip_bfloat16 x) { return static_cast<float>(x.__x_bf16); }
KW_HD __hip_bfloat162 __float22bfloat162_rn(float2 v) { return __hip_bfloat162(v.x, v.y); }
KW_HD __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return __hip_bfloat162(x, y); }
KW_HD __hip_bfloat162 __float2bfloat162_rn(float x) { return __hip_bfloat162(x, x); }
KW_HD float2 __bfloat1622float2(__hip_bfloat162 v) { return make_float2(float(v.x), float(v.y)); }
KW_HD __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return __hip_bfloat162(x, y); }
KW_HD __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return __hip_bfloat162(x, y); }
KW_HD __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return __hip_bfloat162(x, x); }
KW_HD __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
KW_HD __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
KW_HD float __low2float(__hip_bfloat162 v) { return float(v.x); }
KW_HD float __high2float(__hip_bfloat162 v) { return float(v.y); }
KW_HD unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.__x; }
KW_HD short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.__x); }
KW_HD __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __hip_bfloat16(__hip_bfloat16_raw{x}); }
KW_HD __hip_bfloat16 __short_as_bfloat16(short x) { return __ushort_as_bfloat16(static_cast<unsigned short>(x)); }
KW_ATOMIC_PAIR(__hip_bfloat162, __builtin_amdgcn_flat_atomic_fadd_v2bf16, short)
