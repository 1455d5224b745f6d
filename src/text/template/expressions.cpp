#include <fmt/format.h>

#include "base/utf8.h"
#include "text/template/interpreter.h"
#include "text/template/objects.h"

namespace millrace::jinja {

Result<Value> Interpreter::eval(const Expr& expr) {
  Deeper deeper(*this);
  line_ = expr.line;
  MILLRACE_TRY(deeper.status());
  switch (expr.kind) {
    case ExprKind::literal:
      return expr.value;
    case ExprKind::name:
      return eval_name(expr.id);
    case ExprKind::list:
    case ExprKind::tuple:
    case ExprKind::dict:
      return eval_container(expr);
    case ExprKind::attribute:
    case ExprKind::item:
      return eval_item(expr);
    case ExprKind::slice:
      return fail("a slice stands where a value should");
    case ExprKind::call:
      return eval_call(expr);
    case ExprKind::filter:
      return eval_filter(expr, nullptr);
    case ExprKind::test:
      return eval_test(expr);
    case ExprKind::negate:
    case ExprKind::plus:
      return eval_sign(expr);
    case ExprKind::negation: {
      MILLRACE_ASSIGN(const Value value, eval(*expr.parts[0]));
      return Value(!truthy(value));
    }
    case ExprKind::binary: {
      MILLRACE_ASSIGN(const Value a, eval(*expr.parts[0]));
      MILLRACE_ASSIGN(const Value b, eval(*expr.parts[1]));
      return binary(expr.ops[0], a, b);
    }
    case ExprKind::compare:
      return eval_compare(expr);
    case ExprKind::both:
    case ExprKind::either:
      return eval_logic(expr);
    case ExprKind::concat:
      return eval_concat(expr);
    case ExprKind::condition:
      return eval_condition(expr);
  }
  return Value();
}

Result<Value> Interpreter::eval_name(NameId id) {
  size_t looked_at = 0;
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    looked_at += scope->vars.size() + 2;
    for (const auto& [name, value] : scope->vars)
      if (name == id) {
        budget_.spend(looked_at / 16);
        return value;
      }
  }
  budget_.spend(looked_at / 16);
  if (is_global_[id] != 0) return globals_[id];
  return Value::undefined("'{}' is undefined", &ast_.names[id]);
}

Result<Value> Interpreter::eval_container(const Expr& expr) {
  std::vector<Value> parts;
  parts.reserve(expr.parts.size());
  for (const ExprPtr& part : expr.parts) {
    MILLRACE_ASSIGN(Value value, eval(*part));
    parts.push_back(std::move(value));
  }
  if (expr.kind == ExprKind::list) return list(ListKind::list, std::move(parts));
  if (expr.kind == ExprKind::tuple) return list(ListKind::tuple, std::move(parts));
  std::vector<Dict::Entry> entries;
  for (size_t i = 0; i < parts.size(); i += 2) {
    if (!hashable(parts[i], budget_)) return fail("a {} cannot be a key", type_name(parts[i]));
    set_entry(entries, std::move(parts[i]), std::move(parts[i + 1]), budget_);
    MILLRACE_TRY(spend(0));
  }
  return dict(std::move(entries));
}

Result<Value> Interpreter::eval_item(const Expr& expr) {
  MILLRACE_ASSIGN(const Value object, eval(*expr.parts[0]));
  if (expr.kind == ExprKind::attribute) {
    MILLRACE_ASSIGN(Value value, attribute(object, expr.text));
    if (value.is_undefined()) return Value::undefined(value.as_undefined().hint, &expr.text);
    return value;
  }
  const Expr& index = *expr.parts[1];
  if (index.kind == ExprKind::slice) {
    Value ends[3] = {None{}, None{}, None{}};
    for (size_t i = 0; i < 3; ++i)
      if (index.parts[i] != nullptr) {
        MILLRACE_ASSIGN(ends[i], eval(*index.parts[i]));
      }
    return slice(object, ends[0], ends[1], ends[2]);
  }
  MILLRACE_ASSIGN(const Value key, eval(index));
  MILLRACE_ASSIGN(Value value, item(object, key));
  if (value.is_undefined() && index.kind == ExprKind::literal && key.is_text())
    return Value::undefined(value.as_undefined().hint, &key.text()->bytes);
  return value;
}

Status Interpreter::eval_stars(const CallArgs& args, Args& out) {
  if (args.star != nullptr) {
    MILLRACE_ASSIGN(const Value more, eval(*args.star));
    MILLRACE_ASSIGN(const auto items, iterate(more));
    MILLRACE_TRY(spend(items->items.size() / 4));
    out.positional.insert(out.positional.end(), items->items.begin(), items->items.end());
  }
  if (args.star_star == nullptr) return {};
  MILLRACE_ASSIGN(const Value more, eval(*args.star_star));
  if (more.dict() == nullptr) return fail("** wants a mapping, not a {}", type_name(more));
  for (const auto& [key, value] : more.dict()->entries) {
    if (!key.is_text()) return fail("** wants a mapping whose keys are strings");
    MILLRACE_TRY(spend(1 + key.view().size() / 64 + args.named.size() / 4));
    for (const auto& [name, held] : args.named)  // a mapping's own keys differ
      if (equal(name, key.view(), budget_))
        return fail("got two values for '{}'", printable(name, kMaxShownBytes));
    out.named.emplace_back(key.view(), value);
  }
  return {};
}

