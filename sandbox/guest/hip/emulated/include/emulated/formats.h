// Short floating-point formats: bits to values and back.
// fp8 and bf8 are the unsigned-zero kind on gfx942 (one NaN, 0x80; bias 8 and 16) and OCP's on gfx950: CDNA3 and CDNA4
// instruction set architectures, "Data formats"; fp6, fp4 and e8m0: OCP Microscaling Formats (MX) v1.0, section 5.
#pragma once
#include "types.h"

namespace kw {

struct Format {
  int exponent_bits, mantissa_bits, bias;
  enum { ieee, one_nan, negative_zero_is_nan, finite } special;
};
constexpr Format e4m3fnuz{4, 3, 8, Format::negative_zero_is_nan}, e5m2fnuz{5, 2, 16, Format::negative_zero_is_nan},
    e4m3{4, 3, 7, Format::one_nan}, e5m2{5, 2, 15, Format::ieee}, e2m3{2, 3, 1, Format::finite},
    e3m2{3, 2, 3, Format::finite}, e2m1{2, 1, 1, Format::finite};
#if defined(__gfx950__)
constexpr Format fp8 = e4m3, bf8 = e5m2;
#else
constexpr Format fp8 = e4m3fnuz, bf8 = e5m2fnuz;
#endif

constexpr double power_of_two(int by) {
  double value = 1;
  for (; by > 0; by--) value *= 2;
  for (; by < 0; by++) value /= 2;
  return value;
}

constexpr double decode(const Format& format, unsigned bits) {
  int e_bits = format.exponent_bits, m_bits = format.mantissa_bits;
  unsigned sign = bits >> (e_bits + m_bits) & 1, e = bits >> m_bits & ((1u << e_bits) - 1), m = bits & ((1u << m_bits) - 1);
  unsigned top = (1u << e_bits) - 1, full = (1u << m_bits) - 1;
  if (format.special == Format::negative_zero_is_nan && sign && !e && !m) return __builtin_nan("");
  if (format.special == Format::one_nan && e == top && m == full) return __builtin_nan("");
  if (format.special == Format::ieee && e == top) return m ? __builtin_nan("") : sign ? -__builtin_inf() : __builtin_inf();
  double value = e ? (1.0 + m * power_of_two(-m_bits)) * power_of_two(int(e) - format.bias)
                   : m * power_of_two(1 - format.bias - m_bits);
  return sign ? -value : value;
}

template <Format F>
struct Table {
  static constexpr int count = 1 << (1 + F.exponent_bits + F.mantissa_bits);
  double value[count];
  constexpr Table() : value() {
    for (int i = 0; i < count; i++) value[i] = decode(F, unsigned(i));
  }
};
template <Format F>
inline constexpr Table<F> table{};

/** To the nearest, ties to even. Past the largest: that one with `saturate`, else NaN, or infinity where there is one. */
template <Format F>
inline unsigned encode(double value, bool saturate = false) {
  constexpr int e_bits = F.exponent_bits, m_bits = F.mantissa_bits, top = (1 << e_bits) - 1;
  unsigned sign = unsigned(std::signbit(value)) << (e_bits + m_bits);
  constexpr unsigned nan = F.special == Format::negative_zero_is_nan ? 1u << (e_bits + m_bits) : F.special == Format::finite ? 0u : (1u << (e_bits + m_bits)) - 1;
  constexpr int last = F.special == Format::ieee ? top - 1 : top;
  constexpr unsigned most = (unsigned(last) << m_bits) | (F.special == Format::one_nan ? (1u << m_bits) - 2 : (1u << m_bits) - 1);
  if (value != value) return F.special == Format::negative_zero_is_nan ? nan : sign | nan;
  double size = std::fabs(value);
  int by = 0;
  std::frexp(size, &by);
  int e = size == 0 ? 1 : std::max(by - 1 + F.bias, 1);
  double unit = power_of_two(0);
  unit = std::ldexp(1.0, e - F.bias - m_bits);
  double steps = std::isinf(size) ? 1e30 : std::nearbyint(size / unit);
  double bits = std::isinf(size) ? 1e30 : steps >= (2 << m_bits) ? double((e + 1) << m_bits)
                : steps >= (1 << m_bits) ? double((e - 1) << m_bits) + steps : steps;
  if (bits > most) {
    if (saturate || F.special == Format::finite) return sign | most;
    if (F.special == Format::ieee) return sign | unsigned(top) << m_bits;
    return F.special == Format::negative_zero_is_nan ? nan : sign | nan;
  }
  unsigned whole = unsigned(bits);
  return F.special == Format::negative_zero_is_nan && !whole ? 0u : sign | whole;
}

inline double scale_e8m0(unsigned byte) { return (byte & 255) == 255 ? __builtin_nan("") : std::ldexp(1.0, int(byte & 255) - 127); }
inline float bf16_value(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}

}  // namespace kw
