#include "kernels/matmul/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/small_float.h"
#include "kernels/matmul/floor.h"
#include "kernels/matmul/op.h"
#include "kernels/quantize/row.h"
#include "tensor/block_parts.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::matmul {
namespace {

using quantize::kBlock;

int8_t hostile_q(Rng& rng) {
  constexpr int8_t kValues[] = {-127, 127, 0, 1};
  return kValues[rng.below(4)];
}

// No Inf: the reference multiplies element by element, and Inf * 0 is NaN there where a block's
// integer dot is not 0.
float hostile_scale(Rng& rng) {
  constexpr float kValues[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-130f, 1e20f, -1e-20f};
  const uint64_t pick = rng.below(48);
  if (pick == 0) return std::numeric_limits<float>::quiet_NaN();
  return pick <= std::size(kValues) ? kValues[pick - 1] : rng.uniform(-0.1f, 0.1f);
}

void fill_row(Rng& rng, long long k, bool hostile, char* row) {
  auto* q = reinterpret_cast<signed char*>(row);
  const bool extreme = hostile && rng.below(4) == 0;
  for (long long i = 0; i < k; ++i)
    q[i] = extreme ? hostile_q(rng) : static_cast<int8_t>(static_cast<int>(rng.below(255)) - 127);
  for (long long b = 0; b < k / kBlock; ++b) {
    const float scale = hostile ? hostile_scale(rng) : rng.uniform(0.001f, 0.05f);
    int sum = 0;
    for (int i = 0; i < kBlock; ++i) sum += q[b * kBlock + i];
    std::memcpy(row + k + 4 * b, &scale, 4);
    std::memcpy(row + k + k / kBlock * 4 + 4 * b, &sum, 4);
  }
}

Fill fill_q8_rows(long long n_rows, long long k, bool hostile) {
  return [=](Rng& rng, void* dst) {
    for (long long r = 0; r < n_rows; ++r)
      fill_row(rng, k, hostile, static_cast<char*>(dst) + r * quantize::row_bytes(k));
  };
}

// Among normals: few NaN and Inf, so that most sums are finite, and nothing so big that a sum in
// f32 passes through Inf where the reference's does not.
float hostile_element(Rng& rng, float big) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kRare[] = {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf};
  const float values[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-130f, 0x1p-24f, big, -1 / big};
  const uint64_t pick = rng.below(1024);
  if (pick < std::size(kRare)) return kRare[pick];
  return pick < 64 ? values[pick % std::size(values)] : rng.normal();
}

Fill fill_hostile_floats(DType type, long long elems) {
  return [=](Rng& rng, void* dst) {
    std::vector<float> values(static_cast<size_t>(elems));
    for (float& v : values) v = hostile_element(rng, type == DType::f16 ? 6e4f : 1e18f);
    encode(type, values.data(), dst, elems);
  };
}

Fill fill_weight(const Problem& p) {
  const long long elems = p.n * p.k;
  if (is_block_format(p.w_type)) return fill_blocks(p.w_type, elems, p.hostile);
  return p.hostile ? fill_hostile_floats(p.w_type, elems) : fill_normal(p.w_type, elems);
}

Fill fill_x(const Problem& p) {
  if (p.x_type == DType::q8_row) return fill_q8_rows(p.n_rows, p.k, p.hostile);
  const long long elems = p.n_rows * p.k;
  return p.hostile ? fill_hostile_floats(p.x_type, elems) : fill_normal(p.x_type, elems);
}

// What comes before the last rounding; see reference::chain_error.
Tolerance tolerance_of(const Problem& p) {
  return {.eps = reference::chain_error(p.k, p.x_type), .abs = static_cast<double>(p.k) * 0x1p-128};
}

std::string name_of_case(const Problem& p) {
  std::string name = fmt::format("{}_{}x{}x{}", name_of(p.w_type), p.n_rows, p.n, p.k);
  if (p.x_type != DType::q8_row && p.x_type != DType::f32)
    name += fmt::format("_x{}", name_of(p.x_type));
  if (p.y_type != DType::f32) name += fmt::format("_y{}", name_of(p.y_type));
  return p.hostile ? name + "_hostile" : name;
}

struct Shape {
  long long n_rows, n, k;
};

