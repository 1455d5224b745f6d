// A template of the Jinja that models' chat templates are written in, parsed once and rendered any
// number of times, from several threads if need be. It can reach nothing but the variables it is
// given, and renders within Limits. chat_template.h puts conversations into it.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/template/interpreter.h"

namespace millrace::jinja {

// A run of rendered text. What is not `from_template` could have been chosen by whoever wrote the
// variables: no control token may be read out of it.
struct Piece {
  std::string text;
  bool from_template;
};

struct Rendered {
  std::vector<Piece> pieces;  // none empty, origins alternating
  std::string text() const;
};

class Template {
 public:
  static Result<Template> parse(std::string_view source);

  // Fills the variables in (Interpreter::set_global), then renders.
  template <class Fill>
  Result<Rendered> render(const Limits& limits, const std::tm& now, Fill fill) const {
    Interpreter in(*ast_, limits, now);
    MILLRACE_TRY(fill(in));
    return finish(in);
  }
  // Every key of an object is a variable, and every string of it input.
  Result<Rendered> render(const nlohmann::ordered_json& variables, const Limits& limits = {},
                          const std::tm& now = {}) const;

 private:
  static Result<Rendered> finish(Interpreter& in);
  std::unique_ptr<const Ast> ast_;
};

}  // namespace millrace::jinja
