#include "text/template/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "text/template/parser_state.h"

namespace millrace::jinja {

NameId Names::id_of(std::string_view name) {
  const auto [at, is_new] = ids_.try_emplace(std::string(name), static_cast<NameId>(by_id_.size()));
  if (is_new) by_id_.push_back(&at->first);
  return at->second;
}

std::optional<NameId> Names::find(std::string_view name) const {
  const auto at = ids_.find(name);
  if (at == ids_.end()) return std::nullopt;
  return at->second;
}

std::string Parser::describe(const Token& token) const {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::print_begin:
      return "{{";
    case TokenKind::print_end:
      return "}}";
    case TokenKind::block_begin:
      return "{%";
    case TokenKind::block_end:
      return "%}";
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::string:
      return "a string";
    default:
      return fmt::format("'{}'", token.text);
  }
}

Status Parser::expect_op(std::string_view op) {
  if (take_op(op)) return {};
  return fail("expected '{}', got {}", op, describe(now()));
}

Status Parser::expect_kind(TokenKind kind, std::string_view what) {
  if (now().kind != kind) return fail("expected {}, got {}", what, describe(now()));
  next();
  return {};
}

Result<std::string> Parser::expect_name() {
  if (now().kind != TokenKind::name) return fail("expected a name, got {}", describe(now()));
  std::string name = now().text;
  next();
  return name;
}

Status Parser::expect_word(std::string_view word) {
  if (take_word(word)) return {};
  return fail("expected '{}', got {}", word, describe(now()));
}

// Everything up to a block that begins with one of `ends`, which stays the current token.
Result<Block> Parser::body(std::span<const std::string_view> ends) {
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  Block out;
  while (now().kind != TokenKind::end) {
    if (now().kind == TokenKind::data) {
      auto text = make(StmtKind::text);
      text->value = Value::literal(now().text);
      out.push_back(std::move(text));
      next();
    } else if (now().kind == TokenKind::print_begin) {
      auto print = make(StmtKind::print);
      next();
      MILLRACE_ASSIGN(ExprPtr expr, tuple({}));
      print->exprs.push_back(std::move(expr));
      MILLRACE_TRY(expect_kind(TokenKind::print_end, "'}}'"));
      out.push_back(std::move(print));
    } else {
      next();
      if (std::any_of(ends.begin(), ends.end(), [&](auto word) { return at_word(word); }))
        return out;
      MILLRACE_ASSIGN(auto statement, this->statement());
      out.push_back(std::move(statement));
      MILLRACE_TRY(expect_kind(TokenKind::block_end, "'%}'"));
    }
  }
  if (!ends.empty()) return fail("the template ends where {} is expected", fmt::join(ends, " or "));
  return out;
}

