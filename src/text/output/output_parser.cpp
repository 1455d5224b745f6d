#include "text/output/output_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/output/json_scan.h"

namespace millrace {
namespace {

using Kind = OutputEvent::Kind;

// White space that might precede a call is held back up to here.
constexpr size_t kMaxSpaceBytes = 256;

// Whether the text so far is inside a Markdown code fence.
class CodeFence {
 public:
  void push(char c) {
    if (c == '\n') {
      n_ticks_ = 0;
    } else if (n_ticks_ >= 0) {
      const bool is_indent = c == ' ' && n_ticks_ == 0;
      if (!is_indent) n_ticks_ = c == '`' ? n_ticks_ + 1 : -1;
      if (n_ticks_ == 3) {
        is_open_ = !is_open_;
        n_ticks_ = -1;
      }
    }
  }
  bool is_open() const { return is_open_; }

 private:
  int n_ticks_ = 0;  // at the beginning of this line; -1: something else came
  bool is_open_ = false;
};

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"reasoning", "content", "call_begin",
                                                      "call_arguments", "call_end"};
  return kNames[static_cast<size_t>(kind)];
}

class OutputParser::State final : public CallSink {
 public:
  explicit State(OutputRules rules);

  void push(std::string_view text, std::vector<OutputEvent>& out);
  void push_control(std::string_view token, std::vector<OutputEvent>& out);
  void finish(std::vector<OutputEvent>& out);
  int n_calls() const { return n_calls_; }

  bool begin(std::string_view name) override;
  void arguments(std::string_view json) override;
  void end(bool is_truncated) override;

 private:
  enum class Marker : unsigned char { reasoning_open, reasoning_close, call_open, layout };
  struct Known {
    std::string_view text;
    Marker marker;
  };

  void write_to(std::vector<OutputEvent>& out) {
    out_ = &out;
    n_before_ = out.size();
  }
  void add_marker(std::string_view text, Marker marker);
  bool is_active(Marker marker) const;
  bool may_begin_bare_call(char c) const;

  void take(char c);
  void take_text(char c);
  void take_in_call(char c);
  void take_marker(const Known& known);
  void open_calls(std::string_view opener);
  void leave_calls();
  size_t marker_at_end(std::string_view text) const;

  void text(char c);
  void reasoning_text(char c);
  void content_text(char c);
  void hold_space(char c);
  void give_space();
  void emit(Kind kind, std::string_view text);
  void emit_content(std::string_view text);

  const OutputRules rules_;
  const ReasoningMarkers reasoning_;
  const CallOpeners openers_;
  std::vector<Known> markers_;

  std::vector<OutputEvent>* out_ = nullptr;
  size_t n_before_ = 0;  // events that were in it before
  std::string pending_;  // what might be the beginning of a marker
  std::unique_ptr<CallReader> reader_;
  int n_calls_ = 0;

  bool in_reasoning_ = false;
  bool is_reasoning_cut_ = false;  // by a call: its end may still come
  bool skips_newlines_ = false;    // at the beginning of reasoning, and after it
  size_t n_newlines_ = 0;          // at the end of reasoning so far

  bool at_start_ = true;  // of the content, or of what follows reasoning or a call
  bool after_call_ = false;
  std::string space_;  // white space of content that a call would make layout
  CodeFence fence_;
};

OutputParser::State::State(OutputRules rules)
    : rules_(std::move(rules)),
      reasoning_(markers_of(rules_.format.reasoning)),
      openers_(openers_of(rules_.format.tools)),
      in_reasoning_(rules_.in_reasoning && !reasoning_.open.empty()),
      skips_newlines_(in_reasoning_) {
  add_marker(reasoning_.open, Marker::reasoning_open);
  add_marker(reasoning_.close, Marker::reasoning_close);
  if (!rules_.tools.empty()) {
    add_marker(openers_.first, Marker::call_open);
    add_marker(openers_.second, Marker::call_open);
  }
  if (rules_.format.tools == ToolFormat::cohere) {
    add_marker("<|START_RESPONSE|>", Marker::layout);
    add_marker("<|END_RESPONSE|>", Marker::layout);
  }
}

