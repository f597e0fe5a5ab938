// Atomic operations with order and scope. What they do is done sequentially consistently; the checking mode uses what was asked.
#pragma once
#include "sync.h"

#ifndef __HIP_MEMORY_SCOPE_SINGLETHREAD
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
#endif

namespace kw {

template <class T>
using Plain = std::remove_cv_t<T>;
template <class T>
using Cell = _Atomic(Plain<T>) KW_UNSEEN*;

enum What { reads = 1, writes = 2 };

/** Before: what it releases, and where it is. */
template <class T>
KW_INLINE void before(const volatile T* at, int order, int scope, int what) {
  if (!lane()) return;
  kw_touch(const_cast<const T*>(at), sizeof(T), what & writes ? 1 : 0, scope);
  if (what & writes) kw_synchronise(const_cast<const T*>(at), sizeof(T), order, scope, what);
}
template <class T>
KW_INLINE void after(const volatile T* at, int order, int scope, bool wrote) {
  if (!lane()) return;
  kw_synchronise(const_cast<const T*>(at), sizeof(T), order, scope, reads);
  auto* self = lane();
  if (wrote) self->polls = 0;
  else if (++self->polls > 8) {
    self->polls = 0;
    kw_give_way(const_cast<const T*>(at));
  }
}

template <class T>
KW_INLINE Plain<T> load(T* at, int order, int scope) {
  before(at, order, scope, reads);
  Plain<T> value = __c11_atomic_load((Cell<T>)at, __ATOMIC_SEQ_CST);
  after(at, order, scope, false);
  return value;
}
template <class T, class U>
KW_INLINE void store(T* at, U value, int order, int scope) {
  before(at, order, scope, writes);
  __c11_atomic_store((Cell<T>)at, Plain<T>(value), __ATOMIC_SEQ_CST);
  if (lane()) lane()->polls = 0;
}
template <class T, class U>
KW_INLINE Plain<T> swap_in(T* at, U value, int order, int scope) {
  before(at, order, scope, reads | writes);
  Plain<T> plain = Plain<T>(value), old = __c11_atomic_exchange((Cell<T>)at, plain, __ATOMIC_SEQ_CST);
  bool changed = __builtin_memcmp(&plain, &old, sizeof old) != 0;
  after(at, order, scope, changed);
  return old;
}
template <class T, class U>
KW_INLINE bool compare_swap(T* at, Plain<T>* expected, U wanted, int order, int scope) {
  before(at, order, scope, reads | writes);
  bool done = __c11_atomic_compare_exchange_strong((Cell<T>)at, expected, Plain<T>(wanted), __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  after(at, order, scope, done);
  return done;
}
/** Any other: what `act` makes of the old value takes its place. */
template <class T, class F>
KW_INLINE Plain<T> update(T* at, int order, int scope, F act) {
  before(at, order, scope, reads | writes);
  Plain<T> old = __c11_atomic_load((Cell<T>)at, __ATOMIC_RELAXED), made;
  do made = Plain<T>(act(old));
  while (!__c11_atomic_compare_exchange_weak((Cell<T>)at, &old, made, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  after(at, order, scope, __builtin_memcmp(&made, &old, sizeof old) != 0);
  return old;
}

#define KW_FETCH(name, expression)                                     \
  template <class T, class U>                                          \
  KW_INLINE Plain<T> name(T* at, U value, int order, int scope) {      \
    Plain<T> b = Plain<T>(value);                                      \
    return update(at, order, scope, [&](Plain<T> a) { return expression; }); \
  }
KW_FETCH(fetch_add, a + b)
KW_FETCH(fetch_sub, a - b)
KW_FETCH(fetch_and, a & b)
KW_FETCH(fetch_or, a | b)
KW_FETCH(fetch_xor, a ^ b)
KW_FETCH(fetch_min, b < a ? b : a)
KW_FETCH(fetch_max, a < b ? b : a)
KW_FETCH(fetch_inc, a >= b ? Plain<T>(0) : Plain<T>(a + 1))
KW_FETCH(fetch_dec, a == 0 || a > b ? b : Plain<T>(a - 1))

/** `__MEMORY_SCOPE_*` of the scoped builtins, which count from the system down. */
constexpr int scoped(int number) { return number == 0 ? of_system : number == 1 ? of_device : number == 2 ? of_block : number == 3 ? of_wave : of_lane; }

}  // namespace kw

#define __hip_atomic_load(at, order, scope) ::kw::load(at, order, scope)
#define __hip_atomic_store(at, value, order, scope) ::kw::store(at, value, order, scope)
#define __hip_atomic_exchange(at, value, order, scope) ::kw::swap_in(at, value, order, scope)
#define __hip_atomic_compare_exchange_strong(at, expected, wanted, order, failed, scope) ::kw::compare_swap(at, expected, wanted, order, scope)
#define __hip_atomic_compare_exchange_weak(at, expected, wanted, order, failed, scope) ::kw::compare_swap(at, expected, wanted, order, scope)
#define __hip_atomic_fetch_add(at, value, order, scope) ::kw::fetch_add(at, value, order, scope)
#define __hip_atomic_fetch_sub(at, value, order, scope) ::kw::fetch_sub(at, value, order, scope)
#define __hip_atomic_fetch_and(at, value, order, scope) ::kw::fetch_and(at, value, order, scope)
#define __hip_atomic_fetch_or(at, value, order, scope) ::kw::fetch_or(at, value, order, scope)
#define __hip_atomic_fetch_xor(at, value, order, scope) ::kw::fetch_xor(at, value, order, scope)
#define __hip_atomic_fetch_min(at, value, order, scope) ::kw::fetch_min(at, value, order, scope)
#define __hip_atomic_fetch_max(at, value, order, scope) ::kw::fetch_max(at, value, order, scope)
#define __scoped_atomic_load_n(at, order, scope) ::kw::load(at, order, ::kw::scoped(scope))
#define __scoped_atomic_store_n(at, value, order, scope) ::kw::store(at, value, order, ::kw::scoped(scope))
#define __scoped_atomic_exchange_n(at, value, order, scope) ::kw::swap_in(at, value, order, ::kw::scoped(scope))
#define __scoped_atomic_fetch_add(at, value, order, scope) ::kw::fetch_add(at, value, order, ::kw::scoped(scope))
#define __scoped_atomic_fetch_or(at, value, order, scope) ::kw::fetch_or(at, value, order, ::kw::scoped(scope))
#define __atomic_load_n(at, order) ::kw::load(at, order, ::kw::of_system)
#define __atomic_store_n(at, value, order) ::kw::store(at, value, order, ::kw::of_system)
#define __atomic_exchange_n(at, value, order) ::kw::swap_in(at, value, order, ::kw::of_system)
#define __atomic_fetch_add(at, value, order) ::kw::fetch_add(at, value, order, ::kw::of_system)
#define __atomic_fetch_sub(at, value, order) ::kw::fetch_sub(at, value, order, ::kw::of_system)
#define __atomic_fetch_or(at, value, order) ::kw::fetch_or(at, value, order, ::kw::of_system)
#define __atomic_thread_fence(order) __kw_fence(order, ::kw::of_system)

// CUDA's spelling: relaxed, of the device; `_system` and `_block` say otherwise.
#define KW_ATOMIC(name, act)                                                                                             \
  template <class T, class U>                                                                                            \
  KW_INLINE T name(T* at, U value) { return ::kw::act(at, value, ::kw::relaxed, ::kw::of_device); }                      \
  template <class T, class U>                                                                                            \
  KW_INLINE T name##_system(T* at, U value) { return ::kw::act(at, value, ::kw::relaxed, ::kw::of_system); }             \
  template <class T, class U>                                                                                            \
  KW_INLINE T name##_block(T* at, U value) { return ::kw::act(at, value, ::kw::relaxed, ::kw::of_block); }
KW_ATOMIC(atomicAdd, fetch_add)
KW_ATOMIC(atomicSub, fetch_sub)
KW_ATOMIC(atomicMin, fetch_min)
KW_ATOMIC(atomicMax, fetch_max)
KW_ATOMIC(atomicAnd, fetch_and)
KW_ATOMIC(atomicOr, fetch_or)
KW_ATOMIC(atomicXor, fetch_xor)
KW_ATOMIC(atomicExch, swap_in)
KW_ATOMIC(atomicInc, fetch_inc)
KW_ATOMIC(atomicDec, fetch_dec)
#define unsafeAtomicAdd atomicAdd
#define safeAtomicAdd atomicAdd
#define atomicAddNoRet atomicAdd
template <class T, class U, class V>
KW_INLINE T atomicCAS(T* at, U expected, V wanted) {
  T old = T(expected);
  kw::compare_swap(at, &old, wanted, kw::relaxed, kw::of_device);
  return old;
}
template <class T, class U, class V>
KW_INLINE T atomicCAS_system(T* at, U expected, V wanted) {
  T old = T(expected);
  kw::compare_swap(at, &old, wanted, kw::relaxed, kw::of_system);
  return old;
}
template <class T, class U>
KW_INLINE T __builtin_amdgcn_global_atomic_fadd_f32(T* at, U value) { return atomicAdd(at, value); }
/** Two halves at once, each as by an atomic of its own. */
template <class T, class V>
KW_INLINE V __builtin_amdgcn_flat_atomic_fadd_v2f16(T* at, V value) { return kw::update((V*)at, kw::relaxed, kw::of_device, [&](V old) { return V(old + value); }); }
template <class T, class V>
KW_INLINE V __builtin_amdgcn_flat_atomic_fadd_v2bf16(T* at, V value) {
  return kw::update((V*)at, kw::relaxed, kw::of_device, [&](V old) {
    auto sum = [](uint16_t a, uint16_t b) {
      float x = kw::bits<float>(uint32_t(a) << 16) + kw::bits<float>(uint32_t(b) << 16);
      uint32_t word = kw::bits<uint32_t>(x);
      return uint16_t(x != x ? 0x7fff : (word + 0x7fff + (word >> 16 & 1)) >> 16);
    };
    auto a = kw::bits<uint32_t>(old), b = kw::bits<uint32_t>(value);
    return kw::bits<V>(uint32_t(sum(uint16_t(a), uint16_t(b))) | uint32_t(sum(uint16_t(a >> 16), uint16_t(b >> 16))) << 16);
  });
}
