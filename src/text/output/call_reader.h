// Reads one run of tool calls, from after the marker that opens it. Nothing is given away before it
// is certain that there is a call; until then, and between calls, the bytes are held, so that what
// turns out to be no call can become text again.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/output/format.h"
#include "text/output/tool_set.h"

namespace millrace {

class CallSink {
 public:
  virtual ~CallSink() = default;
  // False: a call of that name is none here.
  virtual bool begin(std::string_view name) = 0;
  virtual void arguments(std::string_view json) = 0;
  virtual void end(bool is_truncated) = 0;
};

class CallReader {
 public:
  enum class Found : unsigned char {
    more,
    done,        // with the marker that closes the calls
    not_a_call,  // held() is text; its last bytes may begin another marker
    as_json,     // the calls are spelled as JSON after all: another reader has to take this byte
  };
  virtual ~CallReader() = default;
  Found push(char c, CallSink& sink);
  // The text ends here. What of it is no call is left in held().
  virtual void finish(CallSink& sink) = 0;
  // Inside arguments, where text that looks like a marker is none.
  virtual bool in_value() const = 0;
  // A control token of the format came in the middle of the arguments: they end here, unless it is
  // what ends a part of them. Its text is pushed after this.
  virtual void cut(std::string_view token, CallSink& sink) = 0;

  std::string& held() { return held_; }

  // Longer headers are text: this bounds what is withheld when a model writes the name last.
  static constexpr size_t kMaxHeldBytes = size_t{1} << 16;
  static constexpr size_t kMaxNameBytes = 256;

 protected:
  virtual Found read(char c, CallSink& sink) = 0;
  bool begin(std::string_view name, CallSink& sink);
  void end(bool is_truncated, CallSink& sink);
  bool in_call() const { return in_call_; }

 private:
  std::string held_;
  bool in_call_ = false;
};

// One of some literals, byte by byte.
class LiteralMatch {
 public:
  enum class Found : unsigned char { more, whole, none };
  // Empty literals are never matched.
  template <class Literals>
  Found push(char c, const Literals& literals) {
    text_ += c;
    for (const std::string_view literal : literals) {
      if (literal == text_) {
        text_.clear();
        matched_ = literal;
        return Found::whole;
      }
    }
    for (const std::string_view literal : literals)
      if (literal.starts_with(text_)) return Found::more;
    return Found::none;
  }
  std::string_view matched() const { return matched_; }
  const std::string& text() const { return text_; }
  bool has_begun() const { return !text_.empty(); }
  void clear() { text_.clear(); }

 private:
  std::string text_;
  std::string_view matched_;
};

// What opens calls of a format in the middle of text. Empty for formats that have no such marker.
struct CallOpeners {
  std::string_view first = {}, second = {};
  bool bare_object = false, bare_list = false;  // or JSON, where an answer begins with it
};
CallOpeners openers_of(ToolFormat format);

// A reader of what follows `opener`, one of the above; "" for bare JSON. The tools outlive it.
std::unique_ptr<CallReader> make_call_reader(ToolFormat format, std::string_view opener,
                                             const ToolSet& tools);
std::unique_ptr<CallReader> make_json_calls(std::string_view closer, bool is_bare);
std::unique_ptr<CallReader> make_named_calls(ToolFormat format, std::string_view opener);
std::unique_ptr<CallReader> make_tag_calls(ToolFormat format, std::string_view opener,
                                           const ToolSet& tools);
// For Found::as_json.
std::unique_ptr<CallReader> make_json_instead(ToolFormat format);

}  // namespace millrace
