// `kernel<<<grid, block, shared, stream>>>(arguments)`, which rewrite.py turns into kw::start(...).
#pragma once
#include <tuple>

#include "host.h"

namespace kw {

struct Configuration {
  dim3 grid, block;
  size_t shared = 0;
  hipStream_t stream = nullptr;
};

template <class T>
Scalar scalar(const T& value) {
  Scalar found{'s', {.u = 0}};
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) {
    found.kind = 'p';
  } else if constexpr (std::is_enum_v<T>) {
    found.kind = 'i', found.i = int64_t(value);
  } else if constexpr (std::is_integral_v<T>) {
    found.kind = std::is_signed_v<T> ? 'i' : 'u', found.i = int64_t(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    found.kind = 'f', found.f = double(value);
  }
  return found;
}

/** Runs `kernel(arguments...)` in every thread of the grid. Arguments are copied once, as at a launch. */
template <class F, class... A>
hipError_t start(const char* name, const void* address, bool cooperative, Configuration at, F kernel, A... arguments) {
  struct Closure {
    F kernel;
    std::tuple<A...> arguments;
  } closure{kernel, {arguments...}};
  Scalar scalars[sizeof...(A) + 1] = {scalar(arguments)...};
  Launch launch{};
  launch.kernel = name;
  launch.address = address;
  launch.grid = {at.grid.x, at.grid.y, at.grid.z};
  launch.block = {at.block.x, at.block.y, at.block.z};
  launch.dynamic_bytes = at.shared;
  launch.arguments = scalars;
  launch.argument_count = int(sizeof...(A));
  launch.cooperative = cooperative;
  launch.body = [](void* data) {
    auto& closure = *static_cast<Closure*>(data);
    std::apply([&](const A&... each) { closure.kernel(A(each)...); }, closure.arguments);
  };
  launch.closure = &closure;
  launch.closure_bytes = sizeof closure;
  return note(hipError_t(kw_launch(&launch)));
}

template <class... P, size_t... I>
hipError_t start_packed(void (*kernel)(P...), bool cooperative, Configuration at, void** packed,
                        std::index_sequence<I...>) {
  return start("", reinterpret_cast<const void*>(kernel), cooperative, at, kernel,
               *static_cast<std::remove_cvref_t<P>*>(packed[I])...);
}

}  // namespace kw

template <class... P>
hipError_t hipLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** packed, size_t shared, hipStream_t s) {
  return kw::start_packed(kernel, false, {grid, block, shared, s}, packed, std::index_sequence_for<P...>());
}
template <class... P>
hipError_t hipLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** packed, unsigned shared,
                                      hipStream_t s) {
  return kw::start_packed(kernel, true, {grid, block, shared, s}, packed, std::index_sequence_for<P...>());
}
#define HIP_KERNEL_NAME(...) __VA_ARGS__
