#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/sample/op.h"

namespace millrace {
namespace {

constexpr int kMaxLogprobs = 100;
static_assert(kMaxLogprobs <= sample::kMaxTop);

Status in_range(std::string_view what, float value, float least, float most) {
  if (value >= least && value <= most) return {};
  return error(Code::invalid_argument, "{} is {}, outside {} to {}", what, value, least, most);
}

Status validate(const TokenBias& bias, int64_t n_vocab) {
  if (bias.token < 0 || bias.token >= n_vocab)
    return error(Code::invalid_argument, "bias of token {}: the vocabulary has 0 to {}", bias.token,
                 n_vocab - 1);
  if (std::fabs(bias.value) <= 1e4f) return {};
  return error(Code::invalid_argument, "bias of token {} is {}, outside -10000 to 10000",
               bias.token, bias.value);
}

}  // namespace

Status validate(const Sampling& s, int64_t n_vocab) {
  MILLRACE_TRY(in_range("temperature", s.temperature, 0, 100));
  MILLRACE_TRY(in_range("top-p", s.top_p, 0, 1));
  MILLRACE_TRY(in_range("min-p", s.min_p, 0, 1));
  MILLRACE_TRY(in_range("repeat penalty", s.repeat_penalty, 1e-3f, 1e3f));
  MILLRACE_TRY(in_range("presence penalty", s.presence_penalty, -100, 100));
  MILLRACE_TRY(in_range("frequency penalty", s.frequency_penalty, -100, 100));
  if (s.top_k < 0) return error(Code::invalid_argument, "top-k is {}, below 0", s.top_k);
  if (s.penalty_tokens < -1)
    return error(Code::invalid_argument,
                 "penalties look {} tokens back (0 or more, or -1 for all of them)",
                 s.penalty_tokens);
  if (s.n_logprobs < 0 || s.n_logprobs > kMaxLogprobs)
    return error(Code::invalid_argument, "{} log-probabilities, outside 0 to {}", s.n_logprobs,
                 kMaxLogprobs);
  for (const TokenBias& bias : s.biases) MILLRACE_TRY(validate(bias, n_vocab));
  return {};
}

Status status_of(const Sampled& sampled, uint64_t position) {
  switch (sampled.draw) {
    case Draw::token:
      return {};
    case Draw::none_allowed:
      return error(Code::invalid_argument,
                   "no token is allowed at position {}: the mask and the biases exclude all",
                   position);
    case Draw::not_finite:
      break;
  }
  return error(Code::wrong_result, "the model's logits are not finite (NaN) at position {}",
               position);
}

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - top);
  return top + std::log(sum);
}

std::vector<TokenLogprob> most_likely(std::span<const float> logits, int n) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min<size_t>(static_cast<size_t>(n), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x > y || (x == y && a < b);
                    });
  const double total = log_sum_exp(logits);
  std::vector<TokenLogprob> out;
  for (size_t i = 0; i < kept; ++i)
    out.push_back({order[i], static_cast<float>(logits[static_cast<size_t>(order[i])] - total)});
  return out;
}

void Sampler::Arrays::clear() {
  for (auto* v : {&temperature, &top_p, &min_p, &repeat, &presence, &frequency, &bias_value})
    v->clear();
  for (auto* v : {&logits_row, &top_k, &said_token, &said_count, &bias_token, &mask_row, &n_top})
    v->clear();
  seed.clear();
  position.clear();
  choice.clear();
  mask.clear();
  said_begin.assign(1, 0);
  bias_begin.assign(1, 0);
}

void Sampler::Arrays::add(const SampleRow& row, size_t mask_words) {
  const Sampling& how = row.how;
  temperature.push_back(how.temperature);
  top_k.push_back(how.top_k);
  top_p.push_back(how.top_p);
  min_p.push_back(how.min_p);
  seed.push_back(how.seed);
  position.push_back(row.position);
  choice.push_back(row.choice);
  n_top.push_back(how.wants_logprob() ? std::clamp(how.n_logprobs, 0, kMaxLogprobs) : -1);
  add_edits(row, mask_words);
}

