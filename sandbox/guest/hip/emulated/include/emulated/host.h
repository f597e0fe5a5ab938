// The host's side of HIP: memory is the process's own, streams and events are done when they return.
#pragma once
#include <chrono>
#include <cstdlib>

#include "types.h"

enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorMemoryAllocation = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidDevice = 101,
  hipErrorNotReady = 600,
  hipErrorPeerAccessAlreadyEnabled = 704,
  hipErrorLaunchFailure = 719,
  hipErrorCooperativeLaunchTooLarge = 720,
  hipErrorNotSupported = 801,
  hipErrorUnknown = 999,
};
enum hipMemcpyKind { hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice, hipMemcpyDefault };
enum hipDeviceAttribute_t {
  hipDeviceAttributeMultiprocessorCount, hipDeviceAttributeWarpSize, hipDeviceAttributeMaxThreadsPerBlock,
  hipDeviceAttributeMaxSharedMemoryPerBlock, hipDeviceAttributeComputeCapabilityMajor,
  hipDeviceAttributeComputeCapabilityMinor, hipDeviceAttributeCooperativeLaunch,
};
enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize = 8, hipFuncAttributePreferredSharedMemoryCarveout = 9 };
struct ihipStream_t;
struct ihipEvent_t { std::chrono::steady_clock::time_point at; };
using hipStream_t = ihipStream_t*;
using hipEvent_t = ihipEvent_t*;
using hipDevice_t = int;
using hipDeviceptr_t = void*;
struct hipIpcMemHandle_t { char reserved[64]; };
struct hipFuncAttributes {
  size_t sharedSizeBytes, localSizeBytes, constSizeBytes;
  int numRegs, maxThreadsPerBlock, maxDynamicSharedSizeBytes;
};
struct hipDeviceProp_t {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, maxSharedMemoryPerMultiProcessor;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, multiProcessorCount, clockRate, major, minor;
  int maxThreadsDim[3], maxGridSize[3], cooperativeLaunch, l2CacheSize;
  char gcnArchName[256];
};
#define hipStreamDefault 0
#define hipStreamNonBlocking 1
#define hipEventDefault 0
#define hipEventDisableTiming 2
#define hipDeviceMallocUncached 3
#define hipDeviceMallocFinegrained 1
#define hipIpcMemLazyEnablePeerAccess 1
#define hipHostMallocDefault 0
#define hipHostMallocMapped 2
#define hipHostMallocCoherent 0x40000000

KW_RUNTIME int kw_allocate(void** at, size_t bytes);
KW_RUNTIME int kw_release(void* at);
KW_RUNTIME int kw_export(char* handle, void* at);
KW_RUNTIME int kw_import(void** at, const char* handle);
KW_RUNTIME void kw_set_device(int);
KW_RUNTIME int kw_device();
KW_RUNTIME int kw_devices();
KW_RUNTIME int kw_faulted();
KW_RUNTIME int* kw_last_error();
KW_RUNTIME int kw_compute_units();
KW_RUNTIME int kw_lds_limit();

namespace kw {
inline hipError_t note(hipError_t error) {
  if (error) *kw_last_error() = error;
  return error;
}
inline hipError_t waited() { return note(kw_faulted() ? hipErrorLaunchFailure : hipSuccess); }
}  // namespace kw

inline hipError_t hipGetLastError() {
  hipError_t error = hipError_t(*kw_last_error());
  *kw_last_error() = kw_faulted() ? hipErrorLaunchFailure : hipSuccess;
  return error;
}
inline hipError_t hipPeekAtLastError() { return hipError_t(*kw_last_error()); }
inline const char* hipGetErrorString(hipError_t error) {
  switch (error) {
    case hipSuccess: return "no error";
    case hipErrorInvalidValue: return "invalid argument";
    case hipErrorInvalidConfiguration: return "invalid configuration argument";
    case hipErrorLaunchFailure: return "unspecified launch failure";
    case hipErrorCooperativeLaunchTooLarge: return "too many blocks in cooperative launch";
    default: return "unknown error";
  }
}
inline const char* hipGetErrorName(hipError_t error) { return hipGetErrorString(error); }

template <class T>
hipError_t hipMalloc(T** at, size_t bytes) { return kw::note(hipError_t(kw_allocate((void**)at, bytes))); }
template <class T>
hipError_t hipExtMallocWithFlags(T** at, size_t bytes, unsigned) { return hipMalloc(at, bytes); }
template <class T>
hipError_t hipMallocAsync(T** at, size_t bytes, hipStream_t) { return hipMalloc(at, bytes); }
template <class T>
hipError_t hipMallocManaged(T** at, size_t bytes, unsigned = 1) { return hipMalloc(at, bytes); }
template <class T>
hipError_t hipHostMalloc(T** at, size_t bytes, unsigned = 0) { return hipMalloc(at, bytes); }
inline hipError_t hipFree(void* at) { return kw::note(hipError_t(kw_release(at))); }
inline hipError_t hipFreeAsync(void* at, hipStream_t) { return hipFree(at); }
inline hipError_t hipHostFree(void* at) { return hipFree(at); }
template <class T>
hipError_t hipHostGetDevicePointer(T** at, void* host, unsigned) { return *at = (T*)host, hipSuccess; }
inline hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind = hipMemcpyDefault) {
  return memmove(to, from, bytes), kw::waited();
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind = hipMemcpyDefault, hipStream_t = nullptr) {
  return hipMemcpy(to, from, bytes);
}
inline hipError_t hipMemset(void* to, int value, size_t bytes) { return memset(to, value, bytes), hipSuccess; }
inline hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t = nullptr) { return hipMemset(to, value, bytes); }
inline hipError_t hipMemsetD32Async(void* to, int value, size_t count, hipStream_t = nullptr) {
  for (size_t i = 0; i < count; i++) static_cast<int*>(to)[i] = value;
  return hipSuccess;
}
template <class T>
hipError_t hipMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0, hipMemcpyKind = hipMemcpyHostToDevice) {
  return hipMemcpy((char*)&symbol + offset, from, bytes);
}
template <class T>
hipError_t hipMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0, hipMemcpyKind = hipMemcpyDeviceToHost) {
  return hipMemcpy(to, (const char*)&symbol + offset, bytes);
}
template <class T>
hipError_t hipGetSymbolAddress(void** at, const T& symbol) { return *at = (void*)&symbol, hipSuccess; }
#define HIP_SYMBOL(x) x

