// HIP's device functions on CUDA, for kernels without AMD-only builtins: a wave is `warpSize` lanes, 32 here.
#pragma once
#include <hip/hip_runtime_api.h>

#define hipLaunchKernelGGL(kernel, grid, block, bytes, stream, ...) kernel<<<grid, block, bytes, stream>>>(__VA_ARGS__)

#ifdef __CUDACC__
// CUDA names the lanes that meet, HIP takes those that are there.
template <class T>
__device__ __forceinline__ T __shfl(T value, int lane, int width = warpSize) {
  return __shfl_sync(__activemask(), value, lane, width);
}
template <class T>
__device__ __forceinline__ T __shfl_up(T value, unsigned by, int width = warpSize) {
  return __shfl_up_sync(__activemask(), value, by, width);
}
template <class T>
__device__ __forceinline__ T __shfl_down(T value, unsigned by, int width = warpSize) {
  return __shfl_down_sync(__activemask(), value, by, width);
}
template <class T>
__device__ __forceinline__ T __shfl_xor(T value, int mask, int width = warpSize) {
  return __shfl_xor_sync(__activemask(), value, mask, width);
}
// CUDA's own headers still declare these three, for chips long gone.
#define __ballot(predicate) static_cast<unsigned long long>(__ballot_sync(__activemask(), (predicate)))
#define __any(predicate) __any_sync(__activemask(), (predicate))
#define __all(predicate) __all_sync(__activemask(), (predicate))
__device__ __forceinline__ unsigned __lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
#endif
