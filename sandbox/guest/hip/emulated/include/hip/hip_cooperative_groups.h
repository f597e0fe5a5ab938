#pragma once
#include "hip_runtime.h"
#include "../emulated/groups.h"
