#include "lab/model_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"

namespace millrace::lab {
namespace {

// Decoded between two looks at what the memory gives.
constexpr int64_t kTokensAProbe = 8;

// A work as steps, each of some tokens: the logits of its last are looked at.
struct Part {
  int64_t first = 0, n = 0;
};

std::vector<Part> parts_of(const ModelWork& work) {
  if (!work.is_decode) return {{0, work.n_tokens}};
  std::vector<Part> out;
  for (int64_t i = 0; i < work.n_tokens; ++i) out.push_back({work.context + i, 1});
  return out;
}

std::span<const int32_t> tokens_of(std::span<const int32_t> tokens, const Part& part) {
  return tokens.subspan(static_cast<size_t>(part.first), static_cast<size_t>(part.n));
}

Status begin(ModelSteps& steps, std::span<const int32_t> tokens, const ModelWork& work) {
  MILLRACE_TRY(steps.restart());
  if (work.context == 0) return {};
  return steps.compute(tokens_of(tokens, {0, work.context}));
}

Result<uint64_t> verified_hash(ModelSteps& steps, const Part& part) {
  MILLRACE_ASSIGN(const std::span<const float> logits, steps.logits());
  if (logits.empty())
    return error(Code::wrong_result, "there are no logits at position {}", part.first + part.n - 1);
  MILLRACE_TRY(check_finite(logits, part.first + part.n - 1));
  return hash64(std::as_bytes(logits));
}

Status check_hash(uint64_t got, uint64_t want, const ModelWork& work, size_t step,
                  std::string_view whose) {
  if (got == want) return {};
  return error(Code::wrong_result,
               "{}: the logits of step {} are not those of {} (hash {:016x} instead of {:016x}): "
               "the same tokens gave other bits, so nothing that was timed counts",
               work.name(), step, whose, got, want);
}

}  // namespace

EngineSteps::~EngineSteps() {
  if (seq_ >= 0) engine_.close(seq_);
}

Status EngineSteps::restart() {
  if (seq_ >= 0) engine_.close(seq_);
  seq_ = -1;
  MILLRACE_ASSIGN(seq_, engine_.open());
  return {};
}

Status EngineSteps::compute(std::span<const int32_t> tokens) {
  return millrace::compute(engine_, seq_, tokens);
}

std::string ModelWork::name() const {
  return is_decode ? fmt::format("decode {} at {}", n_tokens, context)
                   : fmt::format("prefill {} at {}", n_tokens, context);
}

std::vector<ModelWork> work_of(const ModelBenchOptions& options) {
  std::vector<ModelWork> out;
  for (const int64_t n : options.prompts) out.push_back({false, n, 0});
  for (const int64_t context : options.contexts) out.push_back({true, options.n_decode, context});
  return out;
}

Metric ModelRow::rate() const {
  const auto rates = [&](const std::vector<double>& of) {
    std::vector<double> out;
    for (const double s : of) out.push_back(tokens() / s);
    return out;
  };
  Metric out = metric_of({}, "tokens_per_s", "tok/s", "higher", rates(seconds));
  out.twin = rates(twin_seconds);
  out.noise = noise_of(seconds, twin_seconds);
  return out;
}

double ModelRow::floor_rate() const {
  return has_floor() ? tokens() / median(floor_seconds) : 0;
}

Result<StepHashes> hashes_of(ModelSteps& steps, std::span<const int32_t> tokens,
                             const ModelWork& work, int64_t most_steps) {
  StepHashes out;
  MILLRACE_TRY(begin(steps, tokens, work));
  for (const Part& part : parts_of(work)) {
    if (std::ssize(out) == most_steps) break;
    MILLRACE_TRY(steps.compute(tokens_of(tokens, part)));
    MILLRACE_ASSIGN(const uint64_t hash, verified_hash(steps, part));
    // The same again in every round, and nothing computed at all.
    const auto last = static_cast<size_t>(part.first + part.n - 1);
    if (!out.empty() && hash == out.back() && tokens[last] != tokens[last - 1])
      return error(Code::wrong_result,
                   "{}: step {} left the logits of the step before it as they were", work.name(),
                   out.size());
    out.push_back(hash);
  }
  return out;
}

double ModelBench::probe(const ModelWork& part) const {
  const double gbps = costs_.gbps_now ? costs_.gbps_now() : 0;
  return gbps > 0 ? costs_.bytes_of(part) / (gbps * 1e9) : 0;
}

// The clock runs while a step computes, and stands while its logits are verified; on a GPU also
// while they are read back, since who draws there does not.
Result<ModelBench::Timed> ModelBench::timed(const ModelRow& row) {
  const ModelWork& work = row.work;
  MILLRACE_TRY(begin(steps_, tokens_, work));
  const std::vector<Part> parts = parts_of(work);
  Timed out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t start_ns = now_ns();
    MILLRACE_TRY(steps_.compute(tokens_of(tokens_, parts[i])));
    out.seconds += static_cast<double>(now_ns() - start_ns) * 1e-9;
    MILLRACE_ASSIGN(const uint64_t hash, verified_hash(steps_, parts[i]));
    MILLRACE_TRY(check_hash(hash, row.hashes[i], work, i, "the run without a clock"));
    const auto done = static_cast<int64_t>(i) + 1;
    const int64_t n_since = (done - 1) % kTokensAProbe + 1;
    if (work.is_decode && (n_since == kTokensAProbe || done == work.n_tokens))
      out.floor_s += probe({true, n_since, work.context + done - n_since});
  }
  return out;
}

