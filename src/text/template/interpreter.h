// Renders a parsed template: walks the tree over Python's values, inside budgets, with nothing to
// reach but the values it is given. Filters, tests, methods and functions (filters.h, ...) work
// through the services below. One Interpreter renders once.
#pragma once

#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/template/ast.h"
#include "text/template/value.h"

namespace millrace::jinja {

struct Limits {
  // Nodes walked, plus work on long strings and lists: 0.1 to 0.5 s, whatever a template does. Most
  // templates we know take 1 million for 4,000 messages of 3 MB.
  int64_t steps = 5'000'000;
  uint32_t depth = 600;  // nodes inside one another, across macro calls
  size_t output_bytes = 32 << 20;
  size_t memory_bytes = 128 << 20;          // live values
  const std::atomic<bool>* stop = nullptr;  // ends the render once it is true
};

// The variables of a loop's round, a macro call or a with block.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<NameId, Value>> vars;
  bool kept = false;  // by a macro, and so by the interpreter
};

// Steps to make a string of what was built.
size_t cost_of(const TextBuilder& built);

// What an error shows of a name or a string of the template: a lazy filter may keep its error.
inline constexpr size_t kMaxShownBytes = 80;

struct Loop;
struct Macro;

class Interpreter {
 public:
  // `now` is what strftime_now() formats.
  Interpreter(const Ast& ast, const Limits& limits, const std::tm& now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void set_global(std::string_view name, Value value);
  Result<TextBuilder> render();

  Budget& budget() { return budget_; }
  const std::tm& now() const { return now_; }
  // Whether a budget is used up; with a filter's own work added (see budget.h).
  Status spend(size_t steps);
  Status spend_bytes(size_t n);
  Status spend_points(size_t n);
  template <class... A>
  Status fail(fmt::format_string<A...> format, A&&... args) const {
    return error(Code::invalid_argument, "template line {}: {}", line_,
                 fmt::format(format, std::forward<A>(args)...));
  }
  Status undefined_error(const Value& value) const;

  TextBuilder builder() const { return TextBuilder(budget_.room()); }
  Result<Value> text(TextBuilder built);
  Result<Value> text(std::string_view bytes, bool from_input = false);
  // Bytes begin to end of a string.
  Result<Value> part(const Text& text, size_t begin, size_t end);
  Result<Value> list(ListKind kind, std::vector<Value> items);
  Result<Value> dict(std::vector<Dict::Entry> entries);
  Result<Value> range(List::Range range);
  Result<Value> object(std::shared_ptr<Object> object, std::span<const Value> holds);
  // str(): of anything, as a text.
  Result<Value> to_text(const Value& value);

  // What iterating gives; uses up an iterator.
  Result<std::shared_ptr<List>> iterate(const Value& value);
  Result<int64_t> length(const Value& value);
  Result<Value> attribute(const Value& object, std::string_view name);
  Result<Value> item(const Value& object, const Value& key);
  Result<Value> slice(const Value& object, const Value& begin, const Value& end, const Value& step);
  Result<Value> binary(Op op, const Value& a, const Value& b);
  Result<bool> compare(Op op, const Value& a, const Value& b);
  Result<bool> contains(const Value& container, const Value& value);
  Result<Value> call(const Value& callee, Args args);
  Result<Value> filter(std::string_view name, const Value& value, Args args);
  Result<bool> test(std::string_view name, const Value& value, Args args);

  // For the objects of the interpreter's own.
  void keep(std::shared_ptr<Object> space) { spaces_.push_back(std::move(space)); }
  Result<Value> call_macro(const Macro& macro, Args args);
  Result<Value> call_loop(const Loop& loop, const Value& items);
  Result<bool> wanted(const Stmt& loop, const std::shared_ptr<Scope>& scope, const Value& item);

 private:
  enum class Flow : unsigned char { next, break_, continue_ };
  // One level deeper, and one step taken.
  class Deeper {
   public:
    explicit Deeper(Interpreter& in) : in_(in) {
      ++in_.depth_;
      in_.budget_.spend(1);
    }
    ~Deeper() { --in_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Status status() const {
      return in_.depth_ > in_.limits_.depth || in_.budget_.spent() ? in_.exhausted() : Status();
    }

   private:
    Interpreter& in_;
  };
  // Another scope, another output, for as long as it lives.
  class InScope;
  class Captured;

  Status exhausted() const;
  Result<Flow> run(const Block& block);
  Result<Flow> run(const Stmt& stmt);
  Result<Flow> run_if(const Stmt& stmt);
  Result<Flow> run_for(const Stmt& stmt);
  Result<Flow> run_loop(const Stmt& stmt, const Value& items, int64_t depth0);
  Result<Flow> run_rounds(const Stmt& stmt, const std::shared_ptr<Loop>& loop);
  Result<Flow> run_with(const Stmt& stmt);
  Result<Flow> run_generation(const Stmt& stmt);
  Status print(const Stmt& stmt);
  Status run_set(const Stmt& stmt);
  Status run_macro(const Stmt& stmt);
  Status run_call_block(const Stmt& stmt);
  // set_block and filter_block: what the block prints, filtered.
  Result<Value> captured(const Stmt& stmt, Flow& flow);
  Status emit(const Value& value);
  Status assign(const Target& target, const Value& value);
  Status assign_attribute(const Target& target, const Value& value);
  void store(NameId id, Value value);
  std::shared_ptr<Scope> captured_scope();
  Status bind(const Macro& macro, Args& args, Scope& scope);

  Result<Value> eval(const Expr& expr);
  Result<Value> eval_name(NameId id);
  Result<Value> eval_container(const Expr& expr);
  Result<Value> eval_item(const Expr& expr);
  Result<Value> eval_call(const Expr& expr);
  Result<Value> eval_filter(const Expr& expr, const Value* input);
  Result<Value> eval_test(const Expr& expr);
  Result<Value> eval_sign(const Expr& expr);
  Result<Value> eval_compare(const Expr& expr);
  Result<Value> eval_logic(const Expr& expr);
  Result<Value> eval_concat(const Expr& expr);
  Result<Value> eval_condition(const Expr& expr);
  Result<Args> eval_args(const CallArgs& args);
  Status eval_stars(const CallArgs& args, Args& out);
  Result<Value> add(const Value& a, const Value& b);
  Result<Value> multiply(const Value& a, const Value& b);
  Result<Value> arithmetic(Op op, const Value& a, const Value& b);

  // The names that mean something in places, where the template mentions them.
  struct Special {
    std::optional<NameId> loop, caller, kwargs, varargs;
  };

  const Ast& ast_;
  const Special special_;
  const Limits limits_;
  const std::tm now_;
  Budget budget_;  // outlives the values below
  int line_ = 0;
  uint32_t depth_ = 0;
  std::vector<Value> globals_;  // by NameId
  std::vector<char> is_global_;
  std::shared_ptr<Scope> scope_;
  TextBuilder* out_ = nullptr;
  // Namespaces and the scopes that macros hold may refer to each other in circles: they are kept
  // here and emptied at the end.
  std::vector<std::shared_ptr<Object>> spaces_;
  std::vector<std::shared_ptr<Scope>> captured_;
};

}  // namespace millrace::jinja
