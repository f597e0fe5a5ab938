#pragma once
#include <kernelwright_torch.h>
#include <kernelwright_gpu.h>
