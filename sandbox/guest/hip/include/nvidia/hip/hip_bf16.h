// CUDA's bfloat16 under HIP's names; the functions have the same ones.
#pragma once
#include <cuda_bf16.h>
#include <hip/hip_runtime_api.h>

using __hip_bfloat16 = __nv_bfloat16;
using __hip_bfloat162 = __nv_bfloat162;
