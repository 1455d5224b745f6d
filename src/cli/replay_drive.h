// Plays the sessions of a trace against a server, each turn when it is due, and keeps what every
// turn cost. It knows the OpenAI chat API alone, so the server can be anybody's.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/bench_serve_client.h"
#include "cli/replay_trace.h"

namespace millrace::cli {

struct TurnCost {
  size_t session = 0, turn = 0;
  bool is_later = false;  // it has a history: of its own earlier turns, or of what it forked from
  bool is_after_kill = false;
  double first_s = 0, all_s = 0;        // to the first text, to the end
  int64_t n_prompt = 0, n_cached = 0;   // as the server counts them
  int64_t n_disk = 0;                   // of the cached, where the server says so
  int64_t n_history = 0, n_answer = 0;  // tokens that the server has computed before
  std::optional<double> twin_s = {};    // to the first text of its twin

  // What was computed a second time. The history's last token was drawn and never computed: that
  // one is not a loss.
  int64_t n_recomputed() const { return std::max<int64_t>(n_history - n_cached, 0); }
};

struct DriveOptions {
  std::string model = "default", headers = {};  // that requests name; lines that end with \r\n
  double speed = 1;                             // gaps are divided by this
  int n_at_once = 0;                            // turns in flight; 0: as many as are due
  // After every later turn, another request that differs in its last message alone: with all pages
  // at hand it shows what computing the new tokens takes. Turns go one at a time then.
  bool twins = false;
  // After this share of the turns the server is killed, and this starts it anew.
  double kill_share = 2;
  std::function<Result<std::unique_ptr<LoadClient>>()> kill = {};
  std::function<void(size_t n_done)> on_turn = {};
};

Result<std::vector<TurnCost>> drive(const Trace& trace, std::unique_ptr<LoadClient> client,
                                    const DriveOptions& options);

}  // namespace millrace::cli
