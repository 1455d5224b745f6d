// A Vocab into GGUF's metadata (tokenizer.ggml.*): the way back of vocab_gguf.cpp.
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "files/gguf_write.h"
#include "text/tokenizer/pre_rules.h"
#include "text/tokenizer/text_index.h"
#include "text/tokenizer/vocab.h"

namespace millrace {
namespace {

class Writer {
 public:
  Writer(const Vocab& vocab, GgufWriter& out) : vocab_(vocab), out_(out) {}

  Status run(int64_t n_tokens) {
    MILLRACE_TRY(check_added());
    if (vocab_.model == Vocab::Model::byte_level)
      MILLRACE_TRY(write_byte_level());
    else
      MILLRACE_TRY(write_characters());
    write_tokens(static_cast<size_t>(n_tokens));
    write_merges_or_scores();
    write_id("bos_token_id", vocab_.bos);
    write_id("eos_token_id", vocab_.eos);
    write_id("unknown_token_id", vocab_.unknown);
    write_id("padding_token_id", vocab_.pad);
    MILLRACE_TRY(write_ends());
    return write_wrapping();
  }

 private:
  static std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }
  static Status unsupported(std::string_view what) {
    return error(Code::unsupported, "the tokenizer cannot be written as GGUF: {}", what);
  }
  const std::string& token(int32_t id) const { return vocab_.tokens[static_cast<size_t>(id)]; }
  void write_id(std::string_view name, int32_t id) {
    if (id >= 0) out_.add_u32(key(name), static_cast<uint32_t>(id));
  }

  Status check_added() const;
  Status write_byte_level();
  Status write_characters();
  Status find_scores();
  Status check_pairs(const TextIndex& index) const;
  void write_tokens(size_t n_tokens);
  void write_merges_or_scores();
  Status write_ends();
  Status write_wrapping();

