#include "cli/chat_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <type_traits>
#include <variant>

#include "base/json_text.h"
#include "base/utf8.h"
#include "cli/chat_turns.h"
#include "files/json.h"
#include "text/template/json.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 64 << 20;
constexpr std::string_view kQuotes = "\"\"\"";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// What /set knows. Each is read and shown in its own type: a seed has all its 64 bits.
using Field = std::variant<float*, int*, int64_t*, uint64_t*>;
struct Setting {
  std::string_view name;
  Field (*of)(Generation& how);
  double low, high;
};

constexpr double kAnySeed = 0x1p64;
constexpr Setting kSettings[] = {
    {"temperature", [](Generation& how) -> Field { return &how.sampling.temperature; }, 0, 100},
    {"top_k", [](Generation& how) -> Field { return &how.sampling.top_k; }, 0, 1e6},
    {"top_p", [](Generation& how) -> Field { return &how.sampling.top_p; }, 0, 1},
    {"min_p", [](Generation& how) -> Field { return &how.sampling.min_p; }, 0, 1},
    {"repeat_penalty", [](Generation& how) -> Field { return &how.sampling.repeat_penalty; }, 0.01,
     100},
    {"seed", [](Generation& how) -> Field { return &how.sampling.seed; }, 0, kAnySeed},
    {"max_tokens", [](Generation& how) -> Field { return &how.max_tokens; }, -1, 1e9},
};

std::string value_text(const Setting& setting, Generation how) {
  return std::visit([](const auto* value) { return fmt::format("{}", *value); }, setting.of(how));
}

bool read_value(const Setting& setting, std::string_view text, Generation& how) {
  return std::visit(
      [&](auto* field) {
        auto value = *field;
        const char* end = text.data() + text.size();
        const auto [read, fault] = std::from_chars(text.data(), end, value);
        const auto number = static_cast<double>(value);
        const bool fits =
            fault == std::errc() && read == end && number >= setting.low && number <= setting.high;
        if (fits) *field = value;
        return fits;
      },
      setting.of(how));
}

// "a whole number from 0 to 1000000"
std::string values_text(const Setting& setting, Generation how) {
  return std::visit(
      [&]<typename T>(const T*) {
        if constexpr (std::is_floating_point_v<T>)
          return fmt::format("a number from {} to {}", setting.low, setting.high);
        else
          return fmt::format("a whole number from {} to {}", static_cast<T>(setting.low),
                             setting.high == kAnySeed ? std::numeric_limits<T>::max()
                                                      : static_cast<T>(setting.high));
      },
      setting.of(how));
}

bool is_message(const Json& json) {
  return json.is_object() && json.contains("role") && json["role"].is_string();
}

}  // namespace

void Chat::set_system(std::string_view text) {
  const bool has = !messages_.empty() && messages_[0]["role"] == "system";
  if (has) messages_.erase(messages_.begin());
  if (text.empty()) return;
  messages_.insert(messages_.begin(), Json{{"role", "system"}, {"content", text}});
}

std::string Chat::what_helps() const {
  if (!talks_) return "-c N sets a larger one";
  return fmt::format(
      "/reset starts a new conversation, {}and -c N on the command line sets a "
      "larger context",
      drops_oldest_ ? "" : "/drop makes room by dropping the oldest turns, ");
}

void Chat::note_cut_answer() const {
  const std::string helps =
      drops_oldest_ ? "the next message drops the oldest turns" : what_helps();
  note("{}the context of {} tokens is full, so the answer is cut off: {}",
       talks_ ? "" : "millrace: ", backend_.n_ctx(), helps);
}

// By bisection: a long conversation takes long to render.
Status Chat::drop_turns(std::vector<int32_t>& prompt, int64_t most_tokens) {
  int low = 1, high = n_old_turns(messages_);
  if (high < 1) return {};
  while (low < high) {
    const int middle = (low + high) / 2;
    MILLRACE_ASSIGN(prompt, backend_.prompt(without_oldest(messages_, middle), interrupted_));
    if (static_cast<int64_t>(prompt.size()) <= most_tokens)
      high = middle;
    else
      low = middle + 1;
  }
  messages_ = without_oldest(messages_, low);
  note("(dropped the {} to stay inside the context of {} tokens)",
       low == 1 ? "oldest turn" : fmt::format("{} oldest turns", low), backend_.n_ctx());
  MILLRACE_ASSIGN(prompt, backend_.prompt(messages_, interrupted_));
  return {};
}

