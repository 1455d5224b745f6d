// A repository of Hugging Face, or of a server that speaks like it (HF_ENDPOINT): what it lists,
// which of its files make the model that was asked for, and getting those. File names in a listing
// are the server's words and become paths only after they were checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/digest.h"
#include "hub/pull.h"

namespace millrace {

struct HubName {
  std::string repo;   // OWNER/REPO
  std::string quant;  // as it was asked for; empty: whatever fits best
};
// OWNER/REPO[:QUANT]
Result<HubName> parse_hub_name(std::string_view text);

struct HubFile {
  std::string path;  // inside the repository, as the server spells it
  uint64_t bytes = 0;
  Checksum checksum;
};
struct HubListing {
  std::string revision;  // the commit; "main" when the server names none
  std::vector<HubFile> files;
};
// What /api/models/OWNER/REPO/revision/main?blobs=true answers.
Result<HubListing> parse_listing(const std::string& json);

// The files of one model, in the order to get them: all parts of the GGUF of that quantisation
// (Q4_K_M, or the only one there is, when none was asked for), or a directory of safetensors with
// its config.json last, for the catalog knows a whole one by it. The error lists what there is.
Result<std::vector<HubFile>> choose_files(const HubListing& listing, const HubName& name);

Result<Pulled> pull_hub(const HubName& name, const Environment& environment,
                        const PullWatch& watch);

}  // namespace millrace
