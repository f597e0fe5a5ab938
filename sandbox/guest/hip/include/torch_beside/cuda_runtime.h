// torch puts this include before a CUDA source; its hipify makes it HIP's.
#pragma once
#include <hip/hip_runtime.h>
