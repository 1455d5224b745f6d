// The dispatch profile: which variant was measured fastest for an op's shape on this machine. The
// lab writes it, pick() reads it. It is a JSON file:
//   {"format": "millrace-profile", "version": 1, "machine": "<fingerprint>", "written": "<UTC>",
//    "entries": [{"op": "matmul", "key": "rows=1 n=576 ...", "variant": "avx512_vnni"}, ...]}
// It can only reorder variants of one numerics class, so a wrong or foreign one costs time and
// never changes a result.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace millrace {

class Profile {
 public:
  std::string machine;  // fingerprint of the machine it was measured on
  std::string written;  // UTC

  // The variant's name for this op and key; empty when there is none.
  std::string_view variant_for(std::string_view op, std::string_view key) const;
  // False when the pair already has an entry.
  bool add(std::string op, std::string key, std::string variant);
  size_t size() const { return entries_.size(); }

  // Errors name the place: "profile.json: entries[3].variant: not a string".
  static Result<Profile> parse(std::string_view text, std::string_view source);
  static Result<Profile> read(const std::filesystem::path& path);
  std::string to_json() const;
  // Replaces the file as a whole: a failure leaves the old one.
  Status write(const std::filesystem::path& path) const;

 private:
  std::map<std::pair<std::string, std::string>, std::string> entries_;
};

}  // namespace millrace
