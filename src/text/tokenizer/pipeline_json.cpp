#include "text/tokenizer/pipeline_json.h"

#include <algorithm>
#include <array>

#include "text/tokenizer/pre_rules.h"

namespace millrace {
namespace {

using hf::Json;
using Kind = NormalizeStep::Kind;
using Behavior = SplitStep::Behavior;

constexpr int kMaxDepth = 4;       // of Sequences in Sequences
constexpr size_t kMaxGrowth = 64;  // how many times longer all steps may make a text
constexpr size_t kMaxSteps = 64;   // of one Sequence

class Reader {
 public:
  explicit Reader(Vocab& vocab) : vocab_(vocab) {}

  Status run(const Json& tokenizer) {
    vocab_.model = Vocab::Model::characters;
    MILLRACE_TRY(normalizer(hf::member(tokenizer, "normalizer"), 0));
    MILLRACE_TRY(pre_tokenizer(hf::member(tokenizer, "pre_tokenizer"), 0));
    return decoder(hf::member(tokenizer, "decoder"), 0);
  }

 private:
  // `read` on each part of a Sequence.
  template <class Read>
  Status sequence(const Json& component, const char* key, int depth, const Read& read) {
    if (depth >= kMaxDepth) return hf::unsupported(key, "Sequence in a Sequence");
    const Json& list = hf::member(component, key);
    if (!list.is_array()) return hf::wrong(key, "an array");
    if (list.size() > kMaxSteps)
      return error(Code::unsupported, "tokenizer.json: {} has {} steps; the limit is {}", key,
                   list.size(), kMaxSteps);
    for (const Json& part : list) MILLRACE_TRY(read(part, depth + 1));
    return {};
  }

  Status normalizer(const Json& json, int depth);
  Status replace(const Json& json);
  Status grows(size_t factor);
  Status pre_tokenizer(const Json& json, int depth);
  Status split(const Json& json);
  Status byte_level(const Json& json, int depth);
  Status metaspace(const Json& json);
  Status decoder(const Json& json, int depth);

