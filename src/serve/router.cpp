#include "serve/router.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace::serve {
namespace {

// How specific a pattern is for this path: 0 where it does not match.
size_t specificity(std::string_view pattern, std::string_view path) {
  if (pattern == path) return SIZE_MAX;
  if (!pattern.ends_with("/*")) return 0;
  const std::string_view under = pattern.substr(0, pattern.size() - 1);
  return path.starts_with(under) ? under.size() : 0;
}

bool has(const std::vector<std::string_view>& methods, std::string_view method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

}  // namespace

Router::Match Router::find(std::string_view method, std::string_view path) const {
  size_t best = 0;
  for (const Route& route : routes_) best = std::max(best, specificity(route.path, path));
  Match out;
  const Route* get = nullptr;
  for (const Route& route : routes_) {
    if (best == 0 || specificity(route.path, path) != best) continue;
    if (!has(out.methods, route.method)) out.methods.push_back(route.method);
    if (route.method == method && out.route == nullptr) out.route = &route;
    if (route.method == "GET" && get == nullptr) get = &route;
  }
  if (out.route == nullptr && method == "HEAD") out.route = get;
  return out;
}

std::string allow_list(const std::vector<std::string_view>& methods) {
  std::vector<std::string_view> all = methods;
  if (has(all, "GET") && !has(all, "HEAD")) all.push_back("HEAD");
  if (!has(all, "OPTIONS")) all.push_back("OPTIONS");
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace millrace::serve
