// JSON as text: how every document of the house is printed, stored or sent. Names from the system,
// arguments and messages need not be UTF-8; a bad byte is replaced, never thrown over. It takes
// either kind of document of the JSON library and so includes none of it.
#pragma once

#include <string>

namespace millrace {

// indent: -1 for one line.
template <class Json>
std::string json_text(const Json& document, int indent = -1) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace millrace
