// What hip_fp16.h and hip_bf16.h have in common: arithmetic, comparison, conversion and lane moves of a 16-bit float.
// Names: HIP API reference, "Half math" and "Bfloat16". Arithmetic rounds to nearest even after each operation.
#pragma once
#include <hip/hip_runtime.h>
#define KW_HD __host__ __device__ inline __attribute__((always_inline))

// `T`: the type; `T2`: two of them, with members x and y; `E`: the compiler's own type, as x.data.
#define KW_SHORT_FLOAT_OPERATORS(T, T2, E)                                                          \
  KW_HD T operator+(T a, T b) { return T::of(a.value() + b.value()); }                              \
  KW_HD T operator-(T a, T b) { return T::of(a.value() - b.value()); }                              \
  KW_HD T operator*(T a, T b) { return T::of(a.value() * b.value()); }                              \
  KW_HD T operator/(T a, T b) { return T::of(a.value() / b.value()); }                              \
  KW_HD T operator-(T a) { return T::of(-a.value()); }                                              \
  KW_HD T operator+(T a) { return a; }                                                              \
  KW_HD T& operator+=(T& a, T b) { return a = a + b; }                                              \
  KW_HD T& operator-=(T& a, T b) { return a = a - b; }                                              \
  KW_HD T& operator*=(T& a, T b) { return a = a * b; }                                              \
  KW_HD T& operator/=(T& a, T b) { return a = a / b; }                                              \
  KW_HD bool operator==(T a, T b) { return a.value() == b.value(); }                                \
  KW_HD bool operator!=(T a, T b) { return a.value() != b.value(); }                                \
  KW_HD bool operator<(T a, T b) { return a.value() < b.value(); }                                  \
  KW_HD bool operator<=(T a, T b) { return a.value() <= b.value(); }                                \
  KW_HD bool operator>(T a, T b) { return a.value() > b.value(); }                                  \
  KW_HD bool operator>=(T a, T b) { return a.value() >= b.value(); }                                \
  KW_HD T2 operator+(T2 a, T2 b) { return T2::of(a.pair() + b.pair()); }                            \
  KW_HD T2 operator-(T2 a, T2 b) { return T2::of(a.pair() - b.pair()); }                            \
  KW_HD T2 operator*(T2 a, T2 b) { return T2::of(a.pair() * b.pair()); }                            \
  KW_HD T2 operator/(T2 a, T2 b) { return T2::of(a.pair() / b.pair()); }                            \
  KW_HD T2 operator-(T2 a) { return T2::of(-a.pair()); }                                            \
  KW_HD T2& operator+=(T2& a, T2 b) { return a = a + b; }                                           \
  KW_HD T2& operator-=(T2& a, T2 b) { return a = a - b; }                                           \
  KW_HD T2& operator*=(T2& a, T2 b) { return a = a * b; }                                           \
  KW_HD bool operator==(T2 a, T2 b) { return a.x == b.x && a.y == b.y; }                            \
  KW_HD bool operator!=(T2 a, T2 b) { return !(a == b); }

