// HIP 7 says `warpSize` at run time only; the boards' ROCm 6 has it as a constant, and kernels size arrays by it.
#pragma once
#include <hip/hip_runtime_api.h>
#define warpSize kw_run_time_wave
#include_next <hip/amd_detail/amd_hip_runtime.h>
#undef warpSize
static constexpr int warpSize = 64;
