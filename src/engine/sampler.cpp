#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
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

// An array's bytes in a block that holds several.
template <class T>
size_t padded_bytes(const std::vector<T>& array) {
  return (array.size() * sizeof(T) + 15) / 16 * 16;
}

// Memory as what a field of the args points to, to be written.
template <class Field>
auto at_byte(std::byte* p) {
  using Element = std::remove_const_t<std::remove_pointer_t<std::remove_reference_t<Field>>>;
  return reinterpret_cast<Element*>(p);
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
  logits_row.push_back(row.logits_row);
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

Result<Sampler> Sampler::make(int64_t n_vocab, const PickFrom& from, Device& device) {
  Sampler out(device);
  out.n_vocab_ = n_vocab;
  out.args_ = {.n_rows = 1, .n = n_vocab};
  MILLRACE_TRY(sample::validate(out.args_));
  MILLRACE_ASSIGN(const Picked picked, pick(sample::kOp, &out.args_, from));
  out.program_.add(sample::kOp, *picked.variant, {});
  put_args(out.program_.calls()[0].args, out.args_);
  MILLRACE_TRY(device.prepare(out.program_, 0));
  return out;
}

// On lanes the workspace is the same for any rows; on a GPU it grows with them.
Status Sampler::prepare() {
  put_args(program_.calls()[0].args, args_);
  const bool fits = device_->kind() == DeviceKind::cpu ||
                    program_.device_workspace_bytes() <= program_.device_workspace().bytes();
  return fits ? Status() : device_->prepare(program_, 0);
}

Result<Program*> Sampler::gather(const float* logits, std::span<const SampleRow> rows) {
  arrays_.clear();
  args_.logits = logits;
  args_.mask_words = (n_vocab_ + 31) / 32;
  int max_top = -1;
  for (const SampleRow& row : rows) {
    arrays_.add(row, static_cast<size_t>(args_.mask_words));
    max_top = std::max(max_top, arrays_.n_top.back());
  }
  args_.n_rows = static_cast<long long>(rows.size());
  args_.max_top = std::max(max_top, 0);
  arrays_.size_outputs(rows.size(), static_cast<size_t>(args_.max_top));
  if (device_->kind() == DeviceKind::cpu)
    bind();
  else
    MILLRACE_TRY(bind_on_gpu());
  if (max_top < 0) args_.logprob = nullptr;
  if (arrays_.said_token.empty()) args_.said_begin = nullptr;
  if (arrays_.bias_token.empty()) args_.bias_begin = nullptr;
  if (arrays_.mask.empty()) args_.mask = nullptr;
  MILLRACE_TRY(sample::validate(args_));
  MILLRACE_TRY(prepare());
  return &program_;
}

template <class See>
void Sampler::each_input(See&& see) {
  see(arrays_.logits_row, args_.logits_row);
  see(arrays_.temperature, args_.temperature);
  see(arrays_.top_k, args_.top_k);
  see(arrays_.top_p, args_.top_p);
  see(arrays_.min_p, args_.min_p);
  see(arrays_.seed, args_.seed);
  see(arrays_.position, args_.position);
  see(arrays_.choice, args_.choice);
  see(arrays_.said_begin, args_.said_begin);
  see(arrays_.said_token, args_.said_token);
  see(arrays_.said_count, args_.said_count);
  see(arrays_.repeat, args_.repeat_penalty);
  see(arrays_.presence, args_.presence_penalty);
  see(arrays_.frequency, args_.frequency_penalty);
  see(arrays_.bias_begin, args_.bias_begin);
  see(arrays_.bias_token, args_.bias_token);
  see(arrays_.bias_value, args_.bias_value);
  see(arrays_.mask, args_.mask);
  see(arrays_.mask_row, args_.mask_row);
  see(arrays_.n_top, args_.n_top);
}

template <class See>
void Sampler::each_output(See&& see) {
  see(arrays_.token, args_.token);
  see(arrays_.logprob, args_.logprob);
  see(arrays_.top_token, args_.top_token);
  see(arrays_.top_logprob, args_.top_logprob);
}

void Sampler::bind() {
  const auto point = [](auto& array, auto& field) { field = array.data(); };
  each_input(point);
  each_output(point);
}

// The inputs are copied over in one piece; the few outputs are written to the host's memory.
Status Sampler::bind_on_gpu() {
  size_t n_in = 0, n_out = 0;
  const auto count = [](size_t& bytes) {
    return [&bytes](auto& array, auto&) { bytes += padded_bytes(array); };
  };
  each_input(count(n_in));
  each_output(count(n_out));
  if (n_in > inputs_.host.bytes()) {
    Shared larger;  // both or neither
    MILLRACE_ASSIGN(larger.host, PinnedBuffer::make(2 * n_in));
    MILLRACE_ASSIGN(larger.device, device_->allocate(2 * n_in, Pages::small));
    inputs_ = std::move(larger);
  }
  if (n_out > outputs_.host.bytes()) {
    MILLRACE_ASSIGN(outputs_.host, PinnedBuffer::make(2 * n_out));
  }
  size_t at = 0;
  each_input([&](auto& array, auto& field) {
    std::copy(array.begin(), array.end(), at_byte<decltype(field)>(inputs_.host.data() + at));
    field = at_byte<decltype(field)>(inputs_.device.data() + at);
    at += padded_bytes(array);
  });
  at = 0;
  each_output([&](auto& array, auto& field) {
    field = at_byte<decltype(field)>(outputs_.host.data() + at);
    at += padded_bytes(array);
  });
  return device_->upload(inputs_.device.data(), inputs_.host.data(), n_in);
}

void Sampler::take(std::span<Sampled> out) const {
  const auto max_top = static_cast<size_t>(args_.max_top);
  for (size_t r = 0; r < out.size(); ++r) {
    const int token = args_.token[r];
    out[r].draw = token >= 0                      ? Draw::token
                  : token == sample::kNoneAllowed ? Draw::none_allowed
                                                  : Draw::not_finite;
    out[r].token = std::max(token, -1);
    out[r].logprob = arrays_.n_top[r] >= 0 ? args_.logprob[r] : 0;
    out[r].most_likely.clear();
    for (size_t j = r * max_top; j < (r + 1) * max_top && args_.top_token[j] >= 0; ++j)
      out[r].most_likely.push_back({args_.top_token[j], args_.top_logprob[j]});
  }
}

}  // namespace millrace
