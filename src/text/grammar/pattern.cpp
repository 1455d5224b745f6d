#include "text/grammar/pattern.h"

#include "text/grammar/nfa.h"
#include "text/grammar/pattern_tree.h"

namespace millrace::grammar {

namespace {

class Builder {
 public:
  Builder(const PatternTree& tree, Spelling spelling) : tree_(tree), spelling_(spelling) {}

  // The state before `node`, of which `next` follows; -1: nothing matches. Anything once the budget
  // is spent: finish() says so.
  int32_t build(int index, int32_t next) {
    if (next < 0 || spent()) return -1;
    ++work_;
    const PatternNode& node = tree_.nodes[static_cast<size_t>(index)];
    switch (node.kind) {
      case PatternNode::Kind::chars:
        return nfa_.chars(node.chars, spelling_, next);
      case PatternNode::Kind::begin:
        return nfa_.add({Nfa::Kind::begin, 0, 0, next});
      case PatternNode::Kind::end:
        return nfa_.add({Nfa::Kind::end, 0, 0, next});
      case PatternNode::Kind::sequence:
        for (size_t i = node.children.size(); i > 0; --i) next = build(node.children[i - 1], next);
        return next;
      case PatternNode::Kind::alternatives:
        return alternatives(node, next);
      case PatternNode::Kind::repeat:
        return repeat(node, next);
    }
    return -1;
  }

  int32_t any(int32_t next) {
    const int32_t loop = nfa_.split(next, -1);
    const int32_t body = nfa_.chars(CharSet::any(), spelling_, loop);
    nfa_[loop].b = body;
    return loop;
  }

  bool spent() const { return nfa_.full() || work_ > Nfa::kMaxNodes; }
  size_t work() const { return work_; }
  Nfa& nfa() { return nfa_; }

 private:
  int32_t alternatives(const PatternNode& node, int32_t next) {
    int32_t any = -1;
    for (const int child : node.children) {
      const int32_t branch = build(child, next);
      if (branch >= 0) any = any < 0 ? branch : nfa_.split(branch, any);
    }
    return any;
  }

  int32_t repeat(const PatternNode& node, int32_t next) {
    int32_t at = next;
    if (node.max < 0) {
      at = nfa_.split(next, -1);
      const int32_t body = build(node.children[0], at);
      nfa_[at].b = body;
    }
    for (int i = node.min; i < node.max && !spent(); ++i) {
      const int32_t body = build(node.children[0], at);
      if (body < 0) break;
      at = nfa_.split(body, next);
    }
    for (int i = 0; i < node.min && at >= 0; ++i) at = build(node.children[0], at);
    return at;
  }

  const PatternTree& tree_;
  Spelling spelling_;
  Nfa nfa_;
  size_t work_ = 0;
};

Result<Pattern> finished(Builder& builder, int32_t start, bool quotes, const PatternTree& tree,
                         size_t& work) {
  work += builder.work();
  if (builder.spent()) return error(Code::unsupported, "it is too large");
  MILLRACE_ASSIGN(auto lexeme, builder.nfa().finish(start, quotes, work));
  return Pattern{std::move(lexeme), tree.relaxed};
}

}  // namespace

namespace {

Result<Pattern> string_pattern(const PatternTree& tree, size_t& work) {
  Builder builder(tree, Spelling::json);
  const int32_t inner = builder.build(tree.root, builder.any(Nfa::kAccept));
  return finished(builder, inner < 0 ? -1 : builder.any(inner), true, tree, work);
}

}  // namespace

Result<Pattern> string_pattern(std::string_view pattern, size_t& work) {
  MILLRACE_ASSIGN(const PatternTree tree, parse_pattern(pattern));
  auto exact = string_pattern(tree, work);
  if (exact.ok()) return exact;
  MILLRACE_ASSIGN(const PatternTree wider, parse_pattern(pattern, kFewRepeats));
  if (wider.relaxed.empty()) return exact;
  return string_pattern(wider, work);
}

Result<Pattern> whole_pattern(std::string_view pattern) {
  MILLRACE_ASSIGN(const PatternTree tree, parse_pattern(pattern));
  Builder builder(tree, Spelling::plain);
  size_t work = 0;
  return finished(builder, builder.build(tree.root, Nfa::kAccept), false, tree, work);
}

}  // namespace millrace::grammar
