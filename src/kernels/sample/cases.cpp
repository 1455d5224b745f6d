#include "kernels/sample/cases.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/sample/floor.h"

namespace millrace::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr long long kSaid = 20, kBiases = 6;  // entries per row
constexpr long long kMasks = 3;               // half of the tokens, a few, none
constexpr long long kSharedRows = 2;

struct Settings {
  float temperature = 0.8f;
  int top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repeat = 1.3f, presence = 0.5f, frequency = 0.25f;
};

Settings settings_of(std::string_view rule, Rng& rng) {
  constexpr std::string_view kRules[] = {"plain", "greedy", "top_k", "top_p", "min_p", "all"};
  if (rule == "mixed") rule = kRules[rng.below(6)];
  Settings s;
  if (rule == "nonsense") s = {kNan, -3, -0.5f, 7.0f, kNan, kInf, kNan};
  if (rule == "nonsense" && rng.below(2) == 0) s = {1e-42f, 1 << 30, 0.0f, -1.0f, -2, kNan, -kInf};
  if (rule == "nonsense" && rng.below(2) == 0) s = {1.0f, -3, kNan, kNan, 1e-30f, -3e38f, 3e38f};
  if (rule == "greedy") s.temperature = 0.0f;
  if (rule == "top_k" || rule == "all") s.top_k = static_cast<int>(rng.below(60)) + 1;
  if (rule == "top_p" || rule == "all") s.top_p = rng.uniform(0.3f, 1.0f);
  if (rule == "min_p" || rule == "all") s.min_p = rng.uniform(0.0f, 0.2f);
  if (rule == "plain") s.temperature = rng.below(2) == 0 ? 1.0f : 1.3f;
  return s;
}

// Row r's settings, the same for each of the ports that hold a part of them.
template <class T>
Fill fill_setting(const Problem& p, T Settings::*member) {
  return [n_rows = p.n_rows, rule = p.rule, member](Rng&, void* dst) {
    Rng rng(11, 3);
    for (long long r = 0; r < n_rows; ++r) static_cast<T*>(dst)[r] = settings_of(rule, rng).*member;
  };
}

template <class T, class Make>
Fill fill_each(long long elems, Make make) {
  return [=](Rng& rng, void* dst) {
    for (long long i = 0; i < elems; ++i) static_cast<T*>(dst)[i] = make(rng);
  };
}

// Every row fails in another way, and some do not.
Fill fill_bad(long long n_rows, long long n) {
  return [=](Rng& rng, void* dst) {
    auto* x = static_cast<float*>(dst);
    for (long long r = 0; r < n_rows; ++r, x += n) {
      for (long long i = 0; i < n; ++i) x[i] = rng.normal();
      const auto place = rng.below(static_cast<uint64_t>(n));
      const uint64_t kind = rng.below(5);
      if (kind == 0) x[place] = kNan;
      if (kind == 1) x[place] = kInf;
      if (kind == 2) std::fill_n(x, n, -kInf);
      if (kind == 3) x[place] = -kInf;
    }
  };
}

Fill fill_logits(const Problem& p, long long n_rows) {
  const long long elems = n_rows * p.n;
  if (p.data == "hostile") return fill_hostile(DType::f32, elems);
  if (p.data == "bad") return fill_bad(n_rows, p.n);
  if (p.data == "flat") return fill_zero(static_cast<size_t>(elems) * 4);
  // Logits of a language model: a few of 50000 tokens hold most of the mass.
  if (p.data == "normal") return fill_normal(DType::f32, elems, 4.0f);
  return fill_each<float>(elems,
                          [](Rng& rng) { return rng.below(40) == 0 ? rng.normal() : -kInf; });
}

Fill fill_words(long long elems) {
  return fill_each<uint32_t>(elems, [](Rng& rng) { return rng.next_u32(); });
}

// Tokens of a list; one past each end of the vocabulary as well.
Fill fill_tokens(long long elems, long long n) {
  return fill_each<int>(elems, [=](Rng& rng) {
    return static_cast<int>(rng.below(static_cast<uint64_t>(n + 2))) - 1;
  });
}

float any_bias(Rng& rng) {
  constexpr float kValues[] = {kInf, -kInf, kNan, 3e38f, -3e38f, 2.0f, -100.0f, 0.0f};
  const uint64_t at = rng.below(24);
  return at < 8 ? kValues[at] : 3 * rng.normal();
}

Fill fill_masks(long long mask_words) {
  return [=](Rng& rng, void* dst) {
    auto* words = static_cast<uint32_t*>(dst);
    for (long long i = 0; i < mask_words; ++i) {
      words[i] = rng.next_u32();
      words[mask_words + i] = rng.next_u32() & rng.next_u32() & rng.next_u32() & rng.next_u32();
      words[2 * mask_words + i] = 0;
    }
  };
}

