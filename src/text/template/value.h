// What a template computes with: Python's values as far as chat templates meet them. Values are
// shared and never change once made, except namespaces and the few objects that count. Containers
// know how deep they nest, so that nothing that walks them can run out of stack, and what walks
// them spends from the render's Budget, so that nothing runs for ever.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "text/template/text.h"

namespace millrace::jinja {

// Containers nested deeper than this are refused.
inline constexpr uint32_t kMaxNesting = 200;

class Value;
class Interpreter;
struct List;
struct Dict;

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// What is neither a scalar nor a container: functions, methods, macros, namespaces, `loop`.
struct Object {
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  virtual bool callable() const { return false; }
  virtual Result<Value> call(Interpreter& in, Args args) = 0;
  // Nothing when there is no such attribute.
  virtual Result<std::optional<Value>> attribute(Interpreter& in, std::string_view name);
  virtual void repr(TextBuilder& out, Budget& budget, uint32_t depth) const;
  uint32_t depth = 0;  // how deep the containers nest that it holds
  Charge charge;
};

// What to say when it is used: `hint`, of static storage, with {} for the name, which the
// template's tree owns. Small, because a render may hold millions.
struct Undefined {
  const char* hint = "the value is undefined";
  const std::string* name = nullptr;
};
struct None {};

class Value {
 public:
  Value() = default;
  Value(None) : held_(None{}) {}
  Value(Undefined u) : held_(u) {}
  Value(bool b) : held_(b) {}
  Value(int64_t i) : held_(i) {}
  Value(double d) : held_(d) {}
  Value(std::shared_ptr<const Text> text) : held_(std::move(text)) {}
  Value(std::shared_ptr<List> list) : held_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : held_(std::move(dict)) {}
  Value(std::shared_ptr<Object> object) : held_(std::move(object)) {}
  template <class T>
  Value(T*) = delete;  // would become a bool

  // A string of the template's own, counted against no budget; the empty one is shared.
  static Value literal(std::string_view text);
  static Value undefined(const char* hint, const std::string* name = nullptr) {
    return Undefined{hint, name};
  }

  bool is_undefined() const { return std::holds_alternative<Undefined>(held_); }
  bool is_none() const { return std::holds_alternative<None>(held_); }
  bool is_bool() const { return std::holds_alternative<bool>(held_); }
  bool is_int() const { return std::holds_alternative<int64_t>(held_); }
  bool is_float() const { return std::holds_alternative<double>(held_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_text() const { return text() != nullptr; }

  const Text* text() const { return pointer<const Text>(); }
  List* list() const { return pointer<List>(); }
  const Dict* dict() const { return pointer<const Dict>(); }
  Object* object() const { return pointer<Object>(); }
  std::shared_ptr<List> list_ref() const { return std::get<std::shared_ptr<List>>(held_); }
  template <class T>
  T* object_as() const {
    return dynamic_cast<T*>(object());
  }

  const Undefined& as_undefined() const { return std::get<Undefined>(held_); }
  bool as_bool() const { return std::get<bool>(held_); }
  // A bool counts as 0 or 1, as in Python; nothing for what is no whole number.
  std::optional<int64_t> as_int() const;
  std::optional<double> as_number() const;
  std::string_view view() const { return text()->view(); }

 private:
  template <class T>
  T* pointer() const {
    const auto* p = std::get_if<std::shared_ptr<T>>(&held_);
    return p == nullptr ? nullptr : p->get();
  }
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<List>, std::shared_ptr<const Dict>, std::shared_ptr<Object>>
      held_;
};

// Python's several kinds of sequence, which differ in how they print and in what may be asked of
// them. An iterator (what `map` and its like return) is used up by the first that walks it.
enum class ListKind : unsigned char { list, tuple, keys, values, items, range, iterator };

struct List {
  List(ListKind kind, std::vector<Value> values, Meter* meter);
  bool indexable() const { return kind <= ListKind::tuple || kind == ListKind::range; }

  ListKind kind;
  std::vector<Value> items;
  struct Range {
    int64_t start, stop, step;
  } range{};
  bool grouped = false;  // a pair from `groupby`, which has the names grouper and list
  Status fault;          // an iterator that could not be made says so when it is walked
  uint32_t depth;
  Charge charge;
};

struct Dict {
  using Entry = std::pair<Value, Value>;
  // Keys must be distinct already.
  Dict(std::vector<Entry> entries, Budget& budget);
  const Value* find(std::string_view key, Budget& budget) const;
  const Value* find(const Value& key, Budget& budget) const;

  std::vector<Entry> entries;
  uint32_t depth;

 private:
  // Entries whose keys are strings, in their order, where there are many. Not a hash table: a file
  // could bring keys that collide.
  std::vector<uint32_t> by_text_;
  Charge charge_;
};

uint32_t depth_of(const Value& value);
bool truthy(const Value& value);
bool hashable(const Value& value, Budget& budget);
// As Python calls it: str, int, list, Undefined, ...
std::string_view type_name(const Value& value);
bool equal(const Value& a, const Value& b, Budget& budget);
bool equal(std::string_view a, std::string_view b, Budget& budget);
// a < b as Python orders them; nothing where it does not.
std::optional<bool> less(const Value& a, const Value& b, Budget& budget);
// str() and repr().
void print(const Value& value, TextBuilder& out, Budget& budget);
void repr(const Value& value, TextBuilder& out, Budget& budget, uint32_t depth = 0);
// Sets or replaces an entry of a dict in the making.
void set_entry(std::vector<Dict::Entry>& entries, Value key, Value value, Budget& budget);

}  // namespace millrace::jinja
