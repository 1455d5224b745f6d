// A conversation at a terminal or through a pipe: what is typed, the commands that begin with a
// slash, Ctrl-C, and answers printed as they come. It knows no model: a ChatBackend answers.
#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/line_editor.h"
#include "cli/terminal_text.h"
#include "engine/request.h"

namespace millrace::cli {

class ChatBackend {
 public:
  virtual ~ChatBackend() = default;
  // Tokens that a prompt and its answer have together at most.
  virtual int64_t n_ctx() const = 0;
  // The tokens that the model sees of a conversation; Code::cancelled once `stop` is set.
  virtual Result<std::vector<int32_t>> prompt(const nlohmann::ordered_json& messages,
                                              const std::atomic<bool>& stop) = 0;
  // Answers a prompt. `on_text` gets valid UTF-8 as it comes; once `stop` is set the answer ends
  // where it is, which is no error.
  virtual Result<Generated> answer(std::vector<int32_t> prompt, const Generation& how,
                                   const std::function<void(std::string_view)>& on_text,
                                   const std::atomic<bool>& stop) = 0;
};

class Chat {
 public:
  struct Screen {
    std::FILE* out = stdout;
    std::FILE* notes = stderr;
    bool is_terminal = false;  // `out` is one: answers are filtered and wrapped
    int columns = 0;           // of the terminal; 0: it is asked
  };
  // `interrupted` is set by Ctrl-C while an answer comes, and cleared here.
  Chat(ChatBackend& backend, std::atomic<bool>& interrupted, Screen screen)
      : backend_(backend),
        interrupted_(interrupted),
        screen_(screen),
        out_(screen.out, {screen.is_terminal, screen.is_terminal, screen.columns}) {}

  Generation& how() { return how_; }
  // Whether the oldest turns make room when the context is full; else a full context is an error.
  void drop_oldest(bool drops) { drops_oldest_ = drops; }
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
  void reset();
  void set_drop(std::string_view argument);
  void set(std::string_view arguments);
  void save(std::string_view path) const;
  void load(std::string_view path);
  void print_help() const;
  void print_stats() const;
  Status answer(const std::string& text);
  // The prompt of the conversation, its oldest turns dropped where they must and may be.
  Result<std::vector<int32_t>> fitting_prompt();
  Status drop_turns(std::vector<int32_t>& prompt, int64_t most_tokens);
  void note_cut_answer() const;
  std::string what_helps() const;  // against a full context
  template <class... A>
  void note(fmt::format_string<A...> format, A&&... args) const {
    fmt::print(screen_.notes, format, std::forward<A>(args)...);
    std::fputc('\n', screen_.notes);
  }

  ChatBackend& backend_;
  std::atomic<bool>& interrupted_;
  Screen screen_;
  TextOutput out_;
  Generation how_;
  Generated last_;
  bool drops_oldest_ = false;
  bool talks_ = false;  // commands can be typed
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

}  // namespace millrace::cli
