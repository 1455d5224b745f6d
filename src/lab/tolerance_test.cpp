// What a case's tolerance lets pass and what not: one unit in the last place of the output does,
// and arithmetic that leaves work out does not, however little it seems to matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/attention/cases.h"
#include "kernels/attention/op.h"
#include "kernels/matmul/cases.h"
#include "kernels/matmul/op.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/rope/op.h"
#include "lab/verify.h"
#include "tensor/codec.h"
#include "tensor/element.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

// Whether the variant passes on the case, by the tolerance alone.
Code verdict(const Op& op, const Variant& variant, const Case& problem) {
  const Machine machine = find_machine();
  const auto runner = cpu_runner(machine);
  return check_conformance({*runner, op, variant, problem, 7}).code();
}

// Weights rounded to six bits, in blocks of 32 with a scale each; the rest exact.
void round_to_six_bits(std::span<float> w) {
  for (size_t b = 0; b < w.size(); b += 32) {
    float largest = 0;
    for (size_t i = b; i < b + 32; ++i) largest = std::max(largest, std::fabs(w[i]));
    const float scale = largest / 31;
    for (size_t i = b; i < b + 32 && scale > 0; ++i) w[i] = std::nearbyint(w[i] / scale) * scale;
  }
}

Status six_bits(const matmul::Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  std::vector<float> w(static_cast<size_t>(a.n * a.k));
  decode(a.w_type, a.w, w.data(), a.n * a.k);
  round_to_six_bits(w);
  matmul::Args rounded = a;
  rounded.w = w.data();
  rounded.w_type = DType::f32;
  Exec alone;
  return matmul::reference::run(rounded, alone);
}

TEST(Tolerance, SixBitWeightsFail) {
  const Variant variant = {
      .name = "six_bits", .numerics = "test", .run = erase_run<matmul::Args, six_bits>};
  for (const DType type : {DType::bf16, DType::f16, DType::f32, DType::q8_0})
    for (const long long k : {1024, 3072})
      for (const DType y_type : {DType::f32, DType::bf16}) {
        const DType x_type = type == DType::bf16 ? type : format_of(type).input;
        const Case problem = matmul::make_case(
            {.w_type = type, .n_rows = 1, .n = 256, .k = k, .x_type = x_type, .y_type = y_type});
        EXPECT_EQ(verdict(matmul::kOp, variant, problem), Code::wrong_result) << problem.name;
        EXPECT_EQ(verdict(matmul::kOp, matmul::variants().back(), problem), Code::ok);
      }
}

float element(const attention::Args& a, const void* pages, long long row, long long head,
              long long t, long long at_token, long long at_dim, long long d) {
  const long long page = a.tables[a.sequences[row] * a.max_pages + t / a.page_tokens];
  const long long kv_head = head / (a.n_heads / a.n_kv_heads);
  return load_element(a.kv_type, pages,
                      page * a.page_stride + kv_head * a.head_dim * a.page_tokens +
                          t % a.page_tokens * at_token + d * at_dim);
}

// In f64, but for the lightest 95 % of the tokens, whose V is never read.
template <bool kRenormalise>
Status heaviest_twentieth(const attention::Args& a, Exec& exec) {
  const Share items = exec.share(a.n_rows * a.n_heads);
  for (long long i = items.begin; i < items.end; ++i) {
    const long long row = i / a.n_heads, head = i % a.n_heads;
    std::vector<double> p(static_cast<size_t>(a.positions[row] + 1));
    for (size_t t = 0; t < p.size(); ++t) {
      for (long long d = 0; d < a.head_dim; ++d)
        p[t] += static_cast<double>(
                    load_element(a.q_type, a.q, row * a.q_stride + head * a.head_dim + d)) *
                element(a, a.k_pages, row, head, static_cast<long long>(t), 1, a.page_tokens, d);
      p[t] = std::exp(p[t] * a.scale);
    }
    const double all = std::accumulate(p.begin(), p.end(), 0.0);
    std::vector<double> sorted = p;
    std::sort(sorted.begin(), sorted.end());
    const double least = sorted[sorted.size() * 95 / 100];
    for (double& x : p) x = x < least ? 0 : x;
    const double sum = kRenormalise ? std::accumulate(p.begin(), p.end(), 0.0) : all;
    for (long long d = 0; d < a.head_dim; ++d) {
      double y = 0;
      for (size_t t = 0; t < p.size(); ++t)
        y += p[t] / sum *
             element(a, a.v_pages, row, head, static_cast<long long>(t), a.head_dim, 1, d);
      store_element(a.q_type, a.out, i * a.head_dim + d, static_cast<float>(y));
    }
  }
  return {};
}

