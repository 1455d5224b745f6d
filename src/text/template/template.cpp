#include "text/template/template.h"

#include <nlohmann/json.hpp>

#include "text/template/json.h"
#include "text/template/parser.h"

namespace millrace::jinja {

std::string Rendered::text() const {
  std::string out;
  for (const Piece& piece : pieces) out += piece.text;
  return out;
}

Result<Template> Template::parse(std::string_view source) {
  MILLRACE_ASSIGN(Ast ast, jinja::parse(source));
  Template out;
  out.ast_ = std::make_unique<const Ast>(std::move(ast));
  return out;
}

Result<Rendered> Template::render(const nlohmann::ordered_json& variables, const Limits& limits,
                                  const std::tm& now) const {
  return render(limits, now, [&](Interpreter& in) -> Status {
    for (const auto& [name, json] : variables.items()) {
      MILLRACE_ASSIGN(Value value, from_json(in, json));
      in.set_global(name, std::move(value));
    }
    return {};
  });
}

Result<Rendered> Template::finish(Interpreter& in) {
  MILLRACE_ASSIGN(const TextBuilder built, in.render());
  Rendered out;
  const auto put = [&](size_t begin, size_t end, bool from_template) {
    if (begin < end)
      out.pieces.push_back({built.bytes().substr(begin, end - begin), from_template});
  };
  size_t at = 0;
  for (const Span& span : built.input()) {
    put(at, span.begin, true);
    put(span.begin, span.end, false);
    at = span.end;
  }
  put(at, built.size(), true);
  return out;
}

}  // namespace millrace::jinja
