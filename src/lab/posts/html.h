// The Markdown that a post may hold, as HTML: headings, paragraphs, lists, tables, quotations,
// code, emphasis, links and pictures. Everything else is text and is escaped; comments are left
// out.
#pragma once

#include <string>
#include <string_view>

namespace millrace::lab {

std::string html_of(std::string_view markdown);

}  // namespace millrace::lab
