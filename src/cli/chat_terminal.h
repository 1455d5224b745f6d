// A conversation at a terminal or through a pipe: what is typed, the commands that begin with a
// slash, Ctrl-C, and answers printed as they come. It knows no model: a ChatBackend answers.
#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/line_editor.h"
#include "engine/generate.h"

namespace millrace::cli {

class ChatBackend {
 public:
  virtual ~ChatBackend() = default;
  // Answers the conversation. `on_text` gets valid UTF-8 as it comes; once `stop` is set the answer
  // ends where it is, which is no error.
  virtual Result<Generated> answer(const nlohmann::ordered_json& messages, const Generation& how,
                                   const std::function<void(std::string_view)>& on_text,
                                   const std::atomic<bool>& stop) = 0;
};

class Chat {
 public:
  struct Screen {
    std::FILE* out = stdout;
    std::FILE* notes = stderr;
    bool is_terminal = false;  // `out` is one: answers are shown without control characters
  };
  // `interrupted` is set by Ctrl-C while an answer comes, and cleared here.
  Chat(ChatBackend& backend, std::atomic<bool>& interrupted, Screen screen)
      : backend_(backend), interrupted_(interrupted), screen_(screen) {}

  Generation& how() { return how_; }
  void set_system(std::string_view text);
  const nlohmann::ordered_json& messages() const { return messages_; }

  // Reads, answers and reads again, until Ctrl-D, /exit, or Ctrl-C twice. The exit code.
  int talk(LineSource& lines);
  // One message, one answer. The exit code.
  int answer_once(const std::string& text);

 private:
  enum class Next : unsigned char { go_on, leave };
  // The lines of one message: more follow a backslash at the end, or stand between """ marks.
  Line read_message(LineSource& lines);
  Next obey(std::string_view command);
  void set(std::string_view arguments);
  void save(std::string_view path) const;
  void load(std::string_view path);
  void print_help() const;
  void print_stats() const;
  Status answer(const std::string& text);
  void show(std::string_view text) const;
  template <class... A>
  void note(fmt::format_string<A...> format, A&&... args) const {
    fmt::print(screen_.notes, format, std::forward<A>(args)...);
    std::fputc('\n', screen_.notes);
  }

  ChatBackend& backend_;
  std::atomic<bool>& interrupted_;
  Screen screen_;
  Generation how_;
  Generated last_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

// `text` without what could move a terminal's cursor or change its state; newlines and tabs stay.
std::string without_controls(std::string_view text);

}  // namespace millrace::cli
