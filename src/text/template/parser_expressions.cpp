#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/template/parser_state.h"

namespace millrace::jinja {
namespace {

uint32_t depth_of(const ExprPtr& expr) {
  return expr == nullptr ? 0 : expr->depth;
}

struct Spelled {
  std::string_view text;
  Op op;
};

const Op* op_among(std::span<const Spelled> ops, const Token& token) {
  if (token.kind != TokenKind::op) return nullptr;
  const auto at =
      std::find_if(ops.begin(), ops.end(), [&](const Spelled& s) { return s.text == token.text; });
  return at == ops.end() ? nullptr : &at->op;
}

constexpr Spelled kSums[] = {{"+", Op::add}, {"-", Op::subtract}};
constexpr Spelled kProducts[] = {
    {"*", Op::multiply}, {"/", Op::divide}, {"//", Op::floor_divide}, {"%", Op::modulo}};
constexpr Spelled kComparisons[] = {{"==", Op::equal},  {"!=", Op::not_equal},
                                    {"<", Op::less},    {"<=", Op::less_equal},
                                    {">", Op::greater}, {">=", Op::greater_equal}};

}  // namespace

Result<ExprPtr> Parser::make(ExprKind kind, int line, std::vector<ExprPtr> parts) {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->line = line;
  out->parts = std::move(parts);
  for (const ExprPtr& part : out->parts) out->depth = std::max(out->depth, depth_of(part) + 1);
  if (out->depth > kMaxTreeDepth)
    return fail("an expression nests deeper than {} levels", kMaxTreeDepth);
  return out;
}

Result<ExprPtr> Parser::pair(ExprKind kind, ExprPtr left, ExprPtr right) {
  const int line = left->line;
  return make(kind, line, parts_of(std::move(left), std::move(right)));
}

Result<ExprPtr> Parser::expression(bool with_condition) {
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  return with_condition ? condition() : either();
}

Result<ExprPtr> Parser::condition() {
  MILLRACE_ASSIGN(ExprPtr out, either());
  while (at_word("if")) {
    const int line = now().line;
    next();
    MILLRACE_ASSIGN(ExprPtr guard, either());
    ExprPtr otherwise;
    if (take_word("else")) {
      MILLRACE_ASSIGN(otherwise, expression());
    }
    MILLRACE_ASSIGN(out, make(ExprKind::condition, line,
                              parts_of(std::move(out), std::move(guard), std::move(otherwise))));
  }
  return out;
}

Result<ExprPtr> Parser::either() {
  MILLRACE_ASSIGN(ExprPtr out, both());
  while (take_word("or")) {
    MILLRACE_ASSIGN(ExprPtr right, both());
    MILLRACE_ASSIGN(out, pair(ExprKind::either, std::move(out), std::move(right)));
  }
  return out;
}

Result<ExprPtr> Parser::both() {
  MILLRACE_ASSIGN(ExprPtr out, negation());
  while (take_word("and")) {
    MILLRACE_ASSIGN(ExprPtr right, negation());
    MILLRACE_ASSIGN(out, pair(ExprKind::both, std::move(out), std::move(right)));
  }
  return out;
}

Result<ExprPtr> Parser::negation() {
  if (!at_word("not")) return comparison();
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  const int line = now().line;
  next();
  MILLRACE_ASSIGN(ExprPtr inner, negation());
  return make(ExprKind::negation, line, parts_of(std::move(inner)));
}

Result<ExprPtr> Parser::comparison() {
  MILLRACE_ASSIGN(ExprPtr first, sum());
  const int line = first->line;
  std::vector<Op> ops;
  auto parts = parts_of(std::move(first));
  while (true) {
    if (const Op* op = op_among(kComparisons, now())) {
      ops.push_back(*op);
      next();
    } else if (take_word("in")) {
      ops.push_back(Op::in);
    } else if (at_word("not") && look().kind == TokenKind::name && look().text == "in") {
      ops.push_back(Op::not_in);
      next();
      next();
    } else {
      break;
    }
    MILLRACE_ASSIGN(ExprPtr right, sum());
    parts.push_back(std::move(right));
  }
  if (ops.empty()) return std::move(parts.front());
  MILLRACE_ASSIGN(ExprPtr out, make(ExprKind::compare, line, std::move(parts)));
  out->ops = std::move(ops);
  return out;
}

Result<ExprPtr> Parser::sum() {
  MILLRACE_ASSIGN(ExprPtr out, concat());
  while (const Op* op = op_among(kSums, now())) {
    next();
    MILLRACE_ASSIGN(ExprPtr right, concat());
    MILLRACE_ASSIGN(out, pair(ExprKind::binary, std::move(out), std::move(right)));
    out->ops = {*op};
  }
  return out;
}

Result<ExprPtr> Parser::concat() {
  MILLRACE_ASSIGN(ExprPtr first, product());
  if (!at_op("~")) return first;
  const int line = first->line;
  auto parts = parts_of(std::move(first));
  while (take_op("~")) {
    MILLRACE_ASSIGN(ExprPtr part, product());
    parts.push_back(std::move(part));
  }
  return make(ExprKind::concat, line, std::move(parts));
}

Result<ExprPtr> Parser::product() {
  MILLRACE_ASSIGN(ExprPtr out, power());
  while (const Op* op = op_among(kProducts, now())) {
    next();
    MILLRACE_ASSIGN(ExprPtr right, power());
    MILLRACE_ASSIGN(out, pair(ExprKind::binary, std::move(out), std::move(right)));
    out->ops = {*op};
  }
  return out;
}

Result<ExprPtr> Parser::power() {
  MILLRACE_ASSIGN(ExprPtr out, unary());
  while (take_op("**")) {
    MILLRACE_ASSIGN(ExprPtr right, unary());
    MILLRACE_ASSIGN(out, pair(ExprKind::binary, std::move(out), std::move(right)));
    out->ops = {Op::power};
  }
  return out;
}

Result<ExprPtr> Parser::unary(bool with_filter) {
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  const int line = now().line;
  ExprPtr out;
  if (at_op("-") || at_op("+")) {
    const ExprKind kind = at_op("-") ? ExprKind::negate : ExprKind::plus;
    next();
    MILLRACE_ASSIGN(ExprPtr inner, unary(false));
    MILLRACE_ASSIGN(out, make(kind, line, parts_of(std::move(inner))));
  } else {
    MILLRACE_ASSIGN(out, primary());
  }
  MILLRACE_ASSIGN(out, postfix(std::move(out)));
  if (with_filter) return filters_and_tests(std::move(out));
  return out;
}

Result<ExprPtr> Parser::named() {
  const std::string name = now().text;
  const int line = now().line;
  next();
  const bool yes = name == "true" || name == "True", no = name == "false" || name == "False";
  const bool none = name == "none" || name == "None";
  MILLRACE_ASSIGN(ExprPtr out, make(yes || no || none ? ExprKind::literal : ExprKind::name, line));
  if (yes || no) {
    out->value = yes;
  } else if (none) {
    out->value = None{};
  } else {
    out->id = ast_.names.id_of(name);
    for (Signature* function : functions_) {
      function->takes_varargs |= name == "varargs";
      function->takes_kwargs |= name == "kwargs";
      function->takes_caller |= name == "caller";
    }
  }
  return out;
}

Result<ExprPtr> Parser::number() {
  const Token& token = now();
  MILLRACE_ASSIGN(ExprPtr out, make(ExprKind::literal, token.line));
  const char* end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::real) {
    double value = 0;
    const auto [at, fault] = std::from_chars(token.text.data(), end, value);
    if (fault != std::errc() || at != end)
      return fail("{} is not a number this template engine can use", token.text);
    out->value = value;
  } else {
    const char prefix = token.text.size() > 1 ? static_cast<char>(token.text[1] | 32) : '\0';
    const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    int64_t value = 0;
    const auto [at, fault] =
        std::from_chars(token.text.data() + (base == 10 ? 0 : 2), end, value, base);
    if (fault != std::errc() || at != end)
      return fail("the integer {} does not fit in 64 bits", token.text);
    out->value = value;
  }
  next();
  return out;
}

