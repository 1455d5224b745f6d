// A Vocab from GGUF's metadata (tokenizer.ggml.*).
#include <limits>

#include "base/utf8.h"
#include "files/gguf.h"
#include "text/tokenizer/pre_guess.h"
#include "text/tokenizer/pre_rules.h"
#include "text/tokenizer/text_index.h"
#include "text/tokenizer/vocab.h"

namespace millrace {
namespace {

class Reader {
 public:
  explicit Reader(const Gguf& file) : file_(file) {}

  Result<Vocab> run() {
    MILLRACE_ASSIGN(const std::string_view model, file_.string("tokenizer.ggml.model"));
    MILLRACE_TRY(read_tokens());
    MILLRACE_TRY(read_types());
    MILLRACE_TRY(read_special());
    if (model == "gpt2") {
      MILLRACE_TRY(read_byte_level());
    } else if (model == "llama") {
      MILLRACE_TRY(read_scores());
    } else {
      return error(Code::unsupported,
                   "{}: tokenizer.ggml.model is '{}'; supported are gpt2 and llama", file_.path(),
                   printable(model, 64));
    }
    MILLRACE_TRY(read_wrapping());
    return std::move(vocab_);
  }

 private:
  Status wrong(std::string_view key, std::string_view why) const {
    return error(Code::corrupt, "{}: {} {}", file_.path(), key, why);
  }

  Result<const GgufValue*> array(std::string_view key) const {
    const GgufValue* value = file_.find(key);
    if (value == nullptr) return error(Code::not_found, "{}: no {}", file_.path(), key);
    if (!value->is_array) return wrong(key, "is not an array");
    return value;
  }

  Result<std::vector<std::string_view>> strings(std::string_view key) const {
    MILLRACE_ASSIGN(const GgufValue* value, array(key));
    if (value->type != GgufType::string) return wrong(key, "is not an array of strings");
    return value->strings();
  }

  Status of_all_tokens(const GgufValue& value) const {
    if (value.count == vocab_.tokens.size()) return {};
    return wrong(value.key, fmt::format("has {} values, but there are {} tokens", value.count,
                                        vocab_.tokens.size()));
  }

  Result<int32_t> special(std::string_view key, int32_t fallback) const {
    MILLRACE_ASSIGN(const int64_t id, file_.integer_or(key, fallback));
    if (id >= -1 && id < static_cast<int64_t>(vocab_.tokens.size()))
      return static_cast<int32_t>(id);
    // Some conversions write the largest number for "none".
    if (id == std::numeric_limits<uint32_t>::max()) return -1;
    return wrong(key, fmt::format("is {}, but there are {} tokens", id, vocab_.tokens.size()));
  }

  Status read_tokens();
  Status read_types();
  Status read_special();
  Status read_byte_level();
  std::string_view assumed_pre_rule();
  Status read_merges();
  Status read_scores();
  Status read_wrapping();

