#include "cli/chat_turns.h"

#include <nlohmann/json.hpp>

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

bool has_role(const Json& message, const char* role) {
  return message["role"] == role;
}

bool is_system(const Json& message) {
  return has_role(message, "system") || has_role(message, "developer");
}

}  // namespace

// What stands before the first user message counts as a turn of its own.
int n_old_turns(const Json& messages) {
  int n_users = 0;
  bool begins_with_another = false;
  for (const Json& message : messages) {
    if (has_role(message, "user"))
      ++n_users;
    else if (n_users == 0 && !is_system(message))
      begins_with_another = true;
  }
  return n_users - 1 + (begins_with_another ? 1 : 0);
}

Json without_oldest(const Json& messages, int n_turns) {
  Json out = Json::array();
  int turn = -1;  // the one that a message belongs to
  for (const Json& message : messages) {
    if (!is_system(message) && (turn < 0 || has_role(message, "user"))) ++turn;
    if (is_system(message) || turn >= n_turns) out.push_back(message);
  }
  return out;
}

}  // namespace millrace::cli
