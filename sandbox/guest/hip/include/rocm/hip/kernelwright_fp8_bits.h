// The four 8-bit floats bit by bit: exact, to nearest even, on any machine. OCP 8-bit Floating Point Specification
// (E4M3, E5M2); AMD CDNA3 ISA guide, "FP8 and BF8" (the fnuz forms).
#pragma once
#ifndef KW_HD
#define KW_HD inline
#endif

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;
enum __hip_fp8_interpretation_t { __HIP_E4M3 = 0, __HIP_E5M2 = 1, __HIP_E4M3_FNUZ = 2, __HIP_E5M2_FNUZ = 3 };
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };

struct kw_fp8_format {
  int mantissa, bias;
  unsigned largest, infinity, nan;
  bool fnuz;
};
KW_HD constexpr kw_fp8_format kw_fp8(__hip_fp8_interpretation_t kind) {
  switch (kind) {
    case __HIP_E4M3: return {3, 7, 0x7e, 0x7f, 0x7f, false};
    case __HIP_E5M2: return {2, 15, 0x7b, 0x7c, 0x7f, false};
    case __HIP_E4M3_FNUZ: return {3, 8, 0x7f, 0x80, 0x80, true};
    default: return {2, 16, 0x7f, 0x80, 0x80, true};
  }
}

KW_HD __hip_fp8_storage_t kw_to_fp8(float value, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
  const kw_fp8_format form = kw_fp8(kind);
  const unsigned bits = __builtin_bit_cast(unsigned, value), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<__hip_fp8_storage_t>(form.fnuz ? form.nan : sign | form.nan);
  const unsigned over = form.fnuz ? form.nan : sign | form.infinity;
  const unsigned full = sign | form.largest;
  if (magnitude == 0x7f800000) return static_cast<__hip_fp8_storage_t>(saturate == __HIP_SATFINITE ? full : over);
  const int exponent = static_cast<int>(magnitude >> 23) - 127, least = 1 - form.bias;
  const int shift = 23 - form.mantissa + (exponent < least ? least - exponent : 0);
  unsigned code = 0;
  if (shift <= 24) {
    const unsigned whole = (magnitude & 0x7fffff) | (magnitude >> 23 ? 0x800000 : 0);
    const unsigned kept = whole >> shift, rest = whole & ((1u << shift) - 1), half = 1u << (shift - 1);
    const unsigned rounded = kept + (rest > half || (rest == half && kept & 1));
    // With the hidden bit in place, adding the exponent carries what rounding may have carried.
    code = rounded + (exponent < least ? 0 : static_cast<unsigned>(exponent - least) << form.mantissa);
  }
  if (code > form.largest) return static_cast<__hip_fp8_storage_t>(saturate == __HIP_SATFINITE ? full : over);
  return static_cast<__hip_fp8_storage_t>(code == 0 && form.fnuz ? 0 : sign | code);
}

KW_HD float kw_from_fp8(__hip_fp8_storage_t code, __hip_fp8_interpretation_t kind) {
  const kw_fp8_format form = kw_fp8(kind);
  const unsigned magnitude = code & 0x7f;
  if (form.fnuz ? code == 0x80 : kind == __HIP_E4M3 ? magnitude == 0x7f : magnitude > 0x7c) return __builtin_nanf("");
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (kind == __HIP_E5M2 && magnitude == 0x7c) return sign * __builtin_inff();
  const int exponent = static_cast<int>(magnitude >> form.mantissa);
  const unsigned fraction = magnitude & ((1u << form.mantissa) - 1);
  const float scaled = static_cast<float>(exponent ? fraction | 1u << form.mantissa : fraction);
  return sign * __builtin_ldexpf(scaled, (exponent ? exponent : 1) - form.bias - form.mantissa);
}
