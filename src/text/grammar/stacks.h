// Where a text stands in a grammar: a set of stacks, one for every way to read what came so far.
// JSON with a schema is nearly always read in one way, so the set is small; past kMaxConfigs the
// later ways are dropped, which narrows what may follow and never ends in a dead end. Copies are
// cheap: a few dozen small structs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar/graph.h"

namespace millrace::grammar {

// A leaf of the graph that has taken part of its bytes, and what follows it.
struct Config {
  static constexpr int32_t kDone = -1;  // as a node: the text may end here

  int32_t node = kDone;
  uint32_t state = 0;  // of the lexeme, or bytes of the literal taken
  uint32_t count = 0;  // characters of a counted string
  int32_t frame = -1;

  friend bool operator==(const Config&, const Config&) = default;
};

class Stacks {
 public:
  static constexpr size_t kMaxConfigs = 1024;

  // Configs [begin, end) of one set. Sets live on one stack: a later one ends before an earlier.
  struct Set {
    size_t begin = 0, end = 0;
    bool empty() const { return begin == end; }
    size_t size() const { return end - begin; }
  };
  struct Mark {
    size_t configs = 0, frames = 0;
  };

  explicit Stacks(const Graph& graph);

  // The set that the text so far leads to.
  Set now() const { return {0, n_now_}; }
  // Leads it on; false, and unchanged, where the bytes do not fit.
  bool advance(std::span<const uint8_t> bytes);
  // Leads it on as if those of these markers that are about to begin had taken their text.
  bool advance_markers(std::span<const int32_t> nodes);

  // New sets on top: what `set` becomes by a byte, and what follows a config's leaf.
  Set step(Set set, uint8_t byte);
  Set after(const Config& config);
  // Takes off what was put on top since.
  Mark mark() const { return {configs_.size(), frames_.size()}; }
  void release(Mark mark);

  const Config& operator[](size_t i) const { return configs_[i]; }
  const Graph& graph() const { return *graph_; }

 private:
  struct Frame {
    int32_t node = -1;
    uint32_t at = 0;  // the child that follows; of a repeat, how many are begun
    int32_t parent = -1;
    uint32_t depth = 0;
  };
  struct Task {
    int32_t node;  // kReturn: what follows the frame
    int32_t frame;
  };
  static constexpr int32_t kReturn = -2;

  int32_t push_frame(int32_t node, uint32_t at, int32_t parent);
  bool fits(int32_t node, int32_t parent, uint32_t more) const;
  void take_byte(const Config& config, uint8_t byte);
  void take_string_byte(const Config& config, const Node& node, uint8_t byte);
  void run(size_t begin);
  void enter(int32_t node, int32_t frame);
  void leave(int32_t frame);
  void next_of_repeat(const Frame& frame);
  Set finished(size_t begin);
  void thin_out(size_t begin);
  void keep(Set set);
  void drop_dead_frames();

  const Graph* graph_;
  std::vector<Config> configs_;
  std::vector<Frame> frames_;
  std::vector<Task> work_;
  std::vector<Task> seen_;  // references entered by the closure under way
  size_t n_now_ = 0;
};

}  // namespace millrace::grammar
