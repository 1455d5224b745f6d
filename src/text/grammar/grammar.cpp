#include "text/grammar/grammar.h"

#include <nlohmann/json.hpp>

#include "text/grammar/parts.h"
#include "text/grammar/schema.h"
#include "text/template/json.h"

namespace millrace::grammar {

namespace {

std::vector<int32_t> nodes_of(std::span<const Piece> pieces) {
  std::vector<int32_t> nodes;
  for (const Piece piece : pieces) nodes.push_back(piece.node);
  return nodes;
}

}  // namespace

Grammar::Grammar(std::unique_ptr<const Graph> graph) : graph_(std::move(graph)) {}
Grammar::~Grammar() = default;
Grammar::Grammar(Grammar&&) noexcept = default;
Grammar& Grammar::operator=(Grammar&&) noexcept = default;

Builder::Builder() : parts_(std::make_unique<Parts>()) {}
Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;
Builder& Builder::operator=(Builder&&) noexcept = default;

Piece Builder::literal(std::string_view text) {
  return {parts_->literal(text)};
}

Piece Builder::marker(std::string_view text) {
  return {parts_->literal(text, Node::Kind::marker)};
}

Piece Builder::sequence(std::span<const Piece> pieces) {
  return {parts_->sequence(nodes_of(pieces))};
}

Piece Builder::sequence(std::initializer_list<Piece> pieces) {
  return sequence(std::span(pieces));
}

Piece Builder::alternatives(std::span<const Piece> pieces) {
  return {parts_->alternatives(nodes_of(pieces))};
}

Piece Builder::alternatives(std::initializer_list<Piece> pieces) {
  return alternatives(std::span(pieces));
}

Piece Builder::repeat(Piece piece, Piece between, uint32_t min, uint32_t max) {
  const int32_t more = parts_->sequence({between.node, piece.node});
  return {parts_->repeat(piece.node, more, min, max)};
}

Result<Piece> Builder::text_without(std::span<const std::string> literals) {
  MILLRACE_ASSIGN(auto lexeme, grammar::text_without(literals));
  return Piece{lexeme ? parts_->lexeme(std::move(*lexeme), true) : parts_->never()};
}

Piece Builder::json(bool compact) {
  return {parts_->json(compact)};
}

Piece Builder::json_object(bool compact) {
  return {parts_->json_object(compact)};
}

Result<Piece> Builder::schema(const nlohmann::ordered_json& schema, const SchemaOptions& options) {
  MILLRACE_ASSIGN(const int32_t node, SchemaCompiler(*parts_, schema, options).run());
  return Piece{node};
}

Result<Piece> Builder::schema_text(std::string_view text, const SchemaOptions& options) {
  const auto json = jinja::parse_ordered_json(text);
  if (!json) return error(Code::invalid_argument, "$: the schema is not JSON, or nests too deep");
  return schema(*json, options);
}

std::span<const std::string> Builder::warnings() const {
  return parts_->warnings;
}

Result<Grammar> Builder::finish(Piece root) {
  MILLRACE_TRY(parts_->check());
  parts_->graph.root = root.node;
  MILLRACE_TRY(analyse(parts_->graph));
  return Grammar(std::make_unique<const Graph>(std::move(parts_->graph)));
}

}  // namespace millrace::grammar
