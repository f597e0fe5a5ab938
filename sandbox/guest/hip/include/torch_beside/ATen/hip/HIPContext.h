#pragma once
#include <kernelwright_beside.h>
