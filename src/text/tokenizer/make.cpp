// Tokenizer::make: checks a Vocab and builds the tables of a Tokenizer from it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/parts.h"

namespace millrace {
namespace {

// Tokens that end a generation by what they are called, whatever the file says of them; they count
// as control tokens even where a conversion forgot to mark them.
constexpr std::array<std::string_view, 18> kEogTexts = {"<|eot_id|>",      "<|im_end|>",
                                                        "<|end|>",         "<|return|>",
                                                        "<|call|>",        "<|flush|>",
                                                        "<|calls|>",       "<end_of_turn>",
                                                        "<|endoftext|>",   "<|eom_id|>",
                                                        "<EOT>",           "_<EOT>",
                                                        "[EOT]",           "[EOS]",
                                                        "<|end_of_text|>", "<end_of_utterance>",
                                                        "<eos>",           "<｜end▁of▁sentence｜>"};

bool is_searched(TokenType type) {
  return type == TokenType::control || type == TokenType::user_defined ||
         type == TokenType::unknown;
}

// Whether text that is merged may become this token.
bool is_text(TokenType type) {
  return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::unused;
}

Status check_id(const Vocab& vocab, int32_t id, std::string_view what) {
  if (id >= -1 && id < static_cast<int32_t>(vocab.tokens.size())) return {};
  return error(Code::corrupt, "{} is {}, but there are {} tokens", what, id, vocab.tokens.size());
}

Status check_ids(const Vocab& vocab) {
  MILLRACE_TRY(check_id(vocab, vocab.bos, "the bos token"));
  MILLRACE_TRY(check_id(vocab, vocab.eos, "the eos token"));
  MILLRACE_TRY(check_id(vocab, vocab.unknown, "the unknown token"));
  MILLRACE_TRY(check_id(vocab, vocab.pad, "the padding token"));
  for (const auto* list : {&vocab.eog, &vocab.prefix, &vocab.suffix})
    for (const int32_t id : *list) {
      MILLRACE_TRY(check_id(vocab, id, "a special token"));
      if (id < 0) return error(Code::corrupt, "a special token is {}", id);
    }
  for (const Vocab::Added& added : vocab.added) {
    MILLRACE_TRY(check_id(vocab, added.id, "an added token"));
    if (added.id < 0) return error(Code::corrupt, "an added token is {}", added.id);
  }
  return {};
}

Status check(const Vocab& vocab) {
  const size_t n = vocab.tokens.size();
  if (n == 0 || n > kMaxTokens)
    return error(Code::corrupt, "the vocabulary has {} tokens; it must have 1 to {}", n,
                 kMaxTokens);
  if (vocab.types.size() != n)
    return error(Code::corrupt, "the vocabulary has {} tokens but {} token types", n,
                 vocab.types.size());
  size_t bytes = 0;
  for (const std::string& token : vocab.tokens) bytes += token.size();
  if (bytes >= UINT32_MAX) return error(Code::corrupt, "the vocabulary's text has {} bytes", bytes);
  if (vocab.model == Vocab::Model::scores) {
    if (vocab.scores.size() != n)
      return error(Code::corrupt, "the vocabulary has {} tokens but {} scores", n,
                   vocab.scores.size());
    for (size_t i = 0; i < n; ++i)
      if (std::isnan(vocab.scores[i]))
        return error(Code::corrupt, "the score of token {} is NaN", i);
  }
  return check_ids(vocab);
}

// The byte that <0xNN> stands for; -1: it is no such token.
int byte_of(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  for (const char c : token.substr(3, 2)) {
    const size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return -1;
    byte = byte * 16 + static_cast<unsigned>(digit);
  }
  return static_cast<int>(byte);
}

class Maker {
 public:
  Maker(Tokenizer::Parts& parts) : parts_(parts), vocab_(parts.vocab) {}

  Status run() {
    MILLRACE_TRY(check(vocab_));
    find_ends();
    spell();
    find_bytes();
    MILLRACE_TRY(index_words());
    MILLRACE_TRY(index_merges());
    rank_scores();
    MILLRACE_TRY(index_added());
    cut_at_marks();
    MILLRACE_ASSIGN(parts_.splitter, Splitter::make(vocab_.split));
    return {};
  }

 private:
  static Status crafted() {
    return error(Code::corrupt, "the vocabulary was made to slow its reader down");
  }

  size_t n() const { return vocab_.tokens.size(); }
  int32_t id(size_t i) const { return static_cast<int32_t>(i); }

  void find_ends();
  void spell();
  std::string bytes_of(size_t i) const;
  void find_bytes();
  Status index_words();
  Status index_merges();
  void rank_scores();
  Status index_added();
  void cut_at_marks();

