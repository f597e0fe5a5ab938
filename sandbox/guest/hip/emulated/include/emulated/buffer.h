// Buffer resources, and loads that go straight to LDS. Offsets out of a resource's range read 0 and write nothing, as on the
// machine: the resource's own size decides (CDNA3 instruction set architecture, section 9.1.5, raw buffers).
#pragma once
#include "wave.h"

namespace kw {

struct Resource {
  uint64_t base;
  uint32_t bytes, flags;
};
template <class T, class R>
KW_INLINE Resource resource(const R& from) {
  Resource found = bits<Resource>(from);
  // The 48-bit address; above it are stride and swizzle, which raw buffers leave at 0.
  found.base &= 0xffff'ffff'ffffull;
  return found;
}
template <class T, class R>
KW_INLINE T raw_load(const R& from, int offset, int scalar_offset) {
  Resource at = resource<T>(from);
  uint64_t begin = uint64_t(uint32_t(offset)) + uint32_t(scalar_offset);
  T value{};
  if (begin + sizeof(T) <= at.bytes) __builtin_memcpy(&value, reinterpret_cast<const char*>(at.base) + begin, sizeof(T));
  return value;
}
template <class T, class R>
KW_INLINE void raw_store(T value, const R& to, int offset, int scalar_offset) {
  Resource at = resource<T>(to);
  uint64_t begin = uint64_t(uint32_t(offset)) + uint32_t(scalar_offset);
  if (begin + sizeof(T) <= at.bytes) __builtin_memcpy(reinterpret_cast<char*>(at.base) + begin, &value, sizeof(T));
}
template <class T>
using Two = T __attribute__((ext_vector_type(2)));
template <class T>
using Three = T __attribute__((ext_vector_type(3)));
template <class T>
using Four = T __attribute__((ext_vector_type(4)));

/** To LDS: the wave's first address plus the lane's number times the size; the lanes' addresses in LDS do not count. */
template <class Get>
KW_INLINE void to_lds(void* lds, int bytes, int offset, Get get) {
  char* base = bits<char*>(__builtin_amdgcn_readfirstlane(bits<uint64_t>(lds))) + offset;
  char* at = base + lane_number() * bytes;
  for (int i = 0; i < bytes; i += 4) {
    unsigned word = get(i);
    __builtin_memcpy(at + i, &word, bytes < 4 ? bytes : 4);
  }
}

}  // namespace kw

using __amdgpu_buffer_rsrc_t = kw::Resource;
template <class T>
KW_INLINE kw::Resource __builtin_amdgcn_make_buffer_rsrc(T* base, short, int bytes, int flags) {
  return {uint64_t(base), uint32_t(bytes), uint32_t(flags)};
}

#define KW_RAW(suffix, T)                                                                                                     \
  template <class R>                                                                                                          \
  KW_INLINE T __builtin_amdgcn_raw_buffer_load_##suffix(R from, int offset, int scalar, int) { return kw::raw_load<T>(from, offset, scalar); } \
  template <class R>                                                                                                          \
  KW_INLINE void __builtin_amdgcn_raw_buffer_store_##suffix(T value, R to, int offset, int scalar, int) { kw::raw_store<T>(value, to, offset, scalar); }
KW_RAW(b8, unsigned char) KW_RAW(b16, unsigned short) KW_RAW(b32, unsigned) KW_RAW(b64, kw::Two<unsigned>)
KW_RAW(b96, kw::Three<unsigned>) KW_RAW(b128, kw::Four<unsigned>)
template <class G, class L>
KW_INLINE void __builtin_amdgcn_global_load_lds(G* from, L* lds, int bytes, int offset, int) {
  const char* at = (const char*)from + offset;
  kw::to_lds((void*)lds, bytes, offset, [&](int i) {
    unsigned word = 0;
    __builtin_memcpy(&word, at + i, bytes < 4 ? bytes : 4);
    return word;
  });
}
template <class R, class L>
KW_INLINE void __builtin_amdgcn_raw_ptr_buffer_load_lds(R from, L* lds, int bytes, int offset, int scalar, int more, int) {
  kw::to_lds((void*)lds, bytes, more, [&](int i) {
    return bytes == 1 ? kw::raw_load<unsigned char>(from, offset + more, scalar)
           : bytes == 2 ? kw::raw_load<unsigned short>(from, offset + more, scalar) : kw::raw_load<unsigned>(from, offset + more + i, scalar);
  });
}
#define __builtin_amdgcn_raw_buffer_load_lds __builtin_amdgcn_raw_ptr_buffer_load_lds

// Kernels also declare LLVM's intrinsics as functions: `T f(...) __asm("llvm.amdgcn.raw.buffer.load.v4i32");`. rewrite.py
// turns the label into one of these names; parameters and result go as the same types do.
namespace kw {
using Words = int __attribute__((ext_vector_type(4)));
}
#define KW_LABEL(suffix, T)                                                                                              \
  extern "C" inline __attribute__((used, weak)) T kw_llvm_amdgcn_raw_buffer_load_##suffix(kw::Words from, int offset, int scalar, int) { \
    return kw::raw_load<T>(from, offset, scalar);                                                                        \
  }                                                                                                                      \
  extern "C" inline __attribute__((used, weak)) void kw_llvm_amdgcn_raw_buffer_store_##suffix(T value, kw::Words to, int offset, int scalar, int) { \
    kw::raw_store<T>(value, to, offset, scalar);                                                                         \
  }
KW_LABEL(i64, long) KW_LABEL(i128, __int128) KW_LABEL(i8, signed char) KW_LABEL(i16, short) KW_LABEL(i32, int) KW_LABEL(f32, float) KW_LABEL(f16, _Float16)
KW_LABEL(v2i16, kw::Two<short>) KW_LABEL(v4i16, kw::Four<short>) KW_LABEL(v2f16, kw::Two<_Float16>) KW_LABEL(v4f16, kw::Four<_Float16>)
KW_LABEL(v2i32, kw::Two<int>) KW_LABEL(v4i32, kw::Four<int>) KW_LABEL(v2f32, kw::Two<float>) KW_LABEL(v4f32, kw::Four<float>)
extern "C" inline __attribute__((used, weak)) void kw_llvm_amdgcn_raw_buffer_load_lds(kw::Words from, void* lds, int bytes, int offset, int scalar, int more, int aux) {
  __builtin_amdgcn_raw_ptr_buffer_load_lds(from, (char*)lds, bytes, offset, scalar, more, aux);
}
