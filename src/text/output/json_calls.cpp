// Calls as JSON objects that hold the name and the arguments, in any order, one after the other or
// in a list.
#include "text/output/call_reader.h"
#include "text/output/json_scan.h"

namespace millrace {
namespace {

bool is_name_key(std::string_view key) {
  return key == "name" || key == "tool_name";
}

bool is_arguments_key(std::string_view key) {
  return key == "arguments" || key == "parameters";
}

// What calls have beside the two, in the shapes that models know from APIs.
bool is_known_key(std::string_view key) {
  return key == "type" || key == "id" || key == "tool_call_id" || key == "function";
}

class JsonCalls final : public CallReader {
 public:
  // Without a marker before it, an object is a call only if nothing else is in it.
  JsonCalls(std::string_view closer, bool is_bare) : closer_{closer}, is_bare_(is_bare) {}

  void finish(CallSink& sink) override;
  bool in_value() const override { return in_call(); }
  void cut(std::string_view /*token*/, CallSink& sink) override {
    if (in_call()) finish_call(true, sink);
    state_ = State::after_object;
  }

 protected:
  Found read(char c, CallSink& sink) override;

 private:
  enum class State : unsigned char {
    start,
    member,  // before a key or the end of the object
    key,
    colon,
    value,
    name,
    arguments,
    other,
    after_object
  };

  Found read_start(char c);
  Found read_member(char c, CallSink& sink);
  Found read_key(char c);
  Found read_value(char c, CallSink& sink);
  Found read_name(char c, CallSink& sink);
  Found read_arguments(char c, CallSink& sink);
  Found read_after_object(char c);
  Found open_object();
  Found close_object(CallSink& sink);
  Found broken(char c);
  Found name_known(CallSink& sink);
  void finish_call(bool is_truncated, CallSink& sink) {
    end(is_truncated, sink);
    is_called_ = true;
  }
  bool whole_call(std::string_view arguments, CallSink& sink);

  const std::string_view closer_[1];
  const bool is_bare_;
  State state_ = State::start;
  bool in_list_ = false;
  LiteralMatch closing_;

