#include "lab/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/sampler.h"

namespace millrace::lab {
namespace {

size_t top_of(std::span<const float> logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

struct Sums {
  double kl = 0, logprob = 0, reference_logprob = 0;
  int64_t n_same = 0, n_tokens = 0;

  Accuracy accuracy(const std::string& text, const AccuracyPath& path) const {
    const auto n = static_cast<double>(n_tokens);
    return {.text = text,
            .activations = path.activations,
            .kv = path.kv,
            .n_tokens = n_tokens,
            .mean_kl = kl / n,
            .same_top = static_cast<double>(n_same) / n,
            .perplexity = std::exp(-logprob / n),
            .reference_perplexity = std::exp(-reference_logprob / n)};
  }
};

double logprob_of(std::span<const float> logits, int32_t token) {
  return logits[static_cast<size_t>(token)] - log_sum_exp(logits);
}

class Comparer {
 public:
  Comparer(Engine& reference, std::span<const AccuracyPath> paths, const AccuracyOptions& options)
      : reference_(reference), paths_(paths), options_(options) {}

  Result<std::vector<Accuracy>> run(std::span<const AccuracyText> texts) {
    for (const AccuracyText& text : texts) n_total_ += text.tokens.size();
    std::vector<Accuracy> out;
    for (const AccuracyText& text : texts) {
      sums_.assign(paths_.size(), {});
      MILLRACE_TRY(add_text(text));
      for (size_t i = 0; i < paths_.size(); ++i)
        out.push_back(sums_[i].accuracy(text.name, paths_[i]));
    }
    return out;
  }

 private:
  Status add_text(const AccuracyText& text) {
    const auto step = static_cast<size_t>(options_.window);
    const std::span<const int32_t> all(text.tokens);
    for (size_t first = 0; first + 1 < all.size(); first += step) {
      const size_t n = std::min(step, all.size() - first);
      MILLRACE_TRY(add_window(all.subspan(first, n), text.name));
    }
    return {};
  }

  // Every token of a window after its first is one that was expected.
  Status add_window(std::span<const int32_t> tokens, std::string_view text) {
    MILLRACE_TRY(open_all());
    constexpr auto kRows = static_cast<size_t>(kAccuracyRows);
    for (size_t first = 0; first < tokens.size(); first += kRows) {
      if (options_.stop != nullptr && *options_.stop)
        return error(Code::cancelled, "interrupted; nothing was stored");
      MILLRACE_TRY(add_rows(tokens, first, std::min(kRows, tokens.size() - first)));
      n_done_ += std::min(kRows, tokens.size() - first);
      if (options_.progress)
        options_.progress(static_cast<double>(n_done_) / static_cast<double>(n_total_), text);
    }
    close_all();
    return {};
  }

  Status add_rows(std::span<const int32_t> tokens, size_t first, size_t n) {
    rows_.clear();
    const auto part = tokens.subspan(first, n);
    MILLRACE_TRY(compute_all(reference_, seqs_[0], part, [&](size_t, auto logits) {
      rows_.insert(rows_.end(), logits.begin(), logits.end());
    }));
    const size_t n_vocab = rows_.size() / n;
    for (size_t p = 0; p < paths_.size(); ++p)
      MILLRACE_TRY(compute_all(*paths_[p].engine, seqs_[p + 1], part,
                               [&](size_t row, std::span<const float> logits) {
                                 if (first + row + 1 == tokens.size()) return;
                                 add(sums_[p], std::span(rows_).subspan(row * n_vocab, n_vocab),
                                     logits, tokens[first + row + 1]);
                               }));
    return {};
  }

  static void add(Sums& sums, std::span<const float> reference, std::span<const float> path,
                  int32_t next) {
    const Divergence d = divergence_of(reference, path);
    sums.kl += d.kl;
    sums.n_same += d.same_top;
    sums.logprob += logprob_of(path, next);
    sums.reference_logprob += logprob_of(reference, next);
    ++sums.n_tokens;
  }

  Engine& engine(size_t i) { return i == 0 ? reference_ : *paths_[i - 1].engine; }
  Status open_all() {
    seqs_.assign(paths_.size() + 1, -1);
    for (size_t i = 0; i < seqs_.size(); ++i) {
      MILLRACE_ASSIGN(seqs_[i], engine(i).open());
    }
    return {};
  }
  void close_all() {
    for (size_t i = 0; i < seqs_.size(); ++i) engine(i).close(seqs_[i]);
  }

  Engine& reference_;
  const std::span<const AccuracyPath> paths_;
  const AccuracyOptions& options_;
  std::vector<int> seqs_;    // the reference's, then the paths'
  std::vector<float> rows_;  // the reference's logits
  std::vector<Sums> sums_;   // of this text, by path
  size_t n_total_ = 0, n_done_ = 0;
};

Status check(Engine& reference, std::span<const AccuracyPath> paths,
             std::span<const AccuracyText> texts) {
  for (const AccuracyPath& path : paths)
    if (path.engine->config().n_vocab != reference.config().n_vocab)
      return error(Code::invalid_argument, "the vocabularies have {} and {} tokens",
                   path.engine->config().n_vocab, reference.config().n_vocab);
  for (const AccuracyText& text : texts)
    if (text.tokens.size() < 2)
      return error(Code::invalid_argument,
                   "{}: the text has {} tokens, and accuracy needs at least 2", text.name,
                   text.tokens.size());
  return {};
}

}  // namespace

std::string AccuracyPath::name() const {
  return fmt::format("{} activations, {} KV", activations, kv);
}

Divergence divergence_of(std::span<const float> reference, std::span<const float> path) {
  const double total_p = log_sum_exp(reference), total_q = log_sum_exp(path);
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double p = reference[i] - total_p;
    kl += std::exp(p) * (p - (path[i] - total_q));
  }
  return {kl, top_of(reference) == top_of(path)};
}

Result<std::vector<Accuracy>> measure_accuracy(Engine& reference,
                                               std::span<const AccuracyPath> paths,
                                               std::span<const AccuracyText> texts,
                                               const AccuracyOptions& options) {
  MILLRACE_TRY(check(reference, paths, texts));
  return Comparer(reference, paths, options).run(texts);
}

std::vector<Metric> metrics_of(const std::vector<Accuracy>& rows, const Subject& subject) {
  std::vector<Metric> out;
  for (const Accuracy& row : rows) {
    Subject of = subject;
    of.problem = fmt::format("{}, {} tokens", row.text, row.n_tokens);
    of.variant = AccuracyPath{row.activations, row.kv}.name();
    const auto add = [&](const char* name, const char* unit, const char* better, double value) {
      out.push_back(metric_of(of, name, unit, better, {value}));
    };
    add("mean_kl", "nats", "lower", row.mean_kl);
    add("same_top", "%", "higher", 100 * row.same_top);
    add("perplexity", "", "lower", row.perplexity);
    add("reference_perplexity", "", "lower", row.reference_perplexity);
  }
  return out;
}

}  // namespace millrace::lab