void Sampler::Arrays::add_edits(const SampleRow& row, size_t mask_words) {
  const Sampling& how = row.how;
  repeat.push_back(how.repeat_penalty);
  presence.push_back(how.presence_penalty);
  frequency.push_back(how.frequency_penalty);
  if (how.penalises()) {
    const auto tokens = row.history.tokens(), counts = row.history.counts();
    said_token.insert(said_token.end(), tokens.begin(), tokens.end());
    said_count.insert(said_count.end(), counts.begin(), counts.end());
  }
  said_begin.push_back(static_cast<int>(said_token.size()));
  for (const TokenBias& bias : how.biases) {
    bias_token.push_back(bias.token);
    bias_value.push_back(bias.value);
  }
  bias_begin.push_back(static_cast<int>(bias_token.size()));
  mask_row.push_back(row.mask.empty() ? -1 : static_cast<int>(mask.size() / mask_words));
  if (row.mask.empty()) return;
  const size_t begin = mask.size();
  const auto words = row.mask.first(std::min(row.mask.size(), mask_words));
  mask.insert(mask.end(), words.begin(), words.end());
  mask.resize(begin + mask_words);
}

void Sampler::Arrays::size_outputs(size_t n_rows, size_t max_top) {
  token.resize(n_rows);
  logprob.resize(n_rows);
  top_token.resize(n_rows * max_top);
  top_logprob.resize(n_rows * max_top);
}

Result<Sampler> Sampler::make(int64_t n_vocab, const PickFrom& from) {
  Sampler out;
  out.n_vocab_ = n_vocab;
  out.args_ = {.n_rows = 1, .n = n_vocab};
  MILLRACE_TRY(sample::validate(out.args_));
  MILLRACE_ASSIGN(const Picked picked, pick(sample::kOp, &out.args_, from));
  out.variant_ = picked.variant;
  MILLRACE_TRY(out.prepare(1));
  return out;
}

Status Sampler::prepare(int n_lanes) {
  if (lane_status_.size() >= static_cast<size_t>(n_lanes)) return {};
  if (variant_->workspace_bytes != nullptr) {
    MILLRACE_ASSIGN(workspace_, HostBuffer::make(variant_->workspace_bytes(&args_, n_lanes)));
  }
  lane_status_.resize(static_cast<size_t>(n_lanes));
  return {};
}

// Finds which row of one matrix each row's logits are.
Status Sampler::place(std::span<const SampleRow> rows) {
  const auto address = [](const SampleRow& row) {
    return reinterpret_cast<uintptr_t>(row.logits.data());
  };
  uintptr_t first = std::numeric_limits<uintptr_t>::max();
  for (const SampleRow& row : rows) {
    if (row.logits.size() != static_cast<size_t>(n_vocab_))
      return error(Code::invalid_argument, "{} logits for a vocabulary of {}", row.logits.size(),
                   n_vocab_);
    if (address(row) < first) args_.logits = row.logits.data();
    first = std::min(first, address(row));
  }
  const uintptr_t row_bytes = static_cast<uintptr_t>(n_vocab_) * sizeof(float);
  for (const SampleRow& row : rows) {
    const uintptr_t offset = address(row) - first;
    if (offset % row_bytes != 0 || offset / row_bytes > INT32_MAX)
      return error(Code::invalid_argument, "the logits to draw from are not rows of one matrix");
    arrays_.logits_row.push_back(static_cast<int>(offset / row_bytes));
  }
  return {};
}

