// A post as a file: Jekyll's front matter and Markdown. Of YAML it takes what it writes itself,
// keys that it knows with quoted text, plain words or lists; a number in a value is bound by a
// comment behind it, which YAML does not show:
//
//   title: "The ninth row costs 1.83x"  # =step
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/posts/claims_block.h"

namespace millrace::lab {

struct FrontLine {
  std::string key;
  std::vector<std::string> items;  // one, unless it is a list
  bool is_list = false;
  bool is_plain = false;                 // without quotes: a date, true, a word
  std::vector<std::string> claims = {};  // of the numbers in it, in order
  int line = 0;
};

struct Document {
  std::vector<FrontLine> front;
  std::string body;   // with the claims block
  int body_line = 1;  // of its first line in the file

  const FrontLine* find(std::string_view key) const;
  std::string text(std::string_view key) const;  // of one item; empty: there is none
  bool is_true(std::string_view key) const { return text(key) == "true"; }
  void set(const std::string& key, const std::string& value, bool is_plain);
};

Result<Document> parse_document(std::string_view markdown);
std::string to_text(const Document& document);

// Where the block lies in the body, and what it says; an error where there is none, or two.
struct FoundBlock {
  size_t begin = 0, end = 0;
  ClaimsBlock block;
};
Result<FoundBlock> find_claims(const Document& document);

// "2026-11-18", of a day that exists.
bool is_date(std::string_view text);

}  // namespace millrace::lab
