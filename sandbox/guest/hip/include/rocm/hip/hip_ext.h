// The extended launch, as far as kernels' hosts use it. Names: HIP API reference, "hip_ext.h".
#pragma once
#include <hip/hip_runtime.h>
#define hipExtLaunchKernelGGL(kernel, grid, block, shared, queue, begun, ended, flags, ...) \
  kernel<<<grid, block, shared, queue>>>(__VA_ARGS__)
