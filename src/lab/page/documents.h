// The lab's data as JSON documents, for the page, for /lab/api and for the static site: what each
// path below /lab/api answers. All of it is read-only; texts in it are whatever people and agents
// wrote, and are only ever text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "lab/notebook/notebook.h"
#include "lab/page/params.h"

namespace millrace::lab {

struct Ask {
  Notebook& notebook;
  const Machine& machine;  // what learnings are compared with
  const Params& params;
  int64_t id = 0;  // of a path that names a record
};

struct Endpoint {
  std::string_view name;    // "runs", or "run/" where an id follows
  std::string_view what;    // for people
  std::string_view params;  // names it knows, separated by spaces
  Result<nlohmann::ordered_json> (*read)(const Ask& ask);
};

std::span<const Endpoint> endpoints();

// `path`: what follows /lab/api/. not_found where there is no such document.
Result<nlohmann::ordered_json> read_document(Notebook& notebook, const Machine& machine,
                                             std::string_view path, const Params& params);

}  // namespace millrace::lab
