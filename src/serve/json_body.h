// A request's body as JSON, within bounds: on its depth, and on the memory of the tree, which stays
// a small multiple of the text. Members keep their order, because templates print tools as they
// came; of a key that comes twice the last value counts. Half a surrogate pair (\ud83d alone, as
// JavaScript writes text that it cut in two) becomes U+FFFD, so that one bad cut in its history
// does not lock a session out.
#pragma once

#include <string_view>

#include "serve/api_error.h"
#include "serve/api_request.h"

namespace millrace::serve {

inline constexpr int kMaxBodyDepth = 128;

ApiResult<Json> parse_body(std::string_view text);

}  // namespace millrace::serve