Status ModelBench::run_round(ModelRow& row, int round) {
  Timed both[2];
  for (const int turn : {0, 1}) {
    MILLRACE_ASSIGN(both[(turn + round) % 2], timed(row));
  }
  row.seconds.push_back(both[0].seconds);
  row.twin_seconds.push_back(both[1].seconds);
  if (both[0].floor_s > 0) row.floor_seconds.push_back(both[0].floor_s);
  return {};
}

Result<ModelRow> ModelBench::run_row(const ModelWork& work, double share_before, double share) {
  ModelRow row{.work = work};
  if (work.is_decode) row.n_bytes = costs_.bytes_of(work);
  MILLRACE_ASSIGN(row.hashes, hashes_of(steps_, tokens_, work, work.n_tokens));
  for (int round = 0; round < options_.n_rounds; ++round) {
    if (options_.stop != nullptr && *options_.stop)
      return error(Code::cancelled, "interrupted; nothing was stored");
    if (options_.progress)
      options_.progress(share_before + share * round / options_.n_rounds, work.name());
    MILLRACE_TRY(run_round(row, round));
  }
  return row;
}

Result<std::vector<ModelRow>> ModelBench::run() {
  const auto works = work_of(options_);
  std::vector<ModelRow> rows;
  for (const ModelWork& work : works) {
    const double share = 1.0 / static_cast<double>(works.size());
    MILLRACE_ASSIGN(ModelRow row, run_row(work, share * static_cast<double>(rows.size()), share));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<int64_t> check_against(ModelSteps& witness, std::span<const int32_t> tokens,
                              const std::vector<ModelRow>& rows) {
  int64_t n_steps = 0;
  for (const ModelRow& row : rows) {
    if ((row.work.is_decode ? row.work.context : row.work.n_tokens) > kWitnessTokens) continue;
    MILLRACE_ASSIGN(const StepHashes hashes, hashes_of(witness, tokens, row.work, kWitnessSteps));
    for (size_t i = 0; i < hashes.size(); ++i)
      MILLRACE_TRY(check_hash(hashes[i], row.hashes[i], row.work, i,
                              "the run on other lanes with another batch size"));
    n_steps += std::ssize(hashes);
  }
  return n_steps;
}

std::vector<Metric> metrics_of(const std::vector<ModelRow>& rows, const Subject& subject) {
  std::vector<Metric> out;
  for (const ModelRow& row : rows) {
    Subject of = subject;
    of.problem = row.work.name();
    Metric rate = row.rate();
    rate.subject = of;
    const std::vector<double> rates = rate.samples;
    out.push_back(std::move(rate));
    const auto add = [&](const char* name, const char* unit, const char* better,
                         std::vector<double> samples) {
      out.push_back(metric_of(of, name, unit, better, std::move(samples)));
    };
    if (row.has_floor()) {
      std::vector<double> floors, shares;
      for (const double s : row.floor_seconds) floors.push_back(row.tokens() / s);
      for (const double r : rates) shares.push_back(100 * r / row.floor_rate());
      add("floor_tokens_per_s", "tok/s", "higher", std::move(floors));
      add("floor_percent", "%", "higher", std::move(shares));
    }
  }
  return out;
}

}  // namespace millrace::lab
