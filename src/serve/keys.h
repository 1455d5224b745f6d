// Who may use the server: secret keys, each with the name of a tenant. Keys come from a file or an
// environment variable, never from arguments, which every user of the machine can read. Only their
// SHA-256 is kept, and no message, log line or warning names one.
//
// One key per line (or comma): `KEY` or `NAME:KEY`, with the word `admin` and a space before it
// where it also opens the admin routes. Empty lines and lines that start with # are skipped.
//   alice:sk-3f9a...
//   admin ops:sk-77c0...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "serve/http.h"

namespace millrace::serve {

class Keys {
 public:
  struct Holder {
    std::string tenant;  // its name; "key-" and 8 digits of the key's hash where it has none
    bool is_admin = false;
  };

  static Result<Keys> from_text(std::string_view text, std::string_view where);
  static Result<Keys> from_file(const std::string& path);
  Status add(Keys other);

  bool empty() const { return entries_.empty(); }
  // Null where it is nobody's. Takes as long for any key: each is compared to the end.
  const Holder* find(std::string_view key) const;
  // By `Authorization: Bearer KEY` or `x-api-key: KEY`; clients that have two send both.
  const Holder* find(const HttpRequest& request) const;

  // What an operator should fix: a file that others can read, a key that can be guessed.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Entry {
    std::string digest;
    Holder holder;
  };

  Status add_line(std::string_view line, std::string_view where);
  Status add_entry(Entry entry, std::string_view where);

  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
};

// Takes the key's headers out of a request, before anyone could log them.
void remove_keys(HttpHeaders& headers);

}  // namespace millrace::serve
