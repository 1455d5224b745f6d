#include "cli/chat_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "base/json_text.h"
#include "base/utf8.h"
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

// What /set knows. Values go through a double, which holds every seed a person types.
struct Setting {
  std::string_view name;
  double (*get)(const Generation& how);
  void (*set)(Generation& how, double value);
  bool whole;
  double low, high;
};

template <auto kMember>
constexpr Setting sampling_setting(std::string_view name, bool whole, double low, double high) {
  return {name,
          [](const Generation& how) { return static_cast<double>(how.sampling.*kMember); },
          [](Generation& how, double value) {
            how.sampling.*kMember =
                static_cast<std::remove_reference_t<decltype(how.sampling.*kMember)>>(value);
          },
          whole,
          low,
          high};
}

constexpr Setting kSettings[] = {
    sampling_setting<&Sampling::temperature>("temperature", false, 0, 100),
    sampling_setting<&Sampling::top_k>("top_k", true, 0, 1e6),
    sampling_setting<&Sampling::top_p>("top_p", false, 0, 1),
    sampling_setting<&Sampling::min_p>("min_p", false, 0, 1),
    sampling_setting<&Sampling::repeat_penalty>("repeat_penalty", false, 0.01, 100),
    sampling_setting<&Sampling::seed>("seed", true, 0, 9e15),
    {"max_tokens", [](const Generation& how) { return static_cast<double>(how.max_tokens); },
     [](Generation& how, double value) { how.max_tokens = static_cast<int64_t>(value); }, true, -1,
     1e9},
};

// As a person wrote it: a float's own digits, not those of the double it became.
std::string value_text(const Setting& setting, const Generation& how) {
  const double value = setting.get(how);
  return setting.whole ? fmt::format("{:.0f}", value)
                       : fmt::format("{}", static_cast<float>(value));
}

bool is_message(const Json& json) {
  return json.is_object() && json.contains("role") && json["role"].is_string();
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    const bool control =
        (c.code < 0x20 && c.code != '\n' && c.code != '\t') || (c.code >= 0x7F && c.code < 0xA0);
    if (c.valid() && !control) out.append(text.substr(at, c.bytes));
    at += c.bytes;
  }
  return out;
}

void Chat::set_system(std::string_view text) {
  const bool has = !messages_.empty() && messages_[0]["role"] == "system";
  if (has) messages_.erase(messages_.begin());
  if (text.empty()) return;
  messages_.insert(messages_.begin(), Json{{"role", "system"}, {"content", text}});
}

void Chat::show(std::string_view text) const {
  const std::string shown = screen_.is_terminal ? without_controls(text) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), screen_.out);
  std::fflush(screen_.out);
}

// What was said of an answer that was stopped stays part of the conversation; a question whose
// answer failed does not.
Status Chat::answer(const std::string& text) {
  messages_.push_back(Json{{"role", "user"}, {"content", text}});
  interrupted_.store(false);
  std::string said;
  const auto on_text = [&](std::string_view part) {
    said += part;
    show(part);
  };
  auto stats = backend_.answer(messages_, how_, on_text, interrupted_);
  if (!said.empty() && !said.ends_with('\n')) show("\n");
  if (!stats.ok()) {
    messages_.erase(messages_.size() - 1);
    return stats.status();
  }
  last_ = *stats;
  messages_.push_back(Json{{"role", "assistant"}, {"content", said}});
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
      if (line.kind == Line::Kind::interrupted) return line;
      if (line.kind == Line::Kind::end) return {Line::Kind::text, text};
      text += (text.empty() ? "" : "\n") + line.text;
    }
    text.resize(text.size() - kQuotes.size());
    return {Line::Kind::text, text};
  }
  while (text.ends_with('\\')) {
    text.back() = '\n';
    line = lines.read(". ");
    if (line.kind == Line::Kind::interrupted) return line;
    if (line.kind == Line::Kind::end) break;
    text += line.text;
  }
  return {Line::Kind::text, text};
}

int Chat::talk(LineSource& lines) {
  bool interrupted_before = false;
  while (true) {
    const Line line = read_message(lines);
    if (line.kind == Line::Kind::end) return 0;
    if (line.kind == Line::Kind::interrupted) {
      if (interrupted_before) return 0;
      interrupted_before = true;
      note("Ctrl-C again, Ctrl-D or /exit to leave");
      continue;
    }
    interrupted_before = false;
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
    const bool has_system = !messages_.empty() && messages_[0]["role"] == "system";
    const Json first = has_system ? messages_[0] : Json();
    messages_ = has_system ? Json::array({first}) : Json::array();
    note("the conversation begins anew{}", has_system ? ", the system message stays" : "");
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
    note("there is no /{}; /help lists what there is", printable(name, 40));
  }
  return Next::go_on;
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
    double value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = fault == std::errc() && end == text.data() + text.size() &&
                      value >= setting.low && value <= setting.high &&
                      (!setting.whole || value == std::floor(value));
    if (!fits)
      return note("{} is a{} number from {} to {}", setting.name, setting.whole ? " whole" : "",
                  setting.low, setting.high);
    setting.set(how_, value);
    return note("{} {}", setting.name, value_text(setting, how_));
  }
  if (!name.empty()) note("there is no setting '{}'; /set lists them", printable(name, 40));
}

void Chat::save(std::string_view path) const {
  if (path.empty()) return note("/save FILE");
  std::ofstream file{std::string(path)};
  file << json_text(messages_, 2) << '\n';
  file.close();
  if (!file)
    note("cannot write {}", printable(path));
  else
    note("{} messages in {}", messages_.size(), printable(path));
}

void Chat::load(std::string_view path) {
  if (path.empty()) return note("/load FILE");
  const auto text = read_text_file(std::string(path), kMaxFileBytes);
  if (!text.ok()) return note("{}", text.status().message());
  auto json = jinja::parse_ordered_json(text.value());
  const bool fits = json && json->is_array() && std::all_of(json->begin(), json->end(), is_message);
  if (!fits) return note("{} holds no list of messages, as /save writes it", printable(path));
  messages_ = std::move(*json);
  note("{} messages from {}", messages_.size(), printable(path));
}

void Chat::print_help() const {
  note(
      "/help               this\n"
      "/reset              begin anew\n"
      "/system TEXT        what the model is told first; without TEXT, nothing\n"
      "/set [NAME [VALUE]] {}\n"
      "/save FILE          keep the conversation\n"
      "/load FILE          take one up again\n"
      "/stats              tokens and speed of the last answer\n"
      "/exit               leave, as Ctrl-D does\n"
      "A line that ends with \\ goes on in the next; \"\"\" begins and ends a text of several "
      "lines.\n"
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
                       : std::string("no time at all");
  };
  note("prompt: {} tokens, {} of them known already, {:.2f} s, {}", last_.n_prompt, last_.n_cached,
       last_.prompt_s, speed(last_.n_prompt - last_.n_cached, last_.prompt_s));
  note("answer: {} tokens, {:.2f} s, {}", last_.n_tokens, last_.tokens_s,
       speed(last_.n_tokens, last_.tokens_s));
}

}  // namespace millrace::cli
