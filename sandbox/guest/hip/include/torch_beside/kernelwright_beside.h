// Beside torch's own headers: the GPU part that a CPU build of torch does not bring.
#pragma once
#include <torch/types.h>
#define KW_BESIDE_TORCH
namespace at {
using c10::Device;
using c10::DeviceIndex;
}  // namespace at
#include "../torch_stand_in/kernelwright_gpu.h"