  Tokenizer::Parts& parts_;
  Vocab& vocab_;
};

void Maker::find_ends() {
  auto& eog = parts_.eog;
  eog = vocab_.eog;
  if (vocab_.eos >= 0) eog.push_back(vocab_.eos);
  bool harmony = false;
  int32_t end = -1;
  for (size_t i = 0; i < n(); ++i) {
    const std::string& token = vocab_.tokens[i];
    if (!ends_by_name(token)) continue;
    vocab_.types[i] = TokenType::control;
    if (token == "<|end|>") end = id(i);
    harmony = harmony || token == "<|return|>";
    eog.push_back(id(i));
  }
  // Where <|return|> ends an answer, <|end|> only ends one of its messages.
  if (harmony && end != vocab_.eos) std::erase(eog, end);
  std::sort(eog.begin(), eog.end());
  eog.erase(std::unique(eog.begin(), eog.end()), eog.end());
  // Odd bytes in a text must not end it.
  if (std::binary_search(eog.begin(), eog.end(), vocab_.unknown)) vocab_.unknown = -1;
}

std::string Maker::bytes_of(size_t i) const {
  const std::string& token = vocab_.tokens[i];
  const TokenType type = vocab_.types[i];
  if (type == TokenType::control || type == TokenType::user_defined) return token;
  std::string out;
  if (vocab_.model == Vocab::Model::byte_level) return decode_byte_level(token, out) ? out : token;
  if (const int byte = byte_of(token); byte >= 0 && type == TokenType::byte)
    return std::string(1, static_cast<char>(byte));
  return normalize(token, {{NormalizeStep::Kind::replace, std::string(kSpaceMark), " "}}, false);
}

void Maker::spell() {
  parts_.ends.reserve(n());
  for (size_t i = 0; i < n(); ++i) {
    parts_.bytes += bytes_of(i);
    parts_.ends.push_back(static_cast<uint32_t>(parts_.bytes.size()));
  }
}

void Maker::find_bytes() {
  parts_.byte_ids.fill(-1);
  const bool byte_level = vocab_.model == Vocab::Model::byte_level;
  for (size_t i = n(); i-- > 0;) {
    const TokenType wanted = byte_level ? TokenType::normal : TokenType::byte;
    const std::string_view piece = parts_.piece(id(i));
    if (vocab_.types[i] == wanted && piece.size() == 1)
      parts_.byte_ids[static_cast<unsigned char>(piece[0])] = id(i);
  }
}

Status Maker::index_words() {
  const bool byte_level = vocab_.model == Vocab::Model::byte_level;
  if (byte_level && !vocab_.ignore_merges) return {};
  const auto n_gaps = std::count(vocab_.tokens.begin(), vocab_.tokens.end(), "");
  parts_.words = TextIndex(n() - static_cast<size_t>(n_gaps));
  for (size_t i = 0; i < n(); ++i) {
    const std::string_view text = byte_level ? parts_.piece(id(i)) : vocab_.tokens[i];
    if (!text.empty() && is_text(vocab_.types[i]) && !parts_.words.insert(text, id(i)))
      return crafted();
  }
  return {};
}

// A merge into a control token stays out: no text may become one.
Status Maker::index_merges() {
  parts_.pairs = PairTable(vocab_.merges.size());
  uint32_t rank = 0;
  for (const Vocab::Merge& merge : vocab_.merges) {
    for (const int32_t part : {merge.left, merge.right, merge.joined})
      if (part < 0 || part >= id(n()))
        return error(Code::corrupt, "merge {} names token {}, but there are {} tokens", rank, part,
                     n());
    const MergeRule rule{rank++, merge.joined};
    if (is_text(parts_.type(merge.joined)) && !parts_.pairs.insert(merge.left, merge.right, rule))
      return crafted();
  }
  vocab_.merges = {};
  return {};
}

void Maker::rank_scores() {
  if (vocab_.model != Vocab::Model::scores) return;
  std::vector<float> order = vocab_.scores;
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (const float score : vocab_.scores)
    parts_.ranks.push_back(static_cast<uint32_t>(
        std::lower_bound(order.begin(), order.end(), score, std::greater<>()) - order.begin()));
}

Status Maker::index_added() {
  std::vector<Vocab::Added> flags(n());
  for (const Vocab::Added& added : vocab_.added) flags[static_cast<size_t>(added.id)] = added;
  std::vector<AddedToken> raw, normalized;
  for (size_t i = 0; i < n(); ++i) {
    if (!is_searched(vocab_.types[i])) continue;
    const bool control = vocab_.types[i] != TokenType::user_defined;
    const Vocab::Added& flag = flags[i];
    AddedToken token{id(i), vocab_.tokens[i], control, flag.lstrip, flag.rstrip, flag.single_word};
    if (flag.normalized && !control && !vocab_.normalize.empty()) {
      MILLRACE_TRY(AddedTokens::check(token));  // normalising may make it much longer
      token.text = normalize(token.text, vocab_.normalize, false);
      MILLRACE_TRY(AddedTokens::check(token));
      normalized.push_back(std::move(token));
    } else {
      raw.push_back(std::move(token));
    }
  }
  MILLRACE_ASSIGN(parts_.added, AddedTokens::make(std::move(raw)));
  MILLRACE_ASSIGN(parts_.normalized, AddedTokens::make(std::move(normalized)));
  return {};
}

// Where text is not cut otherwise and no token has a mark behind another character, nothing joins
// across the start of a word: cutting there changes no id and keeps words short.
void Maker::cut_at_marks() {
  if (vocab_.model == Vocab::Model::byte_level || !vocab_.split.empty() || vocab_.ignore_merges)
    return;
  for (size_t i = 0; i < n(); ++i) {
    if (!is_text(vocab_.types[i])) continue;
    std::string_view token = vocab_.tokens[i];
    while (token.starts_with(kSpaceMark)) token.remove_prefix(kSpaceMark.size());
    if (token.find(kSpaceMark) != std::string_view::npos) return;
  }
  vocab_.split.push_back({R"(\x{2581}*[^\x{2581}]+|\x{2581}+)"});
}

}  // namespace

bool ends_by_name(std::string_view token) {
  return std::find(kEogTexts.begin(), kEogTexts.end(), token) != kEogTexts.end();
}

Result<Tokenizer> Tokenizer::make(Vocab vocab) {
  auto parts = std::make_unique<Parts>();
  parts->vocab = std::move(vocab);
  MILLRACE_TRY(Maker(*parts).run());
  return Tokenizer(std::move(parts));
}

}  // namespace millrace
