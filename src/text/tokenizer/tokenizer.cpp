#include "text/tokenizer/tokenizer.h"

#include <algorithm>

#include "text/tokenizer/parts.h"

namespace millrace {

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::string_view Tokenizer::Parts::piece(int32_t id) const {
  if (!exists(id)) return {};
  const auto i = static_cast<size_t>(id);
  const uint32_t begin = i == 0 ? 0 : ends[i - 1];
  return std::string_view(bytes).substr(begin, ends[i] - begin);
}

std::string_view Tokenizer::piece(int32_t id) const {
  return parts_->piece(id);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool with_control) const {
  std::string out;
  bool at_start = parts_->vocab.strips_space;
  for (const int32_t id : ids) {
    std::string_view bytes = piece(id);
    if (is_control(id)) {
      if (with_control) out += bytes;
      continue;
    }
    if (at_start && bytes.starts_with(' ')) bytes.remove_prefix(1);
    at_start = at_start && bytes.empty();
    out += bytes;
  }
  return out;
}

int32_t Tokenizer::size() const {
  return static_cast<int32_t>(parts_->ends.size());
}

bool Tokenizer::is_control(int32_t id) const {
  return parts_->exists(id) &&
         (parts_->type(id) == TokenType::control || parts_->type(id) == TokenType::unknown);
}

bool Tokenizer::is_eog(int32_t id) const {
  return std::binary_search(parts_->eog.begin(), parts_->eog.end(), id);
}

std::span<const std::string> Tokenizer::warnings() const {
  return parts_->vocab.warnings;
}

int32_t Tokenizer::bos() const {
  return parts_->vocab.bos;
}
int32_t Tokenizer::eos() const {
  return parts_->vocab.eos;
}
int32_t Tokenizer::pad() const {
  return parts_->vocab.pad;
}
std::span<const int32_t> Tokenizer::eog() const {
  return parts_->eog;
}
std::span<const int32_t> Tokenizer::prefix() const {
  return parts_->vocab.prefix;
}

int32_t Tokenizer::special_id(std::string_view text) const {
  const auto& tokens = parts_->vocab.tokens;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenType type = parts_->vocab.types[i];
    const bool special =
        type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
    if (special && tokens[i] == text) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace millrace
