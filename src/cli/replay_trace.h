// A trace of agent sessions for `millrace replay`: who says how much to whom, after which gap, and
// which sessions fork, start sub-agents or compact their history. A trace is JSON lines; it holds
// lengths and seeds, and the text is made from them, the same on every machine.
//
//   {"trace": 1, "name": "agents", "seed": 7}
//   {"session": "a", "start_s": 0, "system": {"seed": "tools", "words": 600}, "turns": [
//      {"gap_s": 0, "role": "user", "words": 300, "answer": 48},
//      {"gap_s": 2.5, "role": "tool", "tool": "read_file", "words": 500, "answer": 48},
//      {"gap_s": 9, "role": "user", "words": 40, "answer": 48, "compact_to": 200}]}
//   {"session": "a.1", "after": {"session": "a", "turn": 1, "fork": true}, "start_s": 0.5, ...}
//
// "after" starts a session `start_s` after that turn (from 0) of another one has ended; with "fork"
// it goes on from the other's messages, else it is a sub-agent with a system prompt of its own.
// "compact_to": before the turn, the history is replaced by a summary of so many words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace::cli {

struct TraceTurn {
  double gap_s = 0;  // since the last answer's end
  std::string role = "user", tool = {};
  int64_t n_words = 0, n_answer = 0;
  int64_t n_compacted = -1;  // words of the summary; -1: the history stays
};

struct TraceSession {
  std::string id = {};
  double start_s = 0;
  int after = -1;  // the session it follows, by its place in the trace; -1: none
  size_t after_turn = 0;
  bool forks = false;
  std::string system_seed = {};
  int64_t n_system_words = 0;
  std::vector<TraceTurn> turns = {};
};

struct Trace {
  std::string name = {};
  int64_t seed = 0;
  std::vector<TraceSession> sessions = {};

  size_t n_turns() const;
};

// `file` names it in errors.
Result<Trace> parse_trace(std::string_view text, const std::string& file);

// Words with a full stop now and then, about as many tokens as words; a pure function of its
// arguments.
std::string prose(std::string_view seed, int64_t n_words);

}  // namespace millrace::cli
