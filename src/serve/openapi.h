// The OpenAPI 3.1 document of all routes, for /openapi.json: what they take, what they answer, and
// with which statuses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::serve {

// A route that another folder mounts beside ours: GET, with parameters of its query, answered by a
// JSON object.
struct MountedRoute {
  std::string path = {};  // "/lab/api/run/{id}"
  std::string id = {}, summary = {};
  std::vector<std::string> params = {};
};

std::string openapi_document(std::string_view version,
                             const std::vector<MountedRoute>& mounted = {});

}  // namespace millrace::serve
