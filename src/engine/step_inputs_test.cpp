// What of a step's inputs is uploaded: its rows and lists, and of the tables what changed.
#include "engine/step_inputs.h"

#include <gtest/gtest.h>

#include "kernels/attention/work.h"

namespace millrace {
namespace {

constexpr StepInputSizes kSizes{.max_rows = 100,
                                .max_outputs = 7,
                                .max_seqs = 3,
                                .max_pages = 20,
                                .n_groups = 2,
                                .n_shares = 5};

// Where a pointer of bound inputs lies in the block.
size_t at(const StepInputs& inputs, const int* p) {
  return static_cast<size_t>(p - inputs.input(kTokens)) * sizeof(int);
}

class StepInputsTest : public testing::Test {
 protected:
  Team team_{1};
  std::unique_ptr<Device> device_ = cpu_device(team_);
};

TEST_F(StepInputsTest, CopiesTheRowsAndWhatIsUsedOfTheLists) {
  const StepInputs inputs = StepInputs::make(kSizes, *device_).value();
  const size_t last_list = at(inputs, inputs.bound_work(1));
  EXPECT_EQ(inputs.used_bytes(9), last_list + attention::list_ints(9, 5) * sizeof(int));
  for (const int* rows : {inputs.input(kWantedRows), inputs.bound_slots(1)})
    EXPECT_LE(at(inputs, rows) + 100 * sizeof(int), at(inputs, inputs.bound_work(0)));
  EXPECT_LE(inputs.used_bytes(100), at(inputs, inputs.bound_tables(0)));
  for (const size_t group : {0, 1}) EXPECT_EQ(at(inputs, inputs.bound_work(group)) % 64, 0u);
}

TEST_F(StepInputsTest, HasNoListsWhereNobodyWalksThem) {
  StepInputSizes sizes = kSizes;
  sizes.n_shares = 0;
  const StepInputs inputs = StepInputs::make(sizes, *device_).value();
  EXPECT_EQ(inputs.bound_work(0), nullptr);
  EXPECT_EQ(inputs.used_bytes(9), at(inputs, inputs.bound_tables(0)));
}

TEST_F(StepInputsTest, CopiesTheTablesThatChanged) {
  StepInputs inputs = StepInputs::make(kSizes, *device_).value();
  const auto changed = [&] { return inputs.changed_tables(); };
  const auto place = [&](size_t group, int64_t seq, int64_t page) {
    return at(inputs, inputs.bound_tables(group) + seq * kSizes.max_pages + page);
  };
  const std::vector<int32_t> pages = {4, 9, 2};
  inputs.set_table(0, 1, pages);
  EXPECT_EQ(changed(), std::pair(place(0, 1, 0), place(0, 1, 3)));
  EXPECT_TRUE(std::equal(pages.begin(), pages.end(), inputs.bound_tables(0) + kSizes.max_pages));
  ASSERT_TRUE(inputs.upload(*device_, 1).ok());
  inputs.set_table(0, 1, pages);
  inputs.set_table(0, 1, std::span(pages).first(2));
  EXPECT_EQ(changed(), std::pair(size_t{0}, size_t{0}));
  inputs.set_table(0, 1, std::vector<int32_t>{4, 9, 2, 7});
  EXPECT_EQ(changed(), std::pair(place(0, 1, 3), place(0, 1, 4)));
  inputs.set_table(1, 2, std::vector<int32_t>{0, 5});
  inputs.set_table(0, 0, std::vector<int32_t>{3});
  EXPECT_EQ(changed(), std::pair(place(0, 0, 0), place(1, 2, 2)));
}

}  // namespace
}  // namespace millrace
