#include "kernels/expert_matmul/cases.h"

#include <fmt/format.h>

#include "kernels/expert_matmul/choices.h"
#include "kernels/expert_matmul/floor.h"
#include "kernels/matmul/op.h"
#include "kernels/quantize/op.h"

namespace millrace::expert_matmul {
namespace {

struct Problem {
  DType w_type;
  long long n_rows, n_used, n_experts, n, k;
  bool x_per_choice = false;
  bool timed = false;

  DType x_type() const { return format_of(w_type).input; }
  long long x_rows_per_row() const { return x_per_choice ? n_used : 1; }
};

Fill fill_x(const Problem& p, long long n_rows) {
  const long long elems = n_rows * p.k;
  const Fill floats = fill_normal(DType::f32, elems);
  if (p.x_type() == DType::f32) return floats;
  return [=](Rng& rng, void* dst) {
    std::vector<float> values(static_cast<size_t>(elems));
    floats(rng, values.data());
    Exec exec;
    const Status status = quantize::reference::run({values.data(), dst, n_rows, p.k}, exec);
    MILLRACE_CHECK(status.ok(), "{}", status.message());
  };
}

Fill fill_weight(const Problem& p) {
  const long long elems = p.n_experts * p.n * p.k;
  return is_block_format(p.w_type) ? fill_blocks(p.w_type, elems) : fill_normal(p.w_type, elems);
}

// Every choice is a product of matmul's, with its bound.
Tolerance tolerance_of(const Problem& p) {
  return {.eps = matmul::reference::chain_error(p.k, p.x_type()),
          .abs = static_cast<double>(p.k) * 0x1p-128};
}

void magnitude(const ArgsBox& box, size_t, std::span<double> out) {
  const Args& a = *reinterpret_cast<const Args*>(box.bytes);
  const auto n = static_cast<size_t>(a.n);
  for (long long choice = 0; choice < a.n_rows * a.n_used; ++choice)
    matmul::reference::magnitudes(product_of(a, choice),
                                  out.subspan(static_cast<size_t>(choice) * n, n));
}

Case make_case(const Problem& p) {
  const long long choices = p.n_rows * p.n_used, x_rows = p.n_rows * p.x_rows_per_row();
  Case c;
  c.name = fmt::format("{}_{}x{}_of_{}_{}x{}{}", name_of(p.w_type), p.n_rows, p.n_used, p.n_experts,
                       p.n, p.k, p.x_per_choice ? "_own_rows" : "");
  c.timed = p.timed;
  c.ports = {
      {.name = "w",
       .type = p.w_type,
       .elems = p.n_experts * p.n * p.k,
       .role = Role::weight,
       .fill = fill_weight(p)},
      {.name = "x",
       .type = p.x_type(),
       .elems = x_rows * p.k,
       .row_elems = p.x_rows_per_row() * p.k,
       .fill = fill_x(p, x_rows)},
      {.name = "experts",
       .type = DType::i32,
       .elems = choices,
       .row_elems = p.n_used,
       .fill = fill_index(choices, p.n_experts)},
      {.name = "y", .elems = choices * p.n, .role = Role::out, .row_elems = p.n_used * p.n},
  };
  const auto args_of = [p](std::span<void* const> ptr) {
    return Args{ptr[0],
                ptr[1],
                static_cast<const int*>(ptr[2]),
                static_cast<float*>(ptr[3]),
                p.n_rows,
                p.n_used,
                p.n_experts,
                p.n,
                p.k,
                p.w_type,
                p.x_type(),
                p.x_per_choice};
  };
  c.bind = [=](std::span<void* const> ptr, ArgsBox& box) { put_args(box, args_of(ptr)); };
  void* const none[4] = {};
  c.floor = floor_of(args_of(none));
  c.tolerance = tolerance_of(p);
  c.magnitude = magnitude;
  c.n_rows = p.n_rows;
  c.with_rows = [p](int64_t rows) {
    Problem q = p;
    q.n_rows = rows;
    return make_case(q);
  };
  return c;
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> out;
  for (DType type : {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q4_k,
                     DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::q3_k,
                     DType::f32, DType::f16, DType::bf16})
    out.push_back(make_case({type, 3, 2, 5, 32, 256, type == DType::q4_0}));
  out.push_back(make_case({DType::q8_0, 1, 4, 8, 16, 64}));
  out.push_back(make_case({DType::q8_0, 9, 2, 1, 48, 32}));
  out.push_back(make_case({DType::q4_0, 0, 2, 3, 16, 32}));
  // Rows by the dozen for an expert, and more than are taken at once.
  for (DType type :
       {DType::q8_0, DType::q4_1, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::f16})
    out.push_back(make_case({type, 90, 2, 4, 48, 256, type == DType::q4_1}));
  out.push_back(make_case({DType::q4_0, 150, 2, 2, 16, 32}));
  for (long long rows : {1, 64})  // Qwen3-30B-A3B
    for (bool down : {false, true})
      out.push_back(
          make_case({DType::q4_k, rows, 8, 128, down ? 2048 : 768, down ? 768 : 2048, down, true}));
  return out;
}

}  // namespace millrace::expert_matmul
