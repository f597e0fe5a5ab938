#pragma once
#include <rocwmma/rocwmma.hpp>
