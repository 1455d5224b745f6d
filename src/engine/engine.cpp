#include "engine/engine.h"

#include <algorithm>
#include <numeric>

namespace millrace {
namespace {

constexpr int64_t kPageTokens = 64;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

Status check_options(const EngineOptions& o, const Config& config) {
  if (o.n_ctx < 1 || o.n_ctx > (1 << 28))
    return error(Code::invalid_argument, "a context of {} tokens", o.n_ctx);
  if (o.max_seqs < 1 || o.max_seqs > 4096 || o.max_rows < 1 || o.max_rows > 8192)
    return error(Code::invalid_argument, "{} sequences and {} tokens a step", o.max_seqs,
                 o.max_rows);
  if (o.n_ctx * o.max_seqs > (int64_t{1} << 40) / kv_bytes_per_token(config, o.kv_type))
    return error(Code::out_of_memory, "{} sequences of {} tokens need more than a terabyte of KV",
                 o.max_seqs, o.n_ctx);
  return {};
}

}  // namespace

Engine::Engine(std::unique_ptr<Network> network, const EngineOptions& options)
    : network_(std::move(network)),
      options_(options),
      seqs_(static_cast<size_t>(options.max_seqs)),
      free_pages_(static_cast<size_t>(network_->step().limits().n_pages)) {
  // Taken from the back: low pages first.
  std::iota(free_pages_.rbegin(), free_pages_.rend(), 0);
}

Result<std::unique_ptr<Engine>> Engine::load(ModelFile file, Team& team, const PickFrom& from,
                                             const EngineOptions& options,
                                             const LoadProgress& progress) {
  MILLRACE_ASSIGN(const Config config, read_config(file));
  MILLRACE_TRY(check_options(options, config));
  const int64_t max_pages = ceil_div(options.n_ctx, kPageTokens);
  const StepLimits limits{.max_rows = options.max_rows,
                          .max_outputs = std::max(options.max_outputs, options.max_seqs),
                          .max_seqs = options.max_seqs,
                          .max_pages = max_pages,
                          .n_pages = max_pages * options.max_seqs,
                          .page_tokens = kPageTokens,
                          .kv_type = options.kv_type};
  MILLRACE_ASSIGN(auto network, Network::load(std::move(file), team, from, limits, progress));
  return std::unique_ptr<Engine>(new Engine(std::move(network), options));
}

size_t Engine::index(int seq) const {
  MILLRACE_CHECK(seq >= 0 && static_cast<size_t>(seq) < seqs_.size() &&
                     seqs_[static_cast<size_t>(seq)].is_open,
                 "sequence {} is not open", seq);
  return static_cast<size_t>(seq);
}

Result<int> Engine::open() {
  for (size_t i = 0; i < seqs_.size(); ++i) {
    if (seqs_[i].is_open) continue;
    seqs_[i].is_open = true;
    return static_cast<int>(i);
  }
  return error(Code::unavailable, "all {} sequences are in use", seqs_.size());
}

void Engine::close(int seq) {
  Sequence& s = seqs_[index(seq)];
  free_pages_.insert(free_pages_.end(), s.pages.rbegin(), s.pages.rend());
  s = {};
}

Result<int64_t> Engine::set_tokens(int seq, std::vector<int32_t> tokens) {
  Sequence& s = seqs_[index(seq)];
  if (static_cast<int64_t>(tokens.size()) > options_.n_ctx)
    return error(Code::invalid_argument,
                 "{} tokens do not fit the context of {}; a larger one can be asked for",
                 tokens.size(), options_.n_ctx);
  for (const int32_t token : tokens)
    if (token < 0 || token >= config().n_vocab)
      return error(Code::invalid_argument, "token {} is outside the vocabulary of {}", token,
                   config().n_vocab);
  const auto differ =
      std::mismatch(s.tokens.begin(), s.tokens.end(), tokens.begin(), tokens.end()).second;
  const int64_t shared = differ - tokens.begin();
  // The last token is computed again where all are there: its logits are wanted.
  s.n_computed =
      std::min({s.n_computed, shared, std::max<int64_t>(tokens.end() - tokens.begin() - 1, 0)});
  s.tokens = std::move(tokens);
  s.output = -1;
  return s.n_computed;
}

Status Engine::append(int seq, int32_t token) {
  Sequence& s = seqs_[index(seq)];
  if (static_cast<int64_t>(s.tokens.size()) >= options_.n_ctx)
    return error(Code::unavailable, "the context of {} tokens is full", options_.n_ctx);
  MILLRACE_CHECK(token >= 0 && token < config().n_vocab, "token {}", token);
  s.tokens.push_back(token);
  s.output = -1;
  return {};
}

int64_t Engine::pending(int seq) const {
  const Sequence& s = seqs_[index(seq)];
  return static_cast<int64_t>(s.tokens.size()) - s.n_computed;
}

Status Engine::give_pages(int seq, int64_t n_tokens) {
  Sequence& s = seqs_[index(seq)];
  while (static_cast<int64_t>(s.pages.size()) * kPageTokens < n_tokens) {
    if (free_pages_.empty()) return error(Code::unavailable, "no free KV pages");
    network_->step().table(seq)[s.pages.size()] = free_pages_.back();
    s.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
  return {};
}

// The sequence's next n tokens become rows [first_row, first_row + n).
void Engine::put_rows(int seq, int64_t n, int64_t first_row) {
  Sequence& s = seqs_[index(seq)];
  const Step& step = network_->step();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = first_row + i, position = s.n_computed + i;
    step.tokens()[row] = s.tokens[static_cast<size_t>(position)];
    step.positions()[row] = static_cast<int32_t>(position);
    step.sequences()[row] = seq;
    const int64_t page = s.pages[static_cast<size_t>(position / kPageTokens)];
    step.slots()[row] = static_cast<int32_t>(page * kPageTokens + position % kPageTokens);
  }
  s.n_computed += n;
}

Status Engine::step(int64_t max_rows) {
  const Step& step = network_->step();
  int64_t n_rows = 0, n_outputs = 0;
  for (size_t i = 0; i < seqs_.size(); ++i) {
    Sequence& s = seqs_[i];
    s.output = -1;
    if (!s.is_open) continue;
    const int seq = static_cast<int>(i);
    const int64_t n = std::min(pending(seq), max_rows - n_rows);
    if (n <= 0) continue;
    MILLRACE_TRY(give_pages(seq, s.n_computed + n));
    put_rows(seq, n, n_rows);
    n_rows += n;
    if (pending(seq) > 0) continue;
    step.outputs()[n_outputs] = static_cast<int32_t>(n_rows - 1);
    s.output = n_outputs++;
  }
  return n_rows == 0 ? Status() : network_->run(n_rows, n_outputs);
}

Result<int64_t> Engine::step_all(int seq) {
  const StepLimits& limits = network_->step().limits();
  const int64_t n = std::min({pending(seq), options_.max_rows, limits.max_outputs});
  if (n == 0) return n;
  Sequence& s = seqs_[index(seq)];
  MILLRACE_TRY(give_pages(seq, s.n_computed + n));
  put_rows(seq, n, 0);
  std::iota(network_->step().outputs(), network_->step().outputs() + n, 0);
  s.output = n - 1;
  MILLRACE_TRY(network_->run(n, n));
  return n;
}

std::span<float> Engine::logits(int seq) {
  const Sequence& s = seqs_[index(seq)];
  if (s.output < 0) return {};
  const int64_t n_vocab = config().n_vocab;
  return {network_->step().logits() + s.output * n_vocab, static_cast<size_t>(n_vocab)};
}

std::span<const float> Engine::logits_row(int64_t row) const {
  const int64_t n_vocab = config().n_vocab;
  return {network_->step().logits() + row * n_vocab, static_cast<size_t>(n_vocab)};
}

}  // namespace millrace