void OutputParser::State::add_marker(std::string_view text, Marker marker) {
  if (!text.empty()) markers_.push_back({text, marker});
}

// Elsewhere, what spells a marker is text.
bool OutputParser::State::is_active(Marker marker) const {
  switch (marker) {
    case Marker::reasoning_open:
      return !in_reasoning_ && at_start_;
    case Marker::reasoning_close:
      return in_reasoning_ || is_reasoning_cut_;
    case Marker::call_open:
      return true;
    case Marker::layout:
      return !in_reasoning_;
  }
  return false;
}

bool OutputParser::State::may_begin_bare_call(char c) const {
  const bool is_opener = (c == '{' && openers_.bare_object) || (c == '[' && openers_.bare_list);
  return is_opener && at_start_ && !in_reasoning_ && pending_.empty() && !rules_.tools.empty();
}

void OutputParser::State::push(std::string_view text, std::vector<OutputEvent>& out) {
  write_to(out);
  for (const char c : text) take(c);
}

void OutputParser::State::push_control(std::string_view token, std::vector<OutputEvent>& out) {
  write_to(out);
  const auto& of_calls = call_syntax(rules_.format.tools).markers;
  const bool is_known = std::find(of_calls.begin(), of_calls.end(), token) != of_calls.end() ||
                        std::any_of(markers_.begin(), markers_.end(),
                                    [&](const Known& known) { return known.text == token; });
  if (!is_known) return;
  if (reader_ != nullptr && reader_->in_value()) reader_->cut(token, *this);
  for (const char c : token) take(c);
}

void OutputParser::State::take(char c) {
  if (reader_ != nullptr)
    take_in_call(c);
  else
    take_text(c);
}

void OutputParser::State::take_text(char c) {
  if (may_begin_bare_call(c)) {
    open_calls("");
    return take_in_call(c);
  }
  pending_ += c;
  while (!pending_.empty()) {
    bool may_be_marker = false;
    for (const Known& known : markers_) {
      if (!is_active(known.marker) || !known.text.starts_with(pending_)) continue;
      if (known.text.size() == pending_.size()) return take_marker(known);
      may_be_marker = true;
    }
    if (may_be_marker) return;
    const char first = pending_.front();
    pending_.erase(0, 1);
    text(first);
  }
}

void OutputParser::State::take_marker(const Known& known) {
  pending_.clear();
  switch (known.marker) {
    case Marker::reasoning_open:
      space_.clear();
      in_reasoning_ = skips_newlines_ = true;
      return;
    case Marker::reasoning_close:
      n_newlines_ = 0;
      at_start_ |= in_reasoning_;
      if (at_start_) space_.clear();
      skips_newlines_ = at_start_;
      in_reasoning_ = is_reasoning_cut_ = false;
      return;
    case Marker::call_open:
      return open_calls(known.text);
    case Marker::layout:
      return;
  }
}

void OutputParser::State::open_calls(std::string_view opener) {
  reader_ = make_call_reader(rules_.format.tools, opener, rules_.tools);
  reader_->held() = opener;
}

void OutputParser::State::take_in_call(char c) {
  switch (reader_->push(c, *this)) {
    case CallReader::Found::more:
      return;
    case CallReader::Found::done:
      reader_.reset();
      return;
    case CallReader::Found::not_a_call:
      return leave_calls();
    case CallReader::Found::as_json: {
      std::string held = std::move(reader_->held());
      held.pop_back();
      reader_ = make_json_instead(rules_.format.tools);
      reader_->held() = std::move(held);
      return take_in_call(c);
    }
  }
}

// What was held is text, but its end may begin the next marker.
void OutputParser::State::leave_calls() {
  const std::string held = std::move(reader_->held());
  reader_.reset();
  const size_t n = marker_at_end(held);
  for (const char c : held.substr(0, held.size() - n)) text(c);
  for (const char c : held.substr(held.size() - n)) take(c);
}

