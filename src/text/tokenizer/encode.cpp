// Tokenizer::encode. Text is searched for added tokens; what lies between them is mended where it
// is not UTF-8, normalised, cut into words, and each word merged.
#include <algorithm>
#include <bit>
#include <functional>

#include "base/utf8.h"
#include "text/tokenizer/parts.h"

namespace millrace {
namespace {

// The text with U+FFFD for every broken byte, so that it can be normalised and cut, and what those
// bytes were: the k-th U+FFFD of the text stands for raw[k], or for itself (-1). Normalising
// changes neither how many there are nor their order.
std::string mend(std::string_view text, std::vector<int16_t>& raw) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    for (size_t i = 0; !c.valid() && i < c.bytes; ++i) {
      append_utf8(out, kReplacement);
      raw.push_back(static_cast<unsigned char>(text[at + i]));
    }
    if (c.valid()) out += text.substr(at, c.bytes);
    if (c.valid() && c.code == kReplacement) raw.push_back(-1);
    at += c.bytes;
  }
  return out;
}

// Remembers where in the output the ids of a word are; a newer word takes the place of an older
// one.
class WordCache {
 public:
  WordCache(size_t n_words, std::vector<int32_t>& out) : out_(out) {
    if (n_words >= kMinWords) slots_.resize(std::bit_ceil(std::min(n_words, kMaxSlots)));
  }

  bool append(std::string_view word) {
    if (!holds(word)) return false;
    const Slot& slot = slots_[slot_of(word)];
    if (slot.word != word) return false;
    out_.resize(out_.size() + slot.n_ids);
    std::copy_n(out_.begin() + slot.begin, slot.n_ids, out_.end() - slot.n_ids);
    return true;
  }

  void keep(std::string_view word, size_t begin) {
    if (!holds(word)) return;
    slots_[slot_of(word)] = {word, static_cast<uint32_t>(begin),
                             static_cast<uint32_t>(out_.size() - begin)};
  }

 private:
  static constexpr size_t kMinWords = 64, kMaxSlots = 1 << 15, kMaxBytes = 64;
  struct Slot {
    std::string_view word;
    uint32_t begin = 0, n_ids = 0;
  };
  bool holds(std::string_view word) const { return !slots_.empty() && word.size() <= kMaxBytes; }
  size_t slot_of(std::string_view word) const {
    return std::hash<std::string_view>()(word) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;
  std::vector<int32_t>& out_;
};

class Encoder {
 public:
  Encoder(const Tokenizer::Parts& parts, std::vector<int32_t>& out, size_t text_bytes)
      : parts_(parts), vocab_(parts.vocab), out_(out), matcher_(text_bytes) {}

  Status run(std::string_view text, const std::vector<MarkedRange>& marked);

 private:
  Status segment(std::string_view text, bool first);
  Status normalized(std::string_view text, bool first);
  Status cut(std::string_view text);
  void words_with_broken_bytes(std::string_view text);
  // `text` with the bytes that its U+FFFDs stand for; to be called on every part of a segment once,
  // in order.
  std::string restored(std::string_view text);
  void word(std::string_view word);
  void start_from_bytes(std::string_view word);
  void start_from_characters(std::string_view word);
  void unknown_symbol(uint32_t begin, uint32_t bytes);
  bool bytes_of_character(std::string_view character, uint32_t begin);
  void merge_by_score(std::string_view word);

