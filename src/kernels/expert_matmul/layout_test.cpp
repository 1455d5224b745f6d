// The experts of a layer are one matrix in matmul's layouts, so a run of rows has matmul's grain.
#include <gtest/gtest.h>

#include "kernels/expert_matmul/op.h"
#include "kernels/matmul/op.h"

namespace millrace::expert_matmul {
namespace {

TEST(ExpertMatmulLayouts, HaveTheGrainOfMatmuls) {
  for (const Layout& layout : kOp.layouts()) {
    const Layout* of_matmul = layout_named(matmul::kOp, layout.name);
    ASSERT_NE(of_matmul, nullptr) << layout.name;
    EXPECT_EQ(layout.row_grain, of_matmul->row_grain) << layout.name;
  }
}

}  // namespace
}  // namespace millrace::expert_matmul
