// The part of rocWMMA that contest kernels use, on the matrix cores' own instructions: fragments of one wave of 64
// lanes, loaded, multiplied, stored. Names: rocWMMA API reference. Lane layouts: AMD matrix instruction calculator.
//
// Not here: the cooperative API, transforms, fragments of other shapes than 16x16xK and 32x32xK.
#pragma once
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>

namespace rocwmma {
using float16_t = _Float16;
using hfloat16_t = __half;
using bfloat16_t = hip_bfloat16;
using float32_t = float;
using float64_t = double;
using int8_t = ::int8_t;
using int32_t = ::int32_t;
using float8_t = __hip_fp8_e4m3;
using bfloat8_t = __hip_fp8_e5m2;
using float8_fnuz_t = __hip_fp8_e4m3_fnuz;
using bfloat8_fnuz_t = __hip_fp8_e5m2_fnuz;

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
struct Constants {
  static constexpr uint32_t AMDGCN_WAVE_SIZE = 64, AMDGCN_WAVE_SIZE_64 = 64, AMDGCN_WAVE_SIZE_32 = 32;
};
template <class A, class B>
__host__ __device__ constexpr auto ceilDiv(A a, B b) { return (a + b - 1) / b; }
template <class To, class From>
__host__ __device__ constexpr To convert(const From& from) { return static_cast<To>(from); }
enum layout_t : uint32_t { mem_row_major, mem_col_major };

namespace kw {
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16 __attribute__((ext_vector_type(16)));
typedef int i4 __attribute__((ext_vector_type(4)));
typedef int i16 __attribute__((ext_vector_type(16)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef short s4 __attribute__((ext_vector_type(4)));
template <class To, class From>
__device__ inline To as(const From* from) {
  To to;
  __builtin_memcpy(&to, from, sizeof to);
  return to;
}
template <class T> inline constexpr bool half = std::is_same_v<T, _Float16> || std::is_same_v<T, __half>;
template <class T> inline constexpr bool brain =
    std::is_same_v<T, hip_bfloat16> || std::is_same_v<T, __hip_bfloat16> || std::is_same_v<T, __bf16>;
template <class T> inline constexpr bool e4m3 =
    std::is_same_v<T, __hip_fp8_e4m3> || std::is_same_v<T, __hip_fp8_e4m3_fnuz>;
template <class T> inline constexpr bool e5m2 =
    std::is_same_v<T, __hip_fp8_e5m2> || std::is_same_v<T, __hip_fp8_e5m2_fnuz>;

// gfx942 multiplies the fnuz forms, gfx950 OCP's; each would take the other's bits for its own.
template <class T>
inline constexpr bool foreign =
#if defined(__gfx942__)
    std::is_same_v<T, __hip_fp8_e4m3> || std::is_same_v<T, __hip_fp8_e5m2>;
#elif defined(__gfx950__)
    std::is_same_v<T, __hip_fp8_e4m3_fnuz> || std::is_same_v<T, __hip_fp8_e5m2_fnuz>;
#else
    false;
#endif

// Elements of one operand that one lane gives one instruction.
template <class T> inline constexpr int packed = sizeof(T) == 1 ? 8 : sizeof(T) == 2 ? 4 : 1;

// One instruction over a block of `side` by `side`: 16 or 32.
template <int side, class A, class B, class C>
__device__ inline C once(const A* a, const B* b, C c) {
  static_assert(!foreign<A> && !foreign<B>, "this chip's matrix cores do not know this 8-bit float");
  if constexpr (half<A> && half<B>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x16f16(as<h4>(a), as<h4>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x8f16(as<h4>(a), as<h4>(b), c, 0, 0, 0);
  } else if constexpr (brain<A> && brain<B>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as<s4>(a), as<s4>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(as<s4>(a), as<s4>(b), c, 0, 0, 0);
  } else if constexpr (e4m3<A> && e4m3<B>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(as<long>(a), as<long>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(as<long>(a), as<long>(b), c, 0, 0, 0);
  } else if constexpr (e4m3<A> && e5m2<B>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(as<long>(a), as<long>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8(as<long>(a), as<long>(b), c, 0, 0, 0);
  } else if constexpr (e5m2<A> && e4m3<B>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(as<long>(a), as<long>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8(as<long>(a), as<long>(b), c, 0, 0, 0);
  } else if constexpr (e5m2<A> && e5m2<B>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(as<long>(a), as<long>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8(as<long>(a), as<long>(b), c, 0, 0, 0);
  } else if constexpr (std::is_same_v<A, ::int8_t> && std::is_same_v<B, ::int8_t>) {
    if constexpr (side == 16) return __builtin_amdgcn_mfma_i32_16x16x32_i8(as<long>(a), as<long>(b), c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_i32_32x32x16_i8(as<long>(a), as<long>(b), c, 0, 0, 0);
  } else {
    static_assert(std::is_same_v<A, float> && std::is_same_v<B, float>, "no matrix instruction for these types");
    if constexpr (side == 16) return __builtin_amdgcn_mfma_f32_16x16x4f32(*a, *b, c, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x2f32(*a, *b, c, 0, 0, 0);
  }
}
template <class T, int N>
struct Wide;
template <> struct Wide<float, 4> { using type = f4; };
template <> struct Wide<float, 16> { using type = f16; };
template <> struct Wide<::int32_t, 4> { using type = i4; };
template <> struct Wide<::int32_t, 16> { using type = i16; };
}  // namespace kw

template <class Use, uint32_t BlockM, uint32_t BlockN, uint32_t BlockK, class DataT, class Layout = void>
class fragment {
  static_assert(BlockM == BlockN && (BlockM == 16 || BlockM == 32), "only blocks of 16x16 and 32x32 are here");

 public:
  static constexpr bool sums = std::is_same_v<Use, accumulator>;
  static constexpr int side = BlockM;
  static constexpr uint32_t num_elements = sums ? side * side / 64 : side * BlockK / 64;
  using element_type = DataT;
  DataT x[num_elements];
  static constexpr uint32_t size() { return num_elements; }
  __device__ DataT& operator[](uint32_t index) { return x[index]; }
  __device__ const DataT& operator[](uint32_t index) const { return x[index]; }

  // Row and column, in the block, of an element of this lane; for the operands: across the sum, and along it.
  __device__ static int across(int index) {
    const int lane = __lane_id();
    if constexpr (!sums) return lane % side;
    else if constexpr (side == 16) return 4 * (lane / 16) + index;
    else return 8 * (index / 4) + 4 * (lane / 32) + index % 4;
  }
  __device__ static int along(int index) {
    const int lane = __lane_id();
    if constexpr (sums) return lane % side;
    constexpr int packed = kw::packed<DataT>;
    return index / packed * (packed * 64 / side) + lane / side * packed + index % packed;
  }
};

template <class Use, uint32_t M, uint32_t N, uint32_t K, class T, class L, class V>
__device__ inline void fill_fragment(fragment<Use, M, N, K, T, L>& to, V value) {
  for (uint32_t i = 0; i < to.num_elements; ++i) to.x[i] = static_cast<T>(value);
}

// An operand lies along its sum in a row-major A and a column-major B.
template <class Use, uint32_t M, uint32_t N, uint32_t K, class T, class L>
__device__ inline void load_matrix_sync(fragment<Use, M, N, K, T, L>& to, const T* from, uint32_t leading) {
  static_assert(!std::is_same_v<L, void>, "a fragment without a layout is loaded with one");
  constexpr bool rows = std::is_same_v<L, row_major>;
  constexpr bool inner_along = std::is_same_v<Use, matrix_b> ? !rows : rows;
#pragma unroll
  for (uint32_t i = 0; i < to.num_elements; ++i)
    to.x[i] = inner_along ? from[size_t(to.across(i)) * leading + to.along(i)]
                          : from[size_t(to.along(i)) * leading + to.across(i)];
}
template <uint32_t M, uint32_t N, uint32_t K, class T, class L>
__device__ inline void load_matrix_sync(
    fragment<accumulator, M, N, K, T, L>& to, const T* from, uint32_t leading, layout_t layout) {
#pragma unroll
  for (uint32_t i = 0; i < to.num_elements; ++i)
    to.x[i] = layout == mem_row_major ? from[size_t(to.across(i)) * leading + to.along(i)]
                                      : from[size_t(to.along(i)) * leading + to.across(i)];
}
template <uint32_t M, uint32_t N, uint32_t K, class T, class L>
__device__ inline void store_matrix_sync(
    T* to, const fragment<accumulator, M, N, K, T, L>& from, uint32_t leading, layout_t layout) {
#pragma unroll
  for (uint32_t i = 0; i < from.num_elements; ++i)
    to[layout == mem_row_major ? size_t(from.across(i)) * leading + from.along(i)
                               : size_t(from.along(i)) * leading + from.across(i)] = from.x[i];
}
template <uint32_t M, uint32_t N, uint32_t K, class T, class L>
__device__ inline void store_matrix_sync(T* to, const fragment<accumulator, M, N, K, T, L>& from, uint32_t leading) {
  store_matrix_sync(to, from, leading, std::is_same_v<L, col_major> ? mem_col_major : mem_row_major);
}

template <uint32_t M, uint32_t N, uint32_t K, class A, class B, class C, class LA, class LB, class LC, class LD>
__device__ inline void mma_sync(fragment<accumulator, M, N, K, C, LD>& d, const fragment<matrix_a, M, N, K, A, LA>& a,
                                const fragment<matrix_b, M, N, K, B, LB>& b,
                                const fragment<accumulator, M, N, K, C, LC>& c) {
  constexpr int step = kw::packed<A>;
  using Sums = typename kw::Wide<C, M * N / 64>::type;
  Sums sums = kw::as<Sums>(c.x);
#pragma unroll
  for (uint32_t i = 0; i < a.num_elements; i += step) sums = kw::once<int(M)>(a.x + i, b.x + i, sums);
  __builtin_memcpy(d.x, &sums, sizeof sums);
}

__device__ inline void synchronize_workgroup() { __syncthreads(); }

template <class T, uint32_t N>
struct VecT {
  T data[N];
  __device__ T& operator[](uint32_t i) { return data[i]; }
  __device__ const T& operator[](uint32_t i) const { return data[i]; }
};
template <class T, class... More>
__device__ inline VecT<T, 1 + sizeof...(More)> make_vector(T first, More... more) {
  return {{first, static_cast<T>(more)...}};
}
}  // namespace rocwmma
