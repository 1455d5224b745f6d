// A JSON schema into pieces of a grammar. Every keyword is held exactly, held more narrowly than it
// says (an object's properties come in their declared order), or given up: with a warning that
// names its place, or, where the schema is strict, as an error. What is narrower is still valid.
// The work is counted, so that a hostile schema ends soon. Private to the folder.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/grammar/grammar.h"
#include "text/grammar/parts.h"
#include "text/grammar/pattern.h"

namespace millrace::grammar {

class SchemaCompiler {
 public:
  using Json = nlohmann::ordered_json;

  SchemaCompiler(Builder::Parts& parts, const Json& root, const SchemaOptions& options)
      : parts_(parts), root_(root), options_(options) {}

  Result<int32_t> run();

 private:
  static constexpr int kMaxDepth = 128;
  static constexpr size_t kMaxWork = 150'000;           // schemas, keywords and values: some 50 ms
  static constexpr size_t kMaxPatternWork = 2'000'000;  // of all patterns, then they are given up
  static constexpr size_t kMaxWarnings = 100;
  static constexpr size_t kMaxProperties = 10'000;

  struct At {
    std::string path;
    int depth = 0;
    At down(std::string_view key) const;
    At down(std::string_view key, size_t index) const;
  };
  struct Lengths {
    uint32_t min = 0, max = kNoLimit;
  };

  // schema.cpp: which part of a schema decides.
  Result<int32_t> compile(const Json& schema, const At& at);
  Result<int32_t> compile_object_form(const Json& schema, const At& at);
  Result<int32_t> choice(const Json& schema, const char* keyword, const At& at);
  Result<int32_t> by_types(const Json& schema, const At& at);
  Result<int32_t> of_type(const std::string& type, const Json& schema, const At& at);
  Result<std::vector<std::string>> types_of(const Json& schema, const At& at);
  Status check_keywords(const Json& schema, const At& at);
  Status check_one_of(const Json& branches, const At& at);
  // Gives a keyword up: a warning, or an error where the schema is strict.
  Status give_up(const At& at, std::string_view keyword, std::string_view why);
  Status wrong(const At& at, std::string_view keyword, std::string_view why) const;
  void warn(const At& at, std::string_view keyword, std::string_view why);
  Status spend(size_t work, const At& at);

  // schema_refs.cpp
  Result<int32_t> reference(const std::string& ref, const At& at);
  Result<const Json*> resolve(const std::string& ref, const At& at) const;
  Status compile_pending();

  // schema_merge.cpp: one schema that says what two say.
  Result<Json> merged(const Json& a, const Json& b, const At& at);
  Result<Json> flat(Json schema, const At& at);
  Status merge_keyword(Json& out, const std::string& keyword, const Json& value, const At& at);
  Status merge_objects(Json& out, const Json& a, const Json& b, const At& at);
  Status merge_choice(Json& out, const std::string& keyword, const Json& value, const At& at);

  // schema_objects.cpp
  struct Property {
    std::string name;
    const Json* schema;
    bool required;
  };
  struct Additional {
    bool allowed = false;
    int32_t key = -1, value = -1;
  };
  Result<int32_t> object(const Json& schema, const At& at);
  Result<std::vector<Property>> properties_of(const Json& schema, const At& at);
  Result<Additional> additional(const Json& schema, const std::vector<Property>& properties,
                                const At& at);
  Result<Additional> pattern_properties(const Json& schema, bool alone, const At& at);
  Result<Additional> named_properties(const Json& schema, const At& at);
  Status check_counts(const Json& schema, const std::vector<Property>& properties,
                      const Additional& more, const At& at);
  int32_t members(const std::vector<Property>& properties, const std::vector<int32_t>& values,
                  const Additional& more);

  // schema_arrays.cpp
  Result<int32_t> array(const Json& schema, const At& at);
  Result<int32_t> tuple(const Json& prefix, int32_t rest, Lengths lengths, const At& at);

  // schema_scalars.cpp
  Result<int32_t> string(const Json& schema, const At& at);
  Result<int32_t> string_of_pattern(const std::string& pattern, Lengths lengths,
                                    std::string_view keyword, const At& at);
  Result<Pattern> compiled(const std::string& pattern);
  Result<Lengths> lengths(const Json& schema, const char* min, const char* max, const At& at);
  Result<int32_t> integer(const Json& schema, const At& at);
  Result<int32_t> number(const Json& schema, const At& at);

  // schema_values.cpp
  Result<int32_t> values(const Json& schema, const At& at);
  Result<int32_t> value(const Json& value, const At& at);

  int32_t space() { return parts_.space(options_.compact); }

  Builder::Parts& parts_;
  const Json& root_;
  SchemaOptions options_;
  std::map<std::string, int32_t> references_;
  std::vector<std::string> pending_;  // references whose schema is still to be compiled
  size_t work_ = 0, pattern_work_ = 0;
};

// The type's name as schemas say it; an integer's is "integer".
std::string_view type_of(const nlohmann::ordered_json& value);
bool has_type(const nlohmann::ordered_json& value, const std::vector<std::string>& types);

// Bounds of a number; a missing one is infinite.
struct NumberRange {
  double min, max;
  bool above = false, below = false;  // min, max themselves excluded
};
// Patterns of the whole numbers or decimals within bounds; empty: there is none. A decimal's bounds
// are whole.
std::string integer_pattern(double min, double max);
std::string decimal_pattern(const NumberRange& range);
// Of a `format`; null: none is known.
const char* format_pattern(std::string_view format);

}  // namespace millrace::grammar
