#include "text/grammar/stacks.h"

#include <algorithm>
#include <tuple>

namespace millrace::grammar {

namespace {

using Kind = Node::Kind;

// How far back an equal frame is looked for; equal frames make equal configs, which are dropped.
constexpr size_t kFramesBack = 64;
// Doubles are found by comparing all with all up to here, by sorting in longer sets.
constexpr size_t kSmallSet = 32;

}  // namespace

Stacks::Stacks(const Graph& graph) : graph_(&graph) {
  work_.push_back({graph.root, -1});
  run(0);
  n_now_ = finished(0).end;
}

int32_t Stacks::push_frame(int32_t node, uint32_t at, int32_t parent) {
  const size_t back = frames_.size() > kFramesBack ? frames_.size() - kFramesBack : 0;
  for (size_t i = frames_.size(); i > back; --i) {
    const Frame& frame = frames_[i - 1];
    if (frame.node == node && frame.at == at && frame.parent == parent)
      return static_cast<int32_t>(i - 1);
  }
  const uint32_t depth = parent < 0 ? 0 : frames_[static_cast<size_t>(parent)].depth;
  frames_.push_back({node, at, parent, depth + 1});
  return static_cast<int32_t>(frames_.size() - 1);
}

bool Stacks::fits(int32_t node, int32_t parent, uint32_t more) const {
  const uint32_t depth = parent < 0 ? 0 : frames_[static_cast<size_t>(parent)].depth;
  return graph_->need[static_cast<size_t>(node)] + depth + more <= Graph::kMaxFrames;
}

void Stacks::enter(int32_t n, int32_t frame) {
  const Node& node = (*graph_)[n];
  const auto children = graph_->children_of(node);
  switch (node.kind) {
    case Kind::literal:
    case Kind::marker:
      if (node.b == 0) return leave(frame);
      configs_.push_back({n, 0, 0, frame});
      return;
    case Kind::lexeme:
      if (graph_->lexemes[node.a]->goes_on(Lexeme::kStart))
        configs_.push_back({n, Lexeme::kStart, 0, frame});
      if (graph_->lexemes[node.a]->accepts(Lexeme::kStart)) leave(frame);
      return;
    case Kind::string:
      configs_.push_back({n, Lexeme::kStart, 0, frame});
      return;
    case Kind::sequence:
      if (children.empty()) return leave(frame);
      work_.push_back({children[0], children.size() == 1 ? frame : push_frame(n, 1, frame)});
      return;
    case Kind::alternatives:
      for (size_t i = children.size(); i > 0; --i)
        if (fits(children[i - 1], frame, 0)) work_.push_back({children[i - 1], frame});
      return;
    case Kind::repeat:
      if (node.min == 0) work_.push_back({kReturn, frame});
      if (node.max > 0 && fits(children[0], frame, 1))
        work_.push_back({children[0], push_frame(n, 1, frame)});
      return;
    case Kind::reference:
      for (const Task& task : seen_)
        if (task.node == n && task.frame == frame) return;
      if (seen_.size() >= kMaxConfigs) return;
      seen_.push_back({n, frame});
      work_.push_back({children[0], frame});
      return;
  }
}

void Stacks::leave(int32_t frame) {
  if (frame < 0) {
    configs_.push_back({});
    return;
  }
  const Frame top = frames_[static_cast<size_t>(frame)];
  const Node& node = (*graph_)[top.node];
  if (node.kind == Kind::repeat) return next_of_repeat(top);
  const auto children = graph_->children_of(node);
  const bool last = top.at + 1 == children.size();
  work_.push_back(
      {children[top.at], last ? top.parent : push_frame(top.node, top.at + 1, top.parent)});
}

void Stacks::next_of_repeat(const Frame& frame) {
  const Node& node = (*graph_)[frame.node];
  const int32_t more = graph_->children_of(node)[1];
  if (frame.at >= node.min) work_.push_back({kReturn, frame.parent});
  if (frame.at >= node.max || !fits(more, frame.parent, 1)) return;
  // Past the minimum and without a maximum there is nothing to count.
  const uint32_t most = node.max == kNoLimit ? std::max(node.min, 1u) : node.max;
  const uint32_t n = std::min(frame.at + 1, most);
  work_.push_back({more, push_frame(frame.node, n, frame.parent)});
}

// Does what is to do. Nothing of a set past its limit is kept, so nothing far past it is looked
// for.
void Stacks::run(size_t begin) {
  while (!work_.empty()) {
    const Task task = work_.back();
    work_.pop_back();
    if (task.node == kReturn)
      leave(task.frame);
    else
      enter(task.node, task.frame);
    if (configs_.size() - begin > 16 * kMaxConfigs) work_.clear();
  }
}

// Cuts a sorted set down to its limit: every leaf keeps as many of its stacks as any other.
void Stacks::thin_out(size_t begin) {
  const auto same_leaf = [](const Config& a, const Config& b) {
    return a.node == b.node && a.state == b.state && a.count == b.count;
  };
  size_t leaves = 1;
  for (size_t i = begin + 1; i < configs_.size(); ++i)
    leaves += same_leaf(configs_[i - 1], configs_[i]) ? 0 : 1;
  const size_t each = std::max<size_t>(1, kMaxConfigs / leaves);
  size_t kept = begin, of_leaf = 0;
  for (size_t i = begin; i < configs_.size(); ++i) {
    const Config config = configs_[i];
    of_leaf = kept > begin && same_leaf(configs_[kept - 1], config) ? of_leaf + 1 : 1;
    if (of_leaf <= each && kept - begin < kMaxConfigs) configs_[kept++] = config;
  }
  configs_.resize(kept);
}

// The set from `begin` on, free of doubles.
Stacks::Set Stacks::finished(size_t begin) {
  seen_.clear();
  const auto first = configs_.begin() + static_cast<ptrdiff_t>(begin);
  if (configs_.size() - begin <= kSmallSet) {
    auto end = first;
    for (auto at = first; at != configs_.end(); ++at)
      if (std::find(first, end, *at) == end) *end++ = *at;
    configs_.erase(end, configs_.end());
  } else {
    const auto key = [](const Config& c) { return std::tie(c.node, c.state, c.count, c.frame); };
    std::sort(first, configs_.end(),
              [&](const Config& a, const Config& b) { return key(a) < key(b); });
    configs_.erase(std::unique(first, configs_.end()), configs_.end());
    if (configs_.size() - begin > kMaxConfigs) thin_out(begin);
  }
  return {begin, configs_.size()};
}

void Stacks::take_byte(const Config& config, uint8_t byte) {
  if (config.node == Config::kDone) return;
  const Node& node = (*graph_)[config.node];
  if (node.kind == Kind::string) return take_string_byte(config, node, byte);
  if (node.kind == Kind::lexeme) {
    const Lexeme& lexeme = *graph_->lexemes[node.a];
    const Lexeme::State to = lexeme.step(static_cast<Lexeme::State>(config.state), byte);
    if (to == Lexeme::kDead) return;
    if (lexeme.goes_on(to)) configs_.push_back({config.node, to, 0, config.frame});
    if (lexeme.accepts(to)) work_.push_back({kReturn, config.frame});
    return;
  }
  if (static_cast<uint8_t>(graph_->text[node.a + config.state]) != byte) return;
  if (config.state + 1 == node.b)
    work_.push_back({kReturn, config.frame});
  else
    configs_.push_back({config.node, config.state + 1, 0, config.frame});
}

void Stacks::take_string_byte(const Config& config, const Node& node, uint8_t byte) {
  const Standard& json = standard();
  const auto from = static_cast<Lexeme::State>(config.state);
  const Lexeme::State to = json.string.step(from, byte);
  if (to == Lexeme::kDead) return;
  if (to == json.closed) {
    if (config.count >= node.min) work_.push_back({kReturn, config.frame});
    return;
  }
  if (from == json.body && config.count >= node.max) return;
  const bool whole = to == json.body && from != Lexeme::kStart;
  const uint32_t most = node.max == kNoLimit ? node.min : node.max;
  const uint32_t count = whole ? std::min(config.count + 1, most) : config.count;
  configs_.push_back({config.node, to, count, config.frame});
}

Stacks::Set Stacks::step(Set set, uint8_t byte) {
  const size_t begin = configs_.size();
  for (size_t i = set.begin; i < set.end; ++i) {
    const Config config = configs_[i];
    take_byte(config, byte);
    if (!work_.empty()) run(begin);
  }
  return finished(begin);
}

Stacks::Set Stacks::after(const Config& config) {
  const size_t begin = configs_.size();
  work_.push_back({kReturn, config.frame});
  run(begin);
  return finished(begin);
}

void Stacks::release(Mark mark) {
  configs_.resize(mark.configs);
  frames_.resize(mark.frames);
}

bool Stacks::advance(std::span<const uint8_t> bytes) {
  const Mark before = mark();
  Set set = now();
  for (const uint8_t byte : bytes) {
    set = step(set, byte);
    if (set.empty()) {
      release(before);
      return false;
    }
  }
  keep(set);
  return true;
}

bool Stacks::advance_markers(std::span<const int32_t> nodes) {
  const size_t begin = configs_.size();
  for (size_t i = 0; i < n_now_; ++i) {
    const Config config = configs_[i];
    if (config.state != 0 || std::find(nodes.begin(), nodes.end(), config.node) == nodes.end())
      continue;
    work_.push_back({kReturn, config.frame});
    run(begin);
  }
  const Set set = finished(begin);
  if (set.empty()) return false;
  keep(set);
  return true;
}

void Stacks::keep(Set set) {
  configs_.erase(configs_.begin() + static_cast<ptrdiff_t>(set.end), configs_.end());
  configs_.erase(configs_.begin(), configs_.begin() + static_cast<ptrdiff_t>(set.begin));
  n_now_ = configs_.size();
  drop_dead_frames();
}

// Parents lie before their children, so one pass down marks and one pass up moves.
void Stacks::drop_dead_frames() {
  if (frames_.size() < kFramesBack) return;
  std::vector<int32_t> number(frames_.size(), -1);
  for (const Config& config : configs_)
    if (config.frame >= 0) number[static_cast<size_t>(config.frame)] = 0;
  for (size_t i = frames_.size(); i > 0; --i)
    if (number[i - 1] == 0 && frames_[i - 1].parent >= 0)
      number[static_cast<size_t>(frames_[i - 1].parent)] = 0;
  size_t n = 0;
  for (size_t i = 0; i < frames_.size(); ++i) {
    if (number[i] < 0) continue;
    Frame frame = frames_[i];
    if (frame.parent >= 0) frame.parent = number[static_cast<size_t>(frame.parent)];
    number[i] = static_cast<int32_t>(n);
    frames_[n++] = frame;
  }
  frames_.resize(n);
  for (Config& config : configs_)
    if (config.frame >= 0) config.frame = number[static_cast<size_t>(config.frame)];
}

}  // namespace millrace::grammar
