// The chat template that a model file brings, with the special tokens it prints.
#pragma once

#include "base/status.h"
#include "files/model_file.h"
#include "text/template/chat_template.h"

namespace millrace {

// A model without one gets the built-in template (ChatTemplate::is_builtin).
Result<ChatTemplate> chat_template_of(const ModelFile& file);
// Another template with the model's special tokens.
Result<ChatTemplate> chat_template_of(const ModelFile& file, std::string_view source);

}  // namespace millrace
