// What a model may write, as an immutable byte-level grammar, and the builder that composes one:
//   Builder b;
//   MILLRACE_ASSIGN(const Piece arguments, b.schema_text(R"({"type": "object", ...})"));
//   MILLRACE_ASSIGN(const Grammar grammar, b.finish(b.sequence({b.marker("<tool_call>"),
//       b.literal("\n{\"name\": \"f\", \"arguments\": "), arguments,
//       b.literal("}\n</tool_call>")})));
// A Grammar knows no vocabulary: TokenGrammar joins it with one, and a Matcher follows a request.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace::grammar {

struct Graph;

class Grammar {
 public:
  ~Grammar();
  Grammar(Grammar&&) noexcept;
  Grammar& operator=(Grammar&&) noexcept;
  const Graph& graph() const { return *graph_; }

 private:
  friend class Builder;
  explicit Grammar(std::unique_ptr<const Graph> graph);
  std::unique_ptr<const Graph> graph_;
};

// A part of a grammar that is being built; of one Builder alone. It may be used more than once.
struct Piece {
  int32_t node = -1;
};

struct SchemaOptions {
  // What a schema asks for and cannot be held is an error instead of a warning.
  bool strict = false;
  // No white space between the tokens of JSON. Otherwise: at most a space, or a new line and an
  // indent.
  bool compact = false;
  // Objects that name their properties and say nothing of additional ones may have them. JSON
  // Schema says so; models do better without.
  bool additional = false;
};

class Builder {
 public:
  Builder();
  ~Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;

  Piece literal(std::string_view text);
  // A literal that the control token of this text may stand for, where the vocabulary has one
  // (<tool_call>). No other piece ever takes a control token.
  Piece marker(std::string_view text);
  Piece sequence(std::span<const Piece> pieces);
  Piece sequence(std::initializer_list<Piece> pieces);
  Piece alternatives(std::span<const Piece> pieces);
  Piece alternatives(std::initializer_list<Piece> pieces);
  // `piece` min to max times, with `between` from one to the next.
  static constexpr uint32_t kNoLimit = UINT32_MAX;
  Piece repeat(Piece piece, Piece between, uint32_t min, uint32_t max = kNoLimit);
  Piece optional(Piece piece) { return alternatives({piece, sequence({})}); }
  // UTF-8 text, empty or not, in which none of the literals occurs. Before one of them, as marker
  // or literal, it is free text until that opens.
  Result<Piece> text_without(std::span<const std::string> literals);

  // Any JSON value; any JSON object.
  Piece json(bool compact = false);
  Piece json_object(bool compact = false);
  // A value that satisfies the schema. What of it is not held is in warnings().
  Result<Piece> schema(const nlohmann::ordered_json& schema, const SchemaOptions& options = {});
  Result<Piece> schema_text(std::string_view schema, const SchemaOptions& options = {});
  // Each names its place and keyword: `$.properties.name.pattern: look-ahead is not supported,
  // ignored`.
  std::span<const std::string> warnings() const;

  // Fails when no text satisfies the grammar or it is too large. The builder is used up.
  Result<Grammar> finish(Piece root);

 private:
  struct Parts;
  friend class SchemaCompiler;
  std::unique_ptr<Parts> parts_;
};

}  // namespace millrace::grammar
