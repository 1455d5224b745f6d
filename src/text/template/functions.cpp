// The functions every template may call: nothing here reaches outside of the render.
#include <fmt/format.h>

#include <array>

#include "text/template/filters.h"

namespace millrace::jinja {
namespace {

Result<Value> range(Interpreter& in, const Value&, Args& args) {
  const size_t n = args.positional.size();
  if (n < 1 || n > 3 || !args.named.empty()) return in.fail("range() takes 1 to 3 integers");
  std::array<int64_t, 3> p = {0, 0, 1};
  for (size_t i = 0; i < n; ++i) {
    if (args.positional[i].is_undefined()) return in.undefined_error(args.positional[i]);
    MILLRACE_ASSIGN(p[i], int_arg(in, "range()", args.positional[i]));
  }
  if (n == 1) std::swap(p[0], p[1]);
  return in.range({p[0], p[1], p[2]});
}

// dict(mapping or pairs, name=value ...), which namespace() takes as well.
Result<std::vector<Dict::Entry>> entries_of(Interpreter& in, Args& args) {
  std::vector<Dict::Entry> out;
  if (args.positional.size() > 1) return in.fail("dict() takes one mapping at most");
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.dict() != nullptr) {
      MILLRACE_TRY(in.spend(2 * from.dict()->entries.size()));
      out = from.dict()->entries;
    } else {
      MILLRACE_ASSIGN(const auto pairs, in.iterate(from));
      for (const Value& pair : pairs->items) {
        MILLRACE_ASSIGN(const auto two, in.iterate(pair));
        if (two->items.size() != 2) return in.fail("dict() wants pairs of a key and a value");
        if (!hashable(two->items[0], in.budget()))
          return in.fail("a {} cannot be a key", type_name(two->items[0]));
        set_entry(out, two->items[0], two->items[1], in.budget());
        MILLRACE_TRY(in.spend(0));
      }
    }
  }
  for (auto& [name, value] : args.named) {
    MILLRACE_ASSIGN(Value key, in.text(name));
    set_entry(out, std::move(key), std::move(value), in.budget());
    MILLRACE_TRY(in.spend(0));
  }
  return out;
}

Result<Value> dict(Interpreter& in, const Value&, Args& args) {
  MILLRACE_ASSIGN(auto entries, entries_of(in, args));
  return in.dict(std::move(entries));
}

Result<Value> make_namespace(Interpreter& in, const Value&, Args& args) {
  MILLRACE_ASSIGN(auto entries, entries_of(in, args));
  auto space = std::make_shared<Namespace>();
  for (auto& [key, value] : entries) {
    MILLRACE_ASSIGN(const Text* name, text_arg(in, "namespace()", key));
    MILLRACE_TRY(in.spend_bytes(name->bytes.size()));
    in.budget().memory.live += 64 + name->bytes.size();
    space->attributes.emplace_back(name->bytes, std::move(value));
  }
  in.keep(space);
  // What it holds does not count into its depth: it may come to hold anything.
  return in.object(space, {});
}

Result<Value> raise_exception(Interpreter& in, const Value&, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<1>(in, "raise_exception()", args, {"message"}, {Value()}, 1)));
  MILLRACE_ASSIGN(const Value message, in.to_text(p[0]));
  return in.fail("{}", message.view());
}

// One directive at a time: strftime's own widths could ask for any amount of memory.
Result<Value> strftime_now(Interpreter& in, const Value&, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "strftime_now()", args, {"format"}, {Value()}, 1)));
  MILLRACE_ASSIGN(const Text* format, text_arg(in, "strftime_now()", p[0]));
  constexpr std::string_view kKnown = "aAbBcdDeFgGhHIjklmMnpPrRStTuUVwWxXyYC%";
  MILLRACE_TRY(in.spend(4 * format->bytes.size()));  // strftime() takes a fraction of a microsecond
  TextBuilder out = in.builder();
  Origins origins(format->input);
  for (size_t at = 0; at < format->bytes.size();) {
    const std::string_view rest = format->view().substr(at);
    size_t n = 1;
    if (rest[0] != '%' || rest.size() < 2) {
      out.append(rest.substr(0, 1), origins.at(at));
    } else {
      const bool bare = rest[1] == '-' && rest.size() > 2;  // %-d: no padding
      const char letter = rest[bare ? 2 : 1];
      n = bare ? 3 : 2;
      const std::string directive{rest.substr(0, n)};
      char text[128];
      if (kKnown.find(letter) != std::string_view::npos)
        out.append({text, std::strftime(text, sizeof text, directive.c_str(), &in.now())}, false);
      else if (letter == 'f')
        out.append("000000", false);
      else if (letter != 'z' && letter != 'Z')  // the time is local and names no zone
        return in.fail("strftime_now() does not know '{}'", directive);
    }
    at += n;
  }
  return in.text(std::move(out));
}

// cycler(a, b, ...): next() gives one after the other, again and again.
struct Cycler final : Object, std::enable_shared_from_this<Cycler> {
  std::string_view type_name() const override { return "Cycler"; }
  Result<Value> call(Interpreter& in, Args) override { return in.fail("a cycler is no function"); }
  Result<std::optional<Value>> attribute(Interpreter& in, std::string_view name) override;
  std::vector<Value> items;
  size_t at = 0;
};

Result<Value> cycler_next(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "next()", args));
  auto* cycler = self.object_as<Cycler>();
  const Value item = cycler->items[cycler->at];
  cycler->at = (cycler->at + 1) % cycler->items.size();
  return item;
}

Result<Value> cycler_reset(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "reset()", args));
  self.object_as<Cycler>()->at = 0;
  return Value(None{});
}

Result<std::optional<Value>> Cycler::attribute(Interpreter& in, std::string_view name) {
  if (name == "current") return std::optional(items[at]);
  if (name != "next" && name != "reset") return std::optional<Value>();
  auto method = std::make_shared<Builtin>();
  method->name = name == "next" ? "next" : "reset";
  method->function = name == "next" ? cycler_next : cycler_reset;
  method->self = Value(std::shared_ptr<Object>(shared_from_this()));
  MILLRACE_ASSIGN(Value value, in.object(method, {&method->self, 1}));
  return std::optional(std::move(value));
}

Result<Value> make_cycler(Interpreter& in, const Value&, Args& args) {
  if (args.positional.empty() || !args.named.empty())
    return in.fail("cycler() wants items to go through");
  auto out = std::make_shared<Cycler>();
  out->items = args.positional;
  return in.object(std::move(out), args.positional);
}

struct Joiner final : Object {
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Result<Value> call(Interpreter&, Args) override {
    return std::exchange(used, true) ? separator : Value::literal("");
  }
  Value separator;
  bool used = false;
};

Result<Value> joiner(Interpreter& in, const Value&, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "joiner()", args, {"sep"}, {Value::literal(", ")})));
  auto out = std::make_shared<Joiner>();
  out->separator = p[0];
  return in.object(std::move(out), p);
}

}  // namespace

void add_functions(Interpreter& in) {
  constexpr std::pair<std::string_view, Builtin::Function> kFunctions[] = {
      {"cycler", make_cycler},       {"dict", dict},   {"joiner", joiner},
      {"namespace", make_namespace}, {"range", range}, {"raise_exception", raise_exception},
      {"strftime_now", strftime_now}};
  for (const auto& [name, function] : kFunctions) {
    auto builtin = std::make_shared<Builtin>();
    builtin->name = name;
    builtin->function = function;
    in.set_global(name, Value(std::shared_ptr<Object>(std::move(builtin))));
  }
}

}  // namespace millrace::jinja
