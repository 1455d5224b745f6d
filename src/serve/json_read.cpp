#include "serve/json_read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxWarnings = 16;
// Integers above it cannot be told apart once a client has held them as doubles.
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

const Json kNone;

std::string_view type_of(const Json& json) {
  if (json.is_string()) return "a string";
  if (json.is_boolean()) return "a boolean";
  if (json.is_number()) return "a number";
  if (json.is_array()) return "an array";
  if (json.is_object()) return "an object";
  return "null";
}

std::optional<int64_t> as_integer(const Json& json) {
  if (json.is_number_unsigned())
    return static_cast<int64_t>(std::min<uint64_t>(json.get<uint64_t>(), INT64_MAX));
  if (json.is_number_integer()) return json.get<int64_t>();
  if (!json.is_number_float()) return {};
  const double value = json.get<double>();
  if (std::trunc(value) != value || std::fabs(value) > kExactIntegers) return {};
  return static_cast<int64_t>(value);
}

}  // namespace

void Reading::warn(std::string what) {
  if (warnings.size() >= kMaxWarnings) return;
  if (std::find(warnings.begin(), warnings.end(), what) == warnings.end())
    warnings.push_back(std::move(what));
}

Field Field::operator[](std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!is_object()) {
    if (given()) fail_type("an object");
    return {kNone, std::move(path), *reading_};
  }
  const auto at = json_->find(key);
  return {at == json_->end() ? kNone : *at, std::move(path), *reading_};
}

Elements Field::elements() const {
  if (given() && !is_array()) fail_type("an array");
  return Elements(*this);
}

Field Elements::Iterator::operator*() const {
  return {(*array_.json_)[index_], fmt::format("{}[{}]", array_.path_, index_), *array_.reading_};
}

bool Elements::Iterator::operator!=(End) const {
  return array_.is_array() && index_ < array_.json_->size() && array_.ok();
}

std::string Field::text(std::string_view fallback) const {
  if (!given()) return std::string(fallback);
  if (is_string()) return json_->get<std::string>();
  fail_type("a string");
  return std::string(fallback);
}

std::optional<bool> Field::boolean() const {
  if (!given()) return {};
  if (json_->is_boolean()) return json_->get<bool>();
  fail_type("true or false");
  return {};
}

std::optional<int64_t> Field::integer(int64_t low, int64_t high) const {
  if (!given()) return {};
  const auto value = as_integer(*json_);
  if (!value) {
    fail_type("an integer");
  } else if (*value < low || *value > high) {
    fail(high == INT64_MAX ? fmt::format("must be at least {}", low)
                           : fmt::format("must be from {} to {}", low, high));
    return {};
  }
  return value;
}

std::optional<float> Field::real(double low, double high) const {
  if (!given()) return {};
  if (!json_->is_number()) {
    fail_type("a number");
    return {};
  }
  const double value = json_->get<double>();
  if (value >= low && value <= high) return static_cast<float>(value);
  fail(fmt::format("must be from {} to {}", low, high));
  return {};
}

std::string Field::choice(std::span<const std::string_view> options) const {
  std::string value = text();
  if (given() && ok() && std::find(options.begin(), options.end(), value) == options.end())
    fail(fmt::format("is '{}'; it must be one of {}", printable(value, 40),
                     fmt::join(options, ", ")));
  return value;
}

const Field& Field::required() const {
  if (!given()) fail("is missing");
  return *this;
}

void Field::fail(std::string_view why) const {
  if (!reading_->ok()) return;
  reading_->error = {.kind = ApiError::Kind::invalid_request,
                     .message = fmt::format("{} {}", path_.empty() ? "the body" : path_, why),
                     .param = path_};
}

void Field::fail_type(std::string_view wanted) const {
  fail(fmt::format("is {}; it must be {}", type_of(*json_), wanted));
}

void Field::not_supported(std::string_view instead) const {
  fail(instead.empty() ? std::string("is not supported by this server")
                       : fmt::format("is not supported by this server; {}", instead));
}

void Field::warn(std::string_view what) const {
  reading_->warn(fmt::format("{} {}", path_, what));
}

}  // namespace millrace::serve
