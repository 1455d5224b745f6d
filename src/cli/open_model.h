// The MODEL of a command: how it is named, and opened. One place decides which it is when none is
// named.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/app.h"
#include "files/model_file.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::cli {

// The option, for a command whose only positional the model is; without `positional`, -m and
// --model alone.
Option add_model_name(Command& command, std::string& model, bool positional = true);

// For a command with arguments behind its MODEL, which it takes `n_least` to `n_most` of: the first
// of them is the model where -m did not name one and there is one more than it needs.
Status take_model(std::string& model, std::vector<std::string>& arguments, size_t n_least,
                  size_t n_most);

// By a path, or by a name that `millrace models` lists. An empty one is the default model,
// downloaded where it is not here; if that fails, the small one that comes with the program, which
// a line on stderr says.
Result<ModelFile> open_model(const std::string& name);

// Its tokenizer; what had to be assumed of it, lines on stderr say.
Result<Tokenizer> open_tokenizer(const ModelFile& file);
void print_warnings(const Tokenizer& tokenizer);

}  // namespace millrace::cli