  const Tokenizer::Parts& parts_;
  const Vocab& vocab_;
  std::vector<int32_t>& out_;
  Matcher matcher_;
  Merger merger_;
  std::vector<std::string_view> words_;
  std::vector<int16_t> raw_;  // of the segment; empty: nothing in it is broken
  size_t next_raw_ = 0;
};

Status Encoder::run(std::string_view text, const std::vector<MarkedRange>& marked) {
  for (size_t at = 0; at < text.size();) {
    const AddedTokens::Hit hit = parts_.added.find(text, at, marked);
    MILLRACE_TRY(segment(text.substr(at, hit.begin - at), at == 0));
    if (hit.id >= 0) out_.push_back(hit.id);
    at = hit.end;
  }
  return {};
}

Status Encoder::segment(std::string_view text, bool first) {
  if (text.empty()) return {};
  raw_.clear();
  next_raw_ = 0;
  const bool broken = first_broken_byte(text) < text.size();
  if (!broken && vocab_.normalize.empty()) return normalized(text, first);
  std::string mended;
  if (broken)
    mended = mend(text, raw_);
  else
    mended = text;
  return normalized(normalize(std::move(mended), vocab_.normalize, first), first);
}

Status Encoder::normalized(std::string_view text, bool first) {
  for (size_t at = 0; at < text.size();) {
    const AddedTokens::Hit hit = parts_.normalized.find(text, at, {});
    const std::string_view part = text.substr(at, hit.begin - at);
    if (vocab_.prepare.empty())
      MILLRACE_TRY(cut(part));
    else
      MILLRACE_TRY(cut(normalize(std::string(part), vocab_.prepare, first && at == 0)));
    if (hit.id >= 0) out_.push_back(hit.id);
    restored(text.substr(hit.begin, hit.end - hit.begin));
    at = hit.end;
  }
  return {};
}

Status Encoder::cut(std::string_view text) {
  MILLRACE_TRY(parts_.splitter.split(text, matcher_, words_));
  if (!raw_.empty()) return words_with_broken_bytes(text), Status();
  WordCache cache(words_.size(), out_);
  for (const std::string_view w : words_) {
    if (cache.append(w)) continue;
    const size_t begin = out_.size();
    word(w);
    cache.keep(w, begin);
  }
  return {};
}

void Encoder::words_with_broken_bytes(std::string_view text) {
  size_t done = 0;
  for (const std::string_view w : words_) {
    const auto begin = static_cast<size_t>(w.data() - text.data());
    restored(text.substr(done, begin - done));
    word(restored(w));
    done = begin + w.size();
  }
  restored(text.substr(done));
}

std::string Encoder::restored(std::string_view text) {
  constexpr std::string_view kUtf8 = "\xEF\xBF\xBD";
  std::string out;
  size_t done = 0;
  for (size_t hit = 0; next_raw_ < raw_.size(); done = hit + kUtf8.size()) {
    hit = text.find(kUtf8, done);
    if (hit == std::string_view::npos) break;
    out += text.substr(done, hit - done);
    const int16_t raw = raw_[next_raw_++];
    if (raw < 0)
      out += kUtf8;
    else
      out += static_cast<char>(raw);
  }
  return out += text.substr(done);
}

void Encoder::word(std::string_view word) {
  if (vocab_.ignore_merges) {
    if (const int32_t id = parts_.words.find(word); id >= 0) return out_.push_back(id);
  }
  merger_.symbols.clear();
  if (vocab_.model == Vocab::Model::scores) return merge_by_score(word);
  if (vocab_.model == Vocab::Model::byte_level)
    start_from_bytes(word);
  else
    start_from_characters(word);
  merger_.merge([&](const Symbol& l, const Symbol& r) { return parts_.pairs.find(l.id, r.id); });
  for (const Symbol& symbol : merger_.symbols)
    if (symbol.bytes > 0) out_.push_back(symbol.id);
}

void Encoder::start_from_bytes(std::string_view word) {
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = parts_.byte_ids[static_cast<unsigned char>(word[i])];
    if (id >= 0)
      merger_.symbols.push_back({id, static_cast<uint32_t>(i), 1});
    else
      unknown_symbol(static_cast<uint32_t>(i), 1);
  }
}

void Encoder::unknown_symbol(uint32_t begin, uint32_t bytes) {
  if (vocab_.unknown < 0) return;
  auto& symbols = merger_.symbols;
  if (vocab_.fuse_unknown && !symbols.empty() && symbols.back().id == vocab_.unknown)
    symbols.back().bytes += bytes;
  else
    symbols.push_back({vocab_.unknown, begin, bytes});
}

