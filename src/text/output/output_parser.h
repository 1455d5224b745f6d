// What a model writes, taken apart as it comes: reasoning, content and tool calls. It takes the
// text and the control tokens of TokenEvent (engine/request.h); ids of calls are the caller's.
// - The joined events do not depend on how the text was cut. Text that might begin a marker is
//   withheld until that is certain, and no longer.
// - What looked like a call and is none is content, markers included. Of the layout around markers
//   these bytes are dropped: newlines at both ends of reasoning and after it, white space that is
//   all there is before, between or after calls, and one newline between content and a call.
// - Arguments are passed on as the model wrote them, cut where it was cut; those of formats with
//   tags become a JSON object, typed by the tool's schema.
// - Where a call is more likely quoted than meant, inside reasoning or a code fence, it has to name
//   a tool of the request. A call ends the reasoning it stands in.
// Time is linear in the text, and what is held is bounded (CallReader::kMaxHeldBytes).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/output/call_reader.h"
#include "text/output/format.h"
#include "text/output/tool_set.h"

namespace millrace {

struct OutputEvent {
  enum class Kind : unsigned char { reasoning, content, call_begin, call_arguments, call_end };
  Kind kind = Kind::content;
  int call = -1;              // its index, from 0 on
  std::string text;           // of call_begin: the name; of call_end: none
  bool is_truncated = false;  // of call_end: the text ended, or broke off, inside the call
};
std::string_view name_of(OutputEvent::Kind kind);

struct OutputRules {
  OutputFormat format;
  ToolSet tools;              // without any, calls are content
  bool in_reasoning = false;  // the prompt ended inside reasoning: opens_reasoning()
  bool unknown_names = true;  // a call of a tool that the request does not have is one
};

class OutputParser {
 public:
  explicit OutputParser(OutputRules rules);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  // Each appends what became certain to `out`.
  void push(std::string_view text, std::vector<OutputEvent>& out);
  // A control token by its text. One that is no marker of the format is left out.
  void push_control(std::string_view token, std::vector<OutputEvent>& out);
  // The end: what was withheld. Nothing may be pushed after it.
  void finish(std::vector<OutputEvent>& out);

  int n_calls() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
