// Never before the runtime header, which says how wide a wave is.
#pragma once
#include <hip/amd_detail/amd_hip_runtime.h>
