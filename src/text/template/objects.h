// The objects that templates meet: namespaces, macros, `loop`, methods, functions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template/interpreter.h"

namespace millrace::jinja {

struct Namespace final : Object {
  std::string_view type_name() const override { return "Namespace"; }
  Result<Value> call(Interpreter& in, Args args) override;
  Result<std::optional<Value>> attribute(Interpreter& in, std::string_view name) override;
  void repr(TextBuilder& out, Budget& budget, uint32_t depth) const override;
  void set(std::string_view name, Value value, Budget& budget);
  std::vector<std::pair<std::string, Value>> attributes;
};

struct Macro final : Object {
  std::string_view type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  Result<Value> call(Interpreter& in, Args args) override;
  Result<std::optional<Value>> attribute(Interpreter& in, std::string_view name) override;
  void repr(TextBuilder& out, Budget& budget, uint32_t depth) const override;
  std::string shown_name() const;
  const std::string* name = nullptr;  // of the tree's; none: a call block's body
  const Signature* signature = nullptr;
  const Block* body = nullptr;
  std::shared_ptr<Scope> scope;
};

// What a filter or method pays before it runs: for every character of the strings it is given,
// unless its row says that it pays by itself. What it makes, in.text() and its like pay for.
enum class Pays : unsigned char { for_all_it_is_given, by_itself };
Status pay(Interpreter& in, Pays pays, const Value& value, const Args& args);

// A function or method of ours; `self` is undefined for a function.
struct Builtin final : Object {
  using Function = Result<Value> (*)(Interpreter& in, const Value& self, Args& args);
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Result<Value> call(Interpreter& in, Args args) override;
  std::string_view name;
  Function function = nullptr;
  Pays pays = Pays::by_itself;
  Value self;
};

// `loop` while a for statement runs. Items are drawn one at a time, because whether the next one is
// wanted (for ... if) may depend on what the body does.
struct Loop final : Object, std::enable_shared_from_this<Loop> {
  std::string_view type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  Result<Value> call(Interpreter& in, Args args) override;
  Result<std::optional<Value>> attribute(Interpreter& in, std::string_view name) override;

  // The next wanted item; nothing at the end.
  Result<std::optional<Value>> next(Interpreter& in);
  Result<bool> peek(Interpreter& in);  // whether there is a next one
  Result<int64_t> length(Interpreter& in);
  void finish();

  const Stmt* stmt = nullptr;
  std::shared_ptr<Scope> scope;  // around the loop
  std::shared_ptr<List> items;
  size_t at = 0;               // of the next item to look at
  std::vector<Value> pending;  // looked at and wanted
  size_t pending_at = 0;
  int64_t index0 = -1, depth0 = 0;
  Value previous, current;
  std::shared_ptr<List> changed;  // what changed() was last called with
};

// Makes a method of `self`; nothing when a value of its kind has no such method.
Result<std::optional<Value>> method_of(Interpreter& in, const Value& self, std::string_view name);
// Calls it at once; nothing when there is none.
Result<std::optional<Value>> call_method(Interpreter& in, const Value& self, std::string_view name,
                                         Args& args);
// range, namespace, dict, cycler, joiner, raise_exception, strftime_now.
void add_functions(Interpreter& in);

// Sorts arguments by a Python function's parameters: `slots` has one place for each name, in order,
// and comes with the defaults in it. The first `required` must be given.
Status bind_args(const Interpreter& in, std::string_view function, Args& args,
                 std::span<const std::string_view> names, std::span<Value> slots,
                 size_t required = 0);

}  // namespace millrace::jinja
