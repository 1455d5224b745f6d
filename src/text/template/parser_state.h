// The parser's state; private to parser.cpp (statements) and parser_expressions.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/lexer.h"
#include "text/template/parser.h"

namespace millrace::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Result<Ast> run();

 private:
  struct TupleRules {
    bool with_condition = true;
    bool parenthesised = false;  // () is the empty tuple
    std::string_view end_word = {};
  };
  struct TargetRules {
    bool with_attribute = false;
    std::string_view end_word = {};
  };
  // One level deeper for as long as it lives.
  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Status status() const {
      if (parser_.depth_ <= kMaxTreeDepth) return {};
      return parser_.fail("the template nests deeper than {} levels", kMaxTreeDepth);
    }

   private:
    Parser& parser_;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void next() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  bool at_op(std::string_view op) const { return now().kind == TokenKind::op && now().text == op; }
  bool at_word(std::string_view w) const {
    return now().kind == TokenKind::name && now().text == w;
  }
  bool take_op(std::string_view op) { return at_op(op) && (next(), true); }
  bool take_word(std::string_view word) { return at_word(word) && (next(), true); }
  Status expect_op(std::string_view op);
  Status expect_word(std::string_view word);
  Status expect_kind(TokenKind kind, std::string_view what);
  Result<std::string> expect_name();
  std::string describe(const Token& token) const;
  template <class... A>
  Status fail(fmt::format_string<A...> format, A&&... args) const {
    return error(Code::invalid_argument, "template line {}: {}", now().line,
                 fmt::format(format, std::forward<A>(args)...));
  }

  std::unique_ptr<Stmt> make(StmtKind kind) const {
    auto out = std::make_unique<Stmt>();
    out->kind = kind;
    out->line = now().line;
    return out;
  }
  // An expression over `parts`; refused where the tree would become too deep.
  Result<ExprPtr> make(ExprKind kind, int line, std::vector<ExprPtr> parts = {});
  Result<ExprPtr> pair(ExprKind kind, ExprPtr left, ExprPtr right);
  template <class... P>
  static std::vector<ExprPtr> parts_of(P... parts) {
    std::vector<ExprPtr> out;
    (out.push_back(std::move(parts)), ...);
    return out;
  }

  Result<Block> body(std::span<const std::string_view> ends);
  Result<Block> block(std::initializer_list<std::string_view> ends);
  Result<Block> function_body(Signature& signature, std::string_view end);
  Status signature(Signature& out);
  Result<std::unique_ptr<Stmt>> statement();
  Result<std::unique_ptr<Stmt>> if_statement();
  Result<std::unique_ptr<Stmt>> for_statement();
  Result<std::unique_ptr<Stmt>> set_statement();
  Result<std::unique_ptr<Stmt>> with_block();
  Result<std::unique_ptr<Stmt>> print_statement();
  Result<std::unique_ptr<Stmt>> loop_control();
  Result<std::unique_ptr<Stmt>> filter_block();
  Result<std::unique_ptr<Stmt>> macro();
  Result<std::unique_ptr<Stmt>> call_block();
  Result<std::unique_ptr<Stmt>> generation();

  Result<ExprPtr> expression(bool with_condition = true);
  Result<ExprPtr> condition();
  Result<ExprPtr> either();
  Result<ExprPtr> both();
  Result<ExprPtr> negation();
  Result<ExprPtr> comparison();
  Result<ExprPtr> sum();
  Result<ExprPtr> concat();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> unary(bool with_filter = true);
  Result<ExprPtr> primary();
  Result<ExprPtr> named();
  Result<ExprPtr> number();
  Result<ExprPtr> tuple(TupleRules rules);
  Result<ExprPtr> list();
  Result<ExprPtr> dict();
  Result<ExprPtr> postfix(ExprPtr expr);
  Result<ExprPtr> attribute(ExprPtr object);
  Result<ExprPtr> item(ExprPtr object);
  Result<ExprPtr> index();
  Result<ExprPtr> call(ExprPtr callee);
  Status call_args(CallArgs& out, uint32_t& depth);
  Result<ExprPtr> filters_and_tests(ExprPtr expr);
  Result<ExprPtr> filter_chain(ExprPtr expr, bool first_without_bar = false);
  Result<ExprPtr> test(ExprPtr expr);
  Result<Target> target(TargetRules rules);
  Result<Target> single_target(TargetRules rules);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  int n_loops_ = 0;                    // around the current token, in its function
  std::vector<Signature*> functions_;  // around the current token
  Ast ast_;
};

}  // namespace millrace::jinja
