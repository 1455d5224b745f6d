#include "serve/json_body.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace millrace::serve {
namespace {

using Object = Json::object_t;  // a vector of pairs, whose own lookups go through all of them

// What a tree may take: any small one, and of a large one more than requests in use take. Lists of
// empty lists would take 30 bytes for each of their own.
constexpr size_t kFreeBytes = 4 << 20, kBytesPerByte = 12;
// From here on an object's keys are hashed: below it, looking at all of them is faster.
constexpr size_t kManyKeys = 16;

// Builds the tree out of a parse's events, and ends the parse at the first thing that is too much.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(size_t text_bytes) : limit_(kFreeBytes + kBytesPerByte * text_bytes) {}

  Json root;
  std::string problem;

  bool null() override { return put(nullptr, 32); }
  bool boolean(bool v) override { return put(v, 32); }
  bool number_integer(number_integer_t v) override { return put(v, 32); }
  bool number_unsigned(number_unsigned_t v) override { return put(v, 32); }
  bool number_float(number_float_t v, const string_t&) override { return put(v, 32); }
  bool string(string_t& v) override {
    const size_t bytes = v.size();
    return put(std::move(v), 80 + bytes);
  }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return pay(96 + key_.size());
  }
  bool start_object(size_t) override { return start(Json::object(), 96); }
  bool end_object() override { return end(); }
  bool start_array(size_t) override { return start(Json::array(), 80); }
  bool end_array() override { return end(); }
  bool parse_error(size_t position, const std::string&, const Json::exception& what) override {
    constexpr int kNumberTooLarge = 406;
    const bool large = what.id == kNumberTooLarge;
    problem = fmt::format("the body {} at byte {}",
                          large ? "has a number that is too large" : "is not valid JSON", position);
    return false;
  }

 private:
  struct Open {
    Json* json;  // stays where it is while it is open: what is around it does not grow
    std::unordered_map<std::string, size_t> keys = {};  // of an object with many
  };

  bool pay(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= limit_) return true;
    problem = fmt::format("the body takes more than {} bytes of memory once parsed", limit_);
    return false;
  }
  bool put(Json v, size_t bytes) { return pay(bytes) && (add(std::move(v)), true); }
  bool start(Json empty, size_t bytes) {
    if (open_.size() >= kMaxBodyDepth) {
      problem = fmt::format("the body nests more than {} deep", kMaxBodyDepth);
      return false;
    }
    if (!pay(bytes)) return false;
    Json& at = add(std::move(empty));
    open_.push_back({.json = &at});
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }
  Json& add(Json v);
  Json& member(Open& open);

  const size_t limit_;
  size_t bytes_ = 0;
  std::vector<Open> open_;
  std::string key_;  // of the value to come
};

// The value of key_, a new one where there was none.
Json& Builder::member(Open& open) {
  auto& object = open.json->get_ref<Object&>();
  if (object.size() < kManyKeys) {
    for (auto& [name, value] : object)
      if (name == key_) return value;
  } else {
    if (open.keys.empty())
      for (const auto& [name, value] : object) open.keys.emplace(name, open.keys.size());
    const auto [at, added] = open.keys.emplace(key_, object.size());
    if (!added) return (object.begin() + static_cast<std::ptrdiff_t>(at->second))->second;
  }
  object.emplace_back(std::move(key_), Json());
  return object.back().second;
}

Json& Builder::add(Json v) {
  if (open_.empty()) return root = std::move(v);
  Open& open = open_.back();
  if (open.json->is_object()) return member(open) = std::move(v);
  open.json->push_back(std::move(v));
  return open.json->back();
}

// The unit of UTF-16 that an escape stands for; 0 where there is none at `at`.
unsigned escaped_unit(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
  unsigned unit = 0;
  const char* const end = text.data() + at + 6;
  const auto [last, problem] = std::from_chars(text.data() + at + 2, end, unit, 16);
  return problem == std::errc() && last == end ? unit : 0;
}

bool is_high(unsigned unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low(unsigned unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

// Where escapes stand for half a surrogate pair.
std::vector<size_t> lone_surrogates(std::string_view text) {
  std::vector<size_t> out;
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const unsigned unit = escaped_unit(text, at);
    const bool pair = is_high(unit) && is_low(escaped_unit(text, at + 6));
    if (!pair && (is_high(unit) || is_low(unit))) out.push_back(at);
    at += pair ? 12 : 2;
  }
  return out;
}

ApiError refused(std::string message) {
  return {.kind = ApiError::Kind::invalid_request, .message = std::move(message)};
}

ApiResult<Json> parse(std::string_view text) {
  Builder builder(text.size());
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.root);
  if (const size_t at = first_broken_byte(text); at < text.size())
    return refused(fmt::format("the body is not valid UTF-8 at byte {}", at));
  return refused(builder.problem);
}

}  // namespace

ApiResult<Json> parse_body(std::string_view text) {
  if (text.empty()) return refused("the body is empty; send a JSON object");
  ApiResult<Json> out;
  if (const auto lone = lone_surrogates(text); lone.empty()) {
    out = parse(text);
  } else {
    std::string repaired(text);
    for (const size_t at : lone) repaired.replace(at + 2, 4, "fffd");
    out = parse(repaired);
  }
  const Json* const body = std::get_if<Json>(&out);
  if (body != nullptr && !body->is_object()) return refused("the body must be a JSON object");
  return out;
}

}  // namespace millrace::serve
