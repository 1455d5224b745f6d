// Calls whose name stands before the JSON of their arguments, with markers around both: DeepSeek,
// Kimi, Mistral.
#include <algorithm>
#include <array>
#include <cctype>

#include "text/output/call_reader.h"
#include "text/output/json_scan.h"

namespace millrace {
namespace {

struct NamedSyntax {
  std::string_view call_open, header_end, call_close, section_close;
};

NamedSyntax syntax_of(ToolFormat format) {
  if (format == ToolFormat::kimi) {
    return {"<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>",
            "<|tool_calls_section_end|>"};
  }
  if (format == ToolFormat::deepseek || format == ToolFormat::deepseek_v31) {
    return {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>"};
  }
  return {"[TOOL_CALLS]", "[ARGS]", "", ""};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// functions.NAME:INDEX
std::string_view kimi_name(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const size_t colon = id.rfind(':');
  if (colon == std::string_view::npos) return id;
  for (const char c : id.substr(colon + 1))
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return id;
  return id.substr(0, colon);
}

class NamedCalls final : public CallReader {
 public:
  NamedCalls(ToolFormat format, std::string_view opener)
      : format_(format), syntax_(syntax_of(format)) {
    state_ = opener == syntax_.call_open ? State::header : State::between;
  }

  void finish(CallSink& sink) override;
  bool in_value() const override { return in_call(); }
  void cut(std::string_view /*token*/, CallSink& sink) override {
    if (in_call()) end(true, sink);
    is_after_call_ = true;
    state_ = State::between;
  }

 protected:
  Found read(char c, CallSink& sink) override;

 private:
  enum class State : unsigned char {
    between,
    header,  // up to the separator
    after_header,
    name_line,  // DeepSeek V3 and R1: the header was the type
    before_arguments,
    arguments
  };

  bool is_mistral() const {
    return format_ == ToolFormat::mistral || format_ == ToolFormat::mistral_args;
  }
  bool is_deepseek() const {
    return format_ == ToolFormat::deepseek || format_ == ToolFormat::deepseek_v31;
  }
  Found read_between(char c);
  Found read_header(char c);
  Found take_header();
  Found read_name_line(char c);
  Found read_before_arguments(char c, CallSink& sink);
  Found read_arguments(char c, CallSink& sink);
  Found open_call();

  const ToolFormat format_;
  const NamedSyntax syntax_;
  State state_;
  bool is_after_call_ = false;
  LiteralMatch marker_;
  std::string header_, name_;
  ArgumentsScan arguments_;
};

CallReader::Found NamedCalls::read(char c, CallSink& sink) {
  switch (state_) {
    case State::between:
      return read_between(c);
    case State::header:
      return read_header(c);
    case State::after_header:
      if (is_space(c)) return Found::more;
      // A header that is no name of a tool but "function" is followed by the name.
      state_ = is_deepseek() && c != '{' && c != '"' ? State::name_line : State::before_arguments;
      name_ = state_ == State::name_line ? "" : trimmed(header_);
      return read(c, sink);
    case State::name_line:
      return read_name_line(c);
    case State::before_arguments:
      return read_before_arguments(c, sink);
    case State::arguments:
      return read_arguments(c, sink);
  }
  return Found::not_a_call;
}

CallReader::Found NamedCalls::open_call() {
  header_.clear();
  name_.clear();
  state_ = State::header;
  return Found::more;
}

CallReader::Found NamedCalls::read_between(char c) {
  const bool is_layout = is_space(c) || (is_deepseek() && is_after_call_ && c == '`');
  if (!marker_.has_begun() && is_layout) return Found::more;
  const std::array literals = {syntax_.call_open, syntax_.call_close, syntax_.section_close};
  const auto found = marker_.push(c, literals);
  if (found == LiteralMatch::Found::more) return Found::more;
  if (found == LiteralMatch::Found::none) return Found::not_a_call;
  if (marker_.matched() == syntax_.call_open) return open_call();
  if (marker_.matched() == syntax_.section_close) return Found::done;
  if (!is_after_call_) return Found::not_a_call;
  held().clear();
  return Found::more;
}

CallReader::Found NamedCalls::read_header(char c) {
  if (is_mistral() && (c == '[' || c == '{') && trimmed(header_).empty()) return Found::as_json;
  header_ += c;
  if (header_.ends_with(syntax_.header_end)) return take_header();
  return header_.size() <= kMaxNameBytes ? Found::more : Found::not_a_call;
}

CallReader::Found NamedCalls::take_header() {
  header_.resize(header_.size() - syntax_.header_end.size());
  if (is_mistral()) header_.resize(std::min(header_.size(), header_.find("[CALL_ID]")));
  if (format_ == ToolFormat::kimi) header_ = std::string(kimi_name(trimmed(header_)));
  arguments_ = {};
  state_ = State::after_header;
  return trimmed(header_).empty() ? Found::not_a_call : Found::more;
}

CallReader::Found NamedCalls::read_name_line(char c) {
  if (c == '\n') {
    name_ = std::string(trimmed(name_));
    state_ = State::before_arguments;
    return name_.empty() ? Found::not_a_call : Found::more;
  }
  name_ += c;
  return name_.size() <= kMaxNameBytes && c != '<' ? Found::more : Found::not_a_call;
}

CallReader::Found NamedCalls::read_before_arguments(char c, CallSink& sink) {
  constexpr std::string_view kFence = "`json";
  if (is_space(c) || (is_deepseek() && kFence.find(c) != std::string_view::npos))
    return Found::more;
  const bool has_arguments = c == '{' || c == '"' || c == '[';
  const bool has_none = c == '<';
  if ((!has_arguments && !has_none) || !begin(name_, sink)) return Found::not_a_call;
  state_ = State::arguments;
  if (has_arguments) return read_arguments(c, sink);
  sink.arguments("{}");
  end(false, sink);
  is_after_call_ = true;
  state_ = State::between;
  held() = c;
  return read_between(c);
}

CallReader::Found NamedCalls::read_arguments(char c, CallSink& sink) {
  std::string text;
  const ArgumentsScan::Found found = arguments_.push(c, text);
  sink.arguments(text);
  if (found == ArgumentsScan::Found::more) return Found::more;
  end(found == ArgumentsScan::Found::broken, sink);
  is_after_call_ = true;
  state_ = State::between;
  if (found == ArgumentsScan::Found::last) return Found::more;
  held() = c;
  return read_between(c);
}

void NamedCalls::finish(CallSink& sink) {
  const bool is_named =
      state_ == State::before_arguments || (state_ == State::after_header && !is_deepseek());
  if (state_ == State::after_header) name_ = trimmed(header_);
  if (in_call() || (is_named && begin(name_, sink))) end(true, sink);
  const bool is_layout = state_ == State::between && is_after_call_ &&
                         (marker_.has_begun() || held().find('`') != std::string::npos);
  if (is_layout) held().clear();
}

}  // namespace

std::unique_ptr<CallReader> make_named_calls(ToolFormat format, std::string_view opener) {
  return std::make_unique<NamedCalls>(format, opener);
}

}  // namespace millrace