Result<std::vector<int32_t>> Chat::fitting_prompt() {
  MILLRACE_ASSIGN(std::vector<int32_t> prompt, backend_.prompt(messages_, interrupted_));
  const int64_t n_ctx = backend_.n_ctx();
  // A quarter for the answer: turns are dropped rarely, since all after them is computed again.
  const int64_t room = how_.max_tokens >= 0 ? std::min(how_.max_tokens, n_ctx / 2) : n_ctx / 4;
  if (drops_oldest_ && static_cast<int64_t>(prompt.size()) + room > n_ctx)
    MILLRACE_TRY(drop_turns(prompt, n_ctx - room));
  if (static_cast<int64_t>(prompt.size()) < n_ctx) return prompt;
  return error(Code::invalid_argument,
               "the context of {} tokens is full: {} has {} tokens, and an answer needs some too; "
               "{}",
               n_ctx, n_old_turns(messages_) > 0 ? "the conversation" : "the message",
               prompt.size(), what_helps());
}

// What was said of an answer that was stopped stays part of the conversation; a question whose
// answer failed does not.
Status Chat::answer(const std::string& text) {
  messages_.push_back(Json{{"role", "user"}, {"content", text}});
  interrupted_.store(false);
  auto prompt = fitting_prompt();
  std::string said;
  const auto on_text = [&](std::string_view part) {
    said += part;
    out_.put(part);
  };
  auto stats = prompt.ok() ? backend_.answer(*std::move(prompt), how_, on_text, interrupted_)
                           : Result<Generated>(prompt.status());
  out_.flush();
  if (!said.empty() && !said.ends_with('\n')) out_.put("\n");
  if (!stats.ok()) {
    messages_.erase(messages_.size() - 1);
    return stats.status();
  }
  last_ = *stats;
  messages_.push_back(Json{{"role", "assistant"}, {"content", said}});
  if (last_.finish == Finish::length && last_.n_prompt + last_.n_tokens >= backend_.n_ctx())
    note_cut_answer();
  return {};
}

int Chat::answer_once(const std::string& text) {
  if (trimmed(text).empty()) return 0;
  const Status status = answer(text);
  if (!status.ok()) {
    note("millrace: {}", status.message());
    return 1;
  }
  return interrupted_.load() ? 130 : 0;
}

Line Chat::read_message(LineSource& lines) {
  Line line = lines.read("> ");
  if (line.kind != Line::Kind::text) return line;
  std::string text = line.text;
  if (trimmed(text).starts_with(kQuotes)) {
    text = std::string(trimmed(text).substr(kQuotes.size()));
    while (!text.ends_with(kQuotes)) {
      line = lines.read(". ");
      if (line.kind == Line::Kind::interrupted) return {line.kind, std::string(kQuotes), true};
      if (line.kind == Line::Kind::end) return {Line::Kind::text, text};
      text += (text.empty() ? "" : "\n") + line.text;
    }
    text.resize(text.size() - kQuotes.size());
    return {Line::Kind::text, text};
  }
  while (text.ends_with('\\')) {
    text.back() = '\n';
    line = lines.read(". ");
    if (line.kind == Line::Kind::interrupted) return {line.kind, text, true};
    if (line.kind == Line::Kind::end) break;
    text += line.text;
  }
  return {Line::Kind::text, text};
}

int Chat::talk(LineSource& lines) {
  talks_ = true;
  bool leaves_next = false;  // armed by a Ctrl-C on an empty line
  while (true) {
    const Line line = read_message(lines);
    if (line.kind == Line::Kind::end) return 0;
    if (line.kind == Line::Kind::interrupted) {
      if (!line.was_typed && leaves_next) return 0;
      leaves_next = line.text.empty();
      if (leaves_next) note("press Ctrl-C again to quit, or Ctrl-D, or type /exit");
      continue;
    }
    leaves_next = false;
    const std::string_view text = trimmed(line.text);
    if (text.empty()) continue;
    if (text.starts_with('/') && text.find('\n') == std::string_view::npos) {
      if (obey(text) == Next::leave) return 0;
      continue;
    }
    const Status status = answer(line.text);
    if (!status.ok()) note("millrace: {}", status.message());
    if (interrupted_.exchange(false)) note("(stopped)");
  }
}

