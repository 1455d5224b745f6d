#include "kernels/pick.h"

#include <gtest/gtest.h>

#include "kernels/rmsnorm/op.h"

namespace millrace {
namespace {

class Pick : public testing::Test {
 protected:
  const Op& op = rmsnorm::kOp;
  rmsnorm::Args args{nullptr, nullptr, nullptr, 1, 1, 576, 1e-6f, DType::f32, DType::f32};
  Machine machine;
  Profile profile;
  Force force;

  Pick() { machine.isas = {Isa::generic, Isa::avx2, Isa::avx512}; }
  Result<Picked> choose() { return pick(op, &args, {machine, profile, force}); }
  void force_to(std::string_view text) {
    auto parsed = Force::parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    force = *std::move(parsed);
  }
};

TEST_F(Pick, TakesTheFirstAcceptedInTableOrder) {
  EXPECT_EQ(choose()->variant->name, "avx512");
  machine.isas = {Isa::generic};
  EXPECT_EQ(choose()->variant->name, "reference");
}

TEST_F(Pick, FollowsTheProfileInsideTheClass) {
  profile.add("rmsnorm", op.key(&args), "avx2");
  auto choice = choose();
  EXPECT_EQ(choice->variant->name, "avx2");
  EXPECT_EQ(describe(*choice, &args),
            "rmsnorm [" + op.key(&args) +
                "]: avx2 (class cpu.rmsnorm.lanes16, layout plain): fastest in the profile");
}

TEST_F(Pick, NeverFollowsTheProfileOutOfTheClass) {
  profile.add("rmsnorm", op.key(&args), "reference");
  EXPECT_EQ(choose()->variant->name, "avx512");
  EXPECT_NE(choose()->reason.find("another class"), std::string::npos);
}

TEST_F(Pick, IgnoresAProfileOfVariantsThatAreNotHere) {
  profile.add("rmsnorm", op.key(&args), "avx9000");
  EXPECT_EQ(choose()->variant->name, "avx512");
}

TEST_F(Pick, ForceWinsOverTheProfile) {
  profile.add("rmsnorm", op.key(&args), "avx2");
  force_to("rmsnorm:reference");
  EXPECT_EQ(choose()->variant->name, "reference");
}

TEST_F(Pick, AForcedVariantThatCannotRunIsAnError) {
  machine.isas = {Isa::generic};
  force_to("rmsnorm:avx2");
  EXPECT_NE(choose().status().message().find("needs avx2"), std::string::npos);
}

TEST(Variants, WhatNeedsAnInstructionSetIsNotSlow) {
  for (const Op* op : ops())
    for (const Variant& variant : op->variants())
      if (variant.isa != Isa::generic) {
        EXPECT_FALSE(is_slow(variant)) << op->name << " " << variant.name;
      }
}

TEST_F(Pick, SaysWhenOnlyASlowVariantIsLeft) {
  EXPECT_FALSE(is_slow(*choose()->variant));
  machine.isas = {Isa::generic};
  EXPECT_TRUE(is_slow(*choose()->variant));
}

TEST(Force, BadOnesListWhatExists) {
  const auto message = [](std::string_view text) {
    return std::string(Force::parse(text).status().message());
  };
  EXPECT_NE(message("rmsnorm:sse9").find(variant_names(rmsnorm::kOp)), std::string::npos);
  EXPECT_NE(message("norm:avx2").find("rmsnorm"), std::string::npos);
  EXPECT_NE(message("rmsnorm").find("not op:variant"), std::string::npos);
  EXPECT_NE(message("rmsnorm:avx2,rmsnorm:avx512").find("twice"), std::string::npos);
  EXPECT_NE(message("rmsnorm:avx2,,").find("not op:variant"), std::string::npos);
  EXPECT_TRUE(Force::parse("").ok());
}

}  // namespace
}  // namespace millrace
