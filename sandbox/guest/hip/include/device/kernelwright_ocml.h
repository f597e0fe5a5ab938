// AMD's device mathematics (ocml) as far as HIP names it. Signatures: ROCm device-libs, doc/OCML.md.
#pragma once
#define KW_PURE __device__ __attribute__((const))
#define KW_DECLARE_1(name) KW_PURE float __ocml_##name##_f32(float); KW_PURE double __ocml_##name##_f64(double);
#define KW_DECLARE_2(name) \
  KW_PURE float __ocml_##name##_f32(float, float); KW_PURE double __ocml_##name##_f64(double, double);
#define KW_DECLARE_OUT(name, f32, f64) \
  __device__ float __ocml_##name##_f32(float, __attribute__((address_space(5))) f32*); \
  __device__ double __ocml_##name##_f64(double, __attribute__((address_space(5))) f64*);
#define KW_DECLARE_HALF(name) KW_PURE _Float16 __ocml_##name##_f16(_Float16);
#define KW_DECLARE_FLOAT(name) KW_PURE float __ocml_##name##_f32(float);
extern "C" {
KW_DECLARE_1(acos) KW_DECLARE_1(acosh) KW_DECLARE_1(asin) KW_DECLARE_1(asinh) KW_DECLARE_1(atan) KW_DECLARE_1(atanh)
KW_DECLARE_1(cbrt) KW_DECLARE_1(cos) KW_DECLARE_1(cosh) KW_DECLARE_1(cospi) KW_DECLARE_1(erf) KW_DECLARE_1(erfc)
KW_DECLARE_1(erfcinv) KW_DECLARE_1(erfcx) KW_DECLARE_1(erfinv) KW_DECLARE_1(exp) KW_DECLARE_1(exp10)
KW_DECLARE_1(exp2) KW_DECLARE_1(expm1) KW_DECLARE_1(lgamma) KW_DECLARE_1(log) KW_DECLARE_1(log10) KW_DECLARE_1(log1p)
KW_DECLARE_1(log2) KW_DECLARE_1(logb) KW_DECLARE_1(ncdf) KW_DECLARE_1(rcbrt) KW_DECLARE_1(rsqrt) KW_DECLARE_1(sin)
KW_DECLARE_1(sinh) KW_DECLARE_1(sinpi) KW_DECLARE_1(tan) KW_DECLARE_1(tanh) KW_DECLARE_1(tgamma)
KW_DECLARE_2(atan2) KW_DECLARE_2(fdim) KW_DECLARE_2(fmod) KW_DECLARE_2(hypot) KW_DECLARE_2(nextafter)
KW_DECLARE_2(pow) KW_DECLARE_2(remainder) KW_DECLARE_2(rhypot)
KW_DECLARE_OUT(frexp, int, int) KW_DECLARE_OUT(modf, float, double) KW_DECLARE_OUT(sincos, float, double)
KW_DECLARE_OUT(sincospi, float, double)
KW_DECLARE_FLOAT(native_cos) KW_DECLARE_FLOAT(native_exp) KW_DECLARE_FLOAT(native_exp10) KW_DECLARE_FLOAT(native_log)
KW_DECLARE_FLOAT(native_log10) KW_DECLARE_FLOAT(native_log2) KW_DECLARE_FLOAT(native_sin)
KW_DECLARE_HALF(cos) KW_DECLARE_HALF(exp) KW_DECLARE_HALF(exp10) KW_DECLARE_HALF(exp2) KW_DECLARE_HALF(log)
KW_DECLARE_HALF(log10) KW_DECLARE_HALF(log2) KW_DECLARE_HALF(rsqrt) KW_DECLARE_HALF(sin) KW_DECLARE_HALF(sqrt)
KW_PURE int __ocml_ilogb_f32(float); KW_PURE int __ocml_ilogb_f64(double);
KW_PURE float __ocml_pown_f32(float, int); KW_PURE double __ocml_pown_f64(double, int);
KW_PURE float __ocml_len3_f32(float, float, float);
}