// Every row has as many entries, so that rows can change places.
Fill fill_begin(long long n_rows, long long each) {
  return [=](Rng&, void* dst) {
    for (long long r = 0; r <= n_rows; ++r) static_cast<int*>(dst)[r] = static_cast<int>(r * each);
  };
}

bool has(const Problem& p, std::string_view edit) {
  return p.edits == edit || p.edits == "all";
}

long long mask_words_of(const Problem& p) {
  return (p.n + 31) / 32 + 1;  // one more than it takes
}

// Ports in the order in which args_of takes them.
class Ports {
 public:
  explicit Ports(const Problem& p) : p_(p) {}

  std::vector<Port> make() {
    logits();
    settings();
    if (has(p_, "said")) said();
    if (has(p_, "biases")) biases();
    if (has(p_, "mask")) masks();
    outputs();
    return std::move(ports_);
  }

 private:
  void row(const char* name, DType type, Fill fill, long long each = 1) {
    ports_.push_back({.name = name,
                      .type = type,
                      .elems = p_.n_rows * each,
                      .row_elems = each,
                      .fill = std::move(fill)});
  }
  void shared(const char* name, DType type, Fill fill, long long elems) {
    ports_.push_back({.name = name, .type = type, .elems = elems, .fill = std::move(fill)});
  }
  void out(const char* name, DType type, long long each = 1) {
    ports_.push_back({.name = name,
                      .type = type,
                      .elems = p_.n_rows * each,
                      .role = Role::out,
                      .row_elems = each});
  }
  // 64-bit words, as two of 32.
  void counter(const char* name) {
    row(name, DType::i32, fill_words(2 * p_.n_rows), 2);
    ports_.back().align = 8;
  }

  void logits() {
    if (!p_.shared_logits) {
      row("logits", DType::f32, fill_logits(p_, p_.n_rows), p_.n);
      return;
    }
    shared("logits", DType::f32, fill_logits(p_, kSharedRows), kSharedRows * p_.n);
    row("logits_row", DType::i32, fill_index(p_.n_rows, kSharedRows));
  }
  void settings() {
    row("temperature", DType::f32, fill_setting(p_, &Settings::temperature));
    row("top_k", DType::i32, fill_setting(p_, &Settings::top_k));
    row("top_p", DType::f32, fill_setting(p_, &Settings::top_p));
    row("min_p", DType::f32, fill_setting(p_, &Settings::min_p));
    counter("seed");
    counter("position");
    row("choice", DType::i32, fill_words(p_.n_rows));
  }
  void said() {
    const long long elems = p_.n_rows * kSaid;
    const auto count = [](Rng& rng) { return static_cast<int>(rng.below(5)) - 1; };
    shared("said_begin", DType::i32, fill_begin(p_.n_rows, kSaid), p_.n_rows + 1);
    row("said_token", DType::i32, fill_tokens(elems, p_.n), kSaid);
    row("said_count", DType::i32, fill_each<int>(elems, count), kSaid);
    row("repeat_penalty", DType::f32, fill_setting(p_, &Settings::repeat));
    row("presence_penalty", DType::f32, fill_setting(p_, &Settings::presence));
    row("frequency_penalty", DType::f32, fill_setting(p_, &Settings::frequency));
  }
  void biases() {
    const long long elems = p_.n_rows * kBiases;
    shared("bias_begin", DType::i32, fill_begin(p_.n_rows, kBiases), p_.n_rows + 1);
    row("bias_token", DType::i32, fill_tokens(elems, p_.n), kBiases);
    row("bias_value", DType::f32, fill_each<float>(elems, any_bias), kBiases);
  }
  void masks() {
    const long long words = mask_words_of(p_);
    const auto any = [](Rng& rng) { return static_cast<int>(rng.below(kMasks + 1)) - 1; };
    shared("mask", DType::i32, fill_masks(words), kMasks * words);
    row("mask_row", DType::i32, fill_each<int>(p_.n_rows, any));
  }
  void outputs() {
    out("token", DType::i32);
    if (p_.logprob) out("logprob", DType::f32);
    if (p_.max_top == 0) return;
    const auto any = [most = p_.max_top](Rng& rng) {
      return static_cast<int>(rng.below(static_cast<uint64_t>(most + 3))) - 1;
    };
    row("n_top", DType::i32, fill_each<int>(p_.n_rows, any));
    out("top_token", DType::i32, p_.max_top);
    out("top_logprob", DType::f32, p_.max_top);
  }

  const Problem& p_;
  std::vector<Port> ports_;
};

// Hands out the ports' pointers one by one.
class Pointers {
 public:
  explicit Pointers(std::span<void* const> all) : all_(all) {}
  template <class T>
  void to(T*& field) {
    field = static_cast<T*>(all_[next_++]);
  }

 private:
  std::span<void* const> all_;
  size_t next_ = 0;
};

