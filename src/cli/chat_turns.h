// A conversation as turns: a user's message and what follows until the next one. System messages
// belong to none.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace millrace::cli {

// Turns before the last user message, which is the question to answer.
int n_old_turns(const nlohmann::ordered_json& messages);

// The conversation without its `n_turns` oldest turns; system messages stay.
nlohmann::ordered_json without_oldest(const nlohmann::ordered_json& messages, int n_turns);

}  // namespace millrace::cli
