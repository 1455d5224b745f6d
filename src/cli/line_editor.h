// Lines typed at a terminal: editing, history, multi-line input and pasting, by libedit, which
// stays behind this header. Ctrl-C is a key here and no signal.
#pragma once

#include <memory>
#include <string>

namespace millrace::cli {

struct Line {
  enum class Kind : unsigned char { text, interrupted, end } kind = Kind::text;
  std::string text;        // of `interrupted`: what stood in the line, and is gone
  bool was_typed = false;  // a key was pressed since the prompt, Ctrl-C aside
};

// Where a chat's lines come from: a terminal, or a test.
class LineSource {
 public:
  virtual ~LineSource() = default;
  virtual Line read(const std::string& prompt) = 0;
};

class LineEditor final : public LineSource {
 public:
  // History is read from and kept in `history_file`; empty: nowhere. Without a way to write there
  // it lasts as long as the program.
  explicit LineEditor(const std::string& history_file);
  ~LineEditor() override;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Line read(const std::string& prompt) override;

 private:
  struct Libedit;
  std::unique_ptr<Libedit> edit_;
};

}  // namespace millrace::cli
