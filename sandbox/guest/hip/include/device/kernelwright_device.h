// What clang's own HIP wrapper gives a device pass, for a clang that comes without it (the ziglang wheel's).
//
// Included before the source. Keywords, C and C++ mathematics over AMD's device library (ocml), minimum and maximum,
// device memory management. Names and semantics: HIP programming guide, "HIP math API"; ocml: ROCm device-libs,
// doc/OCML.md. Sources that ROCm's own clang compiles bring clang's wrapper, and never see this file.
#pragma once
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#define __CLANG_HIP_RUNTIME_WRAPPER_INCLUDED__ 1

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

// Gone from clang 22, and still asked for by kernels: CDNA has waves of 64 lanes.
#ifndef __AMDGCN_WAVEFRONT_SIZE
#define __AMDGCN_WAVEFRONT_SIZE 64
#endif
#ifndef __AMDGCN_WAVEFRONT_SIZE__
#define __AMDGCN_WAVEFRONT_SIZE__ 64
#endif

#include "kernelwright_ocml.h"

#define KW_FN static __device__ inline __attribute__((always_inline))
#define KW_PRIVATE(held) ((__attribute__((address_space(5))) decltype(held)*)&held)

// One operand: f(double), f(float), ff(float), and whole numbers as double.
#define KW_1(name, single, full)                                                            \
  KW_FN double name(double x) { return full(x); }                                           \
  KW_FN float name(float x) { return single(x); }                                           \
  KW_FN float name##f(float x) { return single(x); }                                        \
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>                      \
  KW_FN double name(T x) { return full(static_cast<double>(x)); }
#define KW_2(name, single, full)                                                            \
  KW_FN double name(double x, double y) { return full(x, y); }                              \
  KW_FN float name(float x, float y) { return single(x, y); }                               \
  KW_FN float name##f(float x, float y) { return single(x, y); }                            \
  template <class T, class U,                                                               \
            std::enable_if_t<std::is_arithmetic_v<T> && std::is_arithmetic_v<U> &&          \
                             !(std::is_same_v<T, float> && std::is_same_v<U, float>) &&     \
                             !(std::is_same_v<T, double> && std::is_same_v<U, double>), int> = 0> \
  KW_FN double name(T x, U y) { return full(static_cast<double>(x), static_cast<double>(y)); }
#define KW_OCML_1(name) KW_1(name, __ocml_##name##_f32, __ocml_##name##_f64)
#define KW_OCML_2(name) KW_2(name, __ocml_##name##_f32, __ocml_##name##_f64)
#define KW_BUILTIN_1(name) KW_1(name, __builtin_##name##f, __builtin_##name)

KW_OCML_1(acos) KW_OCML_1(acosh) KW_OCML_1(asin) KW_OCML_1(asinh) KW_OCML_1(atan) KW_OCML_1(atanh) KW_OCML_1(cbrt)
KW_OCML_1(cos) KW_OCML_1(cosh) KW_OCML_1(erf) KW_OCML_1(erfc) KW_OCML_1(exp) KW_OCML_1(expm1) KW_OCML_1(lgamma)
KW_OCML_1(log) KW_OCML_1(log10) KW_OCML_1(log1p) KW_OCML_1(log2) KW_OCML_1(logb) KW_OCML_1(sin) KW_OCML_1(sinh)
KW_OCML_1(tan) KW_OCML_1(tanh) KW_OCML_1(tgamma) KW_OCML_1(exp2)
KW_BUILTIN_1(ceil) KW_BUILTIN_1(fabs) KW_BUILTIN_1(floor) KW_BUILTIN_1(nearbyint) KW_BUILTIN_1(rint)
KW_BUILTIN_1(round) KW_BUILTIN_1(sqrt) KW_BUILTIN_1(trunc)
KW_OCML_2(atan2) KW_OCML_2(fdim) KW_OCML_2(fmod) KW_OCML_2(hypot) KW_OCML_2(nextafter) KW_OCML_2(remainder)
KW_2(copysign, __builtin_copysignf, __builtin_copysign) KW_2(fmax, __builtin_fmaxf, __builtin_fmax)
KW_2(fmin, __builtin_fminf, __builtin_fmin) KW_OCML_2(pow)