bool Encoder::bytes_of_character(std::string_view character, uint32_t begin) {
  if (!vocab_.byte_fallback) return false;
  for (const char c : character)
    if (parts_.byte_ids[static_cast<unsigned char>(c)] < 0) return false;
  for (const char c : character)
    merger_.symbols.push_back({parts_.byte_ids[static_cast<unsigned char>(c)], begin++, 1});
  return true;
}

void Encoder::start_from_characters(std::string_view word) {
  for (size_t at = 0; at < word.size();) {
    const Utf8Char c = decode_utf8(word, at);
    const size_t bytes = c.valid() ? c.bytes : 1;
    const std::string_view character = word.substr(at, bytes);
    const auto begin = static_cast<uint32_t>(at);
    if (const int32_t id = parts_.words.find(character); id >= 0)
      merger_.symbols.push_back({id, begin, static_cast<uint32_t>(bytes)});
    else if (!bytes_of_character(character, begin))
      unknown_symbol(begin, static_cast<uint32_t>(bytes));
    at += bytes;
  }
}

// Here a character without a token can still become part of one, so bytes come last.
void Encoder::merge_by_score(std::string_view word) {
  for (size_t at = 0; at < word.size();) {
    const Utf8Char c = decode_utf8(word, at);
    const size_t bytes = c.valid() ? c.bytes : 1;
    merger_.symbols.push_back({parts_.words.find(word.substr(at, bytes)), static_cast<uint32_t>(at),
                               static_cast<uint32_t>(bytes)});
    at += bytes;
  }
  merger_.merge([&](const Symbol& l, const Symbol& r) {
    const int32_t id = parts_.words.find(word.substr(l.begin, l.bytes + r.bytes));
    return id < 0 ? MergeRule{} : MergeRule{parts_.ranks[static_cast<size_t>(id)], id};
  });
  const std::vector<Symbol> merged = std::move(merger_.symbols);
  merger_.symbols.clear();
  for (const Symbol& symbol : merged) {
    if (symbol.bytes == 0) continue;
    if (symbol.id >= 0)
      merger_.symbols.push_back(symbol);
    else if (!bytes_of_character(word.substr(symbol.begin, symbol.bytes), symbol.begin))
      unknown_symbol(symbol.begin, symbol.bytes);
  }
  for (const Symbol& symbol : merger_.symbols) out_.push_back(symbol.id);
}

}  // namespace

Result<std::vector<int32_t>> Tokenizer::encode(std::span<const TextPart> parts, bool wrap) const {
  size_t bytes = 0;
  for (const TextPart& part : parts) {
    if (part.text.size() > kMaxTextBytes - bytes)
      return error(Code::invalid_argument,
                   "the text is longer than {} bytes, the most that can be tokenized",
                   kMaxTextBytes);
    bytes += part.text.size();
  }
  std::string joined;
  std::vector<MarkedRange> marked;
  size_t begin = 0;
  for (const TextPart& part : parts) {
    if (parts.size() > 1) joined += part.text;
    const size_t end = begin + part.text.size();
    if (part.special && !marked.empty() && marked.back().end == begin)
      marked.back().end = end;
    else if (part.special)
      marked.push_back({begin, end});
    begin = end;
  }
  const std::string_view text = parts.size() == 1 ? parts[0].text : std::string_view(joined);
  std::vector<int32_t> out;
  out.reserve(bytes / 3 + 8);
  const Vocab& vocab = parts_->vocab;
  if (wrap) out.insert(out.end(), vocab.prefix.begin(), vocab.prefix.end());
  MILLRACE_TRY(Encoder(*parts_, out, bytes).run(text, marked));
  if (wrap) out.insert(out.end(), vocab.suffix.begin(), vocab.suffix.end());
  return out;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool wrap) const {
  const TextPart part{text, false};
  return encode(std::span(&part, 1), wrap);
}

}  // namespace millrace
