// Members of a JSON object from outside, checked: what is missing or of another type is an error
// that names it. The first one is kept, so a record is read whole and asked once.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace millrace::lab {

// JSON from outside, nested no deeper than any record of ours: else discarded, as what is not JSON.
inline nlohmann::ordered_json parse_shallow(std::string_view text) {
  using Json = nlohmann::ordered_json;
  constexpr int kDeepest = 8;
  bool is_deep = false;
  const auto is_kept = [&](int depth, Json::parse_event_t, Json&) {
    is_deep |= depth > kDeepest;
    return !is_deep;
  };
  Json out = Json::parse(text, is_kept, false);
  return is_deep ? Json(Json::value_t::discarded) : out;
}

class JsonFields {
 public:
  using Json = nlohmann::ordered_json;
  explicit JsonFields(const Json& object) : object_(object) {
    if (!object.is_object()) fail("it", "an object");
  }

  std::string text(const char* name) {
    const Json* found = find(name);
    if (found == nullptr || !found->is_string()) return fail(name, "text"), "";
    return found->get<std::string>();
  }
  int64_t integer(const char* name) {
    const Json* found = find(name);
    if (found == nullptr || !found->is_number_integer() ||
        (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX))
      return fail(name, "a whole number"), 0;
    return found->get<int64_t>();
  }
  double real(const char* name) {
    const Json* found = find(name);
    const double value = found != nullptr && found->is_number() ? found->get<double>() : NAN;
    if (!std::isfinite(value)) return fail(name, "a number"), 0;
    return value;
  }
  // null stands for an infinity, which JSON cannot say.
  double real_or(const char* name, double if_null) {
    const Json* found = find(name);
    return found != nullptr && found->is_null() ? if_null : real(name);
  }
  std::vector<double> reals(const char* name) {
    std::vector<double> out;
    for (const Json& item : array(name)) {
      const double value = item.is_number() ? item.get<double>() : NAN;
      if (!std::isfinite(value)) return fail(name, "numbers"), out;
      out.push_back(value);
    }
    return out;
  }
  const Json& array(const char* name) { return member(name, Json::value_t::array, "an array"); }
  const Json& object(const char* name) { return member(name, Json::value_t::object, "an object"); }
  bool has(const char* name) const { return find(name) != nullptr && !find(name)->is_null(); }

  void fail(std::string_view name, std::string_view wanted) {
    if (status_.ok()) status_ = error(Code::corrupt, "{} is not {}", name, wanted);
  }
  const Status& status() const { return status_; }

 private:
  const Json* find(const char* name) const {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    return found == object_.end() ? nullptr : &*found;
  }
  const Json& member(const char* name, Json::value_t type, std::string_view wanted) {
    static const Json kNone = Json::array();
    const Json* found = find(name);
    if (found != nullptr && found->type() == type) return *found;
    fail(name, wanted);
    return kNone;
  }

  const Json& object_;
  Status status_;
};

}  // namespace millrace::lab