inline hipError_t hipSetDevice(int number) { return kw_set_device(number), hipSuccess; }
inline hipError_t hipGetDevice(int* number) { return *number = kw_device(), hipSuccess; }
inline hipError_t hipGetDeviceCount(int* count) { return *count = kw_devices(), hipSuccess; }
inline hipError_t hipDeviceSynchronize() { return kw::waited(); }
inline hipError_t hipStreamSynchronize(hipStream_t) { return kw::waited(); }
inline hipError_t hipStreamQuery(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamCreate(hipStream_t* stream) { return *stream = (hipStream_t)malloc(1), hipSuccess; }
inline hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) { return hipStreamCreate(stream); }
inline hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned, int) { return hipStreamCreate(stream); }
inline hipError_t hipStreamDestroy(hipStream_t stream) { return free(stream), hipSuccess; }
inline hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned = 0) { return hipSuccess; }
inline hipError_t hipEventCreate(hipEvent_t* event) { return *event = new ihipEvent_t, hipSuccess; }
inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) { return hipEventCreate(event); }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t = nullptr) {
  return event->at = std::chrono::steady_clock::now(), hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventElapsedTime(float* ms, hipEvent_t from, hipEvent_t to) {
  return *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count(), hipSuccess;
}
inline hipError_t hipEventDestroy(hipEvent_t event) { return delete event, hipSuccess; }
inline hipError_t hipDeviceCanAccessPeer(int* can, int, int) { return *can = 1, hipSuccess; }
inline hipError_t hipDeviceEnablePeerAccess(int, unsigned) { return hipSuccess; }
inline hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* at) {
  return kw::note(hipError_t(kw_export(handle->reserved, at)));
}
inline hipError_t hipIpcOpenMemHandle(void** at, hipIpcMemHandle_t handle, unsigned) {
  return kw::note(hipError_t(kw_import(at, handle.reserved)));
}
inline hipError_t hipIpcCloseMemHandle(void*) { return hipSuccess; }
template <class F>
hipError_t hipFuncSetAttribute(F, hipFuncAttribute, int) { return hipSuccess; }
template <class F>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t shared) {
  int by_threads = 2048 / ((threads + 63) / 64 * 64), by_lds = shared ? int(kw_lds_limit() / shared) : by_threads;
  return *blocks = by_threads < by_lds ? by_threads : by_lds, hipSuccess;
}
template <class F>
hipError_t hipFuncGetAttributes(hipFuncAttributes* out, F) {
  return *out = {0, 0, 0, 0, 1024, kw_lds_limit()}, hipSuccess;
}
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int) {
  *out = hipDeviceProp_t{};
  strcpy(out->name, "CPU emulation");
  strcpy(out->gcnArchName, KW_ARCH ":sramecc+:xnack-");
  out->totalGlobalMem = 192ull << 30;
  out->sharedMemPerBlock = out->maxSharedMemoryPerMultiProcessor = size_t(kw_lds_limit());
  out->regsPerBlock = 65536, out->warpSize = 64, out->maxThreadsPerBlock = 1024;
  out->maxThreadsPerMultiProcessor = 2048, out->multiProcessorCount = kw_compute_units(), out->clockRate = 2100000;
  out->major = 9, out->minor = 4, out->cooperativeLaunch = 1, out->l2CacheSize = 4 << 20;
  for (int i = 0; i < 3; i++) out->maxThreadsDim[i] = 1024, out->maxGridSize[i] = i ? 65535 : 0x7fffffff;
  return hipSuccess;
}
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int) {
  switch (which) {
    case hipDeviceAttributeMultiprocessorCount: *value = kw_compute_units(); break;
    case hipDeviceAttributeWarpSize: *value = 64; break;
    case hipDeviceAttributeMaxThreadsPerBlock: *value = 1024; break;
    case hipDeviceAttributeMaxSharedMemoryPerBlock: *value = kw_lds_limit(); break;
    case hipDeviceAttributeComputeCapabilityMajor: *value = 9; break;
    case hipDeviceAttributeComputeCapabilityMinor: *value = 4; break;
    case hipDeviceAttributeCooperativeLaunch: *value = 1; break;
  }
  return hipSuccess;
}