Status Sampler::gather(std::span<const SampleRow> rows) {
  arrays_.clear();
  MILLRACE_TRY(place(rows));
  args_.mask_words = (n_vocab_ + 31) / 32;
  int max_top = -1;
  for (const SampleRow& row : rows) {
    arrays_.add(row, static_cast<size_t>(args_.mask_words));
    max_top = std::max(max_top, arrays_.n_top.back());
  }
  args_.n_rows = static_cast<long long>(rows.size());
  args_.max_top = std::max(max_top, 0);
  arrays_.size_outputs(rows.size(), static_cast<size_t>(args_.max_top));
  bind();
  args_.logprob = max_top >= 0 ? arrays_.logprob.data() : nullptr;
  return sample::validate(args_);
}

void Sampler::bind() {
  Arrays& a = arrays_;
  args_.logits_row = a.logits_row.data();
  args_.temperature = a.temperature.data();
  args_.top_k = a.top_k.data();
  args_.top_p = a.top_p.data();
  args_.min_p = a.min_p.data();
  args_.seed = a.seed.data();
  args_.position = a.position.data();
  args_.choice = a.choice.data();
  args_.said_begin = a.said_token.empty() ? nullptr : a.said_begin.data();
  args_.said_token = a.said_token.data();
  args_.said_count = a.said_count.data();
  args_.repeat_penalty = a.repeat.data();
  args_.presence_penalty = a.presence.data();
  args_.frequency_penalty = a.frequency.data();
  args_.bias_begin = a.bias_token.empty() ? nullptr : a.bias_begin.data();
  args_.bias_token = a.bias_token.data();
  args_.bias_value = a.bias_value.data();
  args_.mask = a.mask.empty() ? nullptr : a.mask.data();
  args_.mask_row = a.mask_row.data();
  args_.token = a.token.data();
  args_.n_top = a.n_top.data();
  args_.top_token = a.top_token.data();
  args_.top_logprob = a.top_logprob.data();
}

void Sampler::take(std::span<Sampled> out) const {
  const auto max_top = static_cast<size_t>(args_.max_top);
  for (size_t r = 0; r < out.size(); ++r) {
    const int token = arrays_.token[r];
    out[r].draw = token >= 0                      ? Draw::token
                  : token == sample::kNoneAllowed ? Draw::none_allowed
                                                  : Draw::not_finite;
    out[r].token = std::max(token, -1);
    out[r].logprob = arrays_.n_top[r] >= 0 ? arrays_.logprob[r] : 0;
    out[r].most_likely.clear();
    for (size_t j = r * max_top; j < (r + 1) * max_top && arrays_.top_token[j] >= 0; ++j)
      out[r].most_likely.push_back({arrays_.top_token[j], arrays_.top_logprob[j]});
  }
}

Status Sampler::sample(std::span<const SampleRow> rows, std::span<Sampled> out) {
  MILLRACE_CHECK(rows.size() == out.size(), "{} rows, {} results", rows.size(), out.size());
  MILLRACE_TRY(gather(rows));
  Exec exec{.workspace = workspace_.data(), .workspace_bytes = workspace_.bytes()};
  MILLRACE_TRY(variant_->run(&args_, exec));
  take(out);
  return {};
}

Status Sampler::sample(Team& team, std::span<const SampleRow> rows, std::span<Sampled> out) {
  MILLRACE_CHECK(rows.size() == out.size(), "{} rows, {} results", rows.size(), out.size());
  MILLRACE_TRY(gather(rows));
  MILLRACE_TRY(prepare(team.size()));
  team.run([&](Lane& lane) {
    Exec exec{.lane = lane.index,
              .n_lanes = lane.count,
              .barrier = lane.count > 1 ? lane.barrier : nullptr,
              .workspace = workspace_.data(),
              .workspace_bytes = workspace_.bytes()};
    lane_status_[static_cast<size_t>(lane.index)] = variant_->run(&args_, exec);
  });
  for (int i = 0; i < team.size(); ++i) MILLRACE_TRY(lane_status_[static_cast<size_t>(i)]);
  take(out);
  return {};
}

}  // namespace millrace
