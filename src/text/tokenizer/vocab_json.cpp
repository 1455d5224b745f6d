// A Vocab from Hugging Face's tokenizer.json and the files beside it: tokens, merges, and which of
// them begin and end a text. What is done to the text before is read in pipeline_json.cpp.
#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "text/tokenizer/hf_json.h"
#include "text/tokenizer/pipeline_json.h"
#include "text/tokenizer/text_index.h"
#include "text/tokenizer/token_lists.h"
#include "text/tokenizer/vocab.h"

namespace millrace {
namespace {

using hf::Json;

// Ids may have gaps, but a small file does not make a large table.
constexpr size_t kMaxGap = 1 << 16;
// Files in use put one or two tokens around a text.
constexpr size_t kMaxWrap = 256;

class Reader {
 public:
  Result<Vocab> run(const HfFiles& files) {
    const auto take = [&](int depth, Json::parse_event_t event, const Json& value) {
      return lists_.visit(depth, event, value);
    };
    MILLRACE_ASSIGN(const Json json, hf::parse(files.tokenizer, "tokenizer.json", take));
    const Json& model = hf::member(json, "model");
    MILLRACE_TRY(check_model(model));
    MILLRACE_TRY(lists_.status());
    MILLRACE_TRY(read_tokens(hf::member(model, "vocab"), hf::member(json, "added_tokens")));
    MILLRACE_TRY(read_model(model));
    MILLRACE_TRY(read_pipeline(json, vocab_));
    MILLRACE_TRY(read_byte_tokens());
    MILLRACE_TRY(read_template(hf::member(json, "post_processor"), 0));
    MILLRACE_TRY(read_beside(files));
    return std::move(vocab_);
  }

 private:
  Status check_model(const Json& model);
  Status read_tokens(const Json& tokens, const Json& added);
  Status place(std::string_view text, int64_t id);
  Status index_tokens();
  Status read_added(const Json& token);
  Status read_model(const Json& model);
  Status read_merges(const Json& merges);
  Status read_byte_tokens();
  Status read_template(const Json& processor, int depth);
  Status read_single(const Json& single, const Json& specials);
  Status wrap(const Json& ids, std::string_view name, std::vector<int32_t>& list);
  Status read_beside(const HfFiles& files);
  Status read_eos_ids(const Json& config);
  Status read_eos_id(const Json& id);
  int32_t named(const Json& config, const char* key) const;
  int32_t find(std::string_view text) const { return index_.find(text); }