Chat::Next Chat::obey(std::string_view command) {
  const size_t space = std::min(command.find(' '), command.size());
  const std::string_view name = command.substr(1, space - 1);
  const std::string_view rest = trimmed(command.substr(space));
  if (name == "exit" || name == "quit") return Next::leave;
  if (name == "help") {
    print_help();
  } else if (name == "reset") {
    reset();
  } else if (name == "drop") {
    set_drop(rest);
  } else if (name == "system") {
    set_system(rest);
    note("{}", rest.empty() ? "no system message" : "system message set");
  } else if (name == "set") {
    set(rest);
  } else if (name == "save") {
    save(rest);
  } else if (name == "load") {
    load(rest);
  } else if (name == "stats") {
    print_stats();
  } else {
    note("no command /{}; /help lists the commands", printable(name, 40));
  }
  return Next::go_on;
}

void Chat::reset() {
  const bool has_system = !messages_.empty() && messages_[0]["role"] == "system";
  const Json first = has_system ? messages_[0] : Json();
  messages_ = has_system ? Json::array({first}) : Json::array();
  note("new conversation{}", has_system ? "; the system message stays" : "");
}

void Chat::set_drop(std::string_view argument) {
  if (!argument.empty() && argument != "on" && argument != "off")
    return note("usage: /drop [on|off]");
  drops_oldest_ = argument != "off";
  note("{}", drops_oldest_ ? "the oldest turns are dropped when the context is full"
                           : "no turns are dropped when the context is full");
}

void Chat::set(std::string_view arguments) {
  const size_t space = std::min(arguments.find(' '), arguments.size());
  const std::string_view name = arguments.substr(0, space);
  const std::string_view text = trimmed(arguments.substr(space));
  for (const Setting& setting : kSettings) {
    if (!name.empty() && setting.name != name) continue;
    if (text.empty()) {
      note("{} {}", setting.name, value_text(setting, how_));
      if (name.empty()) continue;
      return;
    }
    if (!read_value(setting, text, how_))
      return note("{} takes {}", setting.name, values_text(setting, how_));
    return note("{} {}", setting.name, value_text(setting, how_));
  }
  if (!name.empty()) note("no setting '{}'; /set lists the settings", printable(name, 40));
}

void Chat::save(std::string_view path) const {
  if (path.empty()) return note("usage: /save FILE");
  std::ofstream file{std::string(path)};
  file << json_text(messages_, 2) << '\n';
  file.close();
  if (!file)
    note("cannot write {}", printable(path));
  else
    note("saved {} messages to {}", messages_.size(), printable(path));
}

void Chat::load(std::string_view path) {
  if (path.empty()) return note("usage: /load FILE");
  const auto text = read_text_file(std::string(path), kMaxFileBytes);
  if (!text.ok()) return note("{}", text.status().message());
  auto json = jinja::parse_ordered_json(text.value());
  const bool fits = json && json->is_array() && std::all_of(json->begin(), json->end(), is_message);
  if (!fits) return note("{} is not a conversation saved by /save", printable(path));
  messages_ = std::move(*json);
  note("loaded {} messages from {}", messages_.size(), printable(path));
}

void Chat::print_help() const {
  note(
      "/help               show this list\n"
      "/reset              start a new conversation\n"
      "/drop [on|off]      drop the oldest turns when the context is full\n"
      "/system [TEXT]      set the system message; without TEXT, remove it\n"
      "/set [NAME [VALUE]] show or change a setting: {}\n"
      "/save FILE          save the conversation\n"
      "/load FILE          load a saved conversation\n"
      "/stats              show tokens and speed of the last answer\n"
      "/exit               quit, like Ctrl-D\n"
      "A line that ends with \\ continues on the next line; \"\"\" starts and ends a message of "
      "several lines.\n"
      "Ctrl-C stops an answer.",
      [] {
        std::string names;
        for (const Setting& setting : kSettings)
          names += (names.empty() ? "" : ", ") + std::string(setting.name);
        return names;
      }());
}

void Chat::print_stats() const {
  const auto speed = [](int64_t tokens, double seconds) {
    return seconds > 0 ? fmt::format("{:.1f} tokens/s", static_cast<double>(tokens) / seconds)
                       : std::string("too fast to measure");
  };
  note("prompt: {} tokens, {} of them cached, {:.2f} s, {}", last_.n_prompt, last_.n_cached,
       last_.prompt_s, speed(last_.n_prompt - last_.n_cached, last_.prompt_s));
  note("answer: {} tokens, {:.2f} s, {}", last_.n_tokens, last_.tokens_s,
       speed(last_.n_tokens, last_.tokens_s));
}

}  // namespace millrace::cli