  // Of the object at hand.
  int nested_ = 0;  // in {"function": {...}}
  bool has_name_ = false, has_arguments_ = false, is_called_ = false;
  std::string key_, name_;
  JsonUnescape unescape_;
  JsonScan scan_;
  ArgumentsScan arguments_;
  std::string early_arguments_;  // that came before the name
};

CallReader::Found JsonCalls::read(char c, CallSink& sink) {
  switch (state_) {
    case State::start:
      return read_start(c);
    case State::member:
      return read_member(c, sink);
    case State::key:
      return read_key(c);
    case State::colon:
      if (is_space(c)) return Found::more;
      state_ = State::value;
      return c == ':' ? Found::more : broken(c);
    case State::value:
      return is_space(c) ? Found::more : read_value(c, sink);
    case State::name:
      return read_name(c, sink);
    case State::arguments:
      return read_arguments(c, sink);
    case State::other: {
      const JsonScan::Found found = scan_.push(c);
      if (found != JsonScan::Found::more) state_ = State::member;
      return found == JsonScan::Found::past ? read_member(c, sink) : Found::more;
    }
    case State::after_object:
      return read_after_object(c);
  }
  return Found::not_a_call;
}

CallReader::Found JsonCalls::read_start(char c) {
  if (is_space(c)) return Found::more;
  if (c == '[' && !in_list_) {
    in_list_ = true;
    return Found::more;
  }
  return c == '{' ? open_object() : Found::not_a_call;
}

CallReader::Found JsonCalls::open_object() {
  nested_ = 0;
  has_name_ = has_arguments_ = is_called_ = false;
  name_.clear();
  early_arguments_.clear();
  state_ = State::member;
  return Found::more;
}

CallReader::Found JsonCalls::read_member(char c, CallSink& sink) {
  if (is_space(c) || c == ',') return Found::more;
  if (c == '}') return close_object(sink);
  if (c != '"') return broken(c);
  key_.clear();
  state_ = State::key;
  return Found::more;
}

CallReader::Found JsonCalls::read_key(char c) {
  if (c != '"') {
    key_ += c;
    return key_.size() <= kMaxNameBytes ? Found::more : broken(c);
  }
  state_ = State::colon;
  const bool is_known = is_name_key(key_) || is_arguments_key(key_) || is_known_key(key_);
  return is_known || !is_bare_ ? Found::more : broken(c);
}

CallReader::Found JsonCalls::read_value(char c, CallSink& sink) {
  if (is_name_key(key_) && c == '"' && !has_name_) {
    unescape_ = {};
    state_ = State::name;
    return Found::more;
  }
  if (key_ == "function" && c == '{' && nested_ == 0) {
    ++nested_;
    state_ = State::member;
    return Found::more;
  }
  if (is_arguments_key(key_) && !has_arguments_) {
    has_arguments_ = true;
    arguments_ = {};
    state_ = State::arguments;
    if (has_name_ && !begin(name_, sink)) return Found::not_a_call;
  } else {
    scan_ = {};
    state_ = State::other;
  }
  return read(c, sink);
}

CallReader::Found JsonCalls::read_name(char c, CallSink& sink) {
  if (unescape_.push(c, name_)) return name_.size() <= kMaxNameBytes ? Found::more : broken(c);
  state_ = State::member;
  has_name_ = !name_.empty();
  if (!has_name_) return broken(c);
  if (!has_arguments_) return Found::more;
  return whole_call(early_arguments_, sink) ? Found::more : Found::not_a_call;
}

bool JsonCalls::whole_call(std::string_view arguments, CallSink& sink) {
  if (!begin(name_, sink)) return false;
  sink.arguments(arguments);
  finish_call(false, sink);
  return true;
}

CallReader::Found JsonCalls::read_arguments(char c, CallSink& sink) {
  std::string text;
  const ArgumentsScan::Found found = arguments_.push(c, text);
  if (in_call())
    sink.arguments(text);
  else
    early_arguments_ += text;
  if (found == ArgumentsScan::Found::more) return Found::more;
  const bool is_broken = found == ArgumentsScan::Found::broken;
  state_ = State::member;
  if (in_call()) {
    finish_call(is_broken, sink);
    if (found != ArgumentsScan::Found::last) held() = c;
  }
  if (is_broken) return broken(c);
  return found == ArgumentsScan::Found::past ? read_member(c, sink) : Found::more;
}

CallReader::Found JsonCalls::close_object(CallSink& sink) {
  if (nested_ > 0) {
    --nested_;
    return Found::more;
  }
  const bool is_call = is_called_ || (has_name_ && !is_bare_ && whole_call("{}", sink));
  if (!is_call) return Found::not_a_call;
  held().clear();
  state_ = State::after_object;
  return Found::more;
}

// No JSON. After the call itself that does not matter: some models forget the last brace.
CallReader::Found JsonCalls::broken(char c) {
  if (!is_called_) return Found::not_a_call;
  state_ = State::after_object;
  return read_after_object(c);
}

CallReader::Found JsonCalls::read_after_object(char c) {
  if (!closing_.has_begun()) {
    if (is_space(c) || c == ',' || c == ';') return Found::more;
    if (c == '{') return open_object();
    if (c == ']' && in_list_) {
      in_list_ = false;
      held().clear();
      return closer_[0].empty() ? Found::done : Found::more;
    }
  }
  const auto found = closing_.push(c, closer_);
  if (found == LiteralMatch::Found::none) return Found::not_a_call;
  return found == LiteralMatch::Found::whole ? Found::done : Found::more;
}

void JsonCalls::finish(CallSink& sink) {
  const bool in_object = state_ != State::start && state_ != State::after_object;
  if (in_call())
    finish_call(true, sink);
  else if (in_object && has_name_ && !is_called_ && !is_bare_ && begin(name_, sink))
    finish_call(true, sink);
  if (is_called_ && (in_object || closing_.has_begun())) held().clear();
}

}  // namespace

std::unique_ptr<CallReader> make_json_calls(std::string_view closer, bool is_bare) {
  return std::make_unique<JsonCalls>(closer, is_bare);
}

}  // namespace millrace
