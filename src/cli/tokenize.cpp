// millrace tokenize and detokenize: how a model sees text. Both work on files that hold a
// vocabulary and nothing else.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/open_model.h"
#include "cli/terminal_text.h"
#include "files/small_file.h"
#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::cli {
namespace {

struct Options {
  std::string model, file;
  std::vector<std::string> arguments;  // [MODEL [TEXT]], [MODEL [IDS...]]
  bool json = false, ids_only = false, special = false, no_bos = false;
};

Result<std::string> read_stdin() {
  std::string text;
  char block[1 << 16];
  for (size_t n; (n = std::fread(block, 1, sizeof block, stdin)) > 0;) {
    text.append(block, n);
    if (text.size() > Tokenizer::kMaxTextBytes)
      return error(Code::invalid_argument, "standard input is larger than {}",
                   size_text(Tokenizer::kMaxTextBytes));
  }
  if (std::ferror(stdin) != 0) return error(Code::io_error, "cannot read standard input");
  return text;
}

Result<std::string> input_of(const Options& options) {
  if (!options.arguments.empty()) return options.arguments[0];
  if (!options.file.empty()) return read_small_file(options.file, Tokenizer::kMaxTextBytes);
  return read_stdin();
}

Result<Tokenizer> tokenizer_of(const std::string& model) {
  MILLRACE_ASSIGN(const ModelFile file, open_model(model));
  return open_tokenizer(file);
}

nlohmann::ordered_json to_json(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  auto tokens = nlohmann::ordered_json::array();
  for (const int32_t id : ids)
    tokens.push_back({{"id", id}, {"piece", printable(tokenizer.piece(id))}});
  return {{"tokens", tokens}};
}

int tokenize(Options& options) {
  const size_t n_texts = options.file.empty() ? 1 : 0;
  const Status taken = take_model(options.model, options.arguments, 0, n_texts);
  if (!taken.ok()) return fail(taken);
  auto tokenizer = tokenizer_of(options.model);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  auto text = input_of(options);
  if (!text.ok()) return fail(text.status());
  const TextPart part{*text, options.special};
  auto ids = tokenizer->encode(std::span(&part, 1), !options.no_bos);
  if (!ids.ok()) return fail(ids.status());
  if (options.json) return print_json(to_json(*tokenizer, *ids)), 0;
  if (options.ids_only) return fmt::print("{}\n", fmt::join(*ids, " ")), 0;
  for (const int32_t id : *ids) fmt::print("{:>7}  '{}'\n", id, printable(tokenizer->piece(id)));
  return 0;
}

// Numbers between anything that is none, so that a JSON array or a list with commas will do.
Result<std::vector<int32_t>> parse_ids(std::string_view text, int32_t n_tokens) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<int32_t> ids;
  for (size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = -1;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), id);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size())
      return error(Code::invalid_argument, "'{}' is not a token id", printable(word, 40));
    if (id < 0 || id >= n_tokens)
      return error(Code::invalid_argument, "no token {}: the vocabulary has {}", id, n_tokens);
    ids.push_back(id);
    at = end;
  }
  return ids;
}

int detokenize(Options& options) {
  const Status taken = take_model(options.model, options.arguments, 0, SIZE_MAX);
  if (!taken.ok()) return fail(taken);
  auto tokenizer = tokenizer_of(options.model);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  std::string list = fmt::format("{}", fmt::join(options.arguments, " "));
  if (options.arguments.empty()) {
    auto text = read_stdin();
    if (!text.ok()) return fail(text.status());
    list = std::move(*text);
  }
  auto ids = parse_ids(list, tokenizer->size());
  if (!ids.ok()) return fail(ids.status());
  const std::string bytes = tokenizer->decode(*ids, options.special);
  if (!options.json) return print_text(stdout, bytes), 0;
  StreamDecoder decoder;
  std::string text = decoder.push(bytes);
  text += decoder.flush();
  print_json(nlohmann::ordered_json{{"text", text}});
  return 0;
}

}  // namespace

void add_tokenize(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("tokenize", "Turn text into tokens");
  add_model_name(command, options->model, /*positional=*/false);
  command
      .option("text", options->arguments,
              "Model (unless -m names it) and text (default: standard input)")
      .type_name("[MODEL] [TEXT]");
  command.option("--file", options->file, "Read the text from this file").type_name("FILE");
  const Option json = command.flag("--json", options->json, "Print JSON: each token's id and text");
  command.flag("--ids", options->ids_only, "Print only the ids, on one line").excludes(json);
  command.flag("--special", options->special,
               "Read control tokens in the text, such as <|im_start|>, as tokens, not as text");
  command.flag("--no-bos", options->no_bos,
               "Do not add special tokens such as BOS around the text");
  command.runs([options] { return tokenize(*options); });
}

void add_detokenize(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("detokenize", "Turn token ids into text");
  add_model_name(command, options->model, /*positional=*/false);
  command
      .option("ids", options->arguments,
              "Model (unless -m names it) and token ids (default: standard input)")
      .type_name("[MODEL] [ID ...]");
  command.flag("--json", options->json, "Print JSON, with broken characters as U+FFFD");
  command.flag("--special", options->special, "Show control tokens too");
  command.runs([options] { return detokenize(*options); });
}

}  // namespace millrace::cli
