// Plays a trace without a model: the prefix tree, the disk tier and the policy are those of the
// engine, tokens are numbers, and computing is a time that passes. What is counted, then, is what
// the policy decides. Prompts are computed one after the other, answers beside each other.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "cli/replay_drive.h"
#include "cli/replay_trace.h"
#include "engine/retention.h"

namespace millrace::cli {

struct SimulateOptions {
  KvPolicy policy = KvPolicy::value;
  // Of memory and disk; 0: a sixteenth of the trace's contexts and three, a quarter in all.
  int64_t memory_tokens = 0, disk_tokens = 0;
  bool is_silent = false;  // clients name neither their sessions nor their tools
  std::function<void(size_t n_done)> on_turn = {};
};

struct Simulated {
  std::vector<TurnCost> costs = {};
  int64_t context_tokens = 0, memory_tokens = 0, disk_tokens = 0;
};

// Of all sessions at their longest, what is shared counted once.
int64_t context_tokens(const Trace& trace);

Result<Simulated> simulate(const Trace& trace, const SimulateOptions& options);

}  // namespace millrace::cli