  const Gguf& file_;
  Vocab vocab_;
  bool add_bos_ = false;
};

Status Reader::read_tokens() {
  MILLRACE_ASSIGN(const auto tokens, strings("tokenizer.ggml.tokens"));
  if (tokens.size() > kMaxTokens)
    return wrong("tokenizer.ggml.tokens",
                 fmt::format("has {} values; the limit is {}", tokens.size(), kMaxTokens));
  vocab_.tokens.assign(tokens.begin(), tokens.end());
  return {};
}

Status Reader::read_types() {
  vocab_.types.assign(vocab_.tokens.size(), TokenType::normal);
  const GgufValue* types = file_.find("tokenizer.ggml.token_type");
  if (types == nullptr) return {};
  MILLRACE_TRY(of_all_tokens(*types));
  for (size_t i = 0; i < types->count; ++i) {
    const int64_t type = types->integer(i).value_or(-1);
    if (type < 0 || type > 6)
      return wrong(types->key, fmt::format("of token {} is no type of a token", i));
    if (type != 0) vocab_.types[i] = static_cast<TokenType>(type);
  }
  return {};
}

Status Reader::read_special() {
  MILLRACE_ASSIGN(vocab_.bos, special("tokenizer.ggml.bos_token_id", -1));
  MILLRACE_ASSIGN(vocab_.eos, special("tokenizer.ggml.eos_token_id", -1));
  MILLRACE_ASSIGN(vocab_.pad, special("tokenizer.ggml.padding_token_id", -1));
  MILLRACE_ASSIGN(vocab_.unknown, special("tokenizer.ggml.unknown_token_id", -1));
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    MILLRACE_ASSIGN(const int32_t id, special(key, -1));
    if (id >= 0) vocab_.eog.push_back(id);
  }
  return {};
}

// Text is cut differently in every family, and a wrong cut gives worse answers without an error.
std::string_view Reader::assumed_pre_rule() {
  const PreGuess guess = guess_pre_rule(vocab_.tokens);
  vocab_.warnings.push_back(
      guess.name.empty()
          ? fmt::format("{}: no tokenizer.ggml.pre, and its {} tokens are of no known model "
                        "family; using the pre-tokenizer 'default', which may be wrong. Convert "
                        "the model again to be sure",
                        printable(file_.path()), vocab_.tokens.size())
          : fmt::format("{}: no tokenizer.ggml.pre; using the pre-tokenizer '{}' because the "
                        "vocabulary has {}",
                        printable(file_.path()), guess.name, guess.why));
  return guess.name.empty() ? "default" : guess.name;
}

Status Reader::read_byte_level() {
  vocab_.model = Vocab::Model::byte_level;
  MILLRACE_ASSIGN(const std::string_view named, file_.string_or("tokenizer.ggml.pre", ""));
  const std::string_view name =
      file_.find("tokenizer.ggml.pre") != nullptr ? named : assumed_pre_rule();
  auto rule = pre_rule_named(name);
  if (!rule.ok())
    return Status(rule.status().code(),
                  fmt::format("{}: tokenizer.ggml.pre: {}", file_.path(), rule.status().message()));
  vocab_.normalize = std::move(rule->normalize);
  vocab_.split = std::move(rule->split);
  vocab_.ignore_merges = rule->ignore_merges;
  add_bos_ = rule->add_bos;
  // A byte without a token is dropped, as everybody does.
  vocab_.unknown = -1;
  return read_merges();
}

Status Reader::read_merges() {
  TextIndex index(vocab_.tokens.size());
  for (size_t i = 0; i < vocab_.tokens.size(); ++i)
    if (!index.insert(vocab_.tokens[i], static_cast<int32_t>(i)))
      return wrong("tokenizer.ggml.tokens", "was made to slow its reader down");
  MILLRACE_ASSIGN(const auto merges, strings("tokenizer.ggml.merges"));
  vocab_.merges.reserve(merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t space = merges[i].find(' ', 1);
    if (space == std::string_view::npos)
      return wrong("tokenizer.ggml.merges", fmt::format("[{}] is no pair", i));
    const std::string_view left = merges[i].substr(0, space), right = merges[i].substr(space + 1);
    joined.assign(left).append(right);
    const Vocab::Merge merge{index.find(left), index.find(right), index.find(joined)};
    if (merge.left < 0 || merge.right < 0 || merge.joined < 0)
      return wrong("tokenizer.ggml.merges",
                   fmt::format("[{}] is '{}', which names no tokens", i, printable(merges[i], 64)));
    vocab_.merges.push_back(merge);
  }
  return {};
}

Status Reader::read_scores() {
  vocab_.model = Vocab::Model::scores;
  vocab_.byte_fallback = true;
  vocab_.fuse_unknown = false;
  add_bos_ = true;
  MILLRACE_ASSIGN(const GgufValue* scores, array("tokenizer.ggml.scores"));
  MILLRACE_TRY(of_all_tokens(*scores));
  for (size_t i = 0; i < scores->count; ++i) {
    const auto score = scores->real(i);
    if (!score) return wrong(scores->key, "is not an array of numbers");
    vocab_.scores.push_back(static_cast<float>(*score));
  }
  MILLRACE_ASSIGN(const bool prefix, file_.boolean_or("tokenizer.ggml.add_space_prefix", true));
  if (prefix)
    vocab_.normalize.push_back({NormalizeStep::Kind::prepend, "", std::string(kSpaceMark)});
  vocab_.normalize.push_back({NormalizeStep::Kind::replace, " ", std::string(kSpaceMark)});
  vocab_.strips_space = prefix;
  // What llama.cpp assumes where the file says nothing, and the vocabulary is large enough.
  if (vocab_.tokens.size() > 2 && file_.find("tokenizer.ggml.bos_token_id") == nullptr)
    vocab_.bos = 1;
  if (vocab_.tokens.size() > 2 && file_.find("tokenizer.ggml.eos_token_id") == nullptr)
    vocab_.eos = 2;
  if (vocab_.tokens.size() > 2 && file_.find("tokenizer.ggml.unknown_token_id") == nullptr)
    vocab_.unknown = 0;
  return {};
}

Status Reader::read_wrapping() {
  MILLRACE_ASSIGN(const bool bos, file_.boolean_or("tokenizer.ggml.add_bos_token", add_bos_));
  MILLRACE_ASSIGN(const bool eos, file_.boolean_or("tokenizer.ggml.add_eos_token", false));
  if (bos && vocab_.bos >= 0) vocab_.prefix.push_back(vocab_.bos);
  if (eos && vocab_.eos >= 0) vocab_.suffix.push_back(vocab_.eos);
  return {};
}

}  // namespace

Result<Vocab> vocab_from_gguf(const Gguf& file) {
  return Reader(file).run();
}

}  // namespace millrace
