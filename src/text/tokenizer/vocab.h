// Everything a tokenizer is made of, as plain data, whichever file it came from: GGUF's metadata or
// Hugging Face's tokenizer.json. Tokenizer::make() checks it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/split.h"

namespace millrace {

class Gguf;
class GgufWriter;
class ModelFile;

// As GGUF numbers them.
enum class TokenType : unsigned char {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct Vocab {
  // How text becomes the first symbols and which of them join.
  enum class Model : unsigned char {
    byte_level,  // bytes, spelled as GPT-2 does; pairs join by the list of merges
    characters,  // characters; by the list of merges
    scores,      // characters; any pair that is a token, the one of the highest score first
  };
  // What tokenizer.json says of a token that text is searched for before it is cut.
  struct Added {
    int32_t id = -1;
    bool normalized = false;  // searched for in the normalised text
    bool lstrip = false, rstrip = false, single_word = false;
  };
  struct Merge {
    int32_t left = -1, right = -1, joined = -1;
  };

  Model model = Model::byte_level;
  std::vector<std::string> tokens;  // as the file spells them; empty: this id has none
  std::vector<TokenType> types;
  std::vector<float> scores;  // of `scores` alone
  std::vector<Merge> merges;  // best first
  std::vector<Added> added;
  std::vector<NormalizeStep> normalize;
  std::vector<NormalizeStep> prepare;  // after tokens of the normalised text were found
  std::vector<SplitStep> split;
  bool ignore_merges = false;  // a word that is a token stays whole
  bool byte_fallback = false;  // a character without a token becomes <0xNN>...
  bool fuse_unknown = false;   // neighbouring unknown characters make one token
  bool strips_space = false;   // decoding drops the space that encoding put before the text
  int32_t bos = -1, eos = -1, unknown = -1, pad = -1;  // -1: none
  std::vector<int32_t> eog;             // ends of a generation that the file names, beside eos
  std::vector<int32_t> prefix, suffix;  // what encoding puts around a prompt when asked to
  std::vector<std::string> warnings;    // what the file left open, and what was assumed instead
};

// Whether a token of this text ends a generation, whatever the file says of it.
bool ends_by_name(std::string_view token);

// What SentencePiece's tokens write for a space.
inline constexpr std::string_view kSpaceMark = "\u2581";

// The most tokens a vocabulary may have.
inline constexpr size_t kMaxTokens = 1 << 22;

Result<Vocab> vocab_from_gguf(const Gguf& file);

// The files beside tokenizer.json that say which tokens begin and end; each may be empty.
struct HfFiles {
  std::string tokenizer;         // tokenizer.json
  std::string tokenizer_config;  // tokenizer_config.json
  std::string config;            // config.json
  std::string generation;        // generation_config.json
};
Result<Vocab> vocab_from_tokenizer_json(const HfFiles& files);

// From whichever of them the model has.
Result<Vocab> load_vocab(const ModelFile& file);

// Into GGUF's metadata, of at least `n_tokens` tokens: ids without one become unused tokens, as
// other readers want them. What GGUF cannot say is an error: a tokenizer never changes in passing.
Status write_vocab(const Vocab& vocab, int64_t n_tokens, GgufWriter& writer);

}  // namespace millrace