  const Vocab& vocab_;
  GgufWriter& out_;
  std::vector<float> scores_;
};

// GGUF tells control tokens from others, and no more.
Status Writer::check_added() const {
  for (const Vocab::Added& added : vocab_.added) {
    const bool is_control = vocab_.types[static_cast<size_t>(added.id)] == TokenType::control;
    const bool is_normalized = added.normalized && !is_control && !vocab_.normalize.empty();
    if (added.lstrip || added.rstrip || added.single_word || is_normalized)
      return unsupported(
          fmt::format("the added token '{}' is normalized, takes the spaces beside "
                      "it or stands alone, which GGUF does not support",
                      printable(token(added.id), 64)));
  }
  return {};
}

Status Writer::write_byte_level() {
  const std::string_view pre = pre_rule_name(vocab_.normalize, vocab_.split, vocab_.ignore_merges);
  if (pre.empty() || !vocab_.prepare.empty())
    return unsupported("GGUF has no name for its normalizer and pre_tokenizer");
  out_.add_string(key("model"), "gpt2");
  out_.add_string(key("pre"), pre);
  return {};
}

// GGUF has SentencePiece's scores where tokenizer.json has merges, and one way to treat spaces.
Status Writer::write_characters() {
  using Kind = NormalizeStep::Kind;
  const NormalizeStep prepend{Kind::prepend, "", std::string(kSpaceMark)};
  const NormalizeStep replace{Kind::replace, " ", std::string(kSpaceMark)};
  const bool has_prefix = vocab_.normalize == std::vector{prepend, replace};
  if ((!has_prefix && vocab_.normalize != std::vector{replace}) || !vocab_.prepare.empty() ||
      !vocab_.split.empty() || vocab_.strips_space != has_prefix)
    return unsupported("it does not treat spaces as SentencePiece's llama does");
  if (!vocab_.byte_fallback ||
      std::count(vocab_.types.begin(), vocab_.types.end(), TokenType::byte) != 256)
    return unsupported("it has no tokens for the bytes of unknown characters");
  MILLRACE_TRY(find_scores());
  out_.add_string(key("model"), "llama");
  out_.add_bool(key("add_space_prefix"), has_prefix);
  return {};
}

// A token's score is the rank of the merges that make it.
Status Writer::find_scores() {
  scores_.assign(vocab_.tokens.size(), 0);
  TextIndex index(vocab_.tokens.size());
  for (size_t i = 0; i < vocab_.tokens.size(); ++i)
    if (!index.insert(vocab_.tokens[i], static_cast<int32_t>(i)))
      return error(Code::corrupt, "the vocabulary is built to make reading it slow");
  int32_t last = -1;
  float score = 0;
  for (const Vocab::Merge& merge : vocab_.merges) {
    float& known = scores_[static_cast<size_t>(merge.joined)];
    if (merge.joined != last && known != 0)
      return unsupported(fmt::format("the merges into '{}' do not follow each other",
                                     printable(token(merge.joined), 64)));
    if (merge.joined != last) known = --score;
    last = merge.joined;
  }
  return check_pairs(index);
}

// By scores any two tokens join whose text is a token; all of these must be merges.
Status Writer::check_pairs(const TextIndex& index) const {
  size_t n_pairs = 0;
  for (size_t i = 0; i < vocab_.tokens.size(); ++i) {
    if (vocab_.types[i] != TokenType::normal) continue;
    const std::string_view text = vocab_.tokens[i];
    for (size_t at = utf8_length(text); at > 0 && at < text.size();) {
      n_pairs += index.find(text.substr(0, at)) >= 0 && index.find(text.substr(at)) >= 0;
      const size_t next = utf8_length(text.substr(at));
      at = next == 0 ? text.size() : at + next;
    }
  }
  if (n_pairs == vocab_.merges.size()) return {};
  return unsupported(
      fmt::format("{} pairs of its tokens make a token, and {} of them are merges, where GGUF has "
                  "scores alone",
                  n_pairs, vocab_.merges.size()));
}

void Writer::write_tokens(size_t n_tokens) {
  std::vector<std::string> tokens = vocab_.tokens;
  std::vector<int32_t> types;
  for (const TokenType type : vocab_.types) types.push_back(static_cast<int32_t>(type));
  tokens.resize(std::max(n_tokens, tokens.size()));
  types.resize(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].empty()) {
      tokens[i] = fmt::format("[PAD{}]", i);
      types[i] = static_cast<int32_t>(TokenType::unused);
    }
  out_.add_strings(key("tokens"), tokens);
  out_.add_i32s(key("token_type"), types);
  // Below every other.
  if (!scores_.empty()) scores_.resize(tokens.size(), std::numeric_limits<float>::lowest());
}

void Writer::write_merges_or_scores() {
  if (!scores_.empty()) return out_.add_f32s(key("scores"), scores_);
  std::vector<std::string> merges;
  for (const Vocab::Merge& merge : vocab_.merges)
    merges.push_back(fmt::format("{} {}", token(merge.left), token(merge.right)));
  out_.add_strings(key("merges"), merges);
}

// Beside eos, GGUF has room for two ends that are not known by their names.
Status Writer::write_ends() {
  std::vector<int32_t> ends;
  for (const int32_t id : vocab_.eog)
    if (id != vocab_.eos && !ends_by_name(token(id)) &&
        std::find(ends.begin(), ends.end(), id) == ends.end())
      ends.push_back(id);
  if (ends.size() > 2) return unsupported("more than three tokens end a generation");
  if (!ends.empty()) write_id("eot_token_id", ends[0]);
  if (ends.size() > 1) write_id("eom_token_id", ends[1]);
  return {};
}

Status Writer::write_wrapping() {
  const auto is_one = [](const std::vector<int32_t>& list, int32_t id) {
    return list.empty() || (list.size() == 1 && list[0] == id);
  };
  if (!is_one(vocab_.prefix, vocab_.bos) || !is_one(vocab_.suffix, vocab_.eos))
    return unsupported("it puts more around a prompt than a bos and an eos token");
  out_.add_bool(key("add_bos_token"), !vocab_.prefix.empty());
  out_.add_bool(key("add_eos_token"), !vocab_.suffix.empty());
  return {};
}

}  // namespace

Status write_vocab(const Vocab& vocab, int64_t n_tokens, GgufWriter& writer) {
  return Writer(vocab, writer).run(n_tokens);
}

}  // namespace millrace