void take_edits(const Problem& p, Pointers& pointers, Args& a) {
  if (has(p, "said")) {
    pointers.to(a.said_begin);
    pointers.to(a.said_token);
    pointers.to(a.said_count);
    pointers.to(a.repeat_penalty);
    pointers.to(a.presence_penalty);
    pointers.to(a.frequency_penalty);
  }
  if (has(p, "biases")) {
    pointers.to(a.bias_begin);
    pointers.to(a.bias_token);
    pointers.to(a.bias_value);
  }
  if (has(p, "mask")) {
    pointers.to(a.mask);
    pointers.to(a.mask_row);
    a.mask_words = mask_words_of(p);
  }
}

Args args_of(const Problem& p, std::span<void* const> ptr) {
  Args a{};
  a.n_rows = p.n_rows;
  a.n = p.n;
  Pointers pointers(ptr);
  pointers.to(a.logits);
  if (p.shared_logits) pointers.to(a.logits_row);
  pointers.to(a.temperature);
  pointers.to(a.top_k);
  pointers.to(a.top_p);
  pointers.to(a.min_p);
  pointers.to(a.seed);
  pointers.to(a.position);
  pointers.to(a.choice);
  take_edits(p, pointers, a);
  pointers.to(a.token);
  if (p.logprob) pointers.to(a.logprob);
  if (p.max_top == 0) return a;
  pointers.to(a.n_top);
  pointers.to(a.top_token);
  pointers.to(a.top_logprob);
  a.max_top = p.max_top;
  return a;
}

std::string name_of(const Problem& p) {
  std::string name = fmt::format("{}x{}_{}", p.n_rows, p.n, p.rule);
  if (p.data != "normal") name += fmt::format("_{}", p.data);
  if (p.edits != "none") name += fmt::format("_edits_{}", p.edits);
  if (p.max_top > 0) name += fmt::format("_top{}", p.max_top);
  if (p.shared_logits) name += "_shared";
  if (!p.logprob) name += "_token_only";
  return name;
}

}  // namespace

Case make_case(const Problem& p) {
  Case c;
  c.name = name_of(p);
  c.ports = Ports(p).make();
  bind_rows(c, p, args_of, make_case);
  char anywhere = 0;  // the floor asks which pointers are null
  c.floor = floor_of(args_of(p, std::vector<void*>(c.ports.size(), &anywhere)));
  // Of the log-probability, whose logarithm is good to one unit in the last place. On tokens it
  // allows less than 1 in any vocabulary below 500000: they must agree.
  c.tolerance = {.eps = 16 * 0x1p-23, .abs = 16 * 0x1p-23};
  return c;
}

std::vector<Case> cases() {
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
      {6, 777, "mixed", "sparse"},
      {8, 50, "mixed", "hostile"},
      {8, 3, "mixed", "hostile"},
      {4, 5000, "plain", "flat"},  // the list must grow to find the draw
      {4, 5000, "top_p", "flat"},
      {5, 1024, "mixed"},  // edges of blocks
      {5, 1025, "mixed"},
      {8, 9000, "mixed"},
      {2, 9000, "plain", "flat"},
      {1, 7300, "all"},
      {1, 2500, "all"},  // more lanes than blocks
      {1, 2500, "plain", "normal", "all"},
      {12, 3000, "mixed", "normal", "said"},
      {12, 3000, "mixed", "normal", "biases"},
      {12, 3000, "mixed", "normal", "mask"},
      {12, 3001, "mixed", "normal", "all"},
      {3, 3001, "top_p", "flat", "all"},
      {12, 2100, "nonsense", "normal", "all"},
      {12, 60, "mixed", "hostile", "all"},
      {12, 2500, "mixed", "bad", "all"},
      {2, 2500, "mixed", "bad"},
      {.n_rows = 9, .n = 2500, .rule = "mixed", .max_top = 20},
      {.n_rows = 9, .n = 2500, .rule = "mixed", .data = "bad", .edits = "all", .max_top = 20},
      {.n_rows = 9, .n = 5, .rule = "mixed", .edits = "mask", .max_top = 7},
      {.n_rows = 3, .n = 300, .rule = "greedy", .max_top = kMaxTop},
      {.n_rows = 6, .n = 1500, .rule = "mixed", .max_top = 3, .shared_logits = true},
      {.n_rows = 1, .n = 49152, .rule = "greedy", .timed = true},
      {.n_rows = 1, .n = 49152, .rule = "all", .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "all", .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "all", .logprob = false, .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "all", .edits = "all", .max_top = 5, .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "top_p", .timed = true},
      {.n_rows = 1, .n = 151936, .rule = "plain", .timed = true},
      {.n_rows = 16, .n = 151936, .rule = "all", .logprob = false, .timed = true},
  };
  std::vector<Case> out;
  for (const Problem& p : problems) out.push_back(make_case(p));
  return out;
}

}  // namespace millrace::sample
