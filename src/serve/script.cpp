#include "serve/script.h"

#include <sstream>

#include "files/json.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

std::string last_text(const ApiRequest& request) {
  if (request.chat.messages.empty()) return {};
  return request.chat.messages.back().dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<Script>> Script::read(const std::string& path) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path, kMaxBytes));
  auto out = std::make_unique<Script>();
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    MILLRACE_ASSIGN(const nlohmann::json json, parse_json(line, path));
    if (!json.is_object() || !json.contains("say") || !json["say"].is_string())
      return error(Code::invalid_argument, "{}: a line of a script needs a string \"say\"", path);
    out->lines_.push_back({json.value("match", ""), json["say"], json.value("repeat", false)});
  }
  return out;
}

std::optional<std::string> Script::next(const ApiRequest& request) {
  const std::string text = last_text(request);
  const std::lock_guard lock(mutex_);
  for (Line& line : lines_) {
    if (line.is_used || text.find(line.match) == std::string::npos) continue;
    line.is_used = !line.repeats;
    return line.say;
  }
  return {};
}

}  // namespace millrace::serve