  Vocab& vocab_;
  size_t growth_ = 1;
  bool after_byte_level_ = false;
};

Status Reader::grows(size_t factor) {
  growth_ *= factor;
  if (growth_ > kMaxGrowth) return hf::unsupported("normalizer", "that makes text much longer");
  return {};
}

Status Reader::normalizer(const Json& json, int depth) {
  static constexpr std::array<std::pair<std::string_view, Kind>, 4> kForms = {
      {{"NFC", Kind::nfc}, {"NFD", Kind::nfd}, {"NFKC", Kind::nfkc}, {"NFKD", Kind::nfkd}}};
  const std::string_view type = hf::type_of(json);
  if (json.is_null()) return {};
  for (const auto& [name, kind] : kForms)
    if (type == name) {
      vocab_.normalize.push_back({kind, "", ""});
      return grows(1);
    }
  if (type == "Sequence")
    return sequence(json, "normalizers", depth,
                    [&](const Json& part, int below) { return normalizer(part, below); });
  if (type == "Replace") return replace(json);
  if (type != "Prepend") return hf::unsupported("normalizer", type);
  MILLRACE_ASSIGN(const std::string text, hf::string(json, "prepend"));
  vocab_.normalize.push_back({Kind::prepend, "", text});
  return grows(1 + text.size() / 4);
}

Status Reader::replace(const Json& json) {
  const Json& pattern = hf::member(json, "pattern");
  if (!hf::member(pattern, "Regex").is_null())
    return hf::unsupported("normalizer", "Replace by a regular expression");
  MILLRACE_ASSIGN(const std::string from, hf::string(pattern, "String"));
  MILLRACE_ASSIGN(const std::string to, hf::string(json, "content"));
  if (from.empty()) return hf::wrong("the pattern of a Replace", "a text");
  vocab_.normalize.push_back({Kind::replace, from, to});
  return grows((to.size() + from.size() - 1) / from.size() + (to.empty() ? 1 : 0));
}

Status Reader::pre_tokenizer(const Json& json, int depth) {
  const std::string_view type = hf::type_of(json);
  if (json.is_null()) return {};
  if (type == "Sequence")
    return sequence(json, "pretokenizers", depth,
                    [&](const Json& part, int below) { return pre_tokenizer(part, below); });
  if (after_byte_level_)
    return hf::unsupported("pre_tokenizer", fmt::format("{} after ByteLevel", type));
  if (type == "Split") return split(json);
  if (type == "ByteLevel") return byte_level(json, depth);
  if (type == "Metaspace") return metaspace(json);
  if (type != "Digits") return hf::unsupported("pre_tokenizer", type);
  MILLRACE_ASSIGN(const bool each, hf::boolean(json, "individual_digits", false));
  vocab_.split.push_back({R"(\p{N})", false, each ? Behavior::isolated : Behavior::contiguous});
  return {};
}

Status Reader::split(const Json& json) {
  static constexpr std::array<std::pair<std::string_view, Behavior>, 5> kBehaviors = {
      {{"Isolated", Behavior::isolated},
       {"Removed", Behavior::removed},
       {"MergedWithPrevious", Behavior::merged_with_previous},
       {"MergedWithNext", Behavior::merged_with_next},
       {"Contiguous", Behavior::contiguous}}};
  const Json& pattern = hf::member(json, "pattern");
  SplitStep step;
  step.literal = !hf::member(pattern, "String").is_null();
  MILLRACE_ASSIGN(step.pattern, hf::string(pattern, step.literal ? "String" : "Regex"));
  if (step.pattern.empty()) return hf::wrong("the pattern of a Split", "a text");
  MILLRACE_ASSIGN(step.invert, hf::boolean(json, "invert", false));
  MILLRACE_ASSIGN(const std::string name, hf::string(json, "behavior"));
  const auto found = std::find_if(kBehaviors.begin(), kBehaviors.end(),
                                  [&](const auto& behavior) { return behavior.first == name; });
  if (found == kBehaviors.end()) return hf::unsupported("behavior of a Split", name);
  step.behavior = found->second;
  vocab_.split.push_back(std::move(step));
  return {};
}

Status Reader::byte_level(const Json& json, int depth) {
  vocab_.model = Vocab::Model::byte_level;
  after_byte_level_ = true;
  MILLRACE_ASSIGN(const bool prefix, hf::boolean(json, "add_prefix_space", true));
  MILLRACE_ASSIGN(const bool cuts, hf::boolean(json, "use_regex", true));
  if (prefix && (depth > 0 && !vocab_.split.empty()))
    return hf::unsupported("pre_tokenizer", "ByteLevel with add_prefix_space after another");
  if (prefix) vocab_.prepare.push_back({Kind::prepend_missing, "", " "});
  if (cuts) vocab_.split.push_back({std::string(gpt2_pattern())});
  return {};
}

Status Reader::metaspace(const Json& json) {
  if (!vocab_.split.empty() || !vocab_.prepare.empty())
    return hf::unsupported("pre_tokenizer", "Metaspace after another");
  MILLRACE_ASSIGN(const std::string mark, hf::string(json, "replacement"));
  if (mark != kSpaceMark) return hf::unsupported("replacement of a Metaspace", mark);
  MILLRACE_ASSIGN(const bool prefix, hf::boolean(json, "add_prefix_space", true));
  MILLRACE_ASSIGN(const std::string scheme, hf::string(json, "prepend_scheme"));
  vocab_.prepare.push_back({Kind::replace, " ", mark});
  const bool always = scheme == "always" || (scheme.empty() && prefix);
  if (always)
    vocab_.prepare.push_back({Kind::prepend_missing, "", mark});
  else if (scheme == "first")
    vocab_.prepare.push_back({Kind::prepend_first, "", mark});
  else if (!scheme.empty() && scheme != "never")
    return hf::unsupported("prepend_scheme of a Metaspace", scheme);
  MILLRACE_ASSIGN(const bool cuts, hf::boolean(json, "split", true));
  if (cuts) vocab_.split.push_back({mark, true, Behavior::merged_with_next});
  return {};
}

Status Reader::decoder(const Json& json, int depth) {
  const std::string_view type = hf::type_of(json);
  if (type == "Sequence")
    return sequence(json, "decoders", depth,
                    [&](const Json& part, int below) { return decoder(part, below); });
  if (type == "Strip") {
    const Json& start = hf::member(json, "start");
    if (hf::member(json, "content") == " " && start.is_number_unsigned() && start != 0)
      vocab_.strips_space = true;
  }
  if (type == "Metaspace") vocab_.strips_space = hf::member(json, "prepend_scheme") != "never";
  return {};
}

}  // namespace

Status read_pipeline(const Json& tokenizer, Vocab& vocab) {
  return Reader(vocab).run(tokenizer);
}

}  // namespace millrace
