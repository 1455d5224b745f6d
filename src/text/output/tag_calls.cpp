// Calls as tags, an element for each argument: Qwen3-Coder, GLM, MiniMax. The arguments become a
// JSON object on the way; strings are passed on as they come, other values once they are whole.
#include <algorithm>
#include <array>
#include <utility>

#include "text/output/call_reader.h"
#include "text/output/json_scan.h"

namespace millrace {
namespace {

struct TagSyntax {
  std::string_view call_open, name_open, name_close, key_open, key_close, value_open, value_close,
      name_end, call_close;
  bool newlines = false;  // one before and one after a value are not part of it
};

TagSyntax syntax_of(ToolFormat format) {
  if (format == ToolFormat::glm) {
    return {.call_open = "<tool_call>",
            .name_open = "",
            .name_close = "\n",
            .key_open = "<arg_key>",
            .key_close = "</arg_key>",
            .value_open = "<arg_value>",
            .value_close = "</arg_value>",
            .name_end = "",
            .call_close = "</tool_call>"};
  }
  if (format == ToolFormat::minimax) {
    return {.call_open = "<minimax:tool_call>",
            .name_open = "<invoke name=\"",
            .name_close = "\">",
            .key_open = "<parameter name=\"",
            .key_close = "\">",
            .value_open = "",
            .value_close = "</parameter>",
            .name_end = "</invoke>",
            .call_close = "</minimax:tool_call>"};
  }
  return {.call_open = "<tool_call>",
          .name_open = "<function=",
          .name_close = ">",
          .key_open = "<parameter=",
          .key_close = ">",
          .value_open = "",
          .value_close = "</parameter>",
          .name_end = "</function>",
          .call_close = "</tool_call>",
          .newlines = true};
}

// The longest end of `text`, but not all of it, that `literal` begins with.
size_t overlap(std::string_view text, std::string_view literal) {
  size_t n = std::min(text.size() - 1, literal.size());
  while (!text.ends_with(literal.substr(0, n))) --n;
  return n;
}

class TagCalls final : public CallReader {
 public:
  TagCalls(ToolFormat format, std::string_view opener, const ToolSet& tools)
      : syntax_(syntax_of(format)), tools_(tools) {
    const bool has_name_open = opener == syntax_.name_open || syntax_.name_open.empty();
    state_ = has_name_open ? State::name : State::before_name;
  }

  void finish(CallSink& sink) override;
  bool in_value() const override { return state_ == State::value; }
  void cut(std::string_view token, CallSink& sink) override {
    if (token == syntax_.value_close) return;
    finish(sink);
    tag_.clear();
    is_after_call_ = true;
    state_ = State::before_name;
  }

 protected:
  Found read(char c, CallSink& sink) override;

 private:
  enum class State : unsigned char {
    before_name,  // or after a call
    name,
    before_key,
    key,
    before_value,
    value,
    after_value  // its end, if something fitting follows
  };

  Found read_before_name(char c);
  Found read_name(char c, CallSink& sink);
  Found read_before_key(char c, CallSink& sink);
  Found read_key(char c, CallSink& sink);
  Found read_before_value(char c, CallSink& sink);
  Found read_value(char c, CallSink& sink);
  Found read_after_value(char c, CallSink& sink);
  Found begin_call(CallSink& sink);
  Found take_tag(CallSink& sink);
  Found leave(CallSink& sink);
  void begin_value(CallSink& sink);
  void add_to_value(std::string_view text, CallSink& sink);
  void pass_on_string(std::string_view text, CallSink& sink);
  void end_value(CallSink& sink);
  void end_call(CallSink& sink);

  const TagSyntax syntax_;
  const ToolSet& tools_;
  State state_;
  bool is_after_call_ = false;
  LiteralMatch tag_;
  std::string name_, key_;
  bool has_arguments_ = false;

