// HIP on a CPU: stands in for ROCm's header of this name. Compiled by clang as C++20, after rewrite.py has gone over the source.
#pragma once
#define KW_HIP_EMULATED 1
#if !defined(__gfx950__) && !defined(__gfx942__)
#define __gfx942__ 1
#endif
#if defined(__gfx950__)
#define KW_ARCH "gfx950"
#else
#define KW_ARCH "gfx942"
#endif
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define __AMDGCN__ 1
#define __GFX9__ 1
#define __AMDGCN_WAVEFRONT_SIZE 64
#define __AMDGCN_WAVEFRONT_SIZE__ 64
#include <atomic>
#include <cstdio>
#include <vector>

#include "../emulated/atomics.h"
#include "../emulated/buffer.h"
#include "../emulated/convert.h"
#include "../emulated/host.h"
#include "../emulated/launch.h"
#include "../emulated/math.h"
#include "../emulated/mfma.h"
#include "../emulated/moves.h"
#include "../emulated/sync.h"
#include "../emulated/types.h"
#include "../emulated/wave.h"