// What HIP has beside the C library. No integer form: their name is no C++ overload set.
#define KW_HIP_1(name)                                                                      \
  KW_FN double name(double x) { return __ocml_##name##_f64(x); }                            \
  KW_FN float name##f(float x) { return __ocml_##name##_f32(x); }
KW_HIP_1(cospi) KW_HIP_1(sinpi) KW_HIP_1(exp10) KW_HIP_1(rcbrt) KW_HIP_1(erfinv) KW_HIP_1(erfcinv) KW_HIP_1(erfcx)
KW_FN double rsqrt(double x) { return __ocml_rsqrt_f64(x); }
KW_FN float rsqrt(float x) { return __ocml_rsqrt_f32(x); }
KW_FN float rsqrtf(float x) { return __ocml_rsqrt_f32(x); }
KW_FN float normcdff(float x) { return __ocml_ncdf_f32(x); }
KW_FN double normcdf(double x) { return __ocml_ncdf_f64(x); }
KW_FN float rhypotf(float x, float y) { return __ocml_rhypot_f32(x, y); }
KW_FN float norm3df(float x, float y, float z) { return __ocml_len3_f32(x, y, z); }

KW_FN double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
KW_FN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KW_FN float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KW_FN double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
KW_FN float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
KW_FN float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
KW_FN double scalbn(double x, int e) { return __builtin_ldexp(x, e); }
KW_FN float scalbnf(float x, int e) { return __builtin_ldexpf(x, e); }
KW_FN float powif(float x, int n) { return __ocml_pown_f32(x, n); }
KW_FN double powi(double x, int n) { return __ocml_pown_f64(x, n); }
KW_FN float pow(float x, int n) { return __ocml_pown_f32(x, n); }
KW_FN double pow(double x, int n) { return __ocml_pown_f64(x, n); }
KW_FN int ilogb(double x) { return __ocml_ilogb_f64(x); }
KW_FN int ilogbf(float x) { return __ocml_ilogb_f32(x); }
KW_FN long lrintf(float x) { return static_cast<long>(__builtin_rintf(x)); }
KW_FN long lrint(double x) { return static_cast<long>(__builtin_rint(x)); }
KW_FN long lroundf(float x) { return static_cast<long>(__builtin_roundf(x)); }
KW_FN long lround(double x) { return static_cast<long>(__builtin_round(x)); }
KW_FN long long llrintf(float x) { return static_cast<long long>(__builtin_rintf(x)); }
KW_FN long long llrint(double x) { return static_cast<long long>(__builtin_rint(x)); }
KW_FN long long llroundf(float x) { return static_cast<long long>(__builtin_roundf(x)); }
KW_FN float fdividef(float x, float y) { return x / y; }

KW_FN bool isnan(float x) { return __builtin_isnan(x); }
KW_FN bool isnan(double x) { return __builtin_isnan(x); }
KW_FN bool isinf(float x) { return __builtin_isinf(x); }
KW_FN bool isinf(double x) { return __builtin_isinf(x); }
KW_FN bool isfinite(float x) { return __builtin_isfinite(x); }
KW_FN bool isfinite(double x) { return __builtin_isfinite(x); }
KW_FN bool signbit(float x) { return __builtin_signbit(x); }
KW_FN bool signbit(double x) { return __builtin_signbit(x); }
KW_FN float nanf(const char*) { return __builtin_nanf(""); }
KW_FN double nan(const char*) { return __builtin_nan(""); }

#define KW_OUT(type, name, ocml, out)                                                       \
  KW_FN type name(type x, out* second) {                                                    \
    out held;                                                                               \
    type found = ocml(x, KW_PRIVATE(held));                                                 \
    *second = held;                                                                         \
    return found;                                                                           \
  }
KW_OUT(float, frexpf, __ocml_frexp_f32, int) KW_OUT(double, frexp, __ocml_frexp_f64, int)
KW_OUT(float, modff, __ocml_modf_f32, float) KW_OUT(double, modf, __ocml_modf_f64, double)
#define KW_SINE_AND_COSINE(type, name, ocml)                                                \
  KW_FN void name(type x, type* s, type* c) {                                               \
    type held;                                                                              \
    *s = ocml(x, KW_PRIVATE(held));                                                         \
    *c = held;                                                                              \
  }
KW_SINE_AND_COSINE(float, sincosf, __ocml_sincos_f32) KW_SINE_AND_COSINE(double, sincos, __ocml_sincos_f64)
KW_SINE_AND_COSINE(float, sincospif, __ocml_sincospi_f32) KW_SINE_AND_COSINE(double, sincospi, __ocml_sincospi_f64)

// The fast forms, and those that say how they round.
KW_FN float __cosf(float x) { return __ocml_native_cos_f32(x); }
KW_FN float __sinf(float x) { return __ocml_native_sin_f32(x); }
KW_FN float __tanf(float x) { return __sinf(x) * __builtin_amdgcn_rcpf(__cosf(x)); }
KW_FN void __sincosf(float x, float* s, float* c) { *s = __sinf(x); *c = __cosf(x); }
KW_FN float __expf(float x) { return __ocml_native_exp_f32(x); }
KW_FN float __exp10f(float x) { return __ocml_native_exp10_f32(x); }
KW_FN float __logf(float x) { return __ocml_native_log_f32(x); }
KW_FN float __log2f(float x) { return __ocml_native_log2_f32(x); }
KW_FN float __log10f(float x) { return __ocml_native_log10_f32(x); }
KW_FN float __powf(float x, float y) { return __ocml_pow_f32(x, y); }
KW_FN float __fdividef(float x, float y) { return x / y; }
KW_FN float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
KW_FN float __frsqrt_rn(float x) { return __builtin_amdgcn_rsqf(x); }
#define KW_ROUNDED(suffix, type, letter, builtin)                                           \
  KW_FN type __##letter##add_rn(type x, type y) { return x + y; }                           \
  KW_FN type __##letter##sub_rn(type x, type y) { return x - y; }                           \
  KW_FN type __##letter##mul_rn(type x, type y) { return x * y; }                           \
  KW_FN type __##letter##sqrt_rn(type x) { return builtin(x); }
KW_ROUNDED(f32, float, f, __builtin_sqrtf)
KW_ROUNDED(f64, double, d, __builtin_sqrt)
KW_FN float __fdiv_rn(float x, float y) { return x / y; }
KW_FN double __ddiv_rn(double x, double y) { return x / y; }
KW_FN float __frcp_rn(float x) { return 1.0f / x; }
KW_FN float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KW_FN double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

KW_FN float abs(float x) { return __builtin_fabsf(x); }
KW_FN double abs(double x) { return __builtin_fabs(x); }
KW_FN int abs(int x) { return x < 0 ? -x : x; }
KW_FN long abs(long x) { return x < 0 ? -x : x; }
KW_FN long long abs(long long x) { return x < 0 ? -x : x; }
KW_FN long labs(long x) { return x < 0 ? -x : x; }
KW_FN long long llabs(long long x) { return x < 0 ? -x : x; }

// HIP's own min and max, on both sides; mixed whole numbers are taken as C++ would.
#define KW_BOTH static __host__ __device__ inline __attribute__((always_inline))
#define KW_MINMAX(type)                                                                     \
  KW_BOTH type min(type x, type y) { return x < y ? x : y; }                                \
  KW_BOTH type max(type x, type y) { return x < y ? y : x; }
KW_MINMAX(int) KW_MINMAX(unsigned) KW_MINMAX(long) KW_MINMAX(unsigned long) KW_MINMAX(long long)
KW_MINMAX(unsigned long long)
KW_BOTH float min(float x, float y) { return __builtin_fminf(x, y); }
KW_BOTH float max(float x, float y) { return __builtin_fmaxf(x, y); }
KW_BOTH double min(double x, double y) { return __builtin_fmin(x, y); }
KW_BOTH double max(double x, double y) { return __builtin_fmax(x, y); }
template <class T, class U,
          std::enable_if_t<std::is_arithmetic_v<T> && std::is_arithmetic_v<U> && !std::is_same_v<T, U>, int> = 0>
KW_BOTH std::common_type_t<T, U> min(T x, U y) {
  using V = std::common_type_t<T, U>;
  return static_cast<V>(x) < static_cast<V>(y) ? static_cast<V>(x) : static_cast<V>(y);
}
template <class T, class U,
          std::enable_if_t<std::is_arithmetic_v<T> && std::is_arithmetic_v<U> && !std::is_same_v<T, U>, int> = 0>
KW_BOTH std::common_type_t<T, U> max(T x, U y) {
  using V = std::common_type_t<T, U>;
  return static_cast<V>(x) < static_cast<V>(y) ? static_cast<V>(y) : static_cast<V>(x);
}

namespace std {
using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh; using ::cbrt;
using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2;
using ::expm1; using ::fabs; using ::fdim; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod;
using ::hypot; using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::lgamma; using ::log; using ::log10;
using ::log1p; using ::log2; using ::logb; using ::nearbyint; using ::nextafter; using ::pow; using ::remainder;
using ::rint; using ::round; using ::signbit; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh;
using ::tgamma; using ::trunc; using ::abs; using ::frexp; using ::modf;
}  // namespace std

extern "C" __device__ unsigned long long __ockl_dm_alloc(unsigned long long);
extern "C" __device__ void __ockl_dm_dealloc(unsigned long long);
KW_FN void* malloc(size_t bytes) { return reinterpret_cast<void*>(__ockl_dm_alloc(bytes)); }
KW_FN void free(void* at) { __ockl_dm_dealloc(reinterpret_cast<unsigned long long>(at)); }
#endif
