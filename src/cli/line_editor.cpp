#include "cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <string_view>

#include "base/utf8.h"
#include "cli/terminal_text.h"

namespace millrace::cli {
namespace {

constexpr int kHistoryLines = 2000;
constexpr wchar_t kCtrlC = 3;
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

// What was typed while nobody read. A Ctrl-D among it is no part of a line: a terminal that edits
// lines itself keeps it as a zero byte.
std::string typed_ahead() {
  std::string bytes;
  pollfd in{STDIN_FILENO, POLLIN, 0};
  char block[4096];
  while (poll(&in, 1, 0) == 1 && (in.revents & POLLIN) != 0) {
    const ssize_t n = ::read(STDIN_FILENO, block, sizeof block);
    if (n <= 0) break;
    bytes.append(block, static_cast<size_t>(n));
  }
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Char c = decode_utf8(bytes, at);
    if (c.valid() && c.code != '\0' && c.code != '\x04') text.append(bytes, at, c.bytes);
    at += c.bytes;
  }
  return text;
}

}  // namespace

struct LineEditor::Libedit {
  EditLine* edit = nullptr;
  History* history = nullptr;
  std::FILE* screen = stdout;
  std::string prompt, history_file;
  bool interrupted = false, was_typed = false;
  std::string left;  // what stood in the line when it was interrupted

  static Libedit& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<Libedit*>(self);
  }
  static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }
  static unsigned char interrupt(EditLine* edit, int) {
    const LineInfo* line = el_line(edit);
    of(edit).interrupted = true;
    of(edit).left.assign(line->buffer, line->lastchar);
    return CC_EOF;
  }
  static int read_key(EditLine* edit, wchar_t* key);
  static unsigned char paste(EditLine* edit, int);
  void set_up();
  void set_up_history();
  void remember(const std::string& text);
  // Asks the terminal to mark what is pasted, or no longer to.
  void mark_pastes(bool on) const {
    std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", screen);
    std::fflush(screen);
  }
};

// As libedit reads them, and notes that there were any.
int LineEditor::Libedit::read_key(EditLine* edit, wchar_t* key) {
  std::mbstate_t state{};
  while (true) {
    char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n <= 0) return static_cast<int>(n);
    const size_t used = std::mbrtowc(key, &byte, 1, &state);
    if (used == static_cast<size_t>(-2)) continue;                      // a part of a character
    if (used == static_cast<size_t>(-1)) state = {}, *key = L'\xfffd';  // not UTF-8
    of(edit).was_typed |= *key != kCtrlC;
    return 1;
  }
}

// What a terminal sends between its marks of a paste goes into the line as it is, newlines too.
unsigned char LineEditor::Libedit::paste(EditLine* edit, int) {
  std::wstring text;
  wchar_t c = 0;
  while (!text.ends_with(kPasteEnd) && el_wgetc(edit, &c) == 1)
    if (c != L'\0') text += c == L'\r' ? L'\n' : c;
  if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
  if (!text.empty() && el_winsertstr(edit, text.c_str()) != 0) return CC_ERROR;
  return CC_REFRESH;
}

void LineEditor::Libedit::set_up() {
  use_utf8_locale();
  screen = isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
  edit = el_init("millrace", stdin, screen, stderr);
  if (edit == nullptr) return;
  el_set(edit, EL_CLIENTDATA, this);
  el_set(edit, EL_PROMPT, show_prompt);
  el_set(edit, EL_EDITOR, "emacs");
  el_set(edit, EL_GETCFN, read_key);
  el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
  el_set(edit, EL_ADDFN, "millrace-interrupt", "Leave the line", interrupt);
  el_set(edit, EL_ADDFN, "millrace-paste", "Take what is pasted as it is", paste);
  el_set(edit, EL_BIND, "^C", "millrace-interrupt", nullptr);
  el_set(edit, EL_BIND, "\\e[200~", "millrace-paste", nullptr);
  el_set(edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  set_up_history();
}

void LineEditor::Libedit::set_up_history() {
  history = history_init();
  if (history == nullptr) return;
  HistEvent event;
  ::history(history, &event, H_SETSIZE, kHistoryLines);
  ::history(history, &event, H_SETUNIQUE, 1);
  if (!history_file.empty()) ::history(history, &event, H_LOAD, history_file.c_str());
  el_set(edit, EL_HIST, ::history, history);
}

void LineEditor::Libedit::remember(const std::string& text) {
  HistEvent event;
  if (history == nullptr || text.empty()) return;
  ::history(history, &event, H_ENTER, text.c_str());
  if (!history_file.empty()) ::history(history, &event, H_SAVE, history_file.c_str());
}

LineEditor::LineEditor(const std::string& history_file) : edit_(std::make_unique<Libedit>()) {
  edit_->history_file = history_file;
  edit_->set_up();
}

LineEditor::~LineEditor() {
  if (edit_->edit != nullptr) el_end(edit_->edit);
  if (edit_->history != nullptr) history_end(edit_->history);
}

Line LineEditor::read(const std::string& prompt) {
  if (edit_->edit == nullptr) return {Line::Kind::end, ""};
  edit_->prompt = prompt;
  edit_->interrupted = edit_->was_typed = false;
  // Before the prompt, not after it as el_gets does: a Ctrl-D in between would become a character
  // of the line.
  el_set(edit_->edit, EL_PREP_TERM, 1);
  if (const std::string ahead = typed_ahead(); !ahead.empty()) el_push(edit_->edit, ahead.c_str());
  edit_->mark_pastes(true);
  int n = 0;
  const char* got = el_gets(edit_->edit, &n);
  edit_->mark_pastes(false);
  if (edit_->interrupted) {
    std::fputs("^C\n", edit_->screen);
    el_reset(edit_->edit);
    return {Line::Kind::interrupted, edit_->left, edit_->was_typed};
  }
  if (got == nullptr || n <= 0) {
    std::fputs("\n", edit_->screen);
    return {Line::Kind::end, ""};
  }
  std::string text(got, static_cast<size_t>(n));
  if (text.ends_with('\n')) text.pop_back();
  edit_->remember(text);
  return {Line::Kind::text, text};
}

}  // namespace millrace::cli