void add_edges(DType type, std::vector<Case>& out) {
  const long long u = std::max(32, format_of(type).block_elems);  // the least k
  const DType x_type = format_of(type).input;
  const Shape shapes[] = {{1, 1, u},      {2, 15, 2 * u},  {3, 16, 3 * u},
                          {1, 17, 9 * u}, {5, 40, 2 * u},  {8, 33, u},
                          {9, 16, 2 * u}, {17, 65, 3 * u}, {0, 16, u}};
  for (const Shape& s : shapes)
    out.push_back(
        make_case({.w_type = type, .n_rows = s.n_rows, .n = s.n, .k = s.k, .x_type = x_type}));
  for (const Shape& s : {Shape{1, 40, 9 * u}, Shape{13, 40, 2 * u}})
    out.push_back(make_case({.w_type = type,
                             .n_rows = s.n_rows,
                             .n = s.n,
                             .k = s.k,
                             .x_type = x_type,
                             .hostile = true}));
  out.push_back(make_case(
      {.w_type = type, .n_rows = 3, .n = 17, .k = u, .x_type = x_type, .y_type = DType::bf16}));
}

// Floats have no blocks: odd k too, and one that is more than a chunk of the walk.
void add_float_edges(DType type, std::vector<Case>& out) {
  const Shape shapes[] = {{1, 1, 1},   {1, 17, 33},  {2, 15, 7},   {3, 31, 64}, {5, 40, 65},
                          {6, 33, 31}, {9, 48, 257}, {17, 65, 96}, {23, 16, 3}, {0, 16, 5}};
  for (const Shape& s : shapes)
    out.push_back(
        make_case({.w_type = type, .n_rows = s.n_rows, .n = s.n, .k = s.k, .x_type = DType::f32}));
  for (const Shape& s : {Shape{1, 100, 77}, Shape{13, 40, 301}})
    out.push_back(make_case({.w_type = type,
                             .n_rows = s.n_rows,
                             .n = s.n,
                             .k = s.k,
                             .x_type = DType::f32,
                             .hostile = true}));
}

// Enough rows, blocks and outputs for a variant to cut each of them into pieces.
void add_cuts(std::vector<Case>& out) {
  for (DType type :
       {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::iq4_nl})
    out.push_back(make_case({.w_type = type, .n_rows = 29, .n = 85, .k = 640}));
  for (DType type : {DType::q4_k, DType::q6_k, DType::iq4_xs})
    out.push_back(make_case({.w_type = type, .n_rows = 29, .n = 85, .k = 1280}));
  for (DType type : {DType::q8_0, DType::q4_0})
    out.push_back(make_case({.w_type = type, .n_rows = 49, .n = 17, .k = 12800}));
}

// bf16 by bf16 is the tensor cores' product: edges of their tiles, steps, segments and row blocks.
void add_bf16(std::vector<Case>& out) {
  const DType bf16 = DType::bf16;
  for (const Shape& s :
       {Shape{1, 1, 16}, Shape{1, 40, 144}, Shape{2, 17, 128}, Shape{3, 64, 272},
        Shape{8, 33, 1024}, Shape{9, 16, 48}, Shape{12, 40, 528}, Shape{20, 100, 1040},
        Shape{33, 17, 16}, Shape{64, 70, 2064}, Shape{65, 130, 160}, Shape{70, 264, 144},
        Shape{130, 200, 272}, Shape{1, 48, 4096}, Shape{0, 16, 16}})
    for (DType y_type : {DType::f32, bf16})
      out.push_back(make_case({.w_type = bf16,
                               .n_rows = s.n_rows,
                               .n = s.n,
                               .k = s.k,
                               .x_type = bf16,
                               .y_type = y_type}));
  // The four products of a Qwen3-0.6B layer.
  for (long long rows : {1, 8, 9, 16, 32, 64, 128, 512, 1024})
    for (const Shape& s : {Shape{rows, 4096, 1024}, Shape{rows, 1024, 2048},
                           Shape{rows, 6144, 1024}, Shape{rows, 1024, 3072}})
      out.push_back(make_case({.w_type = bf16,
                               .n_rows = s.n_rows,
                               .n = s.n,
                               .k = s.k,
                               .x_type = bf16,
                               .y_type = bf16,
                               .timed = true}));
}

// Output heads, whose logits are f32.
void add_heads(DType type, std::initializer_list<Shape> shapes, std::vector<Case>& out) {
  for (const Shape& s : shapes)
    out.push_back(make_case({.w_type = type,
                             .n_rows = s.n_rows,
                             .n = s.n,
                             .k = s.k,
                             .x_type = DType::bf16,
                             .timed = true}));
}

