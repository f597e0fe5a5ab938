// HIP's older bfloat16, `hip_bfloat16`: rounds to nearest even when made from a float. Names: HIP API reference.
#pragma once
#include <hip/hip_bf16.h>

struct hip_bfloat16 {
  unsigned short data;
  enum truncate_t { truncate };
  hip_bfloat16() = default;
  KW_HD hip_bfloat16(float value) : data(__hip_bfloat16(value).__x) {}
  KW_HD explicit hip_bfloat16(float value, truncate_t) : data(static_cast<unsigned short>(__builtin_bit_cast(unsigned, value) >> 16)) {}
  KW_HD explicit hip_bfloat16(double value) : hip_bfloat16(static_cast<float>(value)) {}
  KW_HD explicit hip_bfloat16(int value) : hip_bfloat16(static_cast<float>(value)) {}
  KW_HD operator float() const { return __builtin_bit_cast(float, static_cast<unsigned>(data) << 16); }
  KW_HD explicit operator bool() const { return (data & 0x7fff) != 0; }
  KW_HD static hip_bfloat16 round_to_bfloat16(float value) { return hip_bfloat16(value); }
};
KW_HD hip_bfloat16 operator+(hip_bfloat16 a, hip_bfloat16 b) { return hip_bfloat16(float(a) + float(b)); }
KW_HD hip_bfloat16 operator-(hip_bfloat16 a, hip_bfloat16 b) { return hip_bfloat16(float(a) - float(b)); }
KW_HD hip_bfloat16 operator*(hip_bfloat16 a, hip_bfloat16 b) { return hip_bfloat16(float(a) * float(b)); }
KW_HD hip_bfloat16 operator/(hip_bfloat16 a, hip_bfloat16 b) { return hip_bfloat16(float(a) / float(b)); }
KW_HD hip_bfloat16& operator+=(hip_bfloat16& a, hip_bfloat16 b) { return a = a + b; }
