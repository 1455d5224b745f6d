#include "text/tokenizer/pre_rules.h"

#include "base/utf8.h"

namespace millrace {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// What the later families share: contractions in either case, and how blanks end.
#define MILLRACE_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define MILLRACE_BLANKS R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define MILLRACE_UPPER_WORD R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define MILLRACE_LOWER_WORD R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

constexpr const char* kLlama3 = MILLRACE_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" MILLRACE_BLANKS;

constexpr const char* kQwen2 = MILLRACE_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" MILLRACE_BLANKS;

constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?)" MILLRACE_UPPER_WORD "*" MILLRACE_LOWER_WORD "+" MILLRACE_CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?)" MILLRACE_UPPER_WORD "+" MILLRACE_LOWER_WORD "*" MILLRACE_CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" MILLRACE_BLANKS;

constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?)" MILLRACE_UPPER_WORD "*" MILLRACE_LOWER_WORD
                                "+"
                                R"(|[^\r\n\p{L}\p{N}]?)" MILLRACE_UPPER_WORD "+" MILLRACE_LOWER_WORD
                                "*"
                                R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" MILLRACE_BLANKS;

#undef MILLRACE_CONTRACTIONS
#undef MILLRACE_BLANKS
#undef MILLRACE_UPPER_WORD
#undef MILLRACE_LOWER_WORD

// The cased letters that DeepSeek LLM keeps together, spelled out because its list is older than
// the Unicode of today.
constexpr const char* kDeepseekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
    R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943})"
    R"(]+)";
constexpr const char* kDeepseekMarks =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kDeepseekCjk = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

// The family writes \s+$, which tries every start and every length of a run of blanks; this finds
// the same in one go.
constexpr const char* kBlanksAtEnd = R"((?<!\s)\s++$)";

constexpr const char* kDeepseek3Cjk = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kDeepseek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct KnownRule {
  std::vector<std::string_view> names;
  std::vector<const char*> patterns;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

// Hugging Face normalises Qwen's text to NFC, and so do we; llama.cpp does not.
const std::vector<KnownRule>& known_rules() {
  static const std::vector<KnownRule> kKnown = {
      {{"default", ""}, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {{"gpt-2", "phi-2", "olmo", "mpt"}, {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell"}, {R"(\p{N})", kGpt2}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"},
       {kLlama3},
       false,
       true,
       true},
      {{"qwen2"}, {kQwen2}, true},
      {{"deepseek-r1-qwen", "megrez", "stablelm2"}, {kQwen2}},
      {{"deepseek-llm"},
       {R"([\r\n])", kDeepseekLetters, kDeepseekMarks, kBlanksAtEnd, kDeepseekCjk, R"(\p{N}+)"}},
      {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, R"(\p{N})"}},
      {{"deepseek-v3"}, {R"(\p{N}{1,3})", kDeepseek3Cjk, kDeepseek3Words}},
      {{"gpt-4o", "llama4"}, {kGpt4o}},
      {{"tekken"}, {kTekken}, false, true, true},
  };
  return kKnown;
}

PreRule rule_of(const KnownRule& known) {
  PreRule rule;
  if (known.nfc) rule.normalize.push_back({NormalizeStep::Kind::nfc, "", ""});
  for (const char* pattern : known.patterns) rule.split.push_back({pattern});
  rule.ignore_merges = known.ignore_merges;
  rule.add_bos = known.add_bos;
  return rule;
}

// One spelling for what tokenizer.json spells in several ways: characters beyond ASCII by number.
SplitStep spelled(SplitStep step) {
  if (step.literal) return step;
  if (step.pattern == R"(\s+$)") step.pattern = kBlanksAtEnd;
  std::string out;
  for (size_t at = 0; at < step.pattern.size();) {
    const Utf8Char c = decode_utf8(step.pattern, at);
    if (c.code < 0x80)
      out += step.pattern[at];
    else
      out += fmt::format("\\x{{{:X}}}", static_cast<uint32_t>(c.code));
    at += c.bytes;
  }
  step.pattern = out;
  return step;
}

}  // namespace

Result<PreRule> pre_rule_named(std::string_view name) {
  std::string names;
  for (const KnownRule& known : known_rules())
    for (const std::string_view alias : known.names) {
      if (alias == name) return rule_of(known);
      if (!alias.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", alias);
    }
  return error(Code::unsupported, "the pre-tokenizer '{}' is not supported; supported are: {}",
               printable(name, 64), names);
}

std::string_view pre_rule_name(const std::vector<NormalizeStep>& normalize,
                               const std::vector<SplitStep>& split, bool ignore_merges) {
  std::vector<SplitStep> wanted;
  for (const SplitStep& step : split) wanted.push_back(spelled(step));
  for (const KnownRule& known : known_rules()) {
    const PreRule rule = rule_of(known);
    if (rule.normalize == normalize && rule.split == wanted && rule.ignore_merges == ignore_merges)
      return known.names.front();
  }
  return "";
}

std::string_view gpt2_pattern() {
  return kGpt2;
}

}  // namespace millrace