// The same with weights of 8 bits and less, whose least k is a block: parts of the last segment,
// tails of tiles, more segments than a block has warps, hostile scales.
void add_packed(DType type, std::vector<Case>& out) {
  const DType bf16 = DType::bf16;
  const long long u = format_of(type).block_elems;
  const auto add = [&](const Shape& s, DType y_type, bool hostile, bool timed) {
    out.push_back(make_case({.w_type = type,
                             .n_rows = s.n_rows,
                             .n = s.n,
                             .k = timed ? s.k : (s.k + u - 1) / u * u,
                             .x_type = bf16,
                             .y_type = y_type,
                             .hostile = hostile,
                             .timed = timed}));
  };
  bool is_bf16 = false;  // in turn
  const auto next_type = [&] { return std::exchange(is_bf16, !is_bf16) ? bf16 : DType::f32; };
  for (const Shape& s :
       {Shape{1, 1, 32}, Shape{1, 40, 160}, Shape{2, 17, 128}, Shape{3, 64, 224},
        Shape{8, 33, 1024}, Shape{5, 2500, 96}, Shape{7, 48, 4096}, Shape{1, 48, 2176},
        Shape{9, 16, 64}, Shape{12, 40, 544}, Shape{20, 100, 1056}, Shape{33, 17, 32},
        Shape{64, 70, 2080}, Shape{65, 130, 160}, Shape{70, 264, 224}, Shape{130, 200, 288},
        Shape{0, 16, 32}})
    add(s, next_type(), false, false);
  for (const Shape& s : {Shape{3, 40, 1184}, Shape{20, 40, 608}, Shape{70, 40, 352}})
    for (DType y_type : {DType::f32, bf16}) add(s, y_type, true, false);
  for (const Shape& s : {Shape{1, 4096, 1024}, Shape{1, 1024, 2048}, Shape{1, 6144, 1024},
                         Shape{1, 1024, 3072}, Shape{8, 6144, 1024}, Shape{8, 1024, 3072},
                         Shape{16, 4096, 1024}, Shape{64, 4096, 1024}, Shape{512, 4096, 1024}})
    add(s, bf16, false, true);
}

// One row reads the weight once: the decode step. 8 and 512 rows: a small batch and prefill.
void add_timed(DType type, std::initializer_list<Shape> shapes, std::vector<Case>& out) {
  for (const Shape& s : shapes)
    out.push_back(make_case({.w_type = type,
                             .n_rows = s.n_rows,
                             .n = s.n,
                             .k = s.k,
                             .x_type = format_of(type).input,
                             .timed = true}));
}

}  // namespace

Case make_case(const Problem& p) {
  Case c;
  c.name = name_of_case(p);
  c.hostile = p.hostile;
  c.ports = {
      {.name = "w",
       .type = p.w_type,
       .elems = p.n * p.k,
       .role = Role::weight,
       .fill = fill_weight(p)},
      {.name = "x",
       .type = p.x_type,
       .elems = p.n_rows * p.k,
       .row_elems = p.k,
       .fill = fill_x(p),
       .align = is_block_format(p.x_type) ? size_t{4} : size_t{0}},
      {.name = "y", .type = p.y_type, .elems = p.n_rows * p.n, .role = Role::out, .row_elems = p.n},
  };
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{ptr[0], ptr[1], ptr[2], p.n_rows, p.n, p.k, p.w_type, p.x_type, p.y_type};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = tolerance_of(p);
  c.magnitude = [](const ArgsBox& box, size_t, std::span<double> out) {
    reference::magnitudes(*reinterpret_cast<const Args*>(box.bytes), out);
  };
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Format& format : formats())
    if (is_quantised_weight(format.type)) add_edges(format.type, out);
  for (DType type : {DType::f32, DType::f16, DType::bf16}) add_float_edges(type, out);
  add_cuts(out);
  add_bf16(out);
  // Of Qwen3-0.6B and, as files of 4 bits have it, of Llama-3.2-1B.
  add_heads(DType::bf16, {{1, 151936, 1024}, {16, 151936, 1024}, {64, 151936, 1024}}, out);
  add_heads(DType::q8_0, {{1, 151936, 1024}}, out);
  add_heads(DType::q6_k, {{1, 128256, 2048}}, out);
  for (DType type : {DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) add_packed(type, out);
  for (DType type :
       {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::iq4_nl})
    add_timed(type,
              {{1, 576, 576},
               {1, 1536, 576},
               {1, 576, 1536},
               {1, 49152, 576},
               {8, 576, 576},
               {8, 1536, 576},
               {8, 576, 1536},
               {512, 576, 576},
               {512, 1536, 576},
               {512, 576, 1536}},
              out);
  for (DType type : {DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_xs})
    add_timed(type,
              {{1, 2048, 1024},
               {1, 6144, 1024},
               {1, 1024, 3072},
               {8, 2048, 1024},
               {512, 2048, 1024},
               {512, 1024, 3072}},
              out);
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    add_timed(type, {{1, 2048, 1024}, {1, 1024, 3072}, {8, 2048, 1024}, {512, 2048, 1024}}, out);
  return out;
}

}  // namespace millrace::matmul