Result<Args> Interpreter::eval_args(const CallArgs& args) {
  Args out;
  out.positional.reserve(args.positional.size());
  for (const ExprPtr& expr : args.positional) {
    MILLRACE_ASSIGN(Value value, eval(*expr));
    out.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : args.named) {
    MILLRACE_TRY(spend_bytes(name.size()));
    MILLRACE_ASSIGN(Value value, eval(*expr));
    out.named.emplace_back(name, std::move(value));
  }
  MILLRACE_TRY(eval_stars(args, out));
  return out;
}

Result<Value> Interpreter::eval_call(const Expr& expr) {
  const Expr& callee = *expr.parts[0];
  if (callee.kind != ExprKind::attribute) {
    MILLRACE_ASSIGN(const Value function, eval(callee));
    MILLRACE_ASSIGN(Args args, eval_args(expr.arguments));
    line_ = expr.line;
    return call(function, std::move(args));
  }
  MILLRACE_ASSIGN(const Value self, eval(*callee.parts[0]));
  if (self.is_undefined()) return undefined_error(self);
  MILLRACE_ASSIGN(Args args, eval_args(expr.arguments));
  line_ = expr.line;
  MILLRACE_ASSIGN(std::optional<Value> result, call_method(*this, self, callee.text, args));
  if (result) return std::move(*result);
  MILLRACE_ASSIGN(Value function, attribute(self, callee.text));
  if (function.is_undefined())
    function = Value::undefined(function.as_undefined().hint, &callee.text);
  return call(function, std::move(args));
}

Result<Value> Interpreter::call(const Value& callee, Args args) {
  if (callee.is_undefined()) return undefined_error(callee);
  if (callee.object() == nullptr || !callee.object()->callable())
    return fail("a {} cannot be called", type_name(callee));
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  const Value held = callee;  // for as long as the call lasts
  return held.object()->call(*this, std::move(args));
}

// A chain of filters; the first works on `input` where the chain has no expression of its own.
Result<Value> Interpreter::eval_filter(const Expr& expr, const Value* input) {
  Value value;
  if (expr.parts[0] == nullptr) {
    value = *input;
  } else if (expr.parts[0]->kind == ExprKind::filter && input != nullptr) {
    Deeper deeper(*this);
    MILLRACE_TRY(deeper.status());
    MILLRACE_ASSIGN(value, eval_filter(*expr.parts[0], input));
  } else {
    MILLRACE_ASSIGN(value, eval(*expr.parts[0]));
  }
  MILLRACE_ASSIGN(Args args, eval_args(expr.arguments));
  line_ = expr.line;
  return filter(expr.text, value, std::move(args));
}

Result<Value> Interpreter::eval_test(const Expr& expr) {
  MILLRACE_ASSIGN(const Value value, eval(*expr.parts[0]));
  MILLRACE_ASSIGN(Args args, eval_args(expr.arguments));
  line_ = expr.line;
  MILLRACE_ASSIGN(const bool holds, test(expr.text, value, std::move(args)));
  return Value(holds);
}

Result<Value> Interpreter::eval_sign(const Expr& expr) {
  MILLRACE_ASSIGN(const Value value, eval(*expr.parts[0]));
  if (value.is_undefined()) return undefined_error(value);
  const bool minus = expr.kind == ExprKind::negate;
  if (const auto i = value.as_int()) {
    if (minus && *i == INT64_MIN) return fail("-({}) does not fit 64 bits", *i);
    return Value(minus ? -*i : *i);
  }
  if (value.is_float()) return Value(minus ? -*value.as_number() : *value.as_number());
  return fail("a {} has no sign", type_name(value));
}

Result<Value> Interpreter::eval_compare(const Expr& expr) {
  MILLRACE_ASSIGN(Value left, eval(*expr.parts[0]));
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    MILLRACE_ASSIGN(Value right, eval(*expr.parts[i + 1]));
    MILLRACE_ASSIGN(const bool holds, compare(expr.ops[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::eval_logic(const Expr& expr) {
  MILLRACE_ASSIGN(Value left, eval(*expr.parts[0]));
  if (truthy(left) == (expr.kind == ExprKind::either)) return left;
  return eval(*expr.parts[1]);
}

Result<Value> Interpreter::eval_concat(const Expr& expr) {
  TextBuilder out = builder();
  for (const ExprPtr& part : expr.parts) {
    MILLRACE_ASSIGN(const Value value, eval(*part));
    jinja::print(value, out, budget_);
    MILLRACE_TRY(spend(0));
  }
  return text(std::move(out));
}

Result<Value> Interpreter::eval_condition(const Expr& expr) {
  MILLRACE_ASSIGN(const Value guard, eval(*expr.parts[1]));
  if (truthy(guard)) return eval(*expr.parts[0]);
  if (expr.parts[2] != nullptr) return eval(*expr.parts[2]);
  return Value::undefined("a condition without an else was not met");
}

}  // namespace millrace::jinja
