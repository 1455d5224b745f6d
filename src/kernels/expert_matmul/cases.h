// The named problems of expert_matmul: every kind of weight, one and several rows, rows of their
// own per choice, an expert chosen by all, and the shapes of a real model.
#pragma once

#include <vector>

#include "kernels/case.h"

namespace millrace::expert_matmul {

std::vector<Case> cases();

}  // namespace millrace::expert_matmul
