// For tests of clients: what the model says instead of what it would. A file of JSON lines
//   {"match": "text in the last message", "say": "the answer, markers of calls included"}
// of which a request takes the first that is unused and matches ("" matches all). Sampling, usage
// and streaming go the usual way: only the choice of tokens is dictated.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "serve/api_request.h"

namespace millrace::serve {

class Script {
 public:
  static Result<std::unique_ptr<Script>> read(const std::string& path);

  // What this request is to be answered; nothing where no line is left for it. From any thread.
  std::optional<std::string> next(const ApiRequest& request);

 private:
  struct Line {
    std::string match, say;
    bool repeats = false, is_used = false;
  };
  std::mutex mutex_;
  std::vector<Line> lines_;
};

}  // namespace millrace::serve
