#include "serve/answer_grammar.h"

#include <algorithm>

namespace millrace::serve {
namespace {

using grammar::Builder;
using grammar::Piece;

bool has_tools(const ApiRequest& request) {
  return request.chat.tools.is_array() && !request.chat.tools.empty() &&
         request.tool_choice.kind != ToolChoice::Kind::none;
}

const Json& function_of(const Json& tool) {
  return tool.contains("function") ? tool["function"] : tool;
}

std::string name_of_tool(const Json& tool) {
  const Json& function = function_of(tool);
  return function.contains("name") && function["name"].is_string()
             ? function["name"].get<std::string>()
             : std::string();
}

bool is_strict(const Json& tool) {
  const Json& function = function_of(tool);
  return (function.contains("strict") && function["strict"] == true) ||
         (tool.contains("strict") && tool["strict"] == true);
}

bool has_strict_tool(const ApiRequest& request) {
  return has_tools(request) && std::any_of(request.chat.tools.begin(), request.chat.tools.end(),
                                           [](const Json& tool) { return is_strict(tool); });
}

bool must_call(const ApiRequest& request) {
  return has_tools(request) && (request.tool_choice.kind == ToolChoice::Kind::required ||
                                request.tool_choice.kind == ToolChoice::Kind::named);
}

class Composer {
 public:
  explicit Composer(const AnswerShape& shape)
      : shape_(shape), syntax_(call_syntax(shape.format.tools)) {}

  Result<grammar::Grammar> make(std::vector<std::string>& warnings) {
    MILLRACE_ASSIGN(const Piece body, answer());
    MILLRACE_ASSIGN(const Piece before, reasoning());
    warnings.insert(warnings.end(), builder_.warnings().begin(), builder_.warnings().end());
    return builder_.finish(builder_.sequence({before, body}));
  }

 private:
  const ApiRequest& request() const { return shape_.request; }

  Result<Piece> answer() {
    const bool is_formatted = request().format.kind != ResponseFormat::Kind::text;
    if (must_call(request())) return calls();
    if (!is_formatted) return text_or_calls();
    MILLRACE_ASSIGN(const Piece formatted, formatted_answer());
    if (!has_tools(request())) return formatted;
    MILLRACE_ASSIGN(const Piece called, calls());
    return builder_.alternatives({formatted, called});
  }

  Result<Piece> formatted_answer() {
    const ResponseFormat& format = request().format;
    if (format.kind == ResponseFormat::Kind::json_object) return builder_.json_object();
    return builder_.schema(format.schema, {.strict = format.strict});
  }

  // Free until a call opens.
  Result<Piece> text_or_calls() {
    const std::string opener(syntax_.section_open.empty() ? syntax_.opener : syntax_.section_open);
    if (opener.empty())
      return error(Code::unsupported,
                   "tools: strict tools need a tool choice of 'required' here, because this "
                   "model's calls have no opening marker");
    MILLRACE_ASSIGN(const Piece text, builder_.text_without({{opener}}));
    MILLRACE_ASSIGN(const Piece called, calls());
    return builder_.sequence({text, builder_.optional(called)});
  }

  // A literal in which the markers of the format may be tokens of their own.
  Piece spelled(std::string_view text) {
    std::vector<Piece> pieces;
    while (!text.empty()) {
      size_t at = text.size();
      std::string_view marker;
      for (const std::string_view one : syntax_.markers)
        if (const size_t found = text.find(one); found < at) {
          at = found;
          marker = one;
        }
      if (at > 0) pieces.push_back(builder_.literal(text.substr(0, at)));
      if (!marker.empty()) pieces.push_back(builder_.marker(marker));
      text.remove_prefix(at + marker.size());
    }
    return builder_.sequence(pieces);
  }

  // A name stands in a string, a tag or a line, as the format has it: nothing in it may end those.
  Result<Piece> name(const Json& tool, size_t index) {
    const std::string out = name_of_tool(tool);
    const auto ends = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 ||
             std::string_view("\"\\<>").find(c) != std::string_view::npos;
    };
    if (std::any_of(out.begin(), out.end(), ends))
      return error(Code::invalid_argument,
                   "tools[{}].function.name: calls of a tool with such a name cannot be enforced",
                   index);
    return builder_.literal(out);
  }

