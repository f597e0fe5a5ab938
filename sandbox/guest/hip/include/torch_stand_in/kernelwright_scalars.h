// torch's scalar types, with the C++ types behind them. Numbers: c10/core/ScalarType.h.
#pragma once
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>

namespace c10 {
enum class ScalarType : int8_t {
  Byte = 0, Char = 1, Short = 2, Int = 3, Long = 4, Half = 5, Float = 6, Double = 7, Bool = 11, BFloat16 = 15,
  Float8_e5m2 = 23, Float8_e4m3fn = 24, Float8_e5m2fnuz = 25, Float8_e4m3fnuz = 26, UInt16 = 27, UInt32 = 28,
  UInt64 = 29, Float8_e8m0fnu = 44, Float4_e2m1fn_x2 = 45, Undefined = 46
};
#define KW_SCALARS(each)                                                                                    \
  each(Byte) each(Char) each(Short) each(Int) each(Long) each(Half) each(Float) each(Double) each(Bool)      \
  each(BFloat16) each(Float8_e5m2) each(Float8_e4m3fn) each(Float8_e5m2fnuz) each(Float8_e4m3fnuz)           \
  each(UInt16) each(UInt32) each(UInt64) each(Float8_e8m0fnu) each(Float4_e2m1fn_x2)
#define KW_CONSTANT(name) inline constexpr ScalarType k##name = ScalarType::name;
KW_SCALARS(KW_CONSTANT)
#undef KW_CONSTANT
inline constexpr ScalarType kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kUInt8 = kByte,
                            kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;

inline const char* toString(ScalarType type) {
#define KW_CASE(name) case ScalarType::name: return #name;
  switch (type) {
    KW_SCALARS(KW_CASE)
    default: return "Undefined";
  }
#undef KW_CASE
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }
inline size_t elementSize(ScalarType type) {
  switch (type) {
    case ScalarType::Double: case ScalarType::Long: case ScalarType::UInt64: return 8;
    case ScalarType::Float: case ScalarType::Int: case ScalarType::UInt32: return 4;
    case ScalarType::Half: case ScalarType::BFloat16: case ScalarType::Short: case ScalarType::UInt16: return 2;
    default: return 1;
  }
}

struct TypeMeta {
  ScalarType type;
  TypeMeta(ScalarType from) : type(from) {}
  operator ScalarType() const { return type; }
  ScalarType toScalarType() const { return type; }
  size_t itemsize() const { return elementSize(type); }
  const char* name() const { return toString(type); }
};
inline std::ostream& operator<<(std::ostream& out, TypeMeta type) { return out << type.name(); }

// 16 and 8 bits wide, for kernels too. `to` and `from` go through HIP's own types.
template <class To, class Held>
__host__ __device__ inline void kw_set(To& to, Held*, float value) {
  const Held made(value);
  __builtin_memcpy(&to.x, &made, sizeof to.x);
}
template <class To>
__host__ __device__ inline void kw_set(To& to, __half*, float value) {
  to.x = __half_as_ushort(__float2half(value));
}
template <class From, class Held>
__host__ __device__ inline float kw_get(const From& from, Held*) {
  Held made;
  __builtin_memcpy(&made, &from.x, sizeof made);
  return float(made);
}
template <class From>
__host__ __device__ inline float kw_get(const From& from, __half*) {
  return __half2float(__ushort_as_half(from.x));
}
#define KW_SHORT_SCALAR(name, bits, held)                                                                   \
  struct name {                                                                                             \
    bits x;                                                                                                 \
    name() = default;                                                                                       \
    struct from_bits_t {};                                                                                  \
    static constexpr from_bits_t from_bits() { return {}; }                                                 \
    __host__ __device__ constexpr name(bits raw, from_bits_t) : x(raw) {}                                   \
    __host__ __device__ name(float value) { kw_set(*this, static_cast<held*>(nullptr), value); }             \
    __host__ __device__ name(const held& value) { __builtin_memcpy(&x, &value, sizeof x); }                 \
    __host__ __device__ operator float() const { return kw_get(*this, static_cast<held*>(nullptr)); } \
    __host__ __device__ explicit operator held() const { held made; __builtin_memcpy(&made, &x, sizeof x); return made; } \
    __host__ __device__ name& operator+=(name other) { return *this = name(float(*this) + float(other)); }  \
    __host__ __device__ name& operator*=(name other) { return *this = name(float(*this) * float(other)); }  \
  };
KW_SHORT_SCALAR(Half, unsigned short, __half)
KW_SHORT_SCALAR(BFloat16, unsigned short, __hip_bfloat16)
KW_SHORT_SCALAR(Float8_e4m3fn, unsigned char, __hip_fp8_e4m3)
KW_SHORT_SCALAR(Float8_e5m2, unsigned char, __hip_fp8_e5m2)
KW_SHORT_SCALAR(Float8_e4m3fnuz, unsigned char, __hip_fp8_e4m3_fnuz)
KW_SHORT_SCALAR(Float8_e5m2fnuz, unsigned char, __hip_fp8_e5m2_fnuz)

template <class T>
struct CppTypeToScalarType;
#define KW_TYPE(cpp, name)                                              \
  template <>                                                           \
  struct CppTypeToScalarType<cpp> {                                     \
    static constexpr ScalarType value = ScalarType::name;               \
  };
KW_TYPE(uint8_t, Byte) KW_TYPE(int8_t, Char) KW_TYPE(int16_t, Short) KW_TYPE(int32_t, Int) KW_TYPE(int64_t, Long)
KW_TYPE(Half, Half) KW_TYPE(float, Float) KW_TYPE(double, Double) KW_TYPE(bool, Bool) KW_TYPE(BFloat16, BFloat16)
KW_TYPE(Float8_e4m3fn, Float8_e4m3fn) KW_TYPE(Float8_e5m2, Float8_e5m2) KW_TYPE(uint16_t, UInt16)
KW_TYPE(Float8_e4m3fnuz, Float8_e4m3fnuz) KW_TYPE(Float8_e5m2fnuz, Float8_e5m2fnuz) KW_TYPE(uint32_t, UInt32)
KW_TYPE(uint64_t, UInt64)
}  // namespace c10