// How many bytes at the end of `text` could begin a marker.
size_t OutputParser::State::marker_at_end(std::string_view text) const {
  size_t longest = 0;
  for (const Known& known : markers_) {
    size_t n = std::min(known.text.size(), text.size());
    while (n > longest && !text.ends_with(known.text.substr(0, n))) --n;
    longest = std::max(longest, n);
  }
  return longest;
}

void OutputParser::State::text(char c) {
  if (skips_newlines_ && c == '\n') return;
  skips_newlines_ = false;
  if (in_reasoning_)
    reasoning_text(c);
  else if (is_space(c))
    hold_space(c);
  else
    content_text(c);
}

void OutputParser::State::reasoning_text(char c) {
  if (c == '\n') {
    ++n_newlines_;
    return;
  }
  if (n_newlines_ > 0) emit(Kind::reasoning, std::string(std::exchange(n_newlines_, 0), '\n'));
  emit(Kind::reasoning, {&c, 1});
}

void OutputParser::State::content_text(char c) {
  give_space();
  at_start_ = after_call_ = false;
  emit_content({&c, 1});
}

void OutputParser::State::hold_space(char c) {
  const bool has_calls = !rules_.tools.empty();
  const bool may_be_layout = at_start_ ? has_calls || !markers_.empty() : has_calls && c == '\n';
  if (!at_start_ || space_.size() >= kMaxSpaceBytes) give_space();
  if (may_be_layout)
    space_ += c;
  else
    emit_content({&c, 1});
}

void OutputParser::State::give_space() {
  if (!space_.empty()) emit_content(std::exchange(space_, {}));
}

bool OutputParser::State::begin(std::string_view name) {
  const bool is_quoted = in_reasoning_ || fence_.is_open();
  if (!rules_.tools.contains(name) && (is_quoted || !rules_.unknown_names)) return false;
  is_reasoning_cut_ |= in_reasoning_;
  in_reasoning_ = skips_newlines_ = false;
  n_newlines_ = 0;
  space_.clear();
  ++n_calls_;
  emit(Kind::call_begin, name);
  return true;
}

void OutputParser::State::arguments(std::string_view json) {
  if (!json.empty()) emit(Kind::call_arguments, json);
}

void OutputParser::State::end(bool is_truncated) {
  emit(Kind::call_end, {});
  out_->back().is_truncated = is_truncated;
  at_start_ = after_call_ = true;
}

void OutputParser::State::emit_content(std::string_view text) {
  for (const char c : text) fence_.push(c);
  emit(Kind::content, text);
}

// Text that became certain together is one event.
void OutputParser::State::emit(Kind kind, std::string_view text) {
  const bool is_text = kind == Kind::content || kind == Kind::reasoning;
  const bool is_delta = is_text || kind == Kind::call_arguments;
  if (is_delta && out_->size() > n_before_ && out_->back().kind == kind)
    out_->back().text += text;
  else
    out_->push_back({kind, is_text ? -1 : n_calls_ - 1, std::string(text), false});
}

void OutputParser::State::finish(std::vector<OutputEvent>& out) {
  write_to(out);
  if (reader_ != nullptr) {
    reader_->finish(*this);
    const std::string held = std::move(reader_->held());
    reader_.reset();
    for (const char c : held) text(c);
  }
  for (const char c : std::exchange(pending_, {})) text(c);
  if (n_newlines_ > 0) emit(Kind::reasoning, std::string(n_newlines_, '\n'));
  if (!after_call_) give_space();
}

OutputParser::OutputParser(OutputRules rules) : state_(std::make_unique<State>(std::move(rules))) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

void OutputParser::push(std::string_view text, std::vector<OutputEvent>& out) {
  state_->push(text, out);
}

void OutputParser::push_control(std::string_view token, std::vector<OutputEvent>& out) {
  state_->push_control(token, out);
}

void OutputParser::finish(std::vector<OutputEvent>& out) {
  state_->finish(out);
}

int OutputParser::n_calls() const {
  return state_->n_calls();
}

}  // namespace millrace
