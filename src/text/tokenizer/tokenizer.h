// Text to token ids and back. A Tokenizer is immutable: threads share one. Text that a user wrote
// never becomes a control token, whatever it says; a template's own text does, where it is marked.
// Byte-level vocabularies keep any bytes, broken UTF-8 among them, unless they normalise.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/vocab.h"

namespace millrace {

class ModelFile;

// A part of a prompt. Parts are encoded as one text: a word may cross their borders.
struct TextPart {
  std::string_view text;
  bool special = false;  // control tokens in it count
};

class Tokenizer {
 public:
  static Result<Tokenizer> make(Vocab vocab);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // `wrap`: put what the model wants around a prompt (bos, for most) around it. Fails on texts
  // beyond kMaxTextBytes and when a tokenizer.json's expression runs out of its budget.
  Result<std::vector<int32_t>> encode(std::string_view text, bool wrap = false) const;
  Result<std::vector<int32_t>> encode(std::span<const TextPart> parts, bool wrap = false) const;

  // The bytes of a token, not always whole characters; empty for an id that does not exist.
  std::string_view piece(int32_t id) const;
  // The bytes of a text, without the space that encoding put before it. Control tokens are left out
  // unless asked for; ids that do not exist always are.
  std::string decode(std::span<const int32_t> ids, bool with_control = false) const;

  int32_t size() const;
  bool is_control(int32_t id) const;
  bool is_eog(int32_t id) const;  // ends a generation
  int32_t bos() const;            // -1: none, here and below
  int32_t eos() const;
  int32_t pad() const;
  std::span<const int32_t> eog() const;
  std::span<const int32_t> prefix() const;  // what `wrap` puts before a prompt
  // What the model file left open and was assumed; to be shown to whoever loads it.
  std::span<const std::string> warnings() const;
  // The id of a control or added token by its text; -1: there is none.
  int32_t special_id(std::string_view text) const;

  static constexpr size_t kMaxTextBytes = size_t{1} << 30;

  struct Parts;  // parts.h

 private:
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

Result<Tokenizer> load_tokenizer(const ModelFile& file);

}  // namespace millrace
