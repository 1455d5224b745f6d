// Renders templates for ./test clients: one JSON object a line in ({template, variables, now}), one
// a line out ({ok, text} or {ok, error}).
#include <fmt/format.h>

#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/template/template.h"

namespace {

using Json = nlohmann::ordered_json;

millrace::Result<std::string> render(const Json& job) {
  MILLRACE_ASSIGN(const auto parsed,
                  millrace::jinja::Template::parse(job["template"].get_ref<const std::string&>()));
  const std::time_t seconds = job.value("now", 0);
  std::tm now{};
  gmtime_r(&seconds, &now);
  MILLRACE_ASSIGN(const auto rendered, parsed.render(job["variables"], {}, now));
  return rendered.text();
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = render(Json::parse(line));
    Json out = {{"ok", text.ok()}};
    if (text.ok())
      out["text"] = text.value();
    else
      out["error"] = text.status().message();
    std::cout << out.dump() << std::endl;
  }
}
