// What ./test clients drives from Python: a tokenizer.json or a GGUF file, texts in hex on standard
// input, a line each; their ids on standard output, a line each, control tokens counting.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <string>

#include "files/gguf.h"
#include "files/small_file.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using namespace millrace;

Result<Tokenizer> open(const std::string& path) {
  if (path.ends_with(".gguf")) {
    MILLRACE_ASSIGN(const Gguf file, Gguf::open(path));
    MILLRACE_ASSIGN(Vocab vocab, vocab_from_gguf(file));
    return Tokenizer::make(std::move(vocab));
  }
  HfFiles files;
  MILLRACE_ASSIGN(files.tokenizer, read_small_file(path, size_t{1} << 28));
  MILLRACE_ASSIGN(Vocab vocab, vocab_from_tokenizer_json(files));
  return Tokenizer::make(std::move(vocab));
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto tokenizer = open(argv[1]);
  if (!tokenizer.ok()) {
    fmt::print(stderr, "{}\n", tokenizer.status().message());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const std::string text = from_hex(line);
    const TextPart part{text, true};
    const auto ids = tokenizer.value().encode(std::span(&part, 1));
    if (!ids.ok()) {
      fmt::print(stderr, "{}\n", ids.status().message());
      return 1;
    }
    fmt::print("{}\n", fmt::join(ids.value(), " "));
  }
  return 0;
}
