#include "files/json.h"

#include <filesystem>
#include <fstream>

#include "base/utf8.h"

namespace millrace {
namespace {

using Json = nlohmann::json;
using Event = JsonEvent;

// What a tree may take: any small one, and of a large one more than files in use take (8 bytes for
// each of their own at most). Lists of empty lists would take 30.
constexpr size_t kFreeBytes = 4 << 20, kBytesPerByte = 12;

// Of an element in the tree: its place in a list that doubles or in a map, and what it owns, each
// with what malloc() adds.
size_t bytes_of(Event event, const Json& value) {
  const size_t text = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
  switch (event) {
    case Event::object_start:
      return 96;
    case Event::array_start:
      return 80;
    case Event::key:
      return 96 + text;
    case Event::value:
      return value.is_string() ? 80 + text : 32;
    default:
      return 0;
  }
}

// Builds the tree out of a parse's events, and ends the parse at the first thing that is too much.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(size_t text_bytes, const JsonVisitor& visit)
      : limit_(kFreeBytes + kBytesPerByte * text_bytes), visit_(visit) {}

  Json root;
  std::string problem;

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override { return value(v); }
  bool number_unsigned(number_unsigned_t v) override { return value(v); }
  bool number_float(number_float_t v, const string_t&) override { return value(v); }
  bool string(string_t& v) override { return value(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override;
  bool start_object(size_t) override { return start(Event::object_start, Json::object()); }
  bool end_object() override { return end(Event::object_end); }
  bool start_array(size_t) override { return start(Event::array_start, Json::array()); }
  bool end_array() override { return end(Event::array_end); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    problem = fmt::format("not valid JSON at byte {}", position);
    return false;
  }

 private:
  int depth() const { return static_cast<int>(open_.size()); }
  // Whether it goes into the tree.
  bool wanted(Event event, Json& value) { return !visit_ || visit_(depth(), event, value); }
  bool pay(Event event, const Json& value);
  bool value(Json v);
  bool start(Event event, Json empty);
  bool end(Event event);
  Json& put(Json v);

  const size_t limit_;
  const JsonVisitor& visit_;
  size_t bytes_ = 0;
  std::vector<Json*> open_;  // each the last element of the one before it
  std::string key_;          // of the value to come
  bool key_wanted_ = true;
  size_t n_skipped_ = 0;  // open containers that are left out
};

bool Builder::pay(Event event, const Json& value) {
  bytes_ += bytes_of(event, value);
  if (bytes_ <= limit_) return true;
  problem = fmt::format("this JSON takes more than {} bytes of memory", limit_);
  return false;
}

Json& Builder::put(Json v) {
  if (open_.empty()) return root = std::move(v);
  if (open_.back()->is_object()) return (*open_.back())[key_] = std::move(v);
  open_.back()->push_back(std::move(v));
  return open_.back()->back();
}

bool Builder::key(string_t& name) {
  if (n_skipped_ > 0) return true;
  Json shown = std::move(name);
  key_wanted_ = wanted(Event::key, shown);
  if (!key_wanted_) return true;
  if (!pay(Event::key, shown)) return false;
  key_ = std::move(shown.get_ref<std::string&>());
  return true;
}

bool Builder::value(Json v) {
  if (n_skipped_ > 0) return true;
  const bool keep = wanted(Event::value, v);
  if (!std::exchange(key_wanted_, true) || !keep) return true;
  if (!pay(Event::value, v)) return false;
  put(std::move(v));
  return true;
}

bool Builder::start(Event event, Json empty) {
  if (depth() + static_cast<int>(n_skipped_) >= kMaxJsonDepth) {
    problem = fmt::format("JSON nested more than {} deep", kMaxJsonDepth);
    return false;
  }
  const bool keep = n_skipped_ == 0 && wanted(event, empty);
  if (!keep || !std::exchange(key_wanted_, true)) {
    ++n_skipped_;
    return true;
  }
  if (!pay(event, empty)) return false;
  open_.push_back(&put(std::move(empty)));
  return true;
}

bool Builder::end(Event event) {
  if (n_skipped_ > 0) {
    if (--n_skipped_ == 0) key_wanted_ = true;
    return true;
  }
  Json* const ended = open_.back();
  open_.pop_back();
  if (wanted(event, *ended) || open_.empty()) return true;
  if (open_.back()->is_array())
    open_.back()->erase(open_.back()->size() - 1);
  else
    *ended = nullptr;
  return true;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view file, const JsonVisitor& visit) {
  Builder builder(text.size(), visit);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.root);
  return error(Code::corrupt, "{}: {}", printable(file), builder.problem);
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed) return error(Code::not_found, "cannot read {}: {}", path, failed.message());
  if (bytes > max_bytes)
    return error(Code::corrupt, "{}: {} bytes, more than {}", path, bytes, max_bytes);
  std::string text(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(bytes)))
    return error(Code::io_error, "cannot read {}", path);
  return text;
}

const Json* JsonFields::find(std::string_view key) const {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

Result<int64_t> JsonFields::integer(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return error(Code::not_found, "{}: '{}' is missing", printable(file_), key);
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX}))
    return bad(key, "is not an integer");
  return value->get<int64_t>();
}

Result<int64_t> JsonFields::integer_or(std::string_view key, int64_t fallback) const {
  return find(key) == nullptr ? fallback : integer(key);
}

Result<double> JsonFields::real_or(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) return bad(key, "is not a number");
  return value->get<double>();
}

Result<bool> JsonFields::boolean_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return bad(key, "is neither true nor false");
  return value->get<bool>();
}

Result<std::string> JsonFields::string_or(std::string_view key, std::string_view fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return bad(key, "is not a string");
  return value->get<std::string>();
}

Status JsonFields::bad(std::string_view key, std::string_view why) const {
  return error(Code::corrupt, "{}: '{}' {}", printable(file_), printable(key, 200), why);
}

Status JsonFields::unsupported(std::string_view key, std::string_view why) const {
  return error(Code::unsupported, "{}: '{}' {}", printable(file_), printable(key, 200), why);
}

}  // namespace millrace