  hf::TokenLists lists_;
  Vocab vocab_;
  TextIndex index_;
  size_t max_id_ = 0;
};

Status Reader::check_model(const Json& model) {
  if (!model.is_object()) return hf::wrong("model", "an object");
  MILLRACE_ASSIGN(const std::string type, hf::string(model, "type"));
  const bool has_merges = hf::member(model, "merges").is_array();
  if (type != "BPE" && !(type.empty() && has_merges)) return hf::unsupported("model", type);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    MILLRACE_ASSIGN(const std::string affix, hf::string(model, key));
    if (!affix.empty()) return hf::unsupported(key, affix);
  }
  const Json& dropout = hf::member(model, "dropout");
  if (!dropout.is_null() && dropout != 0) return hf::unsupported("model option", "dropout");
  return {};
}

Status Reader::read_tokens(const Json& tokens, const Json& added) {
  if (!tokens.is_object()) return hf::wrong("model.vocab", "an object");
  if (!added.is_null() && !added.is_array()) return hf::wrong("added_tokens", "an array");
  const size_t n = lists_.n_tokens() + (added.is_array() ? added.size() : 0);
  max_id_ = std::min(2 * n + kMaxGap, kMaxTokens) - 1;
  vocab_.tokens.reserve(n);
  for (size_t i = 0; i < lists_.n_tokens(); ++i)
    MILLRACE_TRY(place(lists_.token(i).text, lists_.token(i).id));
  for (const Json& token : added) MILLRACE_TRY(read_added(token));
  vocab_.types.resize(vocab_.tokens.size(), TokenType::unused);
  return index_tokens();
}

Status Reader::index_tokens() {
  const auto n_gaps = std::count(vocab_.tokens.begin(), vocab_.tokens.end(), "");
  index_ = TextIndex(vocab_.tokens.size() - static_cast<size_t>(n_gaps));
  for (size_t i = 0; i < vocab_.tokens.size(); ++i)
    if (!vocab_.tokens[i].empty() && !index_.insert(vocab_.tokens[i], static_cast<int32_t>(i)))
      return hf::wrong("model.vocab", "an honest vocabulary");
  return {};
}

Status Reader::place(std::string_view text, int64_t id) {
  const auto i = static_cast<uint64_t>(id);
  if (i > max_id_)
    return error(Code::corrupt, "tokenizer.json: the id of '{}' is {}; the limit here is {}",
                 printable(text, 64), id, max_id_);
  if (i >= vocab_.tokens.size()) {
    vocab_.tokens.resize(i + 1);
    vocab_.types.resize(i + 1, TokenType::unused);
  }
  if (!vocab_.tokens[i].empty() && vocab_.tokens[i] != text)
    return error(Code::corrupt, "tokenizer.json: '{}' and '{}' both have the id {}",
                 printable(vocab_.tokens[i], 64), printable(text, 64), i);
  vocab_.tokens[i] = text;
  vocab_.types[i] = TokenType::normal;
  return {};
}

Status Reader::read_added(const Json& token) {
  if (!token.is_object()) return hf::wrong("an added token", "an object");
  MILLRACE_ASSIGN(const std::string text, hf::string(token, "content"));
  const Json& id = hf::member(token, "id");
  if (!id.is_number_unsigned() || id.get<uint64_t>() > uint64_t{INT32_MAX})
    return hf::wrong(fmt::format("the id of '{}'", printable(text, 40)), "the number of a token");
  MILLRACE_TRY(place(text, id.get<int64_t>()));
  Vocab::Added added;
  added.id = id.get<int32_t>();
  MILLRACE_ASSIGN(const bool special, hf::boolean(token, "special", false));
  MILLRACE_ASSIGN(added.normalized, hf::boolean(token, "normalized", !special));
  MILLRACE_ASSIGN(added.lstrip, hf::boolean(token, "lstrip", false));
  MILLRACE_ASSIGN(added.rstrip, hf::boolean(token, "rstrip", false));
  MILLRACE_ASSIGN(added.single_word, hf::boolean(token, "single_word", false));
  vocab_.types[static_cast<size_t>(added.id)] =
      special ? TokenType::control : TokenType::user_defined;
  vocab_.added.push_back(added);
  return {};
}

Status Reader::read_model(const Json& model) {
  MILLRACE_ASSIGN(vocab_.ignore_merges, hf::boolean(model, "ignore_merges", false));
  MILLRACE_ASSIGN(vocab_.byte_fallback, hf::boolean(model, "byte_fallback", false));
  MILLRACE_ASSIGN(vocab_.fuse_unknown, hf::boolean(model, "fuse_unk", false));
  MILLRACE_ASSIGN(const std::string unknown, hf::string(model, "unk_token"));
  if (!unknown.empty()) {
    vocab_.unknown = find(unknown);
    if (vocab_.unknown < 0)
      return error(Code::corrupt, "tokenizer.json: the unk_token '{}' is no token",
                   printable(unknown, 64));
    TokenType& type = vocab_.types[static_cast<size_t>(vocab_.unknown)];
    if (type == TokenType::normal) type = TokenType::unknown;
  }
  return read_merges(hf::member(model, "merges"));
}

Status Reader::read_merges(const Json& merges) {
  if (!merges.is_array()) return hf::wrong("model.merges", "an array");
  vocab_.merges.reserve(lists_.n_merges());
  std::string joined;
  for (size_t i = 0; i < lists_.n_merges(); ++i) {
    const auto [left, right] = lists_.merge(i);
    joined.assign(left).append(right);
    const Vocab::Merge merge{find(left), find(right), find(joined)};
    if (merge.left < 0 || merge.right < 0 || merge.joined < 0)
      return error(Code::corrupt,
                   "tokenizer.json: model.merges[{}] ('{}' and '{}') names no tokens", i,
                   printable(left, 64), printable(right, 64));
    vocab_.merges.push_back(merge);
  }
  return {};
}

Status Reader::read_byte_tokens() {
  if (vocab_.model == Vocab::Model::byte_level || !vocab_.byte_fallback) return {};
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t id = find(fmt::format("<0x{:02X}>", byte));
    if (id >= 0) vocab_.types[static_cast<size_t>(id)] = TokenType::byte;
  }
  return {};
}

