// The streams, devices and checks that torch adds to HIP, under both names that sources use for them.
#pragma once
#include <hip/hip_runtime.h>

namespace c10 {
namespace hip {
struct HIPStream {
  hipStream_t value{};
  HIPStream() = default;
  HIPStream(hipStream_t from) : value(from) {}
  operator hipStream_t() const { return value; }
  hipStream_t stream() const { return value; }
  void synchronize() const { (void)hipStreamSynchronize(value); }
  DeviceIndex device_index() const { return 0; }
};
inline HIPStream getCurrentHIPStream(DeviceIndex = -1) { return {}; }
inline HIPStream getDefaultHIPStream(DeviceIndex = -1) { return {}; }
inline HIPStream getStreamFromPool(bool = false, DeviceIndex = -1) { return {}; }
inline void setCurrentHIPStream(HIPStream) {}
inline HIPStream getCurrentHIPStreamMasqueradingAsCUDA(DeviceIndex = -1) { return {}; }
inline DeviceIndex current_device() { return 0; }
inline DeviceIndex device_count() { return 1; }
inline void device_synchronize() { (void)hipDeviceSynchronize(); }
struct HIPGuard {
  template <class... A>
  explicit HIPGuard(A&&...) {}
  void set_index(DeviceIndex) {}
};
using OptionalHIPGuard = HIPGuard;
using HIPStreamGuard = HIPGuard;
using HIPGuardMasqueradingAsCUDA = HIPGuard;
using OptionalHIPGuardMasqueradingAsCUDA = HIPGuard;
using HIPStreamMasqueradingAsCUDA = HIPStream;
}  // namespace hip
namespace cuda {
using namespace c10::hip;
using CUDAStream = hip::HIPStream;
using CUDAGuard = hip::HIPGuard;
using OptionalCUDAGuard = hip::HIPGuard;
using CUDAStreamGuard = hip::HIPGuard;
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return {}; }
}  // namespace cuda
}  // namespace c10
namespace at {
namespace hip {
using namespace c10::hip;
inline const hipDeviceProp_t* getCurrentDeviceProperties() {
  static hipDeviceProp_t known;
  (void)hipGetDeviceProperties(&known, 0);
  return &known;
}
inline const hipDeviceProp_t* getDeviceProperties(DeviceIndex) { return getCurrentDeviceProperties(); }
}  // namespace hip
namespace cuda {
using namespace c10::cuda;
using at::hip::getCurrentDeviceProperties;
using at::hip::getDeviceProperties;
}  // namespace cuda
#ifndef KW_BESIDE_TORCH
inline c10::optional<Device> device_of(const Tensor& tensor) { return tensor.device(); }
using DeviceGuard = c10::hip::HIPGuard;
#endif
}  // namespace at

#define C10_HIP_CHECK(call)                                                                     \
  do {                                                                                          \
    const hipError_t kw_error = (call);                                                         \
    TORCH_CHECK(kw_error == hipSuccess, "HIP error: ", hipGetErrorString(kw_error));            \
  } while (false)
#define C10_HIP_KERNEL_LAUNCH_CHECK() C10_HIP_CHECK(hipGetLastError())
#define C10_HIP_CHECK_WARN(call) ((void)(call))
#define AT_HIP_CHECK C10_HIP_CHECK
#define C10_CUDA_CHECK C10_HIP_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK C10_HIP_KERNEL_LAUNCH_CHECK
#define AT_CUDA_CHECK C10_HIP_CHECK
