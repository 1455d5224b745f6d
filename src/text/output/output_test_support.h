// For tests of parsers: what a text becomes, as one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/output/output_parser.h"

namespace millrace {

// Reasoning as R[...], content as C[...], a call as name(arguments), or name(arguments~ where it is
// truncated; neighbours of a kind are joined.
inline std::string joined(const std::vector<OutputEvent>& events) {
  using Kind = OutputEvent::Kind;
  std::string out;
  for (size_t i = 0; i < events.size(); ++i) {
    const OutputEvent& event = events[i];
    const bool is_first = i == 0 || events[i - 1].kind != event.kind;
    const bool is_last = i + 1 == events.size() || events[i + 1].kind != event.kind;
    const bool is_text = event.kind == Kind::reasoning || event.kind == Kind::content;
    if (is_text && is_first) out += event.kind == Kind::reasoning ? "R[" : "C[";
    out += event.text;
    if (is_text && is_last) out += "]";
    if (event.kind == Kind::call_begin) out += "(";
    if (event.kind == Kind::call_end) out += event.is_truncated ? "~" : ")";
  }
  return out;
}

// In pieces that end where `cuts` say.
inline std::vector<OutputEvent> parsed(const OutputRules& rules, std::string_view text,
                                       const std::vector<size_t>& cuts = {}) {
  OutputParser parser(rules);
  std::vector<OutputEvent> events;
  size_t from = 0;
  for (const size_t to : cuts) {
    parser.push(text.substr(from, to - from), events);
    from = to;
  }
  parser.push(text.substr(from), events);
  parser.finish(events);
  return events;
}

}  // namespace millrace
