// dim3, the short vectors and what qualifies declarations.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lane.h"

#define KW_INLINE inline __attribute__((always_inline))
// For what reads other lanes' operands: the access hooks must not see it.
#define KW_BARE __attribute__((no_sanitize("kernel-address")))

#define __global__ __attribute__((used))
#define __device__
#define __host__
#define __constant__
// Of parameters; rewrite.py has taken variables' own.
#define __shared__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ noinline
#endif
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#ifndef __restrict__
#define __restrict__ __restrict
#endif

struct uint3;

struct dim3 {
  uint32_t x, y, z;
  constexpr dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(kw::Index at) : x(at.x), y(at.y), z(at.z) {}
};

namespace kw {

template <class T, int N>
struct Parts;
template <class T>
struct Parts<T, 1> {
  union { T x, data[1]; };
};
template <class T>
struct alignas(2 * sizeof(T)) Parts<T, 2> {
  union { struct { T x, y; }; T data[2]; };
};
template <class T>
struct Parts<T, 3> {
  union { struct { T x, y, z; }; T data[3]; };
};
template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Parts<T, 4> {
  union { struct { T x, y, z, w; }; T data[4]; };
};

}  // namespace kw

/** float4 and its like: components by name or number, arithmetic by component. Layout and alignment as in HIP. */
template <class T, unsigned N>
struct HIP_vector_type : kw::Parts<T, int(N)> {
  using value_type = T;
  using native = T __attribute__((ext_vector_type(N)));
  HIP_vector_type() = default;
  constexpr HIP_vector_type(T all) {
    for (unsigned i = 0; i < N; i++) this->data[i] = all;
  }
  template <class... U>
    requires(sizeof...(U) == N && N > 1)
  constexpr HIP_vector_type(U... each) {
    T from[] = {T(each)...};
    for (unsigned i = 0; i < N; i++) this->data[i] = from[i];
  }
  constexpr T& operator[](int i) { return this->data[i]; }
  constexpr const T& operator[](int i) const { return this->data[i]; }
#define KW_EACH(op)                                                                  \
  HIP_vector_type& operator op##=(const HIP_vector_type& o) {                        \
    for (unsigned i = 0; i < N; i++) this->data[i] = T(this->data[i] op o.data[i]);  \
    return *this;                                                                    \
  }                                                                                  \
  friend HIP_vector_type operator op(HIP_vector_type a, const HIP_vector_type& b) { return a op##= b; }
  KW_EACH(+) KW_EACH(-) KW_EACH(*) KW_EACH(/)
#undef KW_EACH
  friend HIP_vector_type operator-(HIP_vector_type a) {
    for (unsigned i = 0; i < N; i++) a.data[i] = T(-a.data[i]);
    return a;
  }
  friend bool operator==(const HIP_vector_type& a, const HIP_vector_type& b) {
    for (unsigned i = 0; i < N; i++)
      if (!(a.data[i] == b.data[i])) return false;
    return true;
  }
};

#define KW_VECTORS(type, name)                                                                          \
  using name##1 = HIP_vector_type<type, 1>;                                                             \
  using name##2 = HIP_vector_type<type, 2>;                                                             \
  using name##4 = HIP_vector_type<type, 4>;                                                             \
  inline name##1 make_##name##1(type x) { return {x}; }                                                 \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                      \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define KW_VECTORS3(type, name)                                                                         \
  KW_VECTORS(type, name)                                                                                \
  using name##3 = HIP_vector_type<type, 3>;                                                             \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }
KW_VECTORS3(signed char, char) KW_VECTORS3(unsigned char, uchar) KW_VECTORS3(short, short)
KW_VECTORS3(unsigned short, ushort) KW_VECTORS3(int, int) KW_VECTORS(unsigned, uint)
KW_VECTORS3(long, long) KW_VECTORS3(unsigned long, ulong) KW_VECTORS3(long long, longlong)
KW_VECTORS3(unsigned long long, ulonglong) KW_VECTORS3(float, float) KW_VECTORS3(double, double)
struct uint3 : HIP_vector_type<unsigned, 3> {
  using HIP_vector_type<unsigned, 3>::HIP_vector_type;
  operator dim3() const { return {x, y, z}; }
};
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned;
using ulong = unsigned long;

namespace kw {

KW_INLINE Index thread_index() { return {lane()->thread.x, lane()->thread.y, lane()->thread.z}; }
KW_INLINE Index block_index() { return {block()->id.x, block()->id.y, block()->id.z}; }
KW_INLINE Index block_size() { return {block()->size.x, block()->size.y, block()->size.z}; }
KW_INLINE Index grid_size() { return {block()->grid.x, block()->grid.y, block()->grid.z}; }

/** Where a thread is: read anew at each use. Objects and no macros, since hosts call their own variables `blockDim`. */
template <Index (*Get)()>
struct Position {
  KW_INLINE unsigned get_x() const { return Get().x; }
  KW_INLINE unsigned get_y() const { return Get().y; }
  KW_INLINE unsigned get_z() const { return Get().z; }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  KW_INLINE operator dim3() const { return Get(); }
  KW_INLINE operator uint3() const { return {Get().x, Get().y, Get().z}; }
};

}  // namespace kw

inline constexpr kw::Position<kw::thread_index> threadIdx;
inline constexpr kw::Position<kw::block_index> blockIdx;
inline constexpr kw::Position<kw::block_size> blockDim;
inline constexpr kw::Position<kw::grid_size> gridDim;
constexpr int warpSize = 64;
