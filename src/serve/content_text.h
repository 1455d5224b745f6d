// The text of a message's content, in any dialect: a string, null, or a list of parts. The models
// here read text only: an image, a sound or a file becomes a placeholder and a warning, because an
// agent that looked at one picture must not be locked out for it.
#pragma once

#include <string>

#include "serve/json_read.h"

namespace millrace::serve {

// Parts are joined by newlines, so that one text and a list of it alone are the same prompt: Claude
// Code sends a message as either, from one turn to the next.
std::string content_text(const Field& content);
std::string part_text(const Field& part);
void append_part(std::string& text, std::string_view part);

}  // namespace millrace::serve
