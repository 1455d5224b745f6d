// Typed reading of a request's JSON. A Field is one value and the path that leads to it; reading it
// as what it is not, or out of range, is an error that names that path. The first error is kept and
// later reads give their fallback, so that a parser reads all it wants in a row and looks once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api_error.h"
#include "serve/api_request.h"

namespace millrace::serve {

struct Reading {
  ApiError error = {};
  std::vector<std::string> warnings = {};

  bool ok() const { return error.ok(); }
  // Each once, and not without end: a client may have a thousand images.
  void warn(std::string what);
};

class Elements;

class Field {
 public:
  // A body; it and `reading` outlive all that is read of it.
  Field(const Json& body, Reading& reading) : json_(&body), reading_(&reading) {}

  bool given() const { return !json_->is_null(); }  // null counts as absent
  bool is_string() const { return json_->is_string(); }
  bool is_array() const { return json_->is_array(); }
  bool is_object() const { return json_->is_object(); }
  const Json& json() const { return *json_; }
  const std::string& path() const { return path_; }

  // A member; not given where there is none, or where this is not given. Of anything but an object
  // it is an error.
  Field operator[](std::string_view key) const;
  // Of an array, up to the first that is wrong; none where this is not given.
  Elements elements() const;

  std::string text(std::string_view fallback = "") const;
  std::optional<bool> boolean() const;
  bool flag(bool fallback = false) const { return boolean().value_or(fallback); }
  // 3.0 is an integer as well.
  std::optional<int64_t> integer(int64_t low, int64_t high) const;
  std::optional<float> real(double low, double high) const;
  // One of the options; empty where it is not given.
  std::string choice(std::span<const std::string_view> options) const;

  // Itself, and an error where it is not given.
  const Field& required() const;
  // An error that says "PATH WHY".
  void fail(std::string_view why) const;
  void fail_type(std::string_view wanted) const;
  // It would change the answer and is not done here.
  void not_supported(std::string_view instead = "") const;
  void warn(std::string_view what) const;
  bool ok() const { return reading_->ok(); }

 private:
  Field(const Json& json, std::string path, Reading& reading)
      : json_(&json), path_(std::move(path)), reading_(&reading) {}

  friend class Elements;

  const Json* json_;
  std::string path_ = {};
  Reading* reading_;
};

// For loops over an array. Each Field is made when it is looked at: an array of a million numbers
// must not become a million paths.
class Elements {
 public:
  explicit Elements(Field array) : array_(std::move(array)) {}

  struct End {};
  class Iterator {
   public:
    explicit Iterator(const Field& array) : array_(array) {}
    Field operator*() const;
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(End) const;

   private:
    const Field& array_;
    size_t index_ = 0;
  };
  Iterator begin() const { return Iterator(array_); }
  End end() const { return {}; }

 private:
  Field array_;
};

}  // namespace millrace::serve
