#include "text/template/interpreter.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/template/objects.h"

namespace millrace::jinja {

class Interpreter::InScope {
 public:
  InScope(Interpreter& in, std::shared_ptr<Scope> scope)
      : in_(in), outer_(std::exchange(in.scope_, std::move(scope))) {}
  ~InScope() { in_.scope_ = std::move(outer_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Interpreter& in_;
  std::shared_ptr<Scope> outer_;
};

class Interpreter::Captured {
 public:
  explicit Captured(Interpreter& in)
      : built(std::min(in.limits_.output_bytes, in.budget_.room())),
        in_(in),
        outer_(std::exchange(in.out_, &built)) {}
  ~Captured() { in_.out_ = outer_; }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  TextBuilder built;

 private:
  Interpreter& in_;
  TextBuilder* outer_;
};

namespace {

std::shared_ptr<Scope> scope_inside(const std::shared_ptr<Scope>& parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = parent;
  return scope;
}

}  // namespace

Interpreter::Interpreter(const Ast& ast, const Limits& limits, const std::tm& now)
    : ast_(ast),
      special_{ast.names.find("loop"), ast.names.find("caller"), ast.names.find("kwargs"),
               ast.names.find("varargs")},
      limits_(limits),
      now_(now),
      globals_(ast.names.size()),
      is_global_(ast.names.size()),
      scope_(std::make_shared<Scope>()) {
  budget_.steps = limits.steps;
  budget_.memory.limit = limits.memory_bytes;
  budget_.stop = limits.stop;
  add_functions(*this);
}

Interpreter::~Interpreter() {
  globals_.clear();
  scope_->vars.clear();
  for (const auto& scope : captured_) std::exchange(scope->vars, {}).clear();
  for (const auto& space : spaces_)
    std::exchange(static_cast<Namespace&>(*space).attributes, {}).clear();
}

void Interpreter::set_global(std::string_view name, Value value) {
  const auto id = ast_.names.find(name);
  if (!id) return;  // the template never asks for it
  globals_[*id] = std::move(value);
  is_global_[*id] = 1;
}

Result<TextBuilder> Interpreter::render() {
  TextBuilder built(limits_.output_bytes);
  out_ = &built;
  MILLRACE_TRY(run(ast_.body).status());
  return built;
}

Status Interpreter::exhausted() const {
  if (depth_ > limits_.depth)
    return error(Code::out_of_memory, "template line {}: nested deeper than {} levels", line_,
                 limits_.depth);
  if (budget_.stopped()) return error(Code::cancelled, "stopped while rendering the chat template");
  if (budget_.steps < 0)
    return error(Code::out_of_memory, "template line {}: took more than {} steps", line_,
                 limits_.steps);
  return error(Code::out_of_memory, "template line {}: its values take more than {} bytes", line_,
               limits_.memory_bytes);
}

Status Interpreter::spend(size_t steps) {
  budget_.spend(steps);
  return budget_.spent() ? exhausted() : Status();
}

Status Interpreter::spend_bytes(size_t n) {
  budget_.spend_bytes(n);
  return budget_.spent() ? exhausted() : Status();
}

Status Interpreter::spend_points(size_t n) {
  budget_.spend_points(n);
  return budget_.spent() ? exhausted() : Status();
}

Status Interpreter::undefined_error(const Value& value) const {
  const Undefined& u = value.as_undefined();
  const std::string name = u.name == nullptr ? "it" : printable(*u.name, kMaxShownBytes);
  return fail("{}", fmt::format(fmt::runtime(u.hint), name));
}

Result<Interpreter::Flow> Interpreter::run(const Block& block) {
  for (const auto& stmt : block) {
    MILLRACE_ASSIGN(const Flow flow, run(*stmt));
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Result<Interpreter::Flow> Interpreter::run(const Stmt& stmt) {
  Deeper deeper(*this);
  line_ = stmt.line;
  MILLRACE_TRY(deeper.status());
  Flow flow = Flow::next;
  switch (stmt.kind) {
    case StmtKind::text:
      MILLRACE_TRY(emit(stmt.value));
      break;
    case StmtKind::print:
      MILLRACE_TRY(print(stmt));
      break;
    case StmtKind::if_:
      return run_if(stmt);
    case StmtKind::for_:
      return run_for(stmt);
    case StmtKind::set:
      MILLRACE_TRY(run_set(stmt));
      break;
    case StmtKind::set_block: {
      MILLRACE_ASSIGN(const Value value, captured(stmt, flow));
      if (flow == Flow::next) MILLRACE_TRY(assign(stmt.targets[0], value));
      return flow;
    }
    case StmtKind::filter_block: {
      MILLRACE_ASSIGN(const Value value, captured(stmt, flow));
      if (flow == Flow::next) MILLRACE_TRY(emit(value));
      return flow;
    }
    case StmtKind::with:
      return run_with(stmt);
    case StmtKind::macro:
      MILLRACE_TRY(run_macro(stmt));
      break;
    case StmtKind::call_block:
      MILLRACE_TRY(run_call_block(stmt));
      break;
    case StmtKind::generation:
      return run_generation(stmt);
    case StmtKind::break_:
      return Flow::break_;
    case StmtKind::continue_:
      return Flow::continue_;
  }
  return flow;
}

Status Interpreter::emit(const Value& value) {
  jinja::print(value, *out_, budget_);
  if (out_->over())
    return error(Code::out_of_memory, "template line {}: its output has more than {} bytes", line_,
                 std::min(limits_.output_bytes, limits_.memory_bytes));
  return budget_.spent() ? exhausted() : Status();
}

Status Interpreter::print(const Stmt& stmt) {
  for (const ExprPtr& expr : stmt.exprs) {
    MILLRACE_ASSIGN(const Value value, eval(*expr));
    MILLRACE_TRY(emit(value));
  }
  return {};
}

Result<Interpreter::Flow> Interpreter::run_if(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    MILLRACE_ASSIGN(const Value guard, eval(*stmt.exprs[i]));
    if (truthy(guard)) return run(stmt.blocks[i]);
  }
  if (stmt.blocks.size() > stmt.exprs.size()) return run(stmt.blocks.back());
  return Flow::next;
}

Result<Interpreter::Flow> Interpreter::run_for(const Stmt& stmt) {
  MILLRACE_ASSIGN(const Value items, eval(*stmt.exprs[0]));
  return run_loop(stmt, items, 0);
}

Result<Interpreter::Flow> Interpreter::run_loop(const Stmt& stmt, const Value& items,
                                                int64_t depth0) {
  auto loop = std::make_shared<Loop>();
  MILLRACE_ASSIGN(loop->items, iterate(items));
  loop->stmt = &stmt;
  loop->scope = scope_;
  loop->depth0 = depth0;
  auto flow = run_rounds(stmt, loop);
  const bool none = loop->index0 < 0;
  loop->finish();
  MILLRACE_TRY(flow.status());
  if (!none || stmt.blocks.size() < 2) return Flow::next;
  InScope inside(*this, scope_inside(scope_));
  return run(stmt.blocks[1]);
}

Result<Interpreter::Flow> Interpreter::run_rounds(const Stmt& stmt,
                                                  const std::shared_ptr<Loop>& loop) {
  while (true) {
    MILLRACE_ASSIGN(std::optional<Value> item, loop->next(*this));
    if (!item) return Flow::next;
    InScope inside(*this, scope_inside(scope_));
    if (special_.loop) store(*special_.loop, Value(std::shared_ptr<Object>(loop)));
    MILLRACE_TRY(assign(stmt.targets[0], *item));
    MILLRACE_ASSIGN(const Flow flow, run(stmt.blocks[0]));
    if (flow == Flow::break_) return Flow::next;
  }
}

// Whether a for statement's condition holds for an item.
Result<bool> Interpreter::wanted(const Stmt& loop, const std::shared_ptr<Scope>& scope,
                                 const Value& item) {
  Deeper deeper(*this);
  budget_.spend(1);  // a round makes a scope
  MILLRACE_TRY(deeper.status());
  if (loop.exprs.size() < 2) return true;
  InScope inside(*this, scope_inside(scope));
  MILLRACE_TRY(assign(loop.targets[0], item));
  MILLRACE_ASSIGN(const Value guard, eval(*loop.exprs[1]));
  return truthy(guard);
}

Result<Value> Interpreter::call_loop(const Loop& loop, const Value& items) {
  if (loop.stmt == nullptr || !loop.stmt->recursive)
    return fail("only a loop marked 'recursive' can be called");
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  Captured captured(*this);
  InScope inside(*this, loop.scope);
  MILLRACE_TRY(run_loop(*loop.stmt, items, loop.depth0 + 1).status());
  return text(std::move(captured.built));
}

Result<Interpreter::Flow> Interpreter::run_with(const Stmt& stmt) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.exprs) {
    MILLRACE_ASSIGN(Value value, eval(*expr));
    values.push_back(std::move(value));
  }
  InScope inside(*this, scope_inside(scope_));
  for (size_t i = 0; i < values.size(); ++i) MILLRACE_TRY(assign(stmt.targets[i], values[i]));
  return run(stmt.blocks[0]);
}

Result<Interpreter::Flow> Interpreter::run_generation(const Stmt& stmt) {
  InScope inside(*this, scope_inside(scope_));
  return run(stmt.blocks[0]);
}

Result<Value> Interpreter::captured(const Stmt& stmt, Flow& flow) {
  Captured captured(*this);
  {
    InScope inside(*this, scope_inside(scope_));
    MILLRACE_ASSIGN(flow, run(stmt.blocks[0]));
  }
  MILLRACE_ASSIGN(Value value, text(std::move(captured.built)));
  if (stmt.exprs.empty()) return value;
  return eval_filter(*stmt.exprs[0], &value);
}

Status Interpreter::run_set(const Stmt& stmt) {
  MILLRACE_ASSIGN(const Value value, eval(*stmt.exprs[0]));
  return assign(stmt.targets[0], value);
}

void Interpreter::store(NameId id, Value value) {
  budget_.spend(scope_->vars.size() / 16);
  for (auto& [name, held] : scope_->vars)
    if (name == id) {
      held = std::move(value);
      return;
    }
  scope_->vars.emplace_back(id, std::move(value));
}

Status Interpreter::assign_attribute(const Target& target, const Value& value) {
  MILLRACE_ASSIGN(const Value object, eval_name(target.id));
  auto* space = object.object_as<Namespace>();
  if (space == nullptr)
    return fail("cannot assign to an attribute of '{}': it is no namespace",
                printable(ast_.names[target.id], kMaxShownBytes));
  space->set(target.attribute, value, budget_);
  return {};
}

Status Interpreter::assign(const Target& target, const Value& value) {
  if (target.kind == Target::Kind::attribute) return assign_attribute(target, value);
  if (target.kind == Target::Kind::name) {
    store(target.id, value);
    return {};
  }
  MILLRACE_ASSIGN(const auto items, iterate(value));
  if (items->items.size() != target.parts.size())
    return fail("cannot take apart {} values into {} names", items->items.size(),
                target.parts.size());
  for (size_t i = 0; i < target.parts.size(); ++i)
    MILLRACE_TRY(assign(target.parts[i], items->items[i]));
  return {};
}

// The current scope for a macro to keep: it and those around it are emptied at the end.
std::shared_ptr<Scope> Interpreter::captured_scope() {
  constexpr size_t kScopeBytes = 256;  // a scope with a few names, about
  for (auto scope = scope_; scope != nullptr; scope = scope->parent) {
    if (std::exchange(scope->kept, true)) break;
    budget_.memory.live += kScopeBytes;
    captured_.push_back(scope);
  }
  return scope_;
}

Status Interpreter::run_macro(const Stmt& stmt) {
  auto macro = std::make_shared<Macro>();
  macro->name = &ast_.names[stmt.id];
  macro->signature = &stmt.signature;
  macro->body = &stmt.blocks[0];
  macro->scope = captured_scope();
  MILLRACE_ASSIGN(Value value, object(std::move(macro), {}));
  store(stmt.id, std::move(value));
  return {};
}

Status Interpreter::run_call_block(const Stmt& stmt) {
  auto caller = std::make_shared<Macro>();
  caller->signature = &stmt.signature;
  caller->body = &stmt.blocks[0];
  caller->scope = captured_scope();
  const Expr& call = *stmt.exprs[0];
  MILLRACE_ASSIGN(const Value callee, eval(*call.parts[0]));
  MILLRACE_ASSIGN(Args args, eval_args(call.arguments));
  MILLRACE_ASSIGN(Value value, object(std::move(caller), {}));
  args.named.emplace_back("caller", std::move(value));
  MILLRACE_ASSIGN(const Value result, this->call(callee, std::move(args)));
  return emit(result);
}

// Puts a macro's arguments into its scope, as Python would, defaults last.
Status Interpreter::bind(const Macro& macro, Args& args, Scope& scope) {
  const Signature& wants = *macro.signature;
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    budget_.spend(args.named.size());
    for (auto at = args.named.begin(); at != args.named.end(); ++at)
      if (equal(at->first, name, budget_)) {
        Value value = std::move(at->second);
        args.named.erase(at);
        return value;
      }
    return std::nullopt;
  };
  bool named_caller = false;
  const size_t first_default = wants.params.size() - wants.defaults.size();
  for (size_t i = 0; i < wants.params.size(); ++i) {
    const std::string& name = ast_.names[wants.params[i]];
    named_caller |= name == "caller";
    std::optional<Value> value;
    if (i < args.positional.size())
      value = args.positional[i];
    else
      value = take_named(name);
    if (!value && i >= first_default) {
      MILLRACE_ASSIGN(value, eval(*wants.defaults[i - first_default]));
    }
    if (!value) value = Value::undefined("parameter '{}' was not provided", &name);
    scope.vars.emplace_back(wants.params[i], std::move(*value));
  }
  const auto special = [&](std::optional<NameId> id, Value value) {
    if (id) scope.vars.emplace_back(*id, std::move(value));
  };
  if (wants.takes_caller && !named_caller)
    special(special_.caller,
            take_named("caller").value_or(Value::undefined("no caller was given")));
  if (wants.takes_kwargs) {
    std::vector<Dict::Entry> entries;
    for (auto& [name, value] : args.named) {
      MILLRACE_ASSIGN(Value key, text(name));
      entries.emplace_back(std::move(key), std::move(value));
    }
    MILLRACE_ASSIGN(Value kwargs, dict(std::move(entries)));
    special(special_.kwargs, std::move(kwargs));
  } else if (!args.named.empty()) {
    return fail("macro '{}' takes no argument '{}'", macro.shown_name(),
                printable(args.named.front().first, kMaxShownBytes));
  }
  const size_t n_taken = std::min(wants.params.size(), args.positional.size());
  if (wants.takes_varargs) {
    MILLRACE_ASSIGN(Value varargs, list(ListKind::tuple,
                                        {args.positional.begin() + static_cast<ptrdiff_t>(n_taken),
                                         args.positional.end()}));
    special(special_.varargs, std::move(varargs));
  } else if (args.positional.size() > n_taken) {
    return fail("macro '{}' takes at most {} arguments", macro.shown_name(), wants.params.size());
  }
  return {};
}

Result<Value> Interpreter::call_macro(const Macro& macro, Args args) {
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  const int line = line_;
  Captured captured(*this);
  InScope inside(*this, scope_inside(macro.scope));
  MILLRACE_TRY(bind(macro, args, *scope_));
  MILLRACE_TRY(run(*macro.body).status());
  line_ = line;
  return text(std::move(captured.built));
}

}  // namespace millrace::jinja
