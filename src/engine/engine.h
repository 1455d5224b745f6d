// Sequences over one loaded model: their pages, and the step that computes what is pending of all
// of them together. What a sequence's tokens give never depends on the others, on how a prompt was
// cut into steps, or on the number of lanes. It belongs to one thread, the one that made its team.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/pick.h"
#include "machine/team.h"
#include "model/network.h"

namespace millrace {

struct EngineOptions {
  int64_t n_ctx = 4096;      // tokens of one sequence at most
  int64_t max_seqs = 1;      // sequences at once; together they hold n_ctx * max_seqs tokens
  int64_t max_rows = 512;    // tokens of one step at most
  int64_t max_outputs = 16;  // of them with logits
  DType kv_type = DType::f16;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> load(ModelFile file, Team& team, const PickFrom& from,
                                              const EngineOptions& options,
                                              const LoadProgress& progress = {});

  const Config& config() const { return network_->config(); }
  const ModelFile& file() const { return network_->file(); }
  const Network& network() const { return *network_; }
  int64_t n_ctx() const { return options_.n_ctx; }

  Result<int> open();  // a sequence of no tokens
  void close(int seq);

  std::span<const int32_t> tokens(int seq) const { return seqs_[index(seq)].tokens; }
  // The sequence becomes these tokens: what it shares with its own beginning stays computed.
  // Returns how many tokens do.
  Result<int64_t> set_tokens(int seq, std::vector<int32_t> tokens);
  Status append(int seq, int32_t token);

  // How many tokens of the sequence the next steps still have to compute.
  int64_t pending(int seq) const;

  // One step: of each sequence in turn the next tokens, at most `max_rows` in all. Those that
  // thereby reach their end have logits afterwards.
  Status step() { return step(options_.max_rows); }
  Status step(int64_t max_rows);
  // As step(), for one sequence and with the logits of every token computed, at most max_outputs of
  // them: row i is that of the i-th. Returns how many.
  Result<int64_t> step_all(int seq);

  // After a step; empty when the step did not reach the sequence's end. Valid until the next.
  std::span<float> logits(int seq);
  std::span<const float> logits_row(int64_t row) const;

 private:
  struct Sequence {
    bool is_open = false;
    std::vector<int32_t> tokens;
    int64_t n_computed = 0;
    std::vector<int32_t> pages;
    int64_t output = -1;  // row of the logits, after a step that reached the end
  };

  Engine(std::unique_ptr<Network> network, const EngineOptions& options);
  size_t index(int seq) const;
  Status give_pages(int seq, int64_t n_tokens);
  void put_rows(int seq, int64_t n, int64_t first_row);

  std::unique_ptr<Network> network_;
  const EngineOptions options_;
  std::vector<Sequence> seqs_;
  std::vector<int32_t> free_pages_;
};

}  // namespace millrace