#define AT_DISPATCH_CASE(kind, ...)                                     \
  case ::c10::ScalarType::kind: {                                       \
    using scalar_t [[maybe_unused]] = KW_CPP_##kind;                    \
    return __VA_ARGS__();                                               \
  }
#define KW_CPP_Float float
#define KW_CPP_Double double
#define KW_CPP_Half ::c10::Half
#define KW_CPP_BFloat16 ::c10::BFloat16
#define KW_CPP_Int int
#define KW_CPP_Long int64_t
#define KW_CPP_Short int16_t
#define KW_CPP_Char int8_t
#define KW_CPP_Byte uint8_t
#define KW_DISPATCH(type, name, cases)                                  \
  [&] {                                                                 \
    switch (static_cast<::c10::ScalarType>(type)) {                     \
      cases default: throw ::c10::Error(std::string(name) + " not implemented for this type"); \
    }                                                                   \
  }()
#define KW_FLOATING(...) AT_DISPATCH_CASE(Float, __VA_ARGS__) AT_DISPATCH_CASE(Double, __VA_ARGS__)
#define KW_HALVES(...) AT_DISPATCH_CASE(Half, __VA_ARGS__) AT_DISPATCH_CASE(BFloat16, __VA_ARGS__)
#define KW_WHOLE(...)                                                                                       \
  AT_DISPATCH_CASE(Int, __VA_ARGS__) AT_DISPATCH_CASE(Long, __VA_ARGS__) AT_DISPATCH_CASE(Short, __VA_ARGS__) \
  AT_DISPATCH_CASE(Char, __VA_ARGS__) AT_DISPATCH_CASE(Byte, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) KW_DISPATCH(type, name, KW_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  KW_DISPATCH(type, name, KW_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(Half, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(a, b, type, name, ...) \
  KW_DISPATCH(type, name, KW_FLOATING(__VA_ARGS__) KW_HALVES(__VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) KW_DISPATCH(type, name, KW_HALVES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) KW_DISPATCH(type, name, KW_WHOLE(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...) KW_DISPATCH(type, name, KW_FLOATING(__VA_ARGS__) KW_WHOLE(__VA_ARGS__))