  Result<Piece> call(const Json& tool, size_t index) {
    MILLRACE_ASSIGN(const Piece called, name(tool, index));
    const Json& function = function_of(tool);
    const Json any = {{"type", "object"}};
    const bool strict = is_strict(tool);
    const Json& schema = function.contains("parameters") ? function["parameters"] : any;
    auto arguments = schema.is_object() && !schema.empty()
                         ? builder_.schema(schema, {.strict = strict})
                         : Result<Piece>(builder_.json_object());
    if (!arguments.ok())
      return error(arguments.status().code(), "tools[{}].function.parameters: {}", index,
                   arguments.status().message());
    return builder_.sequence({spelled(syntax_.opener), spelled(syntax_.before_name), called,
                              spelled(syntax_.after_name), arguments.value(),
                              spelled(syntax_.after_arguments), spelled(syntax_.closer)});
  }

  Result<Piece> calls() {
    if (!syntax_.has_json_arguments() || shape_.format.tools == ToolFormat::none)
      return error(Code::unsupported,
                   "tool_choice: calls in this model's format ({}) cannot be enforced",
                   millrace::name_of(shape_.format.tools));
    std::vector<Piece> one_of;
    const Json& tools = request().chat.tools;
    for (size_t i = 0; i < tools.size(); ++i) {
      const bool wanted = request().tool_choice.kind != ToolChoice::Kind::named ||
                          request().tool_choice.name == name_of_tool(tools[i]);
      if (!wanted || name_of_tool(tools[i]).empty()) continue;
      MILLRACE_ASSIGN(const Piece one, call(tools[i], i));
      one_of.push_back(one);
    }
    if (one_of.empty())
      return error(Code::invalid_argument, "tool_choice: there is no tool '{}' in tools",
                   request().tool_choice.name);
    const uint32_t most = request().parallel_calls ? kMaxCalls : 1;
    const Piece all =
        builder_.repeat(builder_.alternatives(one_of), spelled(syntax_.separator), 1, most);
    return builder_.sequence({spelled(syntax_.section_open), all, spelled(syntax_.section_close)});
  }

  Result<Piece> reasoning() {
    if (shape_.format.reasoning == ReasoningFormat::none) return builder_.sequence({});
    const ReasoningMarkers markers = markers_of(shape_.format.reasoning);
    MILLRACE_ASSIGN(const Piece thoughts, builder_.text_without({{std::string(markers.close)}}));
    const Piece space = builder_.alternatives(
        {builder_.literal("\n\n"), builder_.literal("\n"), builder_.sequence({})});
    const Piece rest = builder_.sequence({thoughts, builder_.marker(markers.close), space});
    if (shape_.in_reasoning) return rest;
    return builder_.optional(builder_.sequence({builder_.marker(markers.open), rest}));
  }

  static constexpr uint32_t kMaxCalls = 64;
  const AnswerShape& shape_;
  const CallSyntax& syntax_;
  Builder builder_;
};

}  // namespace

bool has_grammar(const ApiRequest& request) {
  return request.format.kind != ResponseFormat::Kind::text || must_call(request) ||
         has_strict_tool(request);
}

std::string grammar_key(const AnswerShape& shape) {
  const ApiRequest& r = shape.request;
  return Json::array({static_cast<int>(r.format.kind), r.format.schema, r.format.strict,
                      has_tools(r) ? r.chat.tools : Json(), static_cast<int>(r.tool_choice.kind),
                      r.tool_choice.name, r.parallel_calls, shape.in_reasoning, r.prompts.empty()})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::optional<grammar::Grammar>> answer_grammar(const AnswerShape& shape,
                                                       std::vector<std::string>& warnings) {
  if (!has_grammar(shape.request)) return std::optional<grammar::Grammar>();
  MILLRACE_ASSIGN(grammar::Grammar made, Composer(shape).make(warnings));
  return std::optional(std::move(made));
}

}  // namespace millrace::serve