  // Of the value at hand.
  ValueTypes types_;
  bool is_string_ = false, is_at_start_ = false, has_newline_ = false;
  std::string closing_;  // what might be, or be followed by, its end
  std::string value_;    // while it may not be a string
};

CallReader::Found TagCalls::read(char c, CallSink& sink) {
  switch (state_) {
    case State::before_name:
      return read_before_name(c);
    case State::name:
      return read_name(c, sink);
    case State::before_key:
      return read_before_key(c, sink);
    case State::key:
      return read_key(c, sink);
    case State::before_value:
      return read_before_value(c, sink);
    case State::value:
      return read_value(c, sink);
    case State::after_value:
      return read_after_value(c, sink);
  }
  return Found::not_a_call;
}

CallReader::Found TagCalls::read_before_name(char c) {
  if (!tag_.has_begun() && is_space(c)) return Found::more;
  if (!tag_.has_begun() && c == '{' && !is_after_call_) return Found::as_json;
  const std::array literals = {syntax_.name_open, syntax_.call_close};
  const auto found = tag_.push(c, literals);
  if (found == LiteralMatch::Found::more) return Found::more;
  if (found == LiteralMatch::Found::none) return Found::not_a_call;
  if (tag_.matched() == syntax_.call_close) return is_after_call_ ? Found::done : Found::not_a_call;
  name_.clear();
  state_ = State::name;
  return Found::more;
}

CallReader::Found TagCalls::read_name(char c, CallSink& sink) {
  if (syntax_.name_open.empty()) {  // GLM
    if (c == '{' && name_.empty()) return Found::as_json;
    if (name_.empty() && is_space(c)) return Found::more;
    if (c == '<') {  // an argument, or the end, follows on the same line
      if (begin_call(sink) == Found::not_a_call) return Found::not_a_call;
      return read_before_key(c, sink);
    }
  }
  name_ += c;
  if (name_.ends_with(syntax_.name_close)) {
    name_.resize(name_.size() - syntax_.name_close.size());
    return begin_call(sink);
  }
  const bool is_name = name_.size() <= kMaxNameBytes && c != '\n' && c != '{' && c != '<';
  return is_name ? Found::more : Found::not_a_call;
}

CallReader::Found TagCalls::begin_call(CallSink& sink) {
  while (!name_.empty() && is_space(name_.back())) name_.pop_back();
  // A name is one word; a sentence after the marker is text.
  if (name_.empty() || name_.find_first_of(" \t") != std::string::npos) return Found::not_a_call;
  if (!begin(name_, sink)) return Found::not_a_call;
  has_arguments_ = false;
  state_ = State::before_key;
  return Found::more;
}

CallReader::Found TagCalls::read_before_key(char c, CallSink& sink) {
  if (!tag_.has_begun() && is_space(c)) return Found::more;
  const std::array literals = {syntax_.key_open, syntax_.name_end, syntax_.call_close};
  const auto found = tag_.push(c, literals);
  if (found == LiteralMatch::Found::more) return Found::more;
  if (found == LiteralMatch::Found::whole) return take_tag(sink);
  return leave(sink);
}

// Something else stands where a tag of the call should.
CallReader::Found TagCalls::leave(CallSink& sink) {
  end(true, sink);
  held() = tag_.text();
  return Found::not_a_call;
}

CallReader::Found TagCalls::take_tag(CallSink& sink) {
  if (tag_.matched() == syntax_.key_open) {
    key_.clear();
    state_ = State::key;
    return Found::more;
  }
  const bool is_closed = tag_.matched() == syntax_.call_close;
  end_call(sink);
  return is_closed ? Found::done : Found::more;
}

void TagCalls::end_call(CallSink& sink) {
  sink.arguments(has_arguments_ ? "}" : "{}");
  end(false, sink);
  is_after_call_ = true;
  state_ = State::before_name;
}

CallReader::Found TagCalls::read_key(char c, CallSink& sink) {
  key_ += c;
  if (key_.ends_with(syntax_.key_close)) {
    key_.resize(key_.size() - syntax_.key_close.size());
    tag_.clear();
    state_ = State::before_value;
    if (syntax_.value_open.empty()) begin_value(sink);
    return Found::more;
  }
  if (key_.size() <= kMaxNameBytes) return Found::more;
  end(true, sink);
  held() = std::string(syntax_.key_open) + key_;
  return Found::not_a_call;
}

CallReader::Found TagCalls::read_before_value(char c, CallSink& sink) {
  if (!tag_.has_begun() && is_space(c)) return Found::more;
  const std::array literals = {syntax_.value_open};
  const auto found = tag_.push(c, literals);
  if (found == LiteralMatch::Found::more) return Found::more;
  if (found == LiteralMatch::Found::none) return leave(sink);
  begin_value(sink);
  return Found::more;
}

void TagCalls::begin_value(CallSink& sink) {
  std::string text = has_arguments_ ? ", \"" : "{\"";
  append_escaped(text, key_);
  text += "\": ";
  has_arguments_ = true;
  types_ = tools_.types(name_, key_);
  is_string_ = types_.only_string();
  if (is_string_) text += '"';
  sink.arguments(text);
  is_at_start_ = true;
  has_newline_ = false;
  value_.clear();
  closing_.clear();
  state_ = State::value;
}

CallReader::Found TagCalls::read_value(char c, CallSink& sink) {
  closing_ += c;
  while (!closing_.empty() && !syntax_.value_close.starts_with(closing_)) {
    add_to_value(std::string_view(closing_).substr(0, 1), sink);
    closing_.erase(0, 1);
  }
  if (closing_ == syntax_.value_close) state_ = State::after_value;
  return Found::more;
}

// The tag ends the value only where the call goes on as it should: code that an argument holds may
// have the tag in it.
CallReader::Found TagCalls::read_after_value(char c, CallSink& sink) {
  closing_ += c;
  const bool is_long = closing_.size() > kMaxNameBytes;
  if (!tag_.has_begun() && is_space(c) && !is_long) return Found::more;
  const std::array literals = {syntax_.key_open, syntax_.name_end, syntax_.call_close};
  const auto found = tag_.push(c, literals);
  if (found == LiteralMatch::Found::more && !is_long) return Found::more;
  if (found == LiteralMatch::Found::whole) {
    end_value(sink);
    return take_tag(sink);
  }
  tag_.clear();
  state_ = State::value;
  const size_t n = overlap(closing_, syntax_.value_close);
  add_to_value(std::string_view(closing_).substr(0, closing_.size() - n), sink);
  closing_.erase(0, closing_.size() - n);
  return Found::more;
}

void TagCalls::add_to_value(std::string_view text, CallSink& sink) {
  if (is_at_start_ && syntax_.newlines && text.starts_with('\n')) text.remove_prefix(1);
  is_at_start_ = false;
  if (is_string_) return pass_on_string(text, sink);
  value_ += text;
  if (value_.size() <= kMaxHeldBytes) return;
  // Too much to wait for: whatever it is, it is passed on as a string.
  is_string_ = true;
  sink.arguments("\"");
  pass_on_string(std::exchange(value_, {}), sink);
}

void TagCalls::pass_on_string(std::string_view text, CallSink& sink) {
  if (text.empty()) return;
  std::string out;
  if (has_newline_) append_escaped(out, "\n");
  has_newline_ = syntax_.newlines && text.back() == '\n';
  if (has_newline_) text.remove_suffix(1);
  append_escaped(out, text);
  sink.arguments(out);
}

void TagCalls::end_value(CallSink& sink) {
  if (is_string_) return sink.arguments("\"");
  if (syntax_.newlines && value_.ends_with('\n')) value_.pop_back();
  sink.arguments(typed_json(value_, types_));
}

void TagCalls::finish(CallSink& sink) {
  if (state_ == State::after_value) {
    // Nothing follows that could show the tag to be part of the value.
    end_value(sink);
    state_ = State::before_key;
  } else if (state_ == State::value && !is_string_ && !value_.empty()) {
    sink.arguments(value_);
  } else if (state_ == State::value && is_string_) {
    add_to_value(closing_, sink);
  }
  if (in_call()) end(true, sink);
  if (is_after_call_ && tag_.has_begun()) held().clear();
}

}  // namespace

std::unique_ptr<CallReader> make_tag_calls(ToolFormat format, std::string_view opener,
                                           const ToolSet& tools) {
  return std::make_unique<TagCalls>(format, opener, tools);
}

}  // namespace millrace
