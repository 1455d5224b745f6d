#include "tensor/format.h"

#include <gtest/gtest.h>

#include <set>

#include "tensor/block_parts.h"

namespace millrace {
namespace {

TEST(Format, EveryTypeHasANameAndANumberOfItsOwn) {
  std::set<std::string_view> names;
  std::set<uint32_t> ids;
  for (const Format& f : formats()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    if (f.gguf_id) {
      EXPECT_TRUE(ids.insert(*f.gguf_id).second) << f.name;
    }
    EXPECT_EQ(dtype_named(f.name), f.type);
    EXPECT_EQ(&format_of(f.type), &f);
  }
  EXPECT_EQ(dtype_named("q9_9"), std::nullopt);
}

TEST(Format, BlocksHoldWhatTheirCodecTakesApart) {
  for (const Format& f : formats())
    if (is_quantised_weight(f.type)) {
      EXPECT_EQ(block_shape(f.type).elems, f.block_elems) << f.name;
      EXPECT_EQ(f.input, DType::q8_row) << f.name;
    }
}

TEST(Format, FallbacksHaveShorterBlocks) {
  for (const Format& f : formats()) {
    if (!is_quantised_weight(f.type)) continue;
    EXPECT_TRUE(is_weight_format(f.fallback)) << f.name;
    EXPECT_LT(format_of(f.fallback).block_elems, f.block_elems) << f.name;
  }
}

TEST(Format, OnlyWeightsHaveACodec) {
  for (const Format& f : formats())
    EXPECT_EQ(is_weight_format(f.type),
              f.family != Family::integer && f.family != Family::activation)
        << f.name;
}

}  // namespace
}  // namespace millrace