// No operator and no conversion of `T` in here: torch builds extensions without those of half.
#define KW_SHORT_FLOAT_FUNCTIONS(T, T2, E)                                                          \
  KW_HD T __hadd(T a, T b) { return T::of(a.value() + b.value()); }                                 \
  KW_HD T __hadd_rn(T a, T b) { return T::of(a.value() + b.value()); }                              \
  KW_HD T __hsub(T a, T b) { return T::of(a.value() - b.value()); }                                 \
  KW_HD T __hmul(T a, T b) { return T::of(a.value() * b.value()); }                                 \
  KW_HD T __hdiv(T a, T b) { return T::of(a.value() / b.value()); }                                 \
  KW_HD T __hneg(T a) { return T::of(-a.value()); }                                                 \
  KW_HD T __habs(T a) { return T::of(a.value() < E(0) ? -a.value() : a.value()); }                  \
  KW_HD T __hfma(T a, T b, T c) {                                                                   \
    return T::of(E(__builtin_fmaf(float(a.value()), float(b.value()), float(c.value()))));          \
  }                                                                                                 \
  KW_HD T __hmax(T a, T b) { return a.value() > b.value() || b.value() != b.value() ? a : b; }      \
  KW_HD T __hmin(T a, T b) { return a.value() < b.value() || b.value() != b.value() ? a : b; }      \
  KW_HD bool __heq(T a, T b) { return a.value() == b.value(); }                                     \
  KW_HD bool __hne(T a, T b) { return a.value() != b.value(); }                                     \
  KW_HD bool __hlt(T a, T b) { return a.value() < b.value(); }                                      \
  KW_HD bool __hle(T a, T b) { return a.value() <= b.value(); }                                     \
  KW_HD bool __hgt(T a, T b) { return a.value() > b.value(); }                                      \
  KW_HD bool __hge(T a, T b) { return a.value() >= b.value(); }                                     \
  KW_HD bool __hisnan(T a) { return a.value() != a.value(); }                                       \
  KW_HD int __hisinf(T a) { return __builtin_isinf(float(a.value())); }                             \
  KW_HD T2 __hadd2(T2 a, T2 b) { return T2::of(a.pair() + b.pair()); }                              \
  KW_HD T2 __hsub2(T2 a, T2 b) { return T2::of(a.pair() - b.pair()); }                              \
  KW_HD T2 __hmul2(T2 a, T2 b) { return T2::of(a.pair() * b.pair()); }                              \
  KW_HD T2 __h2div(T2 a, T2 b) { return T2::of(a.pair() / b.pair()); }                              \
  KW_HD T2 __hneg2(T2 a) { return T2::of(-a.pair()); }                                              \
  KW_HD T2 __habs2(T2 a) { return T2(__habs(a.x), __habs(a.y)); }                                   \
  KW_HD T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }   \
  KW_HD T2 __hmax2(T2 a, T2 b) { return T2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                   \
  KW_HD T2 __hmin2(T2 a, T2 b) { return T2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }

#define KW_MATHS(T, E, name, function) \
  __device__ inline T name(T a) { return T::of(E(function(float(a.value())))); }
#define KW_SHORT_FLOAT_MATHS(T, E)                                                                  \
  KW_MATHS(T, E, hexp, expf) KW_MATHS(T, E, hexp2, exp2f) KW_MATHS(T, E, hlog, logf)                \
  KW_MATHS(T, E, hlog2, log2f) KW_MATHS(T, E, hsqrt, sqrtf) KW_MATHS(T, E, hrsqrt, rsqrtf)          \
  KW_MATHS(T, E, hrcp, 1.0f /) KW_MATHS(T, E, hsin, sinf) KW_MATHS(T, E, hcos, cosf)                \
  KW_MATHS(T, E, hfloor, floorf) KW_MATHS(T, E, hceil, ceilf) KW_MATHS(T, E, hrint, rintf)          \
  KW_MATHS(T, E, htrunc, truncf) KW_MATHS(T, E, htanh, tanhf)

// A lane move of what fits into one word.
#define KW_SHUFFLE_OF(T, name, second)                                                              \
  __device__ inline T name(T value, second by, int width = 64) {                                    \
    unsigned word = 0;                                                                              \
    __builtin_memcpy(&word, &value, sizeof(T));                                                     \
    word = name(word, by, width);                                                                   \
    __builtin_memcpy(&value, &word, sizeof(T));                                                     \
    return value;                                                                                   \
  }
#define KW_SHORT_FLOAT_SHUFFLES(T)                                                                  \
  KW_SHUFFLE_OF(T, __shfl, int) KW_SHUFFLE_OF(T, __shfl_up, unsigned)                               \
  KW_SHUFFLE_OF(T, __shfl_down, unsigned) KW_SHUFFLE_OF(T, __shfl_xor, int)

// Adds a pair in one operation. `E`: what the instruction's builtin calls its elements.
#ifndef KW_HIP_EMULATED
#define KW_ATOMIC_PAIR(T2, builtin, E)                                                              \
  __device__ inline T2 unsafeAtomicAdd(T2* at, T2 value) {                                          \
    typedef E Pair __attribute__((ext_vector_type(2)));                                             \
    Pair pair;                                                                                      \
    __builtin_memcpy(&pair, &value, sizeof pair);                                                   \
    pair = builtin(reinterpret_cast<Pair*>(at), pair);                                              \
    __builtin_memcpy(&value, &pair, sizeof pair);                                                   \
    return value;                                                                                   \
  }
#else
#define KW_ATOMIC_PAIR(T2, builtin, E)                                                              \
  inline T2 unsafeAtomicAdd(T2* at, T2 value) {                                                     \
    unsigned* word = reinterpret_cast<unsigned*>(at);                                               \
    unsigned seen = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);            \
    for (;;) {                                                                                      \
      T2 before = __builtin_bit_cast(T2, seen);                                                     \
      const unsigned found = atomicCAS(word, seen, __builtin_bit_cast(unsigned, __hadd2(before, value)));\
      if (found == seen) return before;                                                             \
      seen = found;                                                                                 \
    }                                                                                               \
  }
#endif
