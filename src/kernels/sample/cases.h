// The named problems of sample: each rule alone and all together, rows that mix them, tails, masked
// and hostile logits, nonsense parameters, and real vocabularies.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <vector>

#include "kernels/case.h"
#include "kernels/sample/floor.h"

namespace millrace::sample {

struct Problem {
  long long n_rows, n;
  std::string_view rule = "plain";   // plain greedy top_k top_p min_p all mixed nonsense
  std::string_view data = "normal";  // normal masked hostile flat
  bool logprob = true;
  bool timed = false;
};

struct Settings {
  float temperature = 0.8f;
  int top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
};

inline Settings settings_of(std::string_view rule, Rng& rng) {
  constexpr std::string_view kRules[] = {"plain", "greedy", "top_k", "top_p", "min_p", "all"};
  if (rule == "mixed") rule = kRules[rng.below(6)];
  Settings s;
  if (rule == "nonsense") s = {std::numeric_limits<float>::quiet_NaN(), -3, -0.5f, 7.0f};
  if (rule == "nonsense" && rng.below(2) == 0) s = {1e-42f, 1 << 30, 0.0f, -1.0f};
  if (rule == "greedy") s.temperature = 0.0f;
  if (rule == "top_k" || rule == "all") s.top_k = static_cast<int>(rng.below(60)) + 1;
  if (rule == "top_p" || rule == "all") s.top_p = rng.uniform(0.3f, 1.0f);
  if (rule == "min_p" || rule == "all") s.min_p = rng.uniform(0.0f, 0.2f);
  if (rule == "plain") s.temperature = rng.below(2) == 0 ? 1.0f : 1.3f;
  return s;
}

// Row r's settings, the same for each of the four ports that hold a part of them.
template <class T>
Fill fill_setting(long long n_rows, std::string_view rule, T Settings::*member) {
  return [=](Rng&, void* dst) {
    Rng rng(11, 3);
    for (long long r = 0; r < n_rows; ++r) static_cast<T*>(dst)[r] = settings_of(rule, rng).*member;
  };
}

// Logits of a language model: a few of 50000 tokens hold most of the mass.
inline Fill fill_logits(std::string_view data, long long elems) {
  if (data == "hostile") return fill_hostile(DType::f32, elems);
  if (data == "flat") return fill_zero(static_cast<size_t>(elems) * 4);
  if (data == "normal") return fill_normal(DType::f32, elems, 4.0f);
  return [=](Rng& rng, void* dst) {
    for (long long i = 0; i < elems; ++i)
      static_cast<float*>(dst)[i] =
          rng.below(40) == 0 ? rng.normal() : -std::numeric_limits<float>::infinity();
  };
}

inline Fill fill_words(long long elems) {
  return [=](Rng& rng, void* dst) {
    for (long long i = 0; i < elems; ++i) static_cast<uint32_t*>(dst)[i] = rng.next_u32();
  };
}

inline std::vector<Port> ports_of(const Problem& p) {
  const long long rows = p.n_rows;
  const auto setting = [&](const char* name, DType type, Fill fill) {
    return Port{.name = name, .type = type, .elems = rows, .row_elems = 1, .fill = fill};
  };
  // 64-bit words, as two of 32.
  const auto counter = [&](const char* name) {
    return Port{.name = name,
                .type = DType::i32,
                .elems = 2 * rows,
                .row_elems = 2,
                .fill = fill_words(2 * rows),
                .align = 8};
  };
  std::vector<Port> ports = {
      {.name = "logits",
       .elems = rows * p.n,
       .row_elems = p.n,
       .fill = fill_logits(p.data, rows * p.n)},
      setting("temperature", DType::f32, fill_setting(rows, p.rule, &Settings::temperature)),
      setting("top_k", DType::i32, fill_setting(rows, p.rule, &Settings::top_k)),
      setting("top_p", DType::f32, fill_setting(rows, p.rule, &Settings::top_p)),
      setting("min_p", DType::f32, fill_setting(rows, p.rule, &Settings::min_p)),
      counter("seed"),
      counter("position"),
      {.name = "token", .type = DType::i32, .elems = rows, .role = Role::out, .row_elems = 1},
  };
  if (p.logprob)
    ports.push_back({.name = "logprob", .elems = rows, .role = Role::out, .row_elems = 1});
  return ports;
}

inline Args args_of(const Problem& p, std::span<void* const> ptr) {
  return {static_cast<const float*>(ptr[0]),
          static_cast<const float*>(ptr[1]),
          static_cast<const int*>(ptr[2]),
          static_cast<const float*>(ptr[3]),
          static_cast<const float*>(ptr[4]),
          static_cast<const unsigned long long*>(ptr[5]),
          static_cast<const unsigned long long*>(ptr[6]),
          static_cast<int*>(ptr[7]),
          p.logprob ? static_cast<float*>(ptr[8]) : nullptr,
          p.n_rows,
          p.n};
}

inline Case make_case(const Problem& p) {
  Case c;
  c.name = fmt::format("{}x{}_{}{}{}{}", p.n_rows, p.n, p.rule, p.data == "normal" ? "" : "_",
                       p.data == "normal" ? "" : p.data, p.logprob ? "" : "_token_only");
  c.ports = ports_of(p);
  bind_rows(c, p, args_of, make_case);
  char anywhere = 0;  // the floor asks which pointers are null
  c.floor = floor_of(args_of(p, std::vector<void*>(9, &anywhere)));
  // Of the log-probability, whose logarithm is good to one unit in the last place. On tokens it
  // allows less than 1 in any vocabulary below 500000: they must agree.
  c.tolerance = {.eps = 16 * 0x1p-23, .abs = 16 * 0x1p-23};
  return c;
}

inline std::vector<Case> cases() {
  const std::vector<Problem> problems = {
      {3, 1, "mixed"},
      {4, 7, "mixed"},
      {0, 16, "mixed"},
      {12, 33, "mixed"},
      {12, 1000, "mixed"},
      {5, 1000, "plain"},
      {3, 1000, "greedy"},
      {5, 1000, "top_k"},
      {5, 1000, "top_p"},
      {5, 1000, "min_p"},
      {5, 1000, "all"},
      {6, 300, "nonsense"},
      {.n_rows = 7, .n = 500, .rule = "mixed", .logprob = false},
      {6, 777, "mixed", "masked"},
      {8, 50, "mixed", "hostile"},
      {8, 3, "mixed", "hostile"},
      {4, 5000, "plain", "flat"},  // the list must grow to find the draw
      {4, 5000, "top_p", "flat"},
      {.n_rows = 1, .n = 49152, .rule = "greedy", .timed = true},
      {.n_rows = 1, .n = 49152, .rule = "all", .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "all", .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "all", .logprob = false, .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "top_p", .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "plain", .timed = true},
  };
  std::vector<Case> out;
  for (const Problem& p : problems) out.push_back(make_case(p));
  return out;
}

}  // namespace millrace::sample
