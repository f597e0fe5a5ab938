#pragma once
#include <kernelwright_torch.h>
