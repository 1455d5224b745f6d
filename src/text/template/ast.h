// A parsed template. Names are numbers into the template's table of names, so that looking one up
// while rendering compares no strings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template/value.h"

namespace millrace::jinja {

using NameId = uint32_t;

class Names {
 public:
  NameId id_of(std::string_view name);
  // Nothing for a name the template never mentions.
  std::optional<NameId> find(std::string_view name) const;
  const std::string& operator[](NameId id) const { return *by_id_[id]; }
  size_t size() const { return by_id_.size(); }

 private:
  std::map<std::string, NameId, std::less<>> ids_;
  std::vector<const std::string*> by_id_;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind : unsigned char {
  literal,    // value
  name,       // id
  list,       // parts
  tuple,      // parts
  dict,       // parts: key, value, key, value ...
  attribute,  // parts[0] . text
  item,       // parts[0] [ parts[1] ]
  slice,      // parts: begin, end, step, each may be null
  call,       // parts[0] ( arguments )
  filter,     // parts[0] | text ( arguments ); parts[0] is null in a filter block
  test,       // parts[0] is text ( arguments )
  negate,     // - parts[0]
  plus,       // + parts[0]
  negation,   // not parts[0]
  binary,     // parts[0] op parts[1]
  compare,    // parts[0] ops[0] parts[1] ops[1] parts[2] ...
  both,       // and
  either,     // or
  concat,     // parts, joined by ~
  condition,  // parts[0] if parts[1] else parts[2], which may be null
};

enum class Op : unsigned char {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;
};

struct Expr {
  ExprKind kind;
  int line;
  uint32_t depth = 1;
  NameId id = 0;
  std::string text;
  Value value;
  std::vector<ExprPtr> parts;
  std::vector<Op> ops;
  CallArgs arguments;
};

// What `set` and `for` store into: a name, an attribute of a namespace, or several of them.
struct Target {
  enum class Kind : unsigned char { name, attribute, tuple } kind = Kind::name;
  int line = 0;
  NameId id = 0;
  std::string attribute;
  std::vector<Target> parts;
};

struct Stmt;
using Block = std::vector<std::unique_ptr<Stmt>>;

// A macro or a call block's body. The special names count only where the body mentions them.
struct Signature {
  std::vector<NameId> params;
  std::vector<ExprPtr> defaults;  // of the last ones
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
};

enum class StmtKind : unsigned char {
  text,          // value
  print,         // exprs
  if_,           // exprs[i] guards blocks[i]; one block more is the else
  for_,          // target in exprs[0] if exprs[1]; blocks: body, else
  set,           // target = exprs[0]
  set_block,     // target = blocks[0] | exprs[0]
  with,          // targets = exprs; blocks[0]
  macro,         // id, signature, blocks[0]
  call_block,    // exprs[0] is the call; signature, blocks[0]
  filter_block,  // exprs[0] is the chain of filters; blocks[0]
  generation,    // blocks[0]: marks what the model is trained on; rendering ignores it
  break_,
  continue_,
};

struct Stmt {
  StmtKind kind;
  int line;
  Value value;
  std::vector<ExprPtr> exprs;
  std::vector<Block> blocks;
  std::vector<Target> targets;
  Signature signature;
  NameId id = 0;
  bool recursive = false;
};

struct Ast {
  Names names;
  Block body;
};

}  // namespace millrace::jinja
