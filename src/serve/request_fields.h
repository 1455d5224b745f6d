// Fields that mean the same in every dialect, those of local servers that clients have come to rely
// on among them. Each function reads what is given and leaves the rest as it was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/api_request.h"
#include "serve/dialect.h"
#include "serve/json_read.h"

namespace millrace::serve {

inline constexpr int kMaxChoices = 128;
inline constexpr size_t kMaxStops = 64, kMaxStopBytes = 1024;
inline constexpr size_t kMaxBiases = 4096;

// model, stream, sampling, thinking, session, salt, priority and the other extras.
void read_common(const Field& body, const HeaderOf& header, ApiRequest& out);

// "30m", "1h", "24h" in seconds, a week at most; 0 where it is nothing of the kind.
double read_time(std::string_view text);

// A token count of at least one; -1 where it is not given.
int64_t read_max_tokens(const Field& field);
// A string or an array of them; empty ones are left out.
std::vector<std::string> read_stops(const Field& field);
void read_biases(const Field& field, AskedSampling& out);
// none, minimal, low, medium, high; what is above high is high.
void read_effort(const Field& field, Reasoning& out);
// {"type": "enabled" | "disabled" | "adaptive", "budget_tokens": N}, as Anthropic has it.
void read_thinking(const Field& field, Reasoning& out);

// {"type": "text" | "json_object" | "json_schema", ...} with the schema in `holder`: the field
// itself, or its member json_schema.
ResponseFormat read_format(const Field& field, const Field& holder);

// What every parse ends with.
ApiResult<ApiRequest> finish(ApiRequest request, Reading reading);

}  // namespace millrace::serve