// The rest of a block's own tag, then its body; the word that ended it is consumed where it is the
// only one possible.
Result<Block> Parser::block(std::initializer_list<std::string_view> ends) {
  take_op(":");
  MILLRACE_TRY(expect_kind(TokenKind::block_end, "'%}'"));
  MILLRACE_ASSIGN(Block out, body({ends.begin(), ends.size()}));
  if (ends.size() == 1) next();
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::statement() {
  using Parse = Result<std::unique_ptr<Stmt>> (Parser::*)();
  static constexpr std::pair<std::string_view, Parse> kStatements[] = {
      {"if", &Parser::if_statement},       {"for", &Parser::for_statement},
      {"set", &Parser::set_statement},     {"macro", &Parser::macro},
      {"call", &Parser::call_block},       {"filter", &Parser::filter_block},
      {"with", &Parser::with_block},       {"print", &Parser::print_statement},
      {"break", &Parser::loop_control},    {"continue", &Parser::loop_control},
      {"generation", &Parser::generation},
  };
  static constexpr std::array<std::string_view, 7> kRefused = {
      "include", "import", "from", "extends", "block", "autoescape", "do"};
  if (now().kind != TokenKind::name) return fail("expected a statement, got {}", describe(now()));
  for (const auto& [word, parse] : kStatements)
    if (at_word(word)) return (this->*parse)();
  const std::string& word = now().text;
  if (std::find(kRefused.begin(), kRefused.end(), word) != kRefused.end())
    return error(
        Code::unsupported,
        "template line {}: {{% {} %}} is not supported: a chat template cannot use other files",
        now().line, word);
  return fail("unknown or misplaced statement '{}'", printable(word, 80));
}

Result<std::unique_ptr<Stmt>> Parser::if_statement() {
  auto out = make(StmtKind::if_);
  next();
  while (true) {
    MILLRACE_ASSIGN(ExprPtr guard, tuple({.with_condition = false}));
    out->exprs.push_back(std::move(guard));
    MILLRACE_ASSIGN(Block then, block({"elif", "else", "endif"}));
    out->blocks.push_back(std::move(then));
    if (take_word("elif")) continue;
    if (take_word("else")) {
      MILLRACE_ASSIGN(Block otherwise, block({"endif"}));
      out->blocks.push_back(std::move(otherwise));
      return out;
    }
    next();
    return out;
  }
}

Result<std::unique_ptr<Stmt>> Parser::for_statement() {
  auto out = make(StmtKind::for_);
  next();
  MILLRACE_ASSIGN(Target target, this->target({.end_word = "in"}));
  out->targets.push_back(std::move(target));
  MILLRACE_TRY(expect_word("in"));
  MILLRACE_ASSIGN(ExprPtr items, tuple({.with_condition = false, .end_word = "recursive"}));
  out->exprs.push_back(std::move(items));
  if (take_word("if")) {
    MILLRACE_ASSIGN(ExprPtr guard, expression());
    out->exprs.push_back(std::move(guard));
  }
  out->recursive = take_word("recursive");
  ++n_loops_;
  auto inside = block({"endfor", "else"});
  --n_loops_;
  MILLRACE_TRY(inside.status());
  out->blocks.push_back(std::move(*inside));
  if (take_word("else")) {
    MILLRACE_ASSIGN(Block otherwise, block({"endfor"}));
    out->blocks.push_back(std::move(otherwise));
  } else {
    next();
  }
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::set_statement() {
  auto out = make(StmtKind::set);
  next();
  MILLRACE_ASSIGN(Target target, this->target({.with_attribute = true}));
  out->targets.push_back(std::move(target));
  if (take_op("=")) {
    MILLRACE_ASSIGN(ExprPtr value, tuple({}));
    out->exprs.push_back(std::move(value));
    return out;
  }
  out->kind = StmtKind::set_block;
  MILLRACE_ASSIGN(ExprPtr filters, filter_chain(nullptr));
  if (filters != nullptr) out->exprs.push_back(std::move(filters));
  MILLRACE_ASSIGN(Block inside, block({"endset"}));
  out->blocks.push_back(std::move(inside));
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::with_block() {
  auto out = make(StmtKind::with);
  next();
  while (now().kind != TokenKind::block_end) {
    if (!out->targets.empty()) MILLRACE_TRY(expect_op(","));
    MILLRACE_ASSIGN(Target target, this->target({}));
    out->targets.push_back(std::move(target));
    MILLRACE_TRY(expect_op("="));
    MILLRACE_ASSIGN(ExprPtr value, expression());
    out->exprs.push_back(std::move(value));
  }
  MILLRACE_ASSIGN(Block inside, block({"endwith"}));
  out->blocks.push_back(std::move(inside));
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::print_statement() {
  auto out = make(StmtKind::print);
  next();
  while (now().kind != TokenKind::block_end) {
    if (!out->exprs.empty()) MILLRACE_TRY(expect_op(","));
    MILLRACE_ASSIGN(ExprPtr expr, expression());
    out->exprs.push_back(std::move(expr));
  }
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::loop_control() {
  if (n_loops_ == 0) return fail("'{}' outside of a loop", now().text);
  auto out = make(at_word("break") ? StmtKind::break_ : StmtKind::continue_);
  next();
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::filter_block() {
  auto out = make(StmtKind::filter_block);
  next();
  MILLRACE_ASSIGN(ExprPtr filters, filter_chain(nullptr, true));
  out->exprs.push_back(std::move(filters));
  MILLRACE_ASSIGN(Block inside, block({"endfilter"}));
  out->blocks.push_back(std::move(inside));
  return out;
}

// The body of a function: loops around it are not its own, and it says which special names it uses.
Result<Block> Parser::function_body(Signature& signature, std::string_view end) {
  const int loops_outside = std::exchange(n_loops_, 0);
  functions_.push_back(&signature);
  auto inside = block({end});
  functions_.pop_back();
  n_loops_ = loops_outside;
  return inside;
}

Status Parser::signature(Signature& out) {
  MILLRACE_TRY(expect_op("("));
  while (!at_op(")")) {
    if (!out.params.empty()) MILLRACE_TRY(expect_op(","));
    MILLRACE_ASSIGN(const std::string name, expect_name());
    out.params.push_back(ast_.names.id_of(name));
    if (take_op("=")) {
      MILLRACE_ASSIGN(ExprPtr value, expression());
      out.defaults.push_back(std::move(value));
    } else if (!out.defaults.empty()) {
      return fail("the parameter '{}' has no default but follows one that has", name);
    }
  }
  return expect_op(")");
}

Result<std::unique_ptr<Stmt>> Parser::macro() {
  auto out = make(StmtKind::macro);
  next();
  MILLRACE_ASSIGN(const std::string name, expect_name());
  out->id = ast_.names.id_of(name);
  MILLRACE_TRY(signature(out->signature));
  MILLRACE_ASSIGN(Block inside, function_body(out->signature, "endmacro"));
  out->blocks.push_back(std::move(inside));
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::call_block() {
  auto out = make(StmtKind::call_block);
  next();
  if (at_op("(")) MILLRACE_TRY(signature(out->signature));
  MILLRACE_ASSIGN(ExprPtr call, expression());
  if (call->kind != ExprKind::call) return fail("{{% call %}} needs a call");
  out->exprs.push_back(std::move(call));
  MILLRACE_ASSIGN(Block inside, function_body(out->signature, "endcall"));
  out->blocks.push_back(std::move(inside));
  return out;
}

Result<std::unique_ptr<Stmt>> Parser::generation() {
  auto out = make(StmtKind::generation);
  next();
  MILLRACE_ASSIGN(Block inside, function_body(out->signature, "endgeneration"));
  out->blocks.push_back(std::move(inside));
  return out;
}

Result<Ast> Parser::run() {
  MILLRACE_ASSIGN(ast_.body, body({}));
  return std::move(ast_);
}

Result<Ast> parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes)
    return error(Code::unsupported, "the template has {} bytes; the limit is {}", source.size(),
                 kMaxSourceBytes);
  if (!is_utf8(source)) return error(Code::invalid_argument, "the template is not UTF-8");
  MILLRACE_ASSIGN(auto tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace millrace::jinja