Status Reader::read_template(const Json& processor, int depth) {
  const std::string_view type = hf::type_of(processor);
  if (type.empty() || type == "ByteLevel") return {};
  if (type == "Sequence" && depth < 4) {
    const Json& list = hf::member(processor, "processors");
    if (!list.is_array()) return hf::wrong("post_processor.processors", "an array");
    for (const Json& part : list) MILLRACE_TRY(read_template(part, depth + 1));
    return {};
  }
  if (type != "TemplateProcessing") return hf::unsupported("post_processor", type);
  return read_single(hf::member(processor, "single"), hf::member(processor, "special_tokens"));
}

Status Reader::read_single(const Json& single, const Json& specials) {
  if (!single.is_array()) return hf::wrong("post_processor.single", "an array");
  bool after = false;
  for (const Json& part : single) {
    if (!hf::member(part, "Sequence").is_null()) {
      after = true;
      continue;
    }
    MILLRACE_ASSIGN(const std::string name, hf::string(hf::member(part, "SpecialToken"), "id"));
    const Json& ids = hf::member(hf::member(specials, name.c_str()), "ids");
    if (!ids.is_array()) return hf::wrong(fmt::format("the template's '{}'", name), "known");
    MILLRACE_TRY(wrap(ids, name, after ? vocab_.suffix : vocab_.prefix));
  }
  return {};
}

// A name stands for any number of ids and may be used any number of times: the product is bounded
// before it is made.
Status Reader::wrap(const Json& ids, std::string_view name, std::vector<int32_t>& list) {
  if (ids.size() > kMaxWrap - std::min(kMaxWrap, vocab_.prefix.size() + vocab_.suffix.size()))
    return error(Code::unsupported,
                 "tokenizer.json: post_processor puts more than {} tokens around a text, at '{}'",
                 kMaxWrap, printable(name, 40));
  for (const Json& id : ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab_.tokens.size())
      return hf::wrong(fmt::format("an id of the template's '{}'", printable(name, 40)), "a token");
    list.push_back(id.get<int32_t>());
  }
  return {};
}

int32_t Reader::named(const Json& config, const char* key) const {
  const Json& value = hf::member(config, key);
  const Json& text = value.is_object() ? hf::member(value, "content") : value;
  return text.is_string() ? find(text.get_ref<const std::string&>()) : -1;
}

Status Reader::read_eos_ids(const Json& config) {
  const Json& eos = hf::member(config, "eos_token_id");
  if (!eos.is_array()) return read_eos_id(eos);
  for (const Json& id : eos) MILLRACE_TRY(read_eos_id(id));
  return {};
}

Status Reader::read_eos_id(const Json& id) {
  if (id.is_null()) return {};
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab_.tokens.size())
    return error(Code::corrupt, "eos_token_id {} is no token",
                 id.is_number() ? id.dump() : std::string(id.type_name()));
  vocab_.eog.push_back(id.get<int32_t>());
  if (vocab_.eos < 0) vocab_.eos = vocab_.eog.back();
  return {};
}

Status Reader::read_beside(const HfFiles& files) {
  MILLRACE_ASSIGN(const Json tokenizer, hf::parse(files.tokenizer_config, "tokenizer_config.json"));
  MILLRACE_ASSIGN(const Json config, hf::parse(files.config, "config.json"));
  MILLRACE_ASSIGN(const Json generation, hf::parse(files.generation, "generation_config.json"));
  vocab_.bos = named(tokenizer, "bos_token");
  vocab_.eos = named(tokenizer, "eos_token");
  vocab_.pad = named(tokenizer, "pad_token");
  MILLRACE_TRY(read_eos_ids(generation));
  MILLRACE_TRY(read_eos_ids(config));
  if (vocab_.bos < 0 && !vocab_.prefix.empty()) vocab_.bos = vocab_.prefix[0];
  const auto want = [&](const char* key, std::vector<int32_t>& list, int32_t id) -> Status {
    MILLRACE_ASSIGN(const bool wanted, hf::boolean(tokenizer, key, !list.empty()));
    const bool there = std::find(list.begin(), list.end(), id) != list.end();
    if (wanted && !there && id >= 0) list.insert(list.begin(), id);
    if (!wanted) std::erase(list, id);
    return {};
  };
  MILLRACE_TRY(want("add_bos_token", vocab_.prefix, vocab_.bos));
  return want("add_eos_token", vocab_.suffix, vocab_.eos);
}

}  // namespace

Result<Vocab> vocab_from_tokenizer_json(const HfFiles& files) {
  return Reader().run(files);
}

}  // namespace millrace