Result<ExprPtr> Parser::primary() {
  const int line = now().line;
  switch (now().kind) {
    case TokenKind::name:
      return named();
    case TokenKind::integer:
    case TokenKind::real:
      return number();
    case TokenKind::string: {
      std::string text;
      for (; now().kind == TokenKind::string; next()) text += now().text;
      MILLRACE_ASSIGN(ExprPtr out, make(ExprKind::literal, line));
      out->value = Value::literal(text);
      return out;
    }
    default:
      break;
  }
  if (at_op("[")) return list();
  if (at_op("{")) return dict();
  if (!take_op("(")) return fail("expected an expression, got {}", describe(now()));
  MILLRACE_ASSIGN(ExprPtr out, tuple({.parenthesised = true}));
  MILLRACE_TRY(expect_op(")"));
  return out;
}

// One expression, or several with commas between them, which make a tuple.
Result<ExprPtr> Parser::tuple(TupleRules rules) {
  const int line = now().line;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (true) {
    const bool ends = now().kind == TokenKind::print_end || now().kind == TokenKind::block_end ||
                      at_op(")") || (!rules.end_word.empty() && at_word(rules.end_word));
    if (ends) break;
    MILLRACE_ASSIGN(ExprPtr part, expression(rules.with_condition));
    parts.push_back(std::move(part));
    if (!take_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && parts.size() == 1) return std::move(parts.front());
  if (!is_tuple && !rules.parenthesised)
    return fail("expected an expression, got {}", describe(now()));
  return make(ExprKind::tuple, line, std::move(parts));
}

Result<ExprPtr> Parser::list() {
  const int line = now().line;
  next();
  std::vector<ExprPtr> parts;
  while (!at_op("]")) {
    if (!parts.empty()) MILLRACE_TRY(expect_op(","));
    if (at_op("]")) break;
    MILLRACE_ASSIGN(ExprPtr part, expression());
    parts.push_back(std::move(part));
  }
  next();
  return make(ExprKind::list, line, std::move(parts));
}

Result<ExprPtr> Parser::dict() {
  const int line = now().line;
  next();
  std::vector<ExprPtr> parts;
  while (!at_op("}")) {
    if (!parts.empty()) MILLRACE_TRY(expect_op(","));
    if (at_op("}")) break;
    MILLRACE_ASSIGN(ExprPtr key, expression());
    MILLRACE_TRY(expect_op(":"));
    MILLRACE_ASSIGN(ExprPtr value, expression());
    parts.push_back(std::move(key));
    parts.push_back(std::move(value));
  }
  next();
  return make(ExprKind::dict, line, std::move(parts));
}

Result<ExprPtr> Parser::postfix(ExprPtr out) {
  while (true) {
    if (at_op(".")) {
      MILLRACE_ASSIGN(out, attribute(std::move(out)));
    } else if (at_op("[")) {
      MILLRACE_ASSIGN(out, item(std::move(out)));
    } else if (at_op("(")) {
      MILLRACE_ASSIGN(out, call(std::move(out)));
    } else {
      return out;
    }
  }
}

Result<ExprPtr> Parser::attribute(ExprPtr object) {
  const int line = now().line;
  next();
  if (now().kind == TokenKind::integer) {
    MILLRACE_ASSIGN(ExprPtr index, number());
    return make(ExprKind::item, line, parts_of(std::move(object), std::move(index)));
  }
  MILLRACE_ASSIGN(std::string name, expect_name());
  MILLRACE_ASSIGN(ExprPtr out, make(ExprKind::attribute, line, parts_of(std::move(object))));
  out->value = Value::literal(name);
  out->text = std::move(name);
  return out;
}

Result<ExprPtr> Parser::item(ExprPtr object) {
  const int line = now().line;
  next();
  std::vector<ExprPtr> indices;
  while (!at_op("]")) {
    if (!indices.empty()) MILLRACE_TRY(expect_op(","));
    MILLRACE_ASSIGN(ExprPtr one, index());
    indices.push_back(std::move(one));
  }
  next();
  if (indices.size() == 1)
    return make(ExprKind::item, line, parts_of(std::move(object), std::move(indices.front())));
  MILLRACE_ASSIGN(ExprPtr all, make(ExprKind::tuple, line, std::move(indices)));
  return make(ExprKind::item, line, parts_of(std::move(object), std::move(all)));
}

// What stands between brackets: an expression, or up to three of them with colons between.
Result<ExprPtr> Parser::index() {
  const int line = now().line;
  ExprPtr parts[3];
  for (int i = 0; i < 3; ++i) {
    if (!at_op(":") && !at_op("]") && !at_op(",")) {
      MILLRACE_ASSIGN(parts[i], expression());
    }
    if (i == 0 && !at_op(":")) {
      if (parts[0] == nullptr) return fail("expected an index, got {}", describe(now()));
      return std::move(parts[0]);
    }
    if (!take_op(":")) break;
  }
  return make(ExprKind::slice, line,
              parts_of(std::move(parts[0]), std::move(parts[1]), std::move(parts[2])));
}

Status Parser::call_args(CallArgs& out, uint32_t& depth) {
  MILLRACE_TRY(expect_op("("));
  bool first = true;
  while (!at_op(")")) {
    if (!first) MILLRACE_TRY(expect_op(","));
    if (at_op(")")) break;
    first = false;
    const bool named =
        now().kind == TokenKind::name && look().kind == TokenKind::op && look().text == "=";
    const bool star = at_op("*"), star_star = at_op("**");
    if (out.star_star != nullptr || (out.star != nullptr && !named && !star_star) ||
        (!named && !star && !star_star && !out.named.empty()))
      return fail("unexpected argument after a keyword argument");
    std::string name = named ? now().text : "";
    if (named) next();
    if (named || star || star_star) next();
    MILLRACE_ASSIGN(ExprPtr value, expression());
    depth = std::max(depth, value->depth + 1);
    if (star)
      out.star = std::move(value);
    else if (star_star)
      out.star_star = std::move(value);
    else if (named)
      out.named.emplace_back(std::move(name), std::move(value));
    else
      out.positional.push_back(std::move(value));
  }
  next();
  return {};
}

Result<ExprPtr> Parser::call(ExprPtr callee) {
  MILLRACE_ASSIGN(ExprPtr out, make(ExprKind::call, now().line, parts_of(std::move(callee))));
  MILLRACE_TRY(call_args(out->arguments, out->depth));
  return out;
}

Result<ExprPtr> Parser::filters_and_tests(ExprPtr out) {
  while (true) {
    if (at_op("|")) {
      MILLRACE_ASSIGN(out, filter_chain(std::move(out)));
    } else if (at_word("is")) {
      MILLRACE_ASSIGN(out, test(std::move(out)));
    } else if (at_op("(")) {
      MILLRACE_ASSIGN(out, call(std::move(out)));
    } else {
      return out;
    }
  }
}

Result<ExprPtr> Parser::filter_chain(ExprPtr out, bool first_without_bar) {
  while (first_without_bar || at_op("|")) {
    if (!first_without_bar) next();
    first_without_bar = false;
    const int line = now().line;
    MILLRACE_ASSIGN(std::string name, expect_name());
    while (take_op(".")) {
      MILLRACE_ASSIGN(const std::string more, expect_name());
      name += "." + more;
    }
    MILLRACE_ASSIGN(out, make(ExprKind::filter, line, parts_of(std::move(out))));
    out->text = std::move(name);
    if (at_op("(")) MILLRACE_TRY(call_args(out->arguments, out->depth));
  }
  return out;
}

Result<ExprPtr> Parser::test(ExprPtr subject) {
  const int line = now().line;
  next();
  const bool negated = take_word("not");
  MILLRACE_ASSIGN(std::string name, expect_name());
  while (take_op(".")) {
    MILLRACE_ASSIGN(const std::string more, expect_name());
    name += "." + more;
  }
  MILLRACE_ASSIGN(ExprPtr out, make(ExprKind::test, line, parts_of(std::move(subject))));
  out->text = std::move(name);
  const TokenKind kind = now().kind;
  const bool operand =
      (kind == TokenKind::name && !at_word("else") && !at_word("or") && !at_word("and")) ||
      kind == TokenKind::string || kind == TokenKind::integer || kind == TokenKind::real ||
      at_op("[") || at_op("{");
  if (at_op("(")) {
    MILLRACE_TRY(call_args(out->arguments, out->depth));
  } else if (operand) {
    if (at_word("is")) return fail("tests cannot be chained with 'is'");
    Deeper deeper(*this);
    MILLRACE_TRY(deeper.status());
    MILLRACE_ASSIGN(ExprPtr value, primary());
    MILLRACE_ASSIGN(value, postfix(std::move(value)));
    out->depth = std::max(out->depth, value->depth + 1);
    out->arguments.positional.push_back(std::move(value));
  }
  if (!negated) return out;
  return make(ExprKind::negation, line, parts_of(std::move(out)));
}

Result<Target> Parser::single_target(TargetRules rules) {
  Target out;
  out.line = now().line;
  if (take_op("(")) {
    MILLRACE_ASSIGN(out, target(rules));
    MILLRACE_TRY(expect_op(")"));
    return out;
  }
  MILLRACE_ASSIGN(const std::string name, expect_name());
  constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
  if (std::find(std::begin(kConstants), std::end(kConstants), name) != std::end(kConstants))
    return fail("cannot assign to '{}'", name);
  out.id = ast_.names.id_of(name);
  if (!rules.with_attribute || !take_op(".")) return out;
  out.kind = Target::Kind::attribute;
  MILLRACE_ASSIGN(out.attribute, expect_name());
  return out;
}

Result<Target> Parser::target(TargetRules rules) {
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  Target out;
  out.kind = Target::Kind::tuple;
  out.line = now().line;
  bool is_tuple = false;
  while (now().kind != TokenKind::block_end && !at_op(")") && !at_op("=") &&
         (rules.end_word.empty() || !at_word(rules.end_word))) {
    MILLRACE_ASSIGN(Target one, single_target(rules));
    out.parts.push_back(std::move(one));
    if (!take_op(",")) break;
    is_tuple = true;
  }
  if (out.parts.empty()) return fail("expected a name to assign to, got {}", describe(now()));
  if (!is_tuple) return std::move(out.parts.front());
  return out;
}

}  // namespace millrace::jinja