TEST(Tolerance, SkippingTheLightestRowsOfVFails) {
  const Variant variants[] = {{.name = "heaviest",
                               .numerics = "test",
                               .run = erase_run<attention::Args, heaviest_twentieth<false>>},
                              {.name = "renormalised",
                               .numerics = "test",
                               .run = erase_run<attention::Args, heaviest_twentieth<true>>}};
  for (const DType type : {DType::f32, DType::bf16})
    for (const long long ctx : {512, 2048, 16384}) {
      attention::Problem p{1, 4, 2, 128, ctx, 64, 1, attention::Batch::decode};
      p.q_type = p.kv_type = type;
      const Case problem = attention::make_case(p);
      for (const Variant& variant : variants)
        EXPECT_EQ(verdict(attention::kOp, variant, problem), Code::wrong_result)
            << variant.name << " " << problem.name;
      EXPECT_EQ(verdict(attention::kOp, attention::variants().back(), problem), Code::ok);
    }
}

// The reference, each element moved by a few units of its last place.
void nudge(std::span<uint16_t> y, int units) {
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<uint16_t>(y[i] + (i % 2 == 0 ? units : -units));
}

template <int kUnits>
Status norm_off(const rmsnorm::Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  Exec alone;
  MILLRACE_TRY(rmsnorm::reference::run(a, alone));
  nudge({static_cast<uint16_t*>(a.y), static_cast<size_t>(a.n_rows * a.n_groups * a.n)}, kUnits);
  return {};
}

template <int kUnits>
Status rope_off(const rope::Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  Exec alone;
  MILLRACE_TRY(rope::reference::run(a, alone));
  nudge({static_cast<uint16_t*>(a.y), static_cast<size_t>(a.n_rows * a.y_stride)}, kUnits);
  return {};
}

Case case_named(const Op& op, std::string_view name) {
  for (Case& c : op.cases())
    if (c.name == name) return c;
  ADD_FAILURE() << op.name << " has no case " << name;
  return {};
}

// Of values that two correct kernels round to either side of a tie.
TEST(Tolerance, OneUnitOfTheLastPlacePassesAndTwoFail) {
  const Variant one_norm = {
      .name = "one", .numerics = "test", .run = erase_run<rmsnorm::Args, norm_off<1>>};
  const Variant two_norm = {
      .name = "two", .numerics = "test", .run = erase_run<rmsnorm::Args, norm_off<2>>};
  for (const char* name : {"16x128_bf16", "1x1024_bf16", "512x576_bf16"}) {
    const Case problem = case_named(rmsnorm::kOp, name);
    EXPECT_EQ(verdict(rmsnorm::kOp, one_norm, problem), Code::ok) << name;
    EXPECT_EQ(verdict(rmsnorm::kOp, two_norm, problem), Code::wrong_result) << name;
  }
  const Variant one_rope = {
      .name = "one", .numerics = "test", .run = erase_run<rope::Args, rope_off<1>>};
  const Variant two_rope = {
      .name = "two", .numerics = "test", .run = erase_run<rope::Args, rope_off<2>>};
  for (const char* name : {"1x12x64_bf16", "512x24x128_bf16_neox"}) {
    const Case problem = case_named(rope::kOp, name);
    EXPECT_EQ(verdict(rope::kOp, one_rope, problem), Code::ok) << name;
    EXPECT_EQ(verdict(rope::kOp, two_rope, problem), Code::wrong_result) << name;
  }
}

}  // namespace
}  // namespace millrace::lab
