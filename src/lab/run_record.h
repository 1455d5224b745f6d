// A whole run as one JSON object: a line of an export, and the text whose SHA-256 seals the run.
// The same record gives the same text on every machine, so a digest can be checked after an import.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/status.h"
#include "lab/store.h"

namespace millrace::lab {

// Without its digest and what a database adds (id, origin, experiment).
nlohmann::ordered_json document_of(const RunRecord& record);
std::string digest_of(const RunRecord& record);

// From outside: every member is checked for its type, and numbers that must be finite are.
Result<RunRecord> parse_run_record(const nlohmann::ordered_json& document);

}  // namespace millrace::lab
