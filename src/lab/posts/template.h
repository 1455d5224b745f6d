// The second phase of a post without a model: the plain way to tell what was asked, measured and
// found. Every number is placed by naming its claim, {{NAME}}; fill_numbers() makes it one.
#pragma once

#include <string>

#include "lab/posts/document.h"
#include "lab/posts/material.h"

namespace millrace::lab {

Document write_plainly(const Material& material, const std::string& date);

// What every post has around its text, whoever writes it: front matter from its title and first
// sentence, and the claims block.
struct PostText {
  std::string title, excerpt, body;
};
Document document_of(const Material& material, const std::string& date, const PostText& text);

// What people typed as words of a post: on one line, inert, without private parts, and without
// numbers, which nothing backs.
std::string words_of(std::string_view text);

}  // namespace millrace::lab
